"""One published endpoint: a path under which a server is found (bus.md a, ENDPOINT PUBLICATION and SELF-HEAL; I11).

    server = BusServer(parse, handle)
    async with Endpoint(leader_path(directory, key), server, publish=inside_the_transaction):
        ...

The path is a symbolic link to a private socket in the same directory, with a relative target. A new publication renames
a new link over it, for a leader inside the ownership transaction; so whoever owns last is who is found. A stop removes
the private socket and never the link: it may be somebody else's by then (M11, A59). A link that leads nowhere counts as
missing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol, TypeVar

from tenure.adapters.awaiting import heard, to_its_end
from tenure.adapters.bus.endpoints.calls import EndpointCalls, PosixCalls
from tenure.adapters.bus.endpoints.listening import EndpointError, Listening
from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.bus.serving.limits import Limits

__all__ = ["LEGACY_STEP_MS", "LEGACY_WAIT_MS", "Endpoint", "EndpointError", "Publish", "Serving", "unconditionally"]

T = TypeVar("T")
Publish = Callable[[Callable[[], None]], Awaitable[object]]
"""Calls what it is given inside of the transaction that proves ownership, in any thread; raises where it is lost."""

LEGACY_WAIT_MS: Final = 2_000
LEGACY_STEP_MS: Final = 25


class Serving(Protocol):
    """What serves at an endpoint: `BusServer` does."""

    @property
    def limits(self) -> Limits:
        """Its backlog is the listening socket's."""

    def accept_from(self, listening: socket.socket) -> None:
        """Serve what connects to this socket."""

    def leave(self, listening: socket.socket) -> None:
        """Accept no more from it."""

    async def stop(self) -> None:
        """Serve no more."""


async def unconditionally(rename: Callable[[], None]) -> None:
    """`Publish` for a follower: its endpoint is nobody else's."""
    rename()


class Endpoint:
    """A server's published endpoint. Its methods are called on one event loop; file work is done in threads."""

    def __init__(
        self,
        path: str,
        server: Serving,
        *,
        publish: Publish = unconditionally,
        calls: EndpointCalls | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`path` as `leader_path` and `follower_path` say it; it is mapped where it is too long. `pause` waits so many
        seconds."""
        self.path = endpoint_path(path)
        self._server = server
        self._publish = publish
        self._calls: EndpointCalls = calls if calls is not None else PosixCalls()
        self._pause = pause
        self._listening: Listening | None = None
        self._starting = False
        self._stops = 0
        self._healing: asyncio.Task[bool] | None = None

    @property
    def serving(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._listening is not None

    async def start(self) -> None:
        """Publish. Raises `EndpointError` where that is impossible, and whatever `publish` raises, above all for lost
        ownership: then nothing of it is left, and what was found at the path before still is."""
        if self._listening is not None or self._starting:
            raise EndpointError(f"{self.path}: this endpoint serves already; stop it first")
        self._starting = True
        try:
            self._listening = await self._published()
        finally:
            self._starting = False
        if self._listening is None:
            raise EndpointError(f"{self.path}: stopped while it was being published")

    async def stop(self) -> None:
        """End the server and its connections, and remove the private socket. The path is left as it is."""
        self._stops += 1
        listening, self._listening = self._listening, None
        if listening is not None:
            self._retire(listening)
        healing = self._healing
        if healing is not None:
            healing.cancel()
        await self._server.stop()
        if healing is not None:
            await asyncio.wait([healing], timeout=self._server.limits.stop_ms / 1000)

    def missing(self) -> bool:
        """Whether it serves, and cannot be found: its path is gone, or leads to no socket. One call on the files."""
        return self._listening is not None and not self._calls.leads_to_socket(self.path)

    async def heal(self) -> bool:
        """If it is missing, publish it again (A61); whether that was done. Connections and requests go on, and nothing
        but the endpoint is touched. Several callers share one attempt; a stop meanwhile abandons it. Raises as `start`.
        """
        if self._healing is None:
            if not self.missing():
                return False
            self._healing = asyncio.ensure_future(self._heal())
            heard(self._healing)  # nobody may wait so long
            self._healing.add_done_callback(self._healed)
        healing = self._healing
        try:
            return await asyncio.shield(healing)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if healing.cancelled() and task is not None and not task.cancelling():
                return False
            raise

    async def __aenter__(self) -> Endpoint:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _heal(self) -> bool:
        before = self._listening
        listening = await self._published()
        if listening is None:
            return False
        self._listening = listening
        if before is not None:
            self._retire(before)
        return True

    def _healed(self, healing: asyncio.Task[bool]) -> None:
        self._healing = None

    async def _published(self) -> Listening | None:
        """A socket that is listened to, and found under the path; None where there was a stop meanwhile."""
        stops = self._stops
        await self._let_legacy_end()
        listening = Listening(self._calls, self.path)

        def rename() -> None:
            if stops != self._stops:
                raise EndpointError(f"{self.path}: stopped while it was being published")
            listening.publish()

        try:
            await _in_thread(lambda: listening.open(self._server.limits.backlog))
            if stops == self._stops:
                assert listening.end is not None
                self._server.accept_from(listening.end)
                await self._publish(rename)
        except asyncio.CancelledError:
            self._retire(listening)
            raise
        except Exception as error:
            self._retire(listening)
            if stops != self._stops:
                return None
            raise (_impossible(self.path, error) if isinstance(error, OSError) else error) from error
        if stops == self._stops:
            return listening
        self._retire(listening)
        return None

    def _retire(self, listening: Listening) -> None:
        if listening.end is not None:
            self._server.leave(listening.end)
        listening.close()

    async def _let_legacy_end(self) -> None:
        """Where the path itself is a socket, wait for its server to end: an older release that is being replaced."""
        for step in range(LEGACY_WAIT_MS // LEGACY_STEP_MS + 1):
            if step:
                await self._pause(LEGACY_STEP_MS / 1000)
            try:
                node = self._calls.node(self.path)
                if node.standing in ("absent", "link"):
                    return
                if node.obstacle:
                    raise EndpointError(f"{self.path}: {node.obstacle} stands there; move it away")
                listener = self._calls.probe(self.path)
            except OSError as error:
                raise _impossible(self.path, error) from error
            if listener == "dead":
                return
        raise EndpointError(f"{self.path}: an older process serves there; end it first")


def _impossible(path: str, error: OSError) -> EndpointError:
    return EndpointError(
        f"{path}: no endpoint can be made there: {error.strerror or error}; make it writable for this user"
    )


async def _in_thread(call: Callable[[], T]) -> T:
    """Do file work off the loop. Cancelled, it is waited for: it is never left running."""
    return await to_its_end(asyncio.get_running_loop().run_in_executor(None, call))
