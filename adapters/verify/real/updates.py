"""A queue of updates in a process of its own, as getUpdates has it, and its client: what workplaces of a run poll.

Asking with a cursor forgets what lies at or below it, a newer request ends the older one with a conflict, and who hangs
up polls no more. Ids are given out here, ascending. One JSON line a request, one request a connection.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any, Final

from tenure.adapters.bus.messages.json_values import Json, load
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.work.source import Conflict, SourceFailed

LIMIT: Final = 1 << 24
Line = dict[str, Any]


class _Queue:
    """The updates of one token."""

    def __init__(self) -> None:
        self.waiting: dict[int, Line] = {}
        self.confirmed = -1
        self.last = 0
        self.polls = 0
        self.news = asyncio.Event()

    async def get(self, request: Line) -> Line:
        self.polls += 1
        number, cursor = self.polls, int(request["cursor"])
        self._wake()
        if cursor >= 0:
            self.confirmed = max(self.confirmed, cursor)
            self.waiting = {n: update for n, update in self.waiting.items() if n > cursor}
        try:
            async with asyncio.timeout(request["timeout"]):
                while not self.waiting:
                    await self.news.wait()
                    if number != self.polls:
                        return {"conflict": True}
        except TimeoutError:
            return {"updates": []}
        return {"updates": [self.waiting[n] for n in sorted(self.waiting)[: request["limit"]]]}

    def push(self, request: Line) -> Line:
        for message in request["messages"]:
            self.last += 1
            self.waiting[self.last] = {"update_id": self.last, "message": {"message_id": self.last, **message}}
        self._wake()
        return {"last": self.last}

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class _Server:
    def __init__(self) -> None:
        self.queue = _Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            answer = await self._answer(json.loads(line), reader) if line else None
            if answer is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except OSError:
            return  # it was killed
        finally:
            writer.close()

    async def _answer(self, request: Line, reader: asyncio.StreamReader) -> Line | None:
        if request["do"] == "push":
            return self.queue.push(request)
        if request["do"] == "look":
            return {"confirmed": self.queue.confirmed, "last": self.queue.last}
        polling = asyncio.ensure_future(self.queue.get(request))
        hung_up = asyncio.ensure_future(reader.read(1))
        await asyncio.wait([polling, hung_up], return_when=asyncio.FIRST_COMPLETED)
        hung_up.cancel()
        if polling.done():
            return polling.result()
        polling.cancel()
        return None


def serve(path: Path) -> None:
    """Until killed."""

    async def serves() -> None:
        server = await asyncio.start_unix_server(_Server().serve, str(path), limit=LIMIT)
        async with server:
            await server.serve_forever()

    asyncio.run(serves())


def confirmed(path: Path) -> int:
    """Up to which update the queue at `path` has forgotten; -1: none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        connection.sendall(b'{"do": "look"}\n')
        found = json.loads(connection.makefile("rb").readline())
    return int(found["confirmed"])


class Updates:
    """The source of such a queue."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.bot = identity_of_token("7:real")

    async def get_updates(self, cursor: int, limit: int, timeout_s: int) -> tuple[Json, ...]:
        """See `Source`."""
        answer = await self._asks(do="get", cursor=cursor, limit=limit, timeout=timeout_s)
        if answer.get("conflict"):
            raise Conflict("409: somebody else polls this queue")
        return tuple(Json(update) for update in answer["updates"])

    async def push(self, *messages: Line) -> None:
        """New messages."""
        await self._asks(do="push", messages=list(messages))

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
