"""A queue of updates in a process of its own, as getUpdates has it, on a Unix socket; and its client.

    python -m tests.real.update_server PATH      # prints "ready"

Asking with a cursor forgets what lies at or below it, a newer request ends the older one with a conflict, and a request
waits for an update as long as it says. What is pushed stays until it is forgotten. One JSON line a request, one a
connection:

    {"do": "get", "cursor": 7, "limit": 10, "timeout": 30}   ->  {"updates": [...]} or {"conflict": true}
    {"do": "push", "updates": [...]}                         ->  {"pushed": 3}
    {"do": "look"}                                           ->  {"confirmed": 7, "waiting": [8, 9], ...}
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from tenure.adapters.bus.messages.json_values import Json, load
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.work.source import Conflict, SourceFailed

LIMIT: Final = 2**24
Line = dict[str, Any]


class Queue:
    """The updates of one token."""

    def __init__(self) -> None:
        self.waiting: dict[int, Line] = {}
        self.confirmed = -1
        self.polls = 0
        self.conflicts = 0
        self._news = asyncio.Event()

    async def get(self, request: Line) -> Line:
        cursor = int(request["cursor"])
        assert cursor >= -1, "a negative offset asks for the last ones, and forgets all others"
        self.polls += 1
        number = self.polls
        self._wake()
        if cursor >= 0:
            self.confirmed = max(self.confirmed, cursor)
            self.waiting = {n: update for n, update in self.waiting.items() if n > cursor}
        try:
            async with asyncio.timeout(request["timeout"]):
                while not self.waiting:
                    await self._news.wait()
                    if number != self.polls:
                        self.conflicts += 1
                        return {"conflict": True}
        except TimeoutError:
            return {"updates": []}
        return {"updates": [self.waiting[n] for n in sorted(self.waiting)[: request["limit"]]]}

    def push(self, request: Line) -> Line:
        for update in request["updates"]:
            if update["update_id"] > self.confirmed:
                self.waiting[update["update_id"]] = update
        self._wake()
        return {"pushed": len(request["updates"])}

    def look(self) -> Line:
        return {
            "confirmed": self.confirmed,
            "waiting": sorted(self.waiting),
            "polls": self.polls,
            "conflicts": self.conflicts,
        }

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Server:
    """Answers one line of each connection. Who hangs up polls no more."""

    def __init__(self) -> None:
        self.queue = Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not (line := await reader.readline()):
                return  # it was killed before it asked
            request = json.loads(line)
            answer = await self._answer(request, reader)
            if answer is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except OSError:
            return  # it has gone
        finally:
            writer.close()

    async def _answer(self, request: Line, reader: asyncio.StreamReader) -> Line | None:
        if request["do"] == "push":
            return self.queue.push(request)
        if request["do"] == "look":
            return self.queue.look()
        polling = asyncio.ensure_future(self.queue.get(request))
        hung_up = asyncio.ensure_future(reader.read(1))
        await asyncio.wait([polling, hung_up], return_when=asyncio.FIRST_COMPLETED)
        hung_up.cancel()
        if polling.done():
            return polling.result()
        polling.cancel()
        return None


async def _serve(path: str) -> None:
    server = await asyncio.start_unix_server(Server().serve, path, limit=LIMIT)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


class UpdateClient:
    """The source of such a queue; a connection for each request."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.bot = identity_of_token(f"7:{path}")

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        answer = await self.asks(do="get", cursor=cursor, limit=limit, timeout=timeout_s)
        if answer.get("conflict"):
            raise Conflict("409: somebody else polls this queue")
        return tuple(Json(update) for update in answer["updates"])

    async def push(self, *updates: Line) -> None:
        """New updates."""
        await self.asks(do="push", updates=list(updates))

    async def look(self) -> Line:
        """What is in the queue, and what has come of it."""
        return await self.asks(do="look")

    async def asks(self, **request: Any) -> Line:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LIMIT)
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        finally:
            writer.close()
        if not line.endswith(b"\n"):
            raise SourceFailed(f"{self._path}: no answer")
        found = load(line)
        assert isinstance(found, dict)
        return found


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
