"""A follower's own endpoint: where its leader reaches it (bus.md a, FOLLOWER SERVER ORDER)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tenure.adapters.awaiting import heard
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.serving.ledger import RequestKey
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.desk import Desk, Handle
from tenure.adapters.fleet.ending import ended_within, note_error
from tenure.adapters.ports import Ports, tell

STOP_S: Final = 2.0
"""Longer than the server's own bound: whatever hangs then is left to itself."""


class Receiver:
    """The endpoint, from `start` to `stop`, once. Without an active secret it refuses everything."""

    def __init__(
        self,
        ports: Ports,
        path: str,
        *,
        secret: Callable[[], str | None],
        handle: Handle,
        stands: Callable[[RequestKey], bool],
        limits: Limits | None = None,
    ) -> None:
        self._ports = ports
        self._desk = Desk(ports, secret=secret, handle=handle, stands=stands, limits=limits)
        self._endpoint = Endpoint(path, self._desk.server)
        self.path = self._endpoint.path
        """Where it is found, mapped if it was too long: who connects may have another directory for temporary files."""
        self._starting: asyncio.Task[None] | None = None
        self._healing: asyncio.Task[None] | None = None
        self._stopped = False

    async def start(self) -> None:
        """Publish it, unless it is. Several may wait for the same start, and none of them ends it by its cancellation.
        Raises `EndpointError`."""
        if self._stopped:
            raise TenureError(f"{self.path}: this follower has stopped; make a new one")
        if self._endpoint.serving:
            return
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._endpoint.start())
            heard(self._starting)
            self._starting.add_done_callback(self._started)
        await asyncio.shield(self._starting)

    def heal_soon(self) -> None:
        """Publish it again where its path vanished (A61), while heartbeats go on. What stands in the way is noted."""
        if self._healing is None and self._endpoint.missing():
            self._healing = asyncio.ensure_future(self._heal())
            self._healing.add_done_callback(lambda healing: note_error(self._ports, healing))

    async def _heal(self) -> None:
        try:
            if await self._endpoint.heal():
                tell(self._ports, "fleet", "healed", path=self.path)
        except TenureError as error:
            tell(self._ports, "fleet", "heal", error=str(error))
        finally:
            self._healing = None

    async def stop(self) -> None:
        """End it, within `STOP_S`, whatever its handlers do; a cancellation of the caller does not keep it from
        ending."""
        self._stopped = True
        if self._starting is not None:
            self._starting.cancel()
        if self._healing is not None:
            self._healing.cancel()
        self._desk.close()
        await ended_within(self._ports, STOP_S, self._endpoint.stop())

    def _started(self, starting: asyncio.Task[None]) -> None:
        self._starting = None
