"""The twin of `spec/Succession.tla`: followers of a leader and of each other, what answers them, what befalls them.

Each process is the machine; its outputs are performed here on the environment's variables (the call it waits for, its
timer, the record of its thread), so that a missing or a superfluous output is a different graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar

import attrs

from tenure.machines import succession_messages as own
from tenure.machines.follower_messages import NOTHING_BOUND
from tenure.machines.laws import Law
from tenure.machines.succession import SUCCESSION
from tenure.machines.succession_messages import Elect, Look, MoveBinding, Register, RestoreBinding
from tenure.models.succession_state import (
    ASTRAY,
    BOUND,
    GONE,
    INVARIANTS,
    NAMES,
    NO_CALL,
    NO_ENTRY,
    NUMBERS,
    SLOTS,
    STEPS,
    Call,
    Config,
    Entry,
    Node,
    State,
    Taken,
    eventually,
    healthy,
    is_leading,
    is_over,
    memory_of,
    node_of,
    owns,
    published,
    reachable,
    stalls,
    up,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition, taken


def _config(followers: str, causes: str, budget: int, joining: str = "") -> Config:
    return Config(tuple(followers.split()), frozenset(joining.split()), frozenset(causes.split()), budget)


CONFIGS: Mapping[str, Config] = {
    "alone": _config("a", "die fail hang hiccup left release", 2),
    "reload": _config("a", "hiccup refuse reload tear", 2),
    "session": _config("a", "die hiccup session stop tear", 2),
    "joining": _config("a b", "die refuse tear", 1, joining="b"),
    "late": _config("a b", "hang late", 1),
    "pair": _config("a b", "die fail hang", 2),
    "slotless": _config("a z", "die fail", 2),
    "all": _config("a b", "die fail hang left reload session stop", 2),
}
"""The configurations of the manifest by name; each equals `spec/Succession_<name>.cfg`."""

Body = Callable[..., Iterable[State]]

STARTED, DENIED, ELECT_FAILED, DEPOSED = own.Started(), own.Denied(), own.ElectFailed(), own.Deposed()


class Succession(World[State]):
    """One leader L that is no machine, and followers that are."""

    module: ClassVar[str] = "Succession"
    tables = (SUCCESSION,)
    environment = (prohibition("still_the_one_seen", Law.FENCE), prohibition("still_over", Law.PROOF))
    names: Mapping[int, str] = NAMES
    """Whom a number stands for in messages."""
    memory_of = staticmethod(memory_of)
    node_of = staticmethod(node_of)

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(SUCCESSION)
        self.slots = tuple(sorted(SLOTS[p] for p in config.slotted))
        self.nobody = FrozenMap({p: False for p in config.followers})
        self.heard: dict[tuple[str, Node, own.Happening], Taken | None] = {}

    def initial(self) -> Iterable[State]:
        follower = Node("following", "L", 1, self.config.slotted, 1, False, "own")
        joiner = Node("idle", "none", 0, frozenset(), 1, False, "own")
        each, joining = self.config.followers, self.config.joining
        yield State(
            node=FrozenMap({p: joiner if p in joining else follower for p in each}),
            call=FrozenMap({p: NO_CALL for p in each}),
            late=FrozenMap({p: "none" for p in each}),
            timer=FrozenMap({p: "off" for p in each}),
            record=FrozenMap({p: "follower" for p in each}),
            route=FrozenMap({p: p not in joining for p in each}),
            proc=FrozenMap({x: "up" for x in (*each, "L")}),
            entry=Entry("L"),
            serving=True,
            readable=True,
            budget=self.config.budget,
        )

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.followers)
        everybody = (*each, ("L",))
        either = tuple((p, left) for (p,) in each for left in (False, True))
        sessions = tuple((p, session) for (p,) in each for session in (0, 1, 2))
        ones: dict[str, Body] = {
            "Join": lambda s, p: self._told(s, p, own.Join(self._look(s, p))),
            "Lose": lambda s, p: () if healthy(s, p) else self._told(s, p, own.Lost(self._look(s, p))),
            "Hiccup": self._hiccup,
            "See": lambda s, p: self._told(s, p, own.Saw(self._look(s, p))),
            "Hear": self._hear,
            "Tick": lambda s, p: self._set_timer(s, p) if up(s, p) and s.timer[p] == "armed" else (),
            "TimeUp": self._time_up,
            "Answered": self._answered,
            "NotAnswered": self._not_answered,
            "Refused": self._refused,
            "AnsweredLate": self._answered_late,
            "Win": self._win,
            "Denied": self._denied,
            "ElectFails": self._elect_fails,
            "Prepare": self._prepare,
            "Lead": self._lead,
            "WorkFails": self._work_fails,
            "Stop": self._stop,
        }
        all_: dict[str, Body] = {"Die": self._die, "Hang": self._hang, "Wake": self._wake}
        alone: dict[str, Body] = {
            "Expire": self._expire,
            "Release": self._release,
            "Reload": self._reload,
            "Heal": self._heal,
            "Tear": lambda s: self._spent(s, "tear", readable=False) if s.readable else (),
            "Mend": lambda s: () if s.readable else (attrs.evolve(s, readable=True),),
        }
        return (
            *(Action(name, body, each) for name, body in ones.items()),
            Action("HearNothing", self._hear_nothing, each, mutant="binding_is_known"),
            Action("StartFails", self._start_fails, either),
            Action("ChangeSession", self._change_session, sessions),
            *(Action(name, body, everybody) for name, body in all_.items()),
            *(Action(name, body) for name, body in alone.items()),
        )

    # -- how a process takes a step -----------------------------------------------------------------------------------

    def _look(self, state: State, p: str) -> Look:
        if not state.readable:
            return Look("unknown")
        owner = state.entry.owner
        endpoint = published(state.serving, owner, state.proc)
        if owner == "none":
            return Look("inactive", 0, endpoint)
        if is_over(state):
            return Look("stale", NUMBERS[owner], endpoint)
        return Look("here" if owner == p else "elsewhere", NUMBERS[owner], endpoint)

    def hear(self, state: State, p: str, message: own.Happening) -> Taken | None:
        """Offer `message` to the machine of `p`; its answer is remembered, as it is a function."""
        key = (p, state.node[p], message)
        if key not in self.heard:
            node = state.node[p]
            self.heard[key] = taken(self.step(self.table, node.phase, self.memory_of(p, node), message))
        return self.heard[key]

    def perform(self, state: State, p: str, done: Taken) -> State:
        """What the machine answered becomes true around it. A timer ends with its phase."""
        call, timer, record, late = state.call[p], state.timer[p], state.record[p], state.late[p]
        if done.phase != state.node[p].phase:
            timer = "off"
        for output in done.outputs:
            if isinstance(output, Register):
                to = self.names[output.leader]
                call = Call("register", to, output.session != 0)
                late = "none" if late == to else late
            elif isinstance(output, Elect):
                call = Call("elect", self.names[output.observed], output.session != 0)
            elif isinstance(output, MoveBinding | RestoreBinding):
                record = "leader" if isinstance(output, MoveBinding) else "follower"
            elif output == "leave":
                if call.kind == "register" and "late" in self.config.causes:
                    late = call.to
                call = NO_CALL
            elif output == "wait":
                timer = "armed"
        return attrs.evolve(
            state,
            node=state.node.set(p, self.node_of(p, done)),
            call=state.call.set(p, call),
            late=state.late.set(p, late),
            timer=state.timer.set(p, timer),
            record=state.record.set(p, record),
        )

    def _told(self, state: State, p: str, message: own.Happening) -> Iterable[State]:
        """The process takes `message`, if it runs; a step that changes nothing does not exist."""
        done = self.hear(state, p, message)
        if done is None or not up(state, p):
            return ()
        after = self.perform(state, p, done)
        return () if after == state else (after,)

    def _answer(self, state: State, p: str, message: own.Happening) -> State:
        """The call of `p` has come to its end, and `message` is what is said of it; it may be refused."""
        done = self.hear(state, p, message)
        over = attrs.evolve(state, call=state.call.set(p, NO_CALL))
        return over if done is None else self.perform(over, p, done)

    def _asks(self, state: State, p: str, kind: str) -> bool:
        call = state.call[p]
        return up(state, p) and call.kind == kind and call.live

    def _spent(self, state: State, cause: str, **changes: Any) -> tuple[State, ...]:
        if cause not in self.config.causes or state.budget == 0:
            return ()
        return (attrs.evolve(state, budget=state.budget - 1, **changes),)

    # -- following ----------------------------------------------------------------------------------------------------

    def _hiccup(self, state: State, p: str) -> Iterable[State]:
        done = self.hear(state, p, own.Lost(self._look(state, p)))
        if done is None or not up(state, p) or not healthy(state, p):
            return ()
        return self._spent(self.perform(state, p, done), "hiccup")

    def _hear(self, state: State, p: str) -> Iterable[State]:
        bound = BOUND[p][state.node[p].bound]
        self.hear(state, p, own.Heard(self.slots, NOTHING_BOUND))
        told = self._told(state, p, own.Heard(self.slots, bound))
        return told if healthy(state, p) else ()

    def _hear_nothing(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        return self._told(state, p, own.Heard(tuple(sorted(SLOTS[q] for q in node.roster)), NOTHING_BOUND))

    def _set_timer(self, state: State, p: str, timer: str = "due") -> tuple[State, ...]:
        return (attrs.evolve(state, timer=state.timer.set(p, timer)),)

    def _time_up(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.timer[p] != "due":
            return ()
        after = tuple(self._told(state, p, own.TimeUp(self._look(state, p))))
        return after or self._set_timer(state, p, "off")

    # -- what answers -------------------------------------------------------------------------------------------------

    def _taken_by(self, state: State, p: str, leader: str) -> own.Registered:
        bound = "own" if state.node[p].bound == "own" else "new"
        return own.Registered(NUMBERS[leader], BOUND[p][bound])

    def _answered(self, state: State, p: str) -> Iterable[State]:
        to = state.call[p].to
        if not self._asks(state, p, "register") or not self._hears(state, p, to):
            return ()
        after = self._answer(state, p, self._taken_by(state, p, to))
        return (attrs.evolve(after, route=after.route.set(p, True)),)

    def _hears(self, state: State, p: str, to: str) -> bool:
        """The call of `p` has come to its leader, and not to one before it that hangs."""
        return reachable(state, to) and state.node[p].endpoint != ASTRAY

    def _unreachable(self, state: State, p: str, x: str) -> bool:
        if state.node[p].endpoint == ASTRAY:
            return not stalls(state.entry.owner, state.proc)
        return x == "none" or (state.proc[x] != "hung" and not reachable(state, x))

    def _not_answered(self, state: State, p: str) -> Iterable[State]:
        to = state.call[p].to
        if not self._asks(state, p, "register") or not self._unreachable(state, p, to):
            return ()
        return (self._answer(state, p, own.RegisterFailed(NUMBERS[to])),)

    def _refused(self, state: State, p: str) -> Iterable[State]:
        to = state.call[p].to
        if not self._asks(state, p, "register") or not self._hears(state, p, to):
            return ()
        return self._spent(self._answer(state, p, own.RegisterFailed(NUMBERS[to])), "refuse")

    def _answered_late(self, state: State, p: str) -> Iterable[State]:
        leader = state.late[p]
        if leader == "none" or not up(state, p):
            return ()
        dropped = attrs.evolve(state, late=state.late.set(p, "none"))
        done = self.hear(state, p, self._taken_by(state, p, leader))
        if done is None:
            return (dropped,)
        return (attrs.evolve(self.perform(dropped, p, done), call=state.call.set(p, NO_CALL)),)

    def _exact(self, state: State, p: str) -> bool:
        exact = self.guard("still_the_one_seen", state.entry.owner == state.call[p].to)
        return self.guard("still_over", state.entry.owner == "none" or is_over(state)) and exact

    def _win(self, state: State, p: str) -> Iterable[State]:
        if not self._asks(state, p, "elect") or not state.readable or not self._exact(state, p):
            return ()
        call = state.call.set(p, Call("won"))
        return (attrs.evolve(state, entry=Entry(p), serving=False, route=self.nobody, call=call),)

    def _denied(self, state: State, p: str) -> Iterable[State]:
        if not self._asks(state, p, "elect") or not state.readable or self._exact(state, p):
            return ()
        return (self._answer(state, p, DENIED),)

    def _elect_fails(self, state: State, p: str) -> Iterable[State]:
        if not self._asks(state, p, "elect") or state.node[p].phase != "electing":
            return ()
        return self._spent(self._answer(state, p, ELECT_FAILED), "fail")

    # -- leading ------------------------------------------------------------------------------------------------------

    def _prepare(self, state: State, p: str) -> Iterable[State]:
        call = state.call[p]
        for after in self._told(state, p, own.Won(owns(state, p))):
            yield attrs.evolve(after, call=state.call.set(p, NO_CALL if call.kind == "won" else call))

    def _lead(self, state: State, p: str) -> Iterable[State]:
        done = self.hear(state, p, STARTED)
        if done is None or not up(state, p) or not owns(state, p):
            return ()
        return (attrs.evolve(self.perform(state, p, done), serving=True),)

    def _let_go(self, state: State, p: str, left: bool = False) -> State:
        if state.entry.owner != p:
            return state
        entry = state.entry if left else NO_ENTRY
        return attrs.evolve(state, entry=entry, serving=False, route=self.nobody)

    def _start_fails(self, state: State, p: str, left: bool) -> Iterable[State]:
        if not up(state, p) or state.node[p].phase != "starting" or (left and "left" not in self.config.causes):
            return ()
        return self._spent(self._let_go(self._answer(state, p, ELECT_FAILED), p, left), "fail")

    def _work_fails(self, state: State, p: str) -> Iterable[State]:
        if not up(state, p) or state.node[p].phase != "leading":
            return ()
        return self._spent(self._let_go(self._answer(state, p, DEPOSED), p), "fail")

    # -- what befalls a process ---------------------------------------------------------------------------------------

    def _change_session(self, state: State, p: str, session: int) -> Iterable[State]:
        node, done = state.node[p], self.hear(state, p, own.SessionChanged(session))
        if done is None or not up(state, p) or session == node.session:
            return ()
        if session == 2 and (node.session != 1 or node.phase != "registering"):
            return ()
        after = self.perform(state, p, done)
        if node.phase == "registering" and after.late[p] == node.leader:
            after = attrs.evolve(after, late=after.late.set(p, "none"))
        if node.session == 0:
            return (after,) if "session" in self.config.causes else ()
        return self._spent(after, "session")

    def _vanished(self, state: State, p: str) -> State:
        return attrs.evolve(
            state,
            node=state.node.set(p, GONE),
            call=state.call.set(p, NO_CALL),
            late=state.late.set(p, "none"),
            timer=state.timer.set(p, "off"),
            record=state.record.set(p, "follower"),
            proc=state.proc.set(p, "dead"),
            route=state.route.set(p, False),
        )

    def _stop(self, state: State, p: str) -> Iterable[State]:
        if self.hear(state, p, own.Stop()) is None or not up(state, p):
            return ()
        return self._spent(self._let_go(self._vanished(state, p), p), "stop")

    def _die(self, state: State, x: str) -> Iterable[State]:
        if state.proc[x] == "dead":
            return ()
        dead = attrs.evolve(state, proc=state.proc.set(x, "dead")) if x == "L" else self._vanished(state, x)
        if state.entry.owner == x:
            dead = attrs.evolve(dead, serving=False, route=self.nobody)
        return self._spent(dead, "die")

    def _hang(self, state: State, x: str) -> Iterable[State]:
        return self._spent(state, "hang", proc=state.proc.set(x, "hung")) if up(state, x) else ()

    def _wake(self, state: State, x: str) -> Iterable[State]:
        if state.proc[x] != "hung":
            return ()
        if x == "L":
            if state.entry.owner != "L":
                return (attrs.evolve(state, proc=state.proc.set("L", "dead")),)
            return (attrs.evolve(state, proc=state.proc.set("L", "up"), entry=Entry("L")),)
        awake = attrs.evolve(state, proc=state.proc.set(x, "up"))
        phase = state.node[x].phase
        if owns(state, x) or (phase not in ("starting", "leading") and state.call[x].kind != "won"):
            return (awake,)
        after = self._answer(awake, x, DEPOSED if phase == "leading" else ELECT_FAILED)
        return (self._let_go(after, x, left=True),)

    def _expire(self, state: State) -> Iterable[State]:
        owner = state.entry.owner
        if owner == "none" or state.entry.passed:
            return ()
        kept = owner == "L" or state.call[owner].kind == "won" or state.node[owner].phase in ("starting", "leading")
        if state.proc[owner] != "hung" and (kept or not up(state, owner)):
            return ()
        return (attrs.evolve(state, entry=Entry(owner, passed=True)),)

    # -- what befalls the leader and the registry ---------------------------------------------------------------------

    def _release(self, state: State) -> Iterable[State]:
        if state.entry.owner != "L" or not up(state, "L"):
            return ()
        return self._spent(self._let_go(state, "L"), "release", proc=state.proc.set("L", "dead"))

    def _reload(self, state: State) -> Iterable[State]:
        return self._spent(state, "reload", serving=False, route=self.nobody) if state.serving else ()

    def _heal(self, state: State) -> Iterable[State]:
        if state.serving or not is_leading(state) or not up(state, state.entry.owner):
            return ()
        return (attrs.evolve(state, serving=True),)

    # -- properties ---------------------------------------------------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return INVARIANTS

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return STEPS

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return eventually(self.config)

    def fairness(self) -> tuple[Fair, ...]:
        each = ("Join", "Lose", "See", "Tick", "TimeUp", "Answered", "NotAnswered", "Win", "Denied", "Prepare", "Lead")
        return (
            *(Fair(Strength.WEAK, frozenset({(name, ())})) for name in ("Expire", "Heal", "Mend")),
            *(Fair(Strength.WEAK, frozenset({(name, (p,))})) for p in self.config.followers for name in each),
        )
