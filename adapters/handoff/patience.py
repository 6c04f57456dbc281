"""How long to wait before the same is offered to the same registration again."""

from __future__ import annotations

import attrs

from tenure.adapters.files.timings import Timings
from tenure.adapters.handoff.destinations import Destination
from tenure.adapters.journal.moves import Move
from tenure.adapters.ports import Clock


@attrs.frozen
class Attempt:
    """One item on its way to one registration. `asked_at`: of the person who wants it there; None: nobody has asked. A
    wish is another attempt than the one before it, so it does not wait for what was refused to that."""

    receipt: str
    generation: str
    asked_at: int | None = None


def attempt(receipt: str, to: Destination, move: Move | None) -> Attempt:
    """Moving `receipt` to `to`, perhaps as a person wants it."""
    return Attempt(receipt, to.generation, None if move is None else move.asked_at)


@attrs.frozen
class _Kept:
    """`times`: how often it came to nothing. `until`: nothing is tried before, monotonic ms."""

    times: int
    until: int


class Patience:
    """What came to nothing: it is tried again after a delay that doubles each time."""

    def __init__(self, clock: Clock, timings: Timings) -> None:
        self._clock = clock
        self._first = timings.retry_first_ms
        self._last = timings.retry_last_ms
        self._kept: dict[Attempt, _Kept] = {}

    def waits(self, one: Attempt) -> bool:
        """Whether its time has not come yet."""
        known = self._kept.get(one)
        return known is not None and self._clock.monotonic_ms() < known.until

    def kept(self, one: Attempt) -> None:
        """It came to nothing."""
        known = self._kept.get(one)
        times = 1 if known is None else known.times + 1
        wait = min(self._last, self._first << min(times - 1, 30))
        self._kept[one] = _Kept(times, self._clock.monotonic_ms() + wait)

    def forget(self, held: frozenset[str]) -> None:
        """Forget everything that is over, but of the receipts that are held."""
        self._kept = {one: known for one, known in self._kept.items() if one.receipt in held or self.waits(one)}
