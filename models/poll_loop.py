"""The twin of `spec/PollLoop.tla`: loops with their machine, Telegram, a journal and an offset on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines.laws import Law
from tenure.machines.poll_loop import (
    NONE,
    POLL_LOOP,
    Answered,
    AnsweredEmpty,
    Conflicted,
    Happening,
    Loaded,
    Memory,
    PersistEnded,
    RecordEnded,
    Start,
    Stop,
    TimedOut,
    Woke,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition, taken


@attrs.frozen(cache_hash=True)
class Node:
    """A loop: the machine's phase and its `Memory`."""

    phase: str
    cursor: int = NONE
    batch: tuple[int, ...] = ()
    skipping: bool = False
    conflicts: int = 0


STOPPED: Final = Node("stopped")


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    sent: int
    confirmed: int
    journal: FrozenMap[int, str]
    opened: bool
    offset: int
    node: FrozenMap[str, Node]
    deaf: frozenset[str]
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    nodes: tuple[str, ...]
    last: int
    early: int
    budget: int


CONFIGS: Mapping[str, Config] = {
    "alone": Config(("p",), last=3, early=2, budget=2),
    "calm": Config(("p", "q"), last=1, early=0, budget=0),
    "pair": Config(("p", "q"), last=2, early=1, budget=1),
}
"""The configurations of the manifest by name; each equals `spec/PollLoop_<name>.cfg`."""

Body = Callable[[State, str], Iterable[State]]


class PollLoop(World[State]):
    """Updates on their way from Telegram into the journal."""

    module: ClassVar[str] = "PollLoop"
    tables = (POLL_LOOP,)
    environment = (prohibition("offset_only_grows", Law.FENCE),)

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(POLL_LOOP)

    def initial(self) -> Iterable[State]:
        journal = FrozenMap({i: "none" for i in range(1, self.config.last + 1)})
        node = FrozenMap({p: STOPPED for p in self.config.nodes})
        yield State(self.config.early, NONE, journal, False, NONE, node, frozenset(), self.config.budget)

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.nodes)
        bodies: dict[str, Body] = {
            "Start": self._start,
            "Load": lambda s, p: self._load(s, p, "long_poll"),
            "LoadFails": lambda s, p: self._load(s, p, "stopped"),
            "Answer": self._answer,
            "AnswerRefused": self._answer_refused,
            "Drain": lambda s, p: self._empty(s, p, "persisting_offset"),
            "Nothing": lambda s, p: self._empty(s, p, "long_poll"),
            "Deafen": self._deafen,
            "TimeOut": self._time_out,
            "Conflict": self._conflict,
            "Wake": self._wake,
            "Record": lambda s, p: self._record(s, p, "persisting_offset"),
            "Open": lambda s, p: self._record(s, p, "long_poll"),
            "RecordFails": lambda s, p: self._record(s, p, "retrying"),
            "Persist": self._persist,
            "PersistFails": self._persist_fails,
            "Stop": self._stop,
            "Crash": self._crash,
        }
        return (
            *(Action(name, body, each) for name, body in bodies.items()),
            Action("Send", self._send),
            Action("LoseOffset", self._lose_offset),
        )

    # -- a loop ---------------------------------------------------------------

    def _moved(self, state: State, p: str, message: Happening) -> Node | None:
        """The loop after its machine took the message, or None for a refusal."""
        node = state.node[p]
        memory = Memory(node.cursor, node.batch, node.skipping, node.conflicts)
        done = taken(self.step(self.table, node.phase, memory, message))
        if done is None:
            return None
        data = done.data
        return Node(done.phase, data.cursor, data.batch, data.skipping, data.conflicts)

    def _start(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Start())
        return () if after is None else (_put(state, p, after),)

    def _load(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, Loaded(state.offset, state.opened))
        if after is None or after.phase != phase:
            return ()
        return (_put(state, p, after),)

    def _answer(self, state: State, p: str) -> Iterable[State]:
        for number in range(1, state.sent + 1):
            after = self._moved(state, p, Answered((number,)))
            if after is None or after.phase != "persisting_journal" or p in state.deaf:
                continue
            if number == _oldest(state, p):
                yield _put(state, p, after)
            if number <= state.node[p].cursor and state.budget > 0:
                yield attrs.evolve(_put(state, p, after), budget=state.budget - 1)

    def _answer_refused(self, state: State, p: str) -> Iterable[State]:
        for number in range(1, min(state.sent, state.node[p].cursor) + 1):
            after = self._moved(state, p, Answered((number,)))
            if after is not None and after.phase == "retrying" and p not in state.deaf and state.budget > 0:
                yield attrs.evolve(_put(state, p, after), budget=state.budget - 1)
                return

    def _empty(self, state: State, p: str, phase: str) -> Iterable[State]:
        after = self._moved(state, p, AnsweredEmpty())
        if after is None or after.phase != phase or after == state.node[p]:
            return ()
        if p in state.deaf or _oldest(state, p) <= state.sent:
            return ()
        return (_put(state, p, after),)

    def _deafen(self, state: State, p: str) -> Iterable[State]:
        if state.node[p].phase != "long_poll" or p in state.deaf or state.budget == 0:
            return ()
        return (attrs.evolve(state, deaf=state.deaf | {p}, budget=state.budget - 1),)

    def _time_out(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, TimedOut())
        if after is None or p not in state.deaf:
            return ()
        return (attrs.evolve(_put(state, p, after), deaf=state.deaf - {p}),)

    def _conflict(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Conflicted())
        if after is None or p in state.deaf or state.budget == 0:
            return ()
        return (attrs.evolve(_put(state, p, after), budget=state.budget - 1),)

    def _wake(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Woke())
        return () if after is None else (_put(state, p, after),)

    def _record(self, state: State, p: str, phase: str) -> Iterable[State]:
        node = state.node[p]
        for committed in (True, False):
            after = self._moved(state, p, RecordEnded(committed, state.opened))
            if after is None or after.phase != phase or not (committed or state.budget > 0):
                continue
            journal, opened = state.journal, state.opened
            if committed and phase != "retrying":
                journal = _recorded(journal, node)
                opened = opened or phase == "long_poll"
            yield attrs.evolve(
                _put(state, p, after),
                journal=journal,
                opened=opened,
                budget=state.budget if committed else state.budget - 1,
            )

    def _persist(self, state: State, p: str) -> Iterable[State]:
        for written in (True, False):
            after = self._moved(state, p, PersistEnded(written))
            if after is None or after.phase == "retrying" or not (written or state.budget > 0):
                continue
            grows = self.guard("offset_only_grows", after.cursor > state.offset)
            yield attrs.evolve(
                _put(state, p, after),
                offset=after.cursor if written and grows else state.offset,
                budget=state.budget if written else state.budget - 1,
            )

    def _persist_fails(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, PersistEnded(False))
        if after is None or after.phase != "retrying" or state.budget == 0:
            return ()
        return (attrs.evolve(_put(state, p, after), budget=state.budget - 1),)

    def _stop(self, state: State, p: str) -> Iterable[State]:
        after = self._moved(state, p, Stop())
        if after is None or state.budget == 0:
            return ()
        return (attrs.evolve(_put(state, p, after), deaf=state.deaf - {p}, budget=state.budget - 1),)

    # -- faults ---------------------------------------------------------------

    def _crash(self, state: State, p: str) -> Iterable[State]:
        if state.node[p].phase not in ("persisting_journal", "persisting_offset") or state.budget == 0:
            return ()
        return (attrs.evolve(_put(state, p, STOPPED), budget=state.budget - 1),)

    def _send(self, state: State) -> Iterable[State]:
        return (attrs.evolve(state, sent=state.sent + 1),) if state.sent < self.config.last else ()

    def _lose_offset(self, state: State) -> Iterable[State]:
        running = any(n.phase != "stopped" for n in state.node.values())
        if running or not state.opened or state.offset == NONE or state.budget == 0:
            return ()
        return (attrs.evolve(state, offset=NONE, budget=state.budget - 1),)

    # -- properties -----------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {
            "JournalBeforeOffset_S35": lambda s: _journaled(
                s, max(s.offset, s.confirmed, *(n.cursor for n in s.node.values()))
            ),
            "ConfirmOnlyPersisted_K18": lambda s: s.offset == NONE or s.confirmed <= s.offset,
            "HistoryIsNoWork": lambda s: all(s.journal[i] != "work" for i in range(1, self.config.early + 1)),
        }

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "CursorNeverDecreases_S35": self._cursor_never_decreases,
            "NothingSkipped_S35": self._nothing_skipped,
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "EventuallyPolled": tuple(_polled(i) for i in range(1, self.config.last + 1)),
            "EventuallyOpened": LeadsTo(lambda s: not s.opened, lambda s: s.opened),
        }

    def fairness(self) -> tuple[Fair, ...]:
        together = (
            ("Start",),
            ("Load", "LoadFails"),
            ("Answer", "Drain"),
            ("TimeOut",),
            ("Wake",),
            ("Record", "Open", "RecordFails"),
            ("Persist", "PersistFails"),
        )
        return tuple(
            Fair(Strength.WEAK, frozenset((name, (p,)) for name in names))
            for p in self.config.nodes
            for names in together
        )

    def _cursor_never_decreases(self, before: State, after: State) -> bool:
        grows = after.offset >= before.offset or after.offset == NONE
        return grows and all(n.phase == "stopped" or n.cursor >= before.node[p].cursor for p, n in after.node.items())

    def _nothing_skipped(self, before: State, after: State) -> bool:
        if not before.opened or before.journal is after.journal:
            return True
        return all(before.journal[i] == "skipped" for i, entry in after.journal.items() if entry == "skipped")


def _put(state: State, p: str, after: Node) -> State:
    """The loop is there now; if it polls, Telegram may act upon its request at once."""
    polls = after.phase == "long_poll" and after.cursor > state.confirmed
    return attrs.evolve(state, node=state.node.set(p, after), confirmed=after.cursor if polls else state.confirmed)


def _oldest(state: State, p: str) -> int:
    return max(0, state.node[p].cursor, state.confirmed) + 1


def _recorded(journal: FrozenMap[int, str], node: Node) -> FrozenMap[int, str]:
    for number in node.batch:
        if journal[number] == "none":
            journal = journal.set(number, "skipped" if node.skipping else "work")
    return journal


def _journaled(state: State, upto: int) -> bool:
    return all(entry != "none" for i, entry in state.journal.items() if i <= upto)


def _polled(number: int) -> LeadsTo[State]:
    return LeadsTo(
        lambda s: s.sent >= number,
        lambda s: s.journal[number] != "none" or (s.opened and s.offset == NONE),
    )
