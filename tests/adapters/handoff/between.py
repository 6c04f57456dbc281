"""A socket between two that loses, doubles, holds back or falsifies what it is told to."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Literal

Fate = Literal["pass", "lose", "drop", "twice", "cut"]
"""lose: the request never comes. drop: its answer never comes back. twice: it comes twice, and the second answer goes
back. cut: it comes, and nobody waits for its answer."""


class Between:
    """Listens at `path`, and passes on to `target`; what befalls each kind of request is said by `fates`, once each."""

    def __init__(self, target: str) -> None:
        self._room = tempfile.TemporaryDirectory(prefix="tenure-")
        self.path = f"{self._room.name}/between.sock"
        self.target = target
        self.fates: dict[str, list[Fate]] = {}
        """By kind: of the next request, the one after it..."""
        self.hold: asyncio.Event | None = None
        """While it is set up and not set, requests wait here before they go on; who sent them may have gone by then."""
        self.held = 0
        self.seen: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.falsify: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        """What becomes of an answer."""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[object]] = set()
        self._cut: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Between:
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=2**24)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        for other in self._cut:
            other.close()
        for serving in tuple(self._serving):
            serving.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        self._room.cleanup()

    async def again(self, number: int = -1, **changed: Any) -> dict[str, Any]:
        """The same request once more, from nobody: what it is answered."""
        line = json.dumps({**self.seen[number], **changed}).encode() + b"\n"
        answer = json.loads(await self._ask(line))
        assert isinstance(answer, dict)
        return answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        # Cancelled at the end: asyncio's own callback of this task is not prepared for that.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError), closing(writer):
            line = await reader.readline()
            if not line:
                return
            request = json.loads(line)
            self.seen.append(request)
            fates = self.fates.get(request["kind"], [])
            fate: Fate = fates.pop(0) if fates else "pass"
            if fate == "lose":
                return
            if self.hold is not None:
                self.held += 1
                await self.hold.wait()
            if fate == "cut":
                _, other = await asyncio.open_unix_connection(self.target, limit=2**24)
                other.write(line)
                await other.drain()
                self._cut.append(other)
                return
            answered = await self._ask(line)
            if fate == "twice":
                answered = await self._ask(line)
            if not answered:
                return  # the recipient has closed
            answer = json.loads(answered)
            self.answers.append(answer)
            if fate == "drop":
                return
            if self.falsify is not None:
                answer = self.falsify(answer)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()

    async def _ask(self, line: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self.target, limit=2**24)
        with closing(writer):
            writer.write(line)
            await writer.drain()
            return await reader.readline()
