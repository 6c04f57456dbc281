"""Queued items as this process has them in memory: what it has taken and not begun (bus.md d, e).

The journal's row is the authority; a `Held` is what this process believes of one that it owns. The worker begins them
one after the other; what is being offered to another process is *aside* and is not begun meanwhile (I25, M25a).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import attrs

from tenure.adapters.bus.messages.json_values import Json
from tenure.machines.receipt_messages import Holder


@attrs.frozen
class Item:
    """What a handler is given. `updates`: as they were polled, in the order of their ids; `tenure`: the acquisition
    under which it is executed; `attempt`: from 1."""

    receipt_id: str
    kind: str
    updates: tuple[Json, ...]
    binding: str
    tenure: str
    attempt: int


Handler = Callable[[Item], Awaitable[None]]
"""Executes an item. Returning: it is done. Raising: certainly nothing has come of it, and it is tried again later, at
the limit of attempts by a person only. Cancelled or killed: interrupted, repeated by a person only."""


@attrs.frozen
class Held:
    """A receipt that this process owns and has not begun. `first_update`: its place in the order."""

    receipt_id: str
    kind: str
    binding: str
    first_update: int
    holder: Holder


class Items:
    """What this process has taken, in the order of the updates."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        """`on_change` is told when something can be begun that could not before."""
        self._held: dict[str, Held] = {}
        self._aside: set[str] = set()
        self._on_change = on_change
        self.running: Held | None = None
        """What is being executed now."""

    def __iter__(self) -> Iterator[Held]:
        """All of them, in order; what runs is none of them."""
        return iter(sorted(self._held.values(), key=_place))

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, receipt_id: object) -> bool:
        return receipt_id in self._held

    def get(self, receipt_id: str) -> Held | None:
        """That receipt, if it is held and not begun."""
        return self._held.get(receipt_id)

    def put(self, held: Held) -> None:
        """This process owns a receipt: it took it, or accepted it."""
        self._held[held.receipt_id] = held
        self._on_change()

    def is_aside(self, receipt_id: str) -> bool:
        """Whether it is kept from being begun."""
        return receipt_id in self._aside

    def set_aside(self, receipt_id: str) -> Held | None:
        """It is not begun from now on, until `resume`: it is about to be offered. None: it is not held, has begun, or
        is aside already."""
        held = self._held.get(receipt_id)
        if held is None or receipt_id in self._aside:
            return None
        self._aside.add(receipt_id)
        return held

    def resume(self, receipt_id: str) -> None:
        """It stays here, and may be begun."""
        self._aside.discard(receipt_id)
        self._on_change()

    def drop(self, receipt_id: str) -> None:
        """It is not this process's any more."""
        self._held.pop(receipt_id, None)
        self._aside.discard(receipt_id)

    def begin(self) -> Held | None:
        """The first that may be begun; it runs from now on, until `ended`. None: there is none, or one runs."""
        if self.running is not None:
            return None
        first = min((h for h in self._held.values() if h.receipt_id not in self._aside), key=_place, default=None)
        if first is not None:
            self.drop(first.receipt_id)
            self.running = first
        return first

    def ended(self) -> None:
        """What ran runs no more."""
        self.running = None


def _place(held: Held) -> tuple[int, str]:
    return held.first_update, held.receipt_id
