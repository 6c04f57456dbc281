"""The twin of `spec/Transaction.tla`: what any guarded file promises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations
from typing import ClassVar

import attrs

from tenure.machines.chart import Refused
from tenure.machines.laws import Law
from tenure.machines.transaction import (
    ABANDONED,
    DAMAGED,
    NOBODY,
    TRANSACTION,
    Die,
    Enter,
    Happening,
    Leave,
    Member,
    Want,
    Withdraw,
)
from tenure.models.world import (
    Action,
    Fair,
    FrozenMap,
    LeadsTo,
    Offers,
    Strength,
    World,
    fair,
    permission,
    prohibition,
    taken,
)


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    holder: str
    phase: FrozenMap[str, str]


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    threads: tuple[str, ...]


CONFIGS: Mapping[str, Config] = {"three": Config(("a", "b", "c"))}
"""The configurations of the manifest by name; each equals `spec/Transaction_<name>.cfg`."""


class Transaction(World[State]):
    """Threads enter and leave one guarded file; they die, and the file is freed."""

    module: ClassVar[str] = "Transaction"
    tables = (TRANSACTION,)
    environment = (
        prohibition("holder_is_gone", Law.PROOF),
        permission("death_frees", Law.PROOF),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(TRANSACTION)
        self.members = {t: Member(t) for t in config.threads}
        self.wants, self.withdraws, self.leaves, self.dies = Want(), Withdraw(), Leave(), Die()

    def initial(self) -> Iterable[State]:
        yield State(NOBODY, FrozenMap({t: TRANSACTION.initial for t in self.config.threads}))

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((t,) for t in self.config.threads)
        groups = tuple((frozenset(g),) for n in range(1, len(each) + 1) for g in combinations(self.config.threads, n))
        self.leave = Action("Leave", self._leave, each)
        self.free = Action("Free", self._free)
        return (
            Action("Want", self._want, each),
            Action("Enter", self._enter, each),
            Action("Withdraw", self._withdraw, each),
            self.leave,
            Action("Die", self._die, groups),
            self.free,
            Action("Damage", self._damage),
            Action("Repair", self._repair),
        )

    # -- actions --------------------------------------------------------------

    def _moved(self, state: State, thread: str, message: Happening) -> FrozenMap[str, str] | None:
        done = taken(self.step(self.table, state.phase[thread], self.members[thread], message))
        return None if done is None else state.phase.set(thread, done.phase)

    def _want(self, state: State, thread: str) -> Iterable[State]:
        phase = self._moved(state, thread, self.wants)
        return () if phase is None else (State(state.holder, phase),)

    def _enter(self, state: State, thread: str) -> Iterable[State]:
        phase = self._moved(state, thread, Enter(state.holder))
        return () if phase is None else (State(thread, phase),)

    def _withdraw(self, state: State, thread: str) -> Iterable[State]:
        phase = self._moved(state, thread, self.withdraws)
        return () if phase is None else (State(state.holder, phase),)

    def _leave(self, state: State, thread: str) -> Iterable[State]:
        phase = self._moved(state, thread, self.leaves)
        return () if phase is None else (State(NOBODY, phase),)

    def _die(self, state: State, group: frozenset[str]) -> Iterable[State]:
        phases: dict[str, str] = {}
        before, table, members, dies = state.phase, self.table, self.members, self.dies
        for thread in group:
            done = self.step(table, before[thread], members[thread], dies)
            if isinstance(done, Refused):
                return ()
            phases[thread] = done.phase
        return (State(ABANDONED if state.holder in group else state.holder, FrozenMap(state.phase | phases)),)

    def _free(self, state: State) -> Iterable[State]:
        somebody_waits = "waiting" in state.phase.values()
        gone = self.guard("holder_is_gone", state.holder == ABANDONED)
        if not self.permit("death_frees", somebody_waits) or not gone or state.holder == NOBODY:
            return ()
        return (State(NOBODY, state.phase),)

    def _damage(self, state: State) -> Iterable[State]:
        return (State(DAMAGED, state.phase),) if state.holder == NOBODY else ()

    def _repair(self, state: State) -> Iterable[State]:
        return (State(NOBODY, state.phase),) if state.holder == DAMAGED else ()

    # -- properties -----------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {"OneInside": self._one_inside, "LiveHolderKept": self._live_holder_kept}

    def eventually(self) -> Mapping[str, LeadsTo[State]]:
        return {"EventuallyFree": LeadsTo(self._somebody_is_blocked, self._not_blocked)}

    def offers(self) -> Offers[State]:
        events = {name: (name.lower(),) for name in ("Want", "Enter", "Withdraw", "Leave", "Die")}
        return Offers(self.table, lambda state, thread: state.phase[thread], events)

    def fairness(self) -> tuple[Fair, ...]:
        self.actions()
        return (fair(Strength.WEAK, self.free), *(fair(Strength.WEAK, self.leave, t) for t in self.config.threads))

    def _one_inside(self, state: State) -> bool:
        return sum(phase == "inside" for phase in state.phase.values()) <= 1

    def _live_holder_kept(self, state: State) -> bool:
        return all(state.holder == t for t in self.config.threads if state.phase[t] == "inside")

    def _somebody_is_blocked(self, state: State) -> bool:
        return state.holder == ABANDONED and "waiting" in state.phase.values()

    def _not_blocked(self, state: State) -> bool:
        return not self._somebody_is_blocked(state)
