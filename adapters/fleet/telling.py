"""Telling somebody what a member is: each change once, one after the other, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from tenure.adapters.fleet.roles import Following, Leading, Role, Seeking
from tenure.adapters.ports import Ports, tell

V = TypeVar("V")


class Teller:
    """The role of one member, and who is told of it.

    A callback may bring the next change about (it serves another session): that one is told when the callback has
    returned. So the edges of availability alternate, whatever callbacks do.
    """

    def __init__(
        self,
        ports: Ports,
        on_role: Callable[[Role], None] | None,
        on_available: Callable[[bool], None] | None,
        on_error: Callable[[], None],
    ) -> None:
        """`on_error` is told of each exception of a callback, which is noted and changes nothing."""
        self.role: Role = Seeking("idle")
        self._ports = ports
        self._on_role = on_role
        self._on_available = on_available
        self._on_error = on_error
        self._changed = asyncio.Event()
        self._untold: deque[Role] = deque()
        self._telling = False
        self._available = False

    @property
    def available(self) -> bool:
        """It leads or follows."""
        return isinstance(self.role, Leading | Following)

    def now(self, role: Role) -> None:
        """This is what it is now."""
        if role == self.role:
            return
        self.role = role
        self._changed.set()
        self._changed = asyncio.Event()
        self._untold.append(role)
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                self._tell(self._untold.popleft())
        finally:
            self._telling = False

    async def until(self, true: Callable[[], bool]) -> Role:
        """Wait until `true()`, which is asked at each change."""
        while not true():
            await self._changed.wait()
        return self.role

    def _tell(self, role: Role) -> None:
        self._call_back(self._on_role, role)
        available = isinstance(role, Leading | Following)
        if available != self._available:
            self._available = available
            self._call_back(self._on_available, available)

    def _call_back(self, callback: Callable[[V], None] | None, value: V) -> None:
        try:
            if callback is not None:
                callback(value)
        except Exception as error:
            self._on_error()
            tell(self._ports, "fleet", "callback", error=f"{type(error).__name__}: {error}")
