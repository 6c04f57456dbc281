"""The answers that a request ledger keeps for those who ask again: within a number of bytes, and not of entries alone.

An answer may be as long as a line, so 4,096 of them could have 64 GiB. Short ones are kept as long as their entries:
there is nothing to gain, and a registration or a delivery that is repeated has to be told what had become of it. Long
ones share `KEPT_BYTES`; beyond it those are dropped that were given first. The entry stays, and with it the law that a
request is executed once: whoever repeats it is told that it was executed and that its answer is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

import attrs

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)

SMALL_BYTES: Final = 4 * 1024
"""An answer up to here is not counted: with the usual number of entries, 16 MiB of them at most."""
KEPT_BYTES: Final = 64 * 2**20
"""What all longer answers together may have: four of the longest."""


@attrs.frozen
class Dropped:
    """In the place of an answer."""


class Answers(Generic[K, A]):
    """The answers of one server, in the order in which they were given."""

    def __init__(
        self,
        size: Callable[[A], int] = lambda answer: 0,
        small_bytes: int = SMALL_BYTES,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.kept_bytes = 0
        """Of the long ones."""
        self.dropped = 0
        """How many have been dropped so far."""
        self._size = size
        self._small = small_bytes
        self._bound = kept_bytes
        self._answers: dict[K, A | Dropped] = {}
        self._long: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[K]:
        return iter(self._answers)

    def keep(self, key: K, answer: A) -> None:
        """This was the answer. Others give way for it, or it does itself."""
        self.forget(key)
        self._answers[key] = answer
        size = self._size(answer)
        if size <= self._small:
            return
        self._long[key] = size
        self.kept_bytes += size
        while self.kept_bytes > self._bound:
            self._drop(next(iter(self._long)))

    def of(self, key: K) -> A | Dropped:
        """The answer, if it is there; KeyError for a key that has none."""
        return self._answers[key]

    def forget(self, key: K) -> None:
        """There is no such entry any more."""
        self._answers.pop(key, None)
        self.kept_bytes -= self._long.pop(key, 0)

    def _drop(self, key: K) -> None:
        self.kept_bytes -= self._long.pop(key)
        self._answers[key] = Dropped()  # where it stood: the entry is no younger
        self.dropped += 1
