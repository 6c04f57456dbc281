"""The twin of `spec/Fleet.tla`: succession, the follower's half and the leader's half of registration, put together.

Each process runs three machines, and this file is their driver, with one line for each thing that a driver passes from
one to another; those are the seams that can be taken away here. What the machines answer is pinned in modules of their
own (Succession, FollowerRegistration): here they are run as they are, through `step` and not `World.step`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines import follower_messages as half
from tenure.machines import routes_messages as lead
from tenure.machines import succession_messages as own
from tenure.machines.chart import Refused, step
from tenure.machines.follower import FOLLOWER
from tenure.machines.laws import Law
from tenure.machines.routes import ROUTES
from tenure.machines.succession import SUCCESSION
from tenure.models.fleet_state import (
    CLOSED,
    IDLE,
    NOTHING,
    Ask,
    Config,
    Link,
    Route,
    State,
    Table,
    eventually,
    is_over,
    one_leader,
    owns,
    up,
)
from tenure.models.succession_state import (
    BOUND,
    GONE,
    NO_CALL,
    NO_ENTRY,
    NUMBERS,
    SLOTS,
    Call,
    Entry,
    Node,
    Taken,
    memory_of,
    node_of,
    published,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, permission, prohibition, taken


def _config(followers: str, causes: str, budget: int) -> Config:
    return Config(tuple(followers.split()), frozenset(causes.split()), budget)


CONFIGS: Mapping[str, Config] = {
    "last": _config("a", "die fail hang prune", 2),
    "pair": _config("a b", "die", 1),
    "again": _config("a b", "die fail", 2),
    "all": _config("a b", "die fail hang prune", 1),
}
"""The configurations of the manifest by name; each equals `spec/Fleet_<name>.cfg`."""

SILENT: Final = lead.SILENT_MS + 1
FAIR: Final = (
    "See", "Tick", "TimeUp", "Win", "Denied", "Prepare", "Lead", "Call", "HearAnswer", "CallFails", "Return", "Lose",
)  # fmt: skip


class Fleet(World[State]):
    """A leader L, whose succession is not looked at, and its followers, each of which may lead after it."""

    module: ClassVar[str] = "Fleet"
    environment = (
        prohibition("epoch_is_read", Law.FENCE),
        permission("leave_is_told", Law.LATE_IS_NOTHING),
        permission("routes_open", Law.PROOF),
        permission("routes_close", Law.FENCE),
        permission("failure_is_told", Law.UNKNOWN),
        permission("loss_is_told", Law.PROOF),
        permission("end_is_told", Law.UNKNOWN),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.heard: dict[tuple[str, Node, own.Happening], Taken | None] = {}

    def initial(self) -> Iterable[State]:
        each = self.config.followers
        everybody = (*each, "L")
        slotted = frozenset(p for p in each if p in SLOTS)
        routes = Table(1, frozenset(Route(p, 1) for p in each), frozenset())
        yield State(
            node=FrozenMap({p: Node("following", "L", 1, slotted, 1, False, "own") for p in each}),
            call=FrozenMap({p: NO_CALL for p in each}),
            timer=FrozenMap({p: "off" for p in each}),
            record=FrozenMap({p: "follower" for p in each}),
            proc=FrozenMap({x: "up" for x in everybody}),
            entry=Entry("L"),
            serving=True,
            budget=self.config.budget,
            link=FrozenMap({p: Link("registered", 1, "L", 0) for p in each}),
            ask=FrozenMap({p: NOTHING for p in each}),
            table=FrozenMap({x: routes if x == "L" else CLOSED for x in everybody}),
            epoch=1,
        )

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.followers)
        everybody = (*each, ("L",))
        pairs = tuple((x, p) for (x,) in everybody for (p,) in each)
        return (
            Action("See", lambda s, p: self._told(s, p, own.Saw(self._look(s, p))), each),
            Action("Tick", self._tick, each),
            Action("TimeUp", self._time_up, each),
            Action("Win", self._win, each),
            Action("Denied", self._denied, each),
            Action("Prepare", self._prepare, each),
            Action("Lead", self._lead, each),
            Action("Call", self._call, each),
            Action("HearRegister", self._hear_register, pairs),
            Action("Provisioned", self._provisioned, pairs),
            Action("HearAnswer", self._hear_answer, each),
            Action("CallFails", self._call_fails, each),
            Action("Return", self._return, each),
            Action("Beat", self._beat, each),
            Action("Lose", self._lose, each),
            Action("StartFails", self._start_fails, each),
            Action("WorkFails", self._work_fails, each),
            Action("Notice", self._notice, everybody),
            Action("Prune", self._prune, pairs),
            Action("Die", self._die, everybody),
            Action("Hang", self._hang, everybody),
            Action("Wake", self._wake, everybody),
            Action("Expire", self._expire),
        )

    # -- the three machines of a process ------------------------------------------------------------------------------

    def _look(self, state: State, p: str) -> own.Look:
        owner = state.entry.owner
        endpoint = published(state.serving, owner, state.proc)
        if owner == "none":
            return own.Look("inactive", 0, endpoint)
        if is_over(state):
            return own.Look("stale", NUMBERS[owner], endpoint)
        return own.Look("here" if owner == p else "elsewhere", NUMBERS[owner], endpoint)

    def _succession(self, state: State, p: str, message: own.Happening) -> State | None:
        """Succession of `p` takes `message`, and what it answers becomes true; None when it refuses."""
        key = (p, state.node[p], message)
        if key not in self.heard:
            node = state.node[p]
            self.heard[key] = taken(step(SUCCESSION, node.phase, memory_of(p, node), message))
        done = self.heard[key]
        if done is None:
            return None
        call, timer, record, link = state.call[p], state.timer[p], state.record[p], state.link
        if done.phase != state.node[p].phase:
            timer = "off"
        for output in done.outputs:
            if isinstance(output, own.Register):
                call = Call("register", next(x for x, n in NUMBERS.items() if n == output.leader))
            elif isinstance(output, own.Elect):
                call = Call("elect", next(x for x, n in NUMBERS.items() if n == output.observed))
            elif isinstance(output, own.MoveBinding | own.RestoreBinding):
                record = "leader" if isinstance(output, own.MoveBinding) else "follower"
            elif output == "leave":
                call = NO_CALL
                if self.permit("leave_is_told", True):
                    link = self._linked(state, p, half.Leave()) or link
            elif output == "wait":
                timer = "armed"
        return attrs.evolve(
            state,
            node=state.node.set(p, node_of(p, done)),
            call=state.call.set(p, call),
            timer=state.timer.set(p, timer),
            record=state.record.set(p, record),
            link=link,
        )

    def _told(self, state: State, p: str, message: own.Happening) -> Iterable[State]:
        after = self._succession(state, p, message) if up(state, p) else None
        return () if after is None or after == state else (after,)

    def _answered(self, state: State, p: str, message: own.Happening, passed_on: bool = True) -> State:
        """The call of `p` is answered, where that is passed on; its succession may refuse it."""
        after = self._succession(state, p, message) if passed_on else None
        return state if after is None else attrs.evolve(after, call=after.call.set(p, NO_CALL))

    def _linked(self, state: State, p: str, message: half.Happening, to: str = "") -> FrozenMap[str, Link] | None:
        """The links after the follower's half of `p` took `message`; None when it refuses."""
        link = state.link[p]
        memory = half.Memory(
            instance=p,
            generation=link.gen or None,
            acknowledged=link.phase == "registered",
            beating=link.phase == "registered",
            abandoned=link.gone or None,
            binding=BOUND[p]["own"],
        )
        done = step(FOLLOWER, link.phase, memory, message)
        if isinstance(done, Refused):
            return None
        gen, gone = done.data.generation or 0, done.data.abandoned or 0
        assert isinstance(gen, int)
        assert isinstance(gone, int)
        return state.link.set(p, Link(done.phase, gen, (to or link.lead) if gen else "none", gone))

    def _routed(
        self, state: State, x: str, message: lead.Happening
    ) -> tuple[FrozenMap[str, Table], tuple[lead.Output, ...]] | Refused:
        """The tables after the leader's half of `x` took `message`, and what it answers."""
        table = state.table[x]
        routes = lead.Routes(
            epoch=table.epoch or None,
            entries=tuple(
                lead.Entry(r.who, r.gen, r.who, r.who, BOUND[r.who]["own"], 0)
                for r in sorted(table.routes, key=lambda r: r.who)
            ),
            mutations=tuple(
                lead.Mutation("register", r.who, r.gen, r.who, r.who, BOUND[r.who]["own"], table.epoch)
                for r in sorted(table.changes, key=lambda r: (r.who, str(r.gen)))
            ),
        )
        done = step(ROUTES, "serving" if table.epoch else "closed", routes, message)
        if isinstance(done, Refused):
            return done
        epoch = done.data.epoch or 0
        assert isinstance(epoch, int)
        after = Table(epoch, frozenset(map(_route, done.data.entries)), frozenset(map(_route, done.data.mutations)))
        return state.table.set(x, after), done.outputs

    def _read(self, state: State, x: str) -> int | None:
        """The epoch under which `x` leads, as the registry says it now, and not as `x` remembers it."""
        mine = state.table[x].epoch
        return mine if self.guard("epoch_is_read", state.entry.owner == x and state.epoch == mine) else None

    def _spent(self, state: State, cause: str) -> tuple[State, ...]:
        if cause not in self.config.causes or state.budget == 0:
            return ()
        return (attrs.evolve(state, budget=state.budget - 1),)

    # -- succession, and the election ---------------------------------------------------------------------------------

    def _tick(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.timer[p] != "armed":
            return ()
        return (attrs.evolve(state, timer=state.timer.set(p, "due")),)

    def _time_up(self, state: State, p: str) -> Iterable[State]:
        return self._told(state, p, own.TimeUp(self._look(state, p))) if state.timer[p] == "due" else ()

    def _stands(self, state: State, p: str) -> tuple[bool, bool]:
        """Whether `p` stands for election, and whether the entry is exactly the one it saw, and over."""
        exact = state.entry.owner == state.call[p].to and (state.entry.owner == "none" or is_over(state))
        return up(state, p) and state.call[p].kind == "elect", exact

    def _win(self, state: State, p: str) -> Iterable[State]:
        if self._stands(state, p) != (True, True):
            return ()
        won = state.call.set(p, Call("won"))
        return (attrs.evolve(state, entry=Entry(p), serving=False, epoch=state.epoch + 1, call=won),)

    def _denied(self, state: State, p: str) -> Iterable[State]:
        return (self._answered(state, p, own.Denied()),) if self._stands(state, p) == (True, False) else ()

    def _prepare(self, state: State, p: str) -> Iterable[State]:
        for after in self._told(state, p, own.Won(owns(state, p))):
            yield attrs.evolve(after, call=after.call.set(p, NO_CALL))

    def _lead(self, state: State, p: str) -> Iterable[State]:
        if not owns(state, p):
            return
        for after in self._told(state, p, own.Started()):
            opened = self._routed(state, p, lead.Open(state.epoch))
            opens = self.permit("routes_open", True) and not isinstance(opened, Refused)
            table = opened[0] if opens and not isinstance(opened, Refused) else state.table
            yield attrs.evolve(after, serving=True, table=table)

    # -- registration -------------------------------------------------------------------------------------------------

    def _fresh(self, state: State, p: str) -> int:
        routes = {r for table in state.table.values() for r in table.routes | table.changes}
        used = {state.link[p].gen, state.link[p].gone, state.ask[p].gen} | {r.gen for r in routes if r.who == p}
        return next(n for n in range(1, len(used) + 2) if n not in used)

    def _call(self, state: State, p: str) -> Iterable[State]:
        call, gen = state.call[p], self._fresh(state, p)
        link = self._linked(state, p, half.Register(gen), call.to)
        if not up(state, p) or call.kind != "register" or link is None:
            return ()
        ask = state.ask.set(p, Ask(call.to, gen, "none"))
        return (attrs.evolve(state, call=state.call.set(p, attrs.evolve(call, kind="asked")), link=link, ask=ask),)

    def _hear_register(self, state: State, x: str, p: str) -> Iterable[State]:
        ask = state.ask[p]
        if not up(state, x) or state.table[x].epoch == 0 or (ask.to, ask.said) != (x, "none"):
            return ()
        done = self._routed(
            state,
            x,
            lead.Register(p, ask.gen, p, p, BOUND[p]["own"], self._read(state, x), authenticated=True, compatible=True),
        )
        if not isinstance(done, Refused):
            return (attrs.evolve(state, table=done[0], ask=state.ask.set(p, attrs.evolve(ask, said="heard"))),)
        if "nobody_mutates_profile" in done.guards:
            return ()  # it waits until that change has ended
        return (attrs.evolve(state, ask=state.ask.set(p, attrs.evolve(ask, said="no"))),)

    def _provisioned(self, state: State, x: str, p: str) -> Iterable[State]:
        for change in state.table[x].changes:
            if change.who != p or not up(state, x):
                continue
            message = lead.Provisioned(p, change.gen, BOUND[p]["own"], self._read(state, x), 0)
            done = self._routed(state, x, message)
            if not isinstance(done, Refused):
                yield attrs.evolve(state, table=done[0], ask=self._said(state, x, done[1]))

    def _said(self, state: State, x: str, outputs: Iterable[lead.Output]) -> FrozenMap[str, Ask]:
        """What `x` answers goes to whoever still waits for it."""
        asks = state.ask
        for output in outputs:
            if isinstance(output, lead.Acknowledge | lead.Reject):
                ask = asks[output.instance]
                if (ask.to, ask.gen) == (x, output.generation):
                    said = "ok" if isinstance(output, lead.Acknowledge) else "no"
                    asks = asks.set(output.instance, attrs.evolve(ask, said=said))
        return asks

    def _hear_answer(self, state: State, p: str) -> Iterable[State]:
        said, leader = state.ask[p].said, NUMBERS[state.link[p].lead]
        if not up(state, p) or said not in ("ok", "no"):
            return ()
        link = self._linked(state, p, half.Answered(state.link[p].gen, compatible=True, ok=said == "ok"))
        if state.link[p].phase != "registering" or link is None:
            return ()
        after = attrs.evolve(state, link=link, ask=state.ask.set(p, NOTHING))
        if said == "ok":
            return (self._answered(after, p, own.Registered(leader, BOUND[p]["own"])),)
        return (self._answered(after, p, own.RegisterFailed(leader), self.permit("failure_is_told", True)),)

    def _call_fails(self, state: State, p: str) -> Iterable[State]:
        ask, link = state.ask[p], state.link[p]
        if not up(state, p) or link.phase != "registering" or ask.said not in ("none", "heard"):
            return ()
        closed = up(state, ask.to) and state.table[ask.to].epoch == 0
        after = self._linked(state, p, half.RegisterFailed(link.gen))
        if not (closed or state.proc[ask.to] == "dead") or after is None:
            return ()
        failed = attrs.evolve(state, link=after, ask=state.ask.set(p, NOTHING))
        message = own.RegisterFailed(NUMBERS[link.lead])
        return (self._answered(failed, p, message, self.permit("failure_is_told", True)),)

    def _return(self, state: State, p: str) -> Iterable[State]:
        gone = state.link[p].gone
        link = self._linked(state, p, half.RegisterFailed(gone)) if gone and up(state, p) else None
        return () if link is None else (attrs.evolve(state, link=link, ask=state.ask.set(p, NOTHING)),)

    def _beat_of(self, state: State, p: str) -> lead.Acknowledge | None:
        """What the leader says to a heartbeat of `p`, if it says ok."""
        link = state.link[p]
        if link.phase != "registered" or not up(state, link.lead):
            return None
        done = self._routed(state, link.lead, lead.Heartbeat(p, link.gen, self._read(state, link.lead), 0))
        said = () if isinstance(done, Refused) else done[1]
        return next((output for output in said if isinstance(output, lead.Acknowledge)), None)

    def _beat(self, state: State, p: str) -> Iterable[State]:
        said = self._beat_of(state, p)
        return () if said is None else self._told(state, p, own.Heard(said.roster, BOUND[p]["own"]))

    def _lose(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.link[p].phase != "registered" or self._beat_of(state, p) is not None:
            return ()
        link = self._linked(state, p, half.BeatFailed(state.link[p].gen))
        if link is None:
            return ()
        lost = attrs.evolve(state, link=link)
        told = self._succession(lost, p, own.Lost(self._look(lost, p))) if self.permit("loss_is_told", True) else None
        return (told or lost,)

    # -- the end of a leadership --------------------------------------------------------------------------------------

    def _ends(self, state: State, p: str) -> State:
        told = own.Deposed() if state.node[p].phase == "leading" else own.ElectFailed()
        return self._answered(state, p, told, self.permit("end_is_told", True))

    def _shut(self, state: State, x: str) -> State:
        done = self._routed(state, x, lead.Close())
        if isinstance(done, Refused) or not self.permit("routes_close", True):
            return state
        return attrs.evolve(state, table=done[0], ask=self._said(state, x, done[1]))

    def _let_go(self, state: State, p: str) -> State:
        return attrs.evolve(state, entry=NO_ENTRY, serving=False) if state.entry.owner == p else state

    def _start_fails(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.node[p].phase != "starting":
            return ()
        return self._spent(self._let_go(self._ends(state, p), p), "fail")

    def _work_fails(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.node[p].phase != "leading":
            return ()
        return self._spent(self._shut(self._let_go(self._ends(state, p), p), p), "fail")

    def _notice(self, state: State, x: str) -> Iterable[State]:
        if not up(state, x):
            return ()
        if x == "L":
            if state.entry.owner == "L":
                return ()
            return (attrs.evolve(self._shut(state, x), proc=state.proc.set(x, "dead")),)
        leads = state.node[x].phase in ("starting", "leading") or state.call[x].kind == "won"
        if not leads or owns(state, x):
            return ()
        serving = state.serving and state.entry.owner != x
        after = attrs.evolve(self._shut(self._ends(state, x), x), serving=serving)
        return () if attrs.evolve(after, serving=state.serving, ask=state.ask) == state else (after,)

    # -- what befalls -------------------------------------------------------------------------------------------------

    def _prune(self, state: State, x: str, p: str) -> Iterable[State]:
        done = self._routed(state, x, lead.Prune(p, SILENT))
        if isinstance(done, Refused) or not up(state, x):
            return ()
        return self._spent(attrs.evolve(state, table=done[0]), "prune")

    def _die(self, state: State, x: str) -> Iterable[State]:
        if state.proc[x] == "dead":
            return ()
        dead = attrs.evolve(
            state,
            proc=state.proc.set(x, "dead"),
            table=state.table.set(x, CLOSED),
            serving=state.serving and state.entry.owner != x,
        )
        if x != "L":
            dead = attrs.evolve(
                dead,
                node=state.node.set(x, GONE),
                call=state.call.set(x, NO_CALL),
                timer=state.timer.set(x, "off"),
                record=state.record.set(x, "follower"),
                link=state.link.set(x, IDLE),
                ask=state.ask.set(x, NOTHING),
            )
        return self._spent(dead, "die")

    def _hang(self, state: State, x: str) -> Iterable[State]:
        if not up(state, x):
            return ()
        return self._spent(attrs.evolve(state, proc=state.proc.set(x, "hung")), "hang")

    def _wake(self, state: State, x: str) -> Iterable[State]:
        if state.proc[x] != "hung":
            return ()
        entry = Entry("L") if x == "L" and state.entry.owner == "L" else state.entry
        return (attrs.evolve(state, proc=state.proc.set(x, "up"), entry=entry),)

    def _expire(self, state: State) -> Iterable[State]:
        owner = state.entry.owner
        if owner == "none" or state.entry.passed or state.proc[owner] != "hung":
            return ()
        return (attrs.evolve(state, entry=Entry(owner, passed=True)),)

    # -- properties ---------------------------------------------------------------------------------------------------

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {"OneLeader_I3": one_leader}

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return eventually(self.config)

    def fairness(self) -> tuple[Fair, ...]:
        each = self.config.followers
        everybody = (*each, "L")
        fair = [("Expire", ()), *(("Notice", (x,)) for x in everybody), *((name, (p,)) for p in each for name in FAIR)]
        fair += [(name, (x, p)) for name in ("HearRegister", "Provisioned") for x in everybody for p in each]
        return tuple(Fair(Strength.WEAK, frozenset({instance})) for instance in fair)


def _route(entry: lead.Entry | lead.Mutation) -> Route:
    assert isinstance(entry.generation, int)
    return Route(entry.instance, entry.generation)
