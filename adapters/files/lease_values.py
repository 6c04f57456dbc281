"""What a lease runtime is asked and answers, as values; what it may raise beyond the errors of its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import attrs

from tenure.adapters.errors import TenureError
from tenure.machines.entry import Entry

T = TypeVar("T")

AcquireMode = Literal["plain", "force", "elect", "resume", "supersede"]
"""How to acquire (locks.md 7.1). `plain`: what nobody owns, what is over, what an older runtime of this process has.
`force`: that, or exactly the live owner `expected`. `elect`: nobody's, or exactly `expected` when it is over.
`resume`: exactly `expected`, when it is over or an older runtime's; it never creates an entry. `supersede`: only what
an older runtime of this process has."""


class NotOwner(TenureError):
    """The effect was not run: this runtime does not own the key."""


class Inside(Protocol):
    """What a guard tells the operation that it runs."""

    @property
    def number(self) -> int:
        """The number of the transaction in the recording; 0 when nothing is recorded."""


class Guard(Protocol):
    """What excludes all others while an operation runs: a `GuardedFile`, or a test's own."""

    def run(self, operation: Callable[[Inside], T], *, attempts: int | None = None) -> T:
        """Run `operation` inside, answer its result or raise its error; raises TenureError when it cannot enter (in so
        many attempts, None: as its timings say), or when it is not known to have been alone there."""


@attrs.frozen
class View:
    """What a plain read showed: no guard was taken, a moment later it may be otherwise.

    `entry`: of the key, None for none. `state`: what it is to this runtime (`tenure.machines.lease.classify`). `mine`:
    it is exactly the tenure in this runtime's memory. `readable` is False where the registry is damaged or cannot be
    read; `problem` names the file and says why and what to do, and `entry` is then None.
    """

    entry: Entry | None
    state: str
    mine: bool
    readable: bool = True
    problem: str = ""


@attrs.frozen
class Won:
    """The key is owned. `how`: plain, election, forced, superseding, resume, resolved (a doubt that ended well) or kept
    (it was owned already and is renewed). `replaced`: the entry that stood there; None where none did, or when kept."""

    epoch: int
    how: str
    replaced: Entry | None = None


@attrs.frozen
class Held:
    """The key is not to be had in this way. `entry` stands there (None: nobody's, which only `resume` minds)."""

    entry: Entry | None
    state: str
