"""A queue of updates in a process of its own, as getUpdates has it, on a Unix socket; and its client, a `Source`.

    python -m tenure.adapters.testing.updates PATH      # prints "ready"

Asking with a cursor forgets what lies at or below it, a newer request ends the older one with a conflict, a request
waits for an update as long as it says, and who hangs up polls no more. What is pushed stays until it is forgotten; an
update without an id gets the next one. One JSON line a request, one request a connection:

    {"do": "get", "cursor": 7, "limit": 10, "timeout": 30}   ->  {"updates": [...]} or {"conflict": true}
    {"do": "push", "updates": [...]}                         ->  {"last": 9}
    {"do": "look"}                                           ->  {"confirmed": 7, "waiting": [8, 9], ...}
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any, Final

from tenure.adapters.bus.messages.json_values import Json, load
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.work.source import Conflict, SourceFailed

LIMIT: Final = 1 << 24
Line = dict[str, Any]


class Queue:
    """The updates of one token."""

    def __init__(self) -> None:
        self.waiting: dict[int, Line] = {}
        self.confirmed = -1
        self.last = 0
        self.polls = 0
        self.conflicts = 0
        self._news = asyncio.Event()

    async def get(self, request: Line) -> Line:
        """The answer to a poll."""
        cursor = int(request["cursor"])
        if cursor < -1:
            raise ValueError("a negative offset asks for the last ones, and forgets all others: nobody should")
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
        """New updates; one that was forgotten is not taken again."""
        for update in request["updates"]:
            number = update.get("update_id", self.last + 1)
            self.last = max(self.last, number)
            if number > self.confirmed:
                self.waiting[number] = {**update, "update_id": number}
        self._wake()
        return {"last": self.last}

    def look(self) -> Line:
        """What is there, and what has come of it."""
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
    """Answers one line of each connection."""

    def __init__(self) -> None:
        self.queue = Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            if not (line := await reader.readline()):
                return  # it was killed before it asked
            answer = await self._answer(json.loads(line), reader)
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


async def serve(path: str, *, said: str = "") -> None:
    """Answer on a new socket at `path` until killed. `said` is printed as soon as it is there."""
    server = await asyncio.start_unix_server(Server().serve, path, limit=LIMIT)
    if said:
        print(said, flush=True)
    async with server:
        await server.serve_forever()


def confirmed(path: Path) -> int:
    """Up to which update the queue at `path` has forgotten; -1: none. For who has no event loop."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        connection.sendall(b'{"do": "look"}\n')
        found = json.loads(connection.makefile("rb").readline())
    return int(found["confirmed"])


class Updates:
    """The source of such a queue; a connection for each request. Raises SourceFailed where nobody answers."""

    def __init__(self, path: Path | str, token: str | None = None) -> None:
        """The token is made up of the path, if none is given: it says whose updates they are."""
        self._path = str(path)
        self.bot = identity_of_token(token or f"7:{path}")

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        """See `Source`."""
        answer = await self._asks(do="get", cursor=cursor, limit=limit, timeout=timeout_s)
        if answer.get("conflict"):
            raise Conflict("409: somebody else polls this queue")
        return tuple(Json(update) for update in answer["updates"])

    async def push(self, *updates: Line) -> int:
        """New updates. The highest id that there is now."""
        return int((await self._asks(do="push", updates=list(updates)))["last"])

    async def look(self) -> Line:
        """What is in the queue, and what has come of it."""
        return await self._asks(do="look")

    async def _asks(self, **request: Any) -> Line:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=LIMIT)
        except OSError as error:
            raise SourceFailed(f"{self._path}: nobody answers ({error.strerror})") from error
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        except OSError as error:
            raise SourceFailed(f"{self._path}: no answer ({error.strerror})") from error
        finally:
            writer.close()
        found = load(line) if line.endswith(b"\n") else None
        if not isinstance(found, dict):
            raise SourceFailed(f"{self._path}: no answer")
        return found


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], said="ready"))
