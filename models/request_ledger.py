"""The twin of `spec/RequestLedger.tla`: one server's ledger, a machine a key, and those who ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines.chart import Step
from tenure.machines.laws import Law
from tenure.machines.request_ledger import (
    REQUEST_LEDGER,
    Ask,
    Entry,
    Evict,
    Execute,
    ExecuteAlone,
    Happening,
    Join,
    Kind,
    MakeRoom,
    Outcome,
    Output,
    Refuse,
    Replay,
    Settle,
    Stop,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition, taken


@attrs.frozen(cache_hash=True)
class Line:
    """A key's machine: its phase and its `Entry`, as far as the key does not say it. No body is 0."""

    phase: str
    body: int = 0
    outcome: str = "none"


@attrs.frozen(cache_hash=True)
class Client:
    """What a connection asks, and what it was told last; `phase`: idle, asked, joined, alone."""

    phase: str
    key: str = "none"
    body: int = 0
    answer: str = "none"


IDLE: Final = Client("idle")
BODIES: Final = (1, 2)
OUTCOMES: Final[tuple[Outcome, ...]] = ("done", "refused", "failed", "unknown")
LOOKS: Final = ("Execute", "ExecuteAlone", "Overload", "Join", "Collide", "Replay", "SayOver", "SayStopped")


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    ledger: FrozenMap[str, Line]
    settled: tuple[str, ...]
    evicted: frozenset[str]
    running: frozenset[str]
    effects: FrozenMap[str, int]
    stands: frozenset[str]
    client: FrozenMap[str, Client]
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    clients: tuple[str, ...]
    registers: tuple[str, ...]
    beats: tuple[str, ...]
    others: tuple[str, ...]
    limit: int
    budget: int

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that anybody asks."""
        return (*self.registers, *self.beats, *self.others)


CONFIGS: Mapping[str, Config] = {
    "order": Config(("c",), ("register",), (), ("x", "y"), limit=2, budget=0),
    "register": Config(("c", "d"), ("register",), (), (), limit=1, budget=1),
    "full": Config(("c", "d"), (), ("beat",), ("call",), limit=1, budget=1),
}
"""The configurations of the manifest by name; each equals `spec/RequestLedger_<name>.cfg`."""


class RequestLedger(World[State]):
    """Requests that come once or more often, executed at most once."""

    module: ClassVar[str] = "RequestLedger"
    tables = (REQUEST_LEDGER,)
    environment = (prohibition("repeats_end_in_time", Law.FRESH), prohibition("others_wait", Law.UNKNOWN))

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(REQUEST_LEDGER)
        self.kinds: dict[str, Kind] = {
            **dict.fromkeys(config.registers, "register"),
            **dict.fromkeys(config.beats, "heartbeat"),
            **dict.fromkeys(config.others, "other"),
        }

    def initial(self) -> Iterable[State]:
        keys = self.config.keys
        yield State(
            FrozenMap({k: Line(REQUEST_LEDGER.initial) for k in keys}),
            (),
            frozenset(),
            frozenset(),
            FrozenMap(dict.fromkeys(keys, 0)),
            frozenset(),
            FrozenMap(dict.fromkeys(self.config.clients, IDLE)),
            self.config.budget,
        )

    def actions(self) -> tuple[Action[State], ...]:
        clients = tuple((c,) for c in self.config.clients)
        keys = tuple((k,) for k in self.config.keys)
        return (
            Action("Ask", self._ask, clients),
            Action("Execute", self._execute, clients),
            Action("ExecuteAlone", lambda s, c: self._answered(s, c, ExecuteAlone(), "alone"), clients),
            Action("Overload", lambda s, c: self._refused(s, c, "overloaded"), clients),
            Action("Join", lambda s, c: self._answered(s, c, Join(), "joined"), clients),
            Action("Collide", lambda s, c: self._refused(s, c, "collision"), clients),
            Action("Replay", self._replay, clients),
            Action("SayOver", lambda s, c: self._refused(s, c, "over"), clients),
            Action("SayStopped", lambda s, c: self._refused(s, c, "stopped"), clients),
            Action("Settle", self._settle, keys),
            Action("SettleAlone", self._settle_alone, clients),
            Action("SettleLate", self._settle_late, keys),
            Action("Leave", self._leave, clients),
            Action("Prune", self._prune),
            Action("Stop", self._stop),
        )

    # -- the server -------------------------------------------------------------------------------------------------

    def _told(self, state: State, k: str, message: Happening) -> Step[Entry, Output] | None:
        """What the machine of `k` answers, or None for a refusal."""
        line = state.ledger[k]
        outcome = None if line.outcome == "none" else line.outcome
        entry = Entry(self.config.limit, str(line.body or ""), outcome)  # type: ignore[arg-type]
        return taken(self.step(self.table, line.phase, entry, message))

    def _looked(self, state: State, c: str) -> Step[Entry, Output] | None:
        """What the server answers to what the client asks."""
        client = state.client[c]
        if client.phase != "asked":
            return None
        held = sum(line.phase in ("executing", "kept") for line in state.ledger.values())
        stands = client.key in state.stands
        message = Ask(str(client.body), self.kinds[client.key], held, len(state.settled), stands)
        return self._told(state, client.key, message)

    def _execute(self, state: State, c: str) -> Iterable[State]:
        done, k = self._looked(state, c), state.client[c].key
        if done is None or done.outputs[-1] != Execute():
            return ()
        ledger, settled, evicted = state.ledger.set(k, _line(done)), state.settled, state.evicted
        if MakeRoom() in done.outputs:
            oldest = settled[0]
            waits = any(other.phase == "asked" and other.key == oldest for other in state.client.values())
            made = self._told(state, oldest, Evict())
            if not self.guard("repeats_end_in_time", not waits) or made is None:
                return ()
            ledger, settled, evicted = ledger.set(oldest, _line(made)), settled[1:], evicted | {oldest}
        after = attrs.evolve(state, ledger=ledger, settled=settled, evicted=evicted, running=state.running | {k})
        return (_waits(after, c, "joined"),)

    def _answered(self, state: State, c: str, output: Output, phase: str) -> Iterable[State]:
        done = self._looked(state, c)
        return () if done is None or done.outputs != (output,) else (_waits(state, c, phase),)

    def _refused(self, state: State, c: str, reason: str) -> Iterable[State]:
        done = self._looked(state, c)
        return () if done is None or done.outputs != (Refuse(reason),) else (_hears(state, c, reason),)  # type: ignore[arg-type]

    def _replay(self, state: State, c: str) -> Iterable[State]:
        done = self._looked(state, c)
        if done is None or done.outputs != (Replay(),):
            return ()
        return (_hears(state, c, state.ledger[state.client[c].key].outcome),)

    def _settle(self, state: State, k: str) -> Iterable[State]:
        if k not in state.running:
            return
        for outcome in OUTCOMES:
            done = self._told(state, k, Settle(outcome))
            if done is None:
                continue
            line = _line(done)
            settled = (*state.settled, k) if line.phase == "kept" else state.settled
            for after in self._done(state, k, outcome):
                yield attrs.evolve(
                    after,
                    ledger=state.ledger.set(k, line),
                    settled=settled,
                    running=state.running - {k},
                    client=_all_hear(state, k, outcome),
                )

    def _settle_alone(self, state: State, c: str) -> Iterable[State]:
        client = state.client[c]
        if client.phase == "alone":
            for outcome in OUTCOMES:
                for after in self._done(state, client.key, outcome):
                    yield _hears(after, c, outcome)

    def _settle_late(self, state: State, k: str) -> Iterable[State]:
        late = state.ledger[k].phase == "stopped" and k in state.running
        if not late or self._told(state, k, Settle("done")) is not None:
            return
        for outcome in ("done", "refused"):
            for after in self._done(state, k, outcome):
                yield attrs.evolve(after, running=state.running - {k})

    def _done(self, state: State, k: str, outcome: str) -> Iterable[State]:
        """What an execution of `k` that comes to this has done."""
        cost = 0 if outcome in ("done", "refused") else 1
        if cost > state.budget:
            return
        effects = {"done": (True,), "refused": (False,), "failed": (False,), "unknown": (False, True)}
        for had in effects[outcome]:
            after = attrs.evolve(state, budget=state.budget - cost)
            if had and self.kinds[k] != "heartbeat":
                after = attrs.evolve(after, effects=state.effects.set(k, min(2, state.effects[k] + 1)))
            yield attrs.evolve(after, stands=self.after(state.stands, k)) if had else after

    def after(self, stands: frozenset[str], k: str) -> frozenset[str]:
        """The keys whose ground is current when `k` has had its effect."""
        return frozenset({k}) if self.kinds[k] == "register" else stands | {k}

    # -- what befalls it --------------------------------------------------------------------------------------------

    def _ask(self, state: State, c: str) -> Iterable[State]:
        if state.client[c].phase != "idle":
            return
        for k in self.config.keys:
            for body in BODIES:
                left = state.budget - (body != 1)
                if left >= 0 and self.guard("repeats_end_in_time", k not in state.evicted):
                    yield attrs.evolve(state, client=state.client.set(c, Client("asked", k, body)), budget=left)

    def _leave(self, state: State, c: str) -> Iterable[State]:
        client = state.client[c]
        if client.phase not in ("joined", "alone") or state.budget == 0:
            return
        gone = attrs.evolve(state, client=state.client.set(c, IDLE), budget=state.budget - 1)
        yield gone
        if client.phase == "joined" and client.key in state.running and self.guard("others_wait", False):
            yield attrs.evolve(gone, running=state.running - {client.key})

    def _prune(self, state: State) -> Iterable[State]:
        if state.stands and state.budget > 0:
            yield attrs.evolve(state, stands=frozenset(), budget=state.budget - 1)

    def _stop(self, state: State) -> Iterable[State]:
        told = {k: self._told(state, k, Stop()) for k in self.config.keys}
        if state.budget == 0 or not any(told.values()):
            return
        client = dict(state.client)
        for k, done in told.items():
            for output in () if done is None else done.outputs:
                assert isinstance(output, Refuse), output
                client.update(_all_hear(state, k, output.reason, only=True))
        yield attrs.evolve(
            state,
            ledger=FrozenMap({k: state.ledger[k] if done is None else _line(done) for k, done in told.items()}),
            settled=(),
            client=FrozenMap(client),
            budget=state.budget - 1,
        )

    # -- properties ---------------------------------------------------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {"ExecutedOnce": _executed_once, "WithinBound": self._within_bound}

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "HeartbeatsPass_L20": self._heartbeats_pass,
            "SameBodyOnly": self._same_body_only,
            "FailureIsForgotten_L13": self._failure_is_forgotten,
            "AckStillStands_L14": self._ack_still_stands,
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {"EventuallyAnswered": tuple(_answers(c) for c in self.config.clients)}

    def fairness(self) -> tuple[Fair, ...]:
        clients, keys = self.config.clients, self.config.keys
        return (
            *(Fair(Strength.STRONG, frozenset((name, (c,)) for name in LOOKS)) for c in clients),
            *(Fair(Strength.WEAK, frozenset({("SettleAlone", (c,))})) for c in clients),
            *(Fair(Strength.WEAK, frozenset({("Settle", (k,))})) for k in keys),
        )

    def _within_bound(self, state: State) -> bool:
        return sum(line.phase in ("executing", "kept") for line in state.ledger.values()) <= self.config.limit

    def _heard(self, before: State, after: State, answers: Collection[str]) -> Iterable[tuple[str, Client]]:
        """Who is told one of these in this step, as it was before."""
        for c in self.config.clients:
            was, now = before.client[c], after.client[c]
            if was.phase != "idle" and now.phase == "idle" and now.answer in answers:
                yield c, was

    def _heartbeats_pass(self, before: State, after: State) -> bool:
        heard = self._heard(before, after, ("overloaded",))
        return all(self.kinds[was.key] != "heartbeat" for _, was in heard)

    def _same_body_only(self, before: State, after: State) -> bool:
        heard = self._heard(before, after, OUTCOMES)
        return all(was.phase == "alone" or was.body == before.ledger[was.key].body for _, was in heard)

    def _failure_is_forgotten(self, before: State, after: State) -> bool:
        return all(was.phase != "asked" for _, was in self._heard(before, after, ("failed",)))

    def _ack_still_stands(self, before: State, after: State) -> bool:
        heard = self._heard(before, after, ("done",))
        return all(was.key in after.stands for _, was in heard)


def _line(done: Step[Entry, Output]) -> Line:
    """What the machine has become."""
    return Line(done.phase, int(done.data.body or "0"), done.data.outcome or "none")


def _waits(state: State, c: str, phase: str) -> State:
    return attrs.evolve(state, client=state.client.set(c, attrs.evolve(state.client[c], phase=phase)))


def _hears(state: State, c: str, answer: str) -> State:
    return attrs.evolve(state, client=state.client.set(c, attrs.evolve(IDLE, answer=answer)))


def _all_hear(state: State, k: str, answer: str, only: bool = False) -> FrozenMap[str, Client]:
    """All who wait for the execution of `k` are told; the others are there as well, unless `only` those are wanted."""
    told = {
        c: attrs.evolve(IDLE, answer=answer)
        for c, was in state.client.items()
        if was.phase == "joined" and was.key == k
    }
    return FrozenMap(told if only else {**state.client, **told})


def _executed_once(state: State) -> bool:
    return all(times <= 1 for times in state.effects.values())


def _answers(c: str) -> LeadsTo[State]:
    return LeadsTo(lambda s: s.client[c].phase != "idle", lambda s: s.client[c].phase == "idle")
