"""The world of `Succession` under the names of a trace: its actions, with what each member saw and was told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from tenure.adapters.trace.instance import BUDGET
from tenure.adapters.trace.registry import KEEPS, LETS_GO, PASSES, TAKES
from tenure.machines import succession_messages as own
from tenure.machines.follower_messages import NOTHING_BOUND
from tenure.machines.follower_messages import Binding as Thread
from tenure.machines.succession_messages import Look, Memory
from tenure.models.succession import DENIED, DEPOSED, ELECT_FAILED, STARTED, Succession
from tenure.models.succession_state import GONE, NO_CALL, NO_ENTRY, Call, Config, Entry, Node, State, Taken
from tenure.models.world import Action, FrozenMap

NOBODY: Final = "none"
_MADE: Final[Mapping[str, Callable[[Look], own.Happening]]] = {
    "Join": own.Join,
    "Lose": own.Lost,
    "See": own.Saw,
    "TimeUp": own.TimeUp,
}
LOOKS: Final = frozenset(_MADE)
"""The steps that follow a look."""
SERVING: Final = frozenset({"starting", "leading", "ended"})
"""An owner's phases in which followers are acknowledged. One that leaves has ended already."""


def who(entry: str) -> str:
    """The owner of an entry."""
    return entry.rpartition("#")[0] or entry


def is_over(state: State) -> bool:
    """The lease of the owner has passed, or its process is dead."""
    return state.entry.owner != NOBODY and (state.entry.passed or state.proc[who(state.entry.owner)] == "dead")


def owns(state: State, p: str) -> bool:
    """Its lease is live."""
    return who(state.entry.owner) == p and not state.entry.passed


class Members(Succession):
    """The twin, with members and leaders under the names of a trace."""

    def __init__(self, config: Config, entries: Sequence[str], process: Mapping[str, str]) -> None:
        """`entries`: the exact owners that were seen, ``OWNER#EPOCH``."""
        super().__init__(config)
        self.entries = tuple(entries)
        self.strangers = tuple(dict.fromkeys(x for e in entries if (x := who(e)) not in config.followers))
        self.process = process
        self.names = dict(enumerate((NOBODY, *entries)))
        self.numbers = {name: number for number, name in self.names.items()}
        self.threads: dict[str, Thread] = {NOBODY: NOTHING_BOUND}
        self.memory_of = self._memory_of
        self.node_of = self._node_of

    def initial(self) -> Iterable[State]:
        each = self.config.followers
        yield State(
            node=FrozenMap({p: Node("idle", NOBODY, 0, frozenset(), 1, False, NOBODY) for p in each}),
            call=FrozenMap(dict.fromkeys(each, NO_CALL)),
            late=FrozenMap(dict.fromkeys(each, NOBODY)),
            timer=FrozenMap(dict.fromkeys(each, "off")),
            record=FrozenMap(dict.fromkeys(each, "follower")),
            route=FrozenMap(dict.fromkeys(each, False)),
            proc=FrozenMap(dict.fromkeys((*each, *self.strangers), "up")),
            entry=NO_ENTRY,
            serving=True,
            readable=True,
            budget=BUDGET,
        )

    def spelled(self, thread: Thread) -> str:
        """The name of a binding in a state."""
        if thread == NOTHING_BOUND:
            return NOBODY
        name = f"{thread.target} {thread.slot} {thread.name}"
        self.threads[name] = thread
        return name

    def _memory_of(self, p: str, node: Node) -> Memory:
        return Memory(
            self.threads[node.bound], tuple(sorted(node.roster)), node.session, self.numbers[node.leader],
            node.endpoint, node.deferred,
        )  # fmt: skip

    def _node_of(self, p: str, done: Taken) -> Node:
        data = done.data
        roster, bound = frozenset(data.roster), self.spelled(data.binding)
        leader = self.names[data.leader]
        return Node(done.phase, leader, data.endpoint, roster, data.session, data.deferred, bound)

    # -- what a member does -------------------------------------------------------------------------------------------

    def looks(self, kind: str) -> Action[State]:
        """The steps that follow a look, with what it showed."""
        made: Callable[[Look], own.Happening] = _MADE[kind]

        def body(state: State, p: str, look: Look) -> Iterable[State]:
            if not self.shows(state, p, look):
                return ()
            if kind == "TimeUp":
                if state.timer[p] == "off":
                    return ()
                state = attrs.evolve(state, timer=state.timer.set(p, "due"))
            return self._told(state, p, made(look))

        return Action(kind, body)

    def shows(self, state: State, p: str, look: Look) -> bool:
        """Whether the registry looks like that to `p`."""
        owner = state.entry.owner
        if look.state == "unknown":
            return True
        if self.names[look.owner] != owner:
            return False
        if owner == NOBODY:
            return look.state == "inactive"
        if self.process.get(who(owner)) == self.process[p]:
            return look.state == "here"  # whatever the time: a process's own lease is never stale to it
        return look.state == ("stale" if is_over(state) else "elsewhere")

    def hears(self, state: State, p: str, message: own.Happening) -> Iterable[State]:
        """The member takes what is believed."""
        return self._told(state, p, message)

    def answered(self, state: State, p: str, leader: str, thread: Thread) -> Iterable[State]:
        """A leader acknowledged the registration."""
        call, lead = state.call[p], state.entry.owner
        if (call.kind, call.to) != ("register", leader) or lead != leader or is_over(state):
            return
        if who(leader) in state.node and state.node[who(leader)].phase not in SERVING:
            return
        yield self._answer(state, p, own.Registered(self.numbers[leader], thread))

    def not_answered(self, state: State, p: str, leader: str) -> Iterable[State]:
        """There is no registration, for whatever reason."""
        call = state.call[p]
        if (call.kind, call.to) == ("register", leader):
            yield self._answer(state, p, own.RegisterFailed(self.numbers[leader]))

    def denied(self, state: State, p: str) -> Iterable[State]:
        """Another entry stands there, or the owner lives."""
        if state.call[p].kind == "elect" and not self._exact(state, p):
            yield self._answer(state, p, DENIED)

    def elect_fails(self, state: State, p: str) -> Iterable[State]:
        """The election raised, or what had to be there before leading could not be made."""
        if state.node[p].phase in ("electing", "starting"):
            yield self._answer(state, p, ELECT_FAILED)

    def lead(self, state: State, p: str) -> Iterable[State]:
        """The promotion is complete."""
        return self._told(state, p, STARTED) if owns(state, p) else ()

    def prepare(self, state: State, p: str) -> Iterable[State]:
        """The election is won, and the lease is the member's at that moment."""
        for after in self._told(state, p, own.Won(owns(state, p))):
            yield attrs.evolve(after, call=after.call.set(p, NO_CALL))

    def stop(self, state: State, p: str) -> Iterable[State]:
        """It leaves; an election under way may still be won, and is given up then."""
        if self.hear(state, p, own.Stop()) is None:
            return
        call = state.call[p] if state.call[p].kind == "elect" else NO_CALL
        yield attrs.evolve(
            state,
            node=state.node.set(p, GONE),
            call=state.call.set(p, call),
            timer=state.timer.set(p, "off"),
            record=state.record.set(p, "follower"),
        )

    # -- what owners do -----------------------------------------------------------------------------------------------

    def takes(self, state: State, x: str, entry: str) -> Iterable[State]:
        """It is written into the registry: a member by the election that it stands for."""
        if x in state.node:
            if state.call[x].kind == "elect" and self._exact(state, x):
                yield attrs.evolve(state, entry=Entry(entry), call=state.call.set(x, Call("won")))
        else:
            yield attrs.evolve(state, entry=Entry(entry))

    def _exact(self, state: State, p: str) -> bool:
        """As `LeaderElection` has it: where nobody owns any more, nobody is replaced."""
        return state.entry.owner in (NOBODY, state.call[p].to) and (state.entry.owner == NOBODY or is_over(state))

    def keeps(self, state: State, x: str, entry: str) -> Iterable[State]:
        """It refreshes its lease."""
        if state.entry.owner == entry:
            yield attrs.evolve(state, entry=Entry(entry))

    def lets_go(self, state: State, x: str, entry: str) -> Iterable[State]:
        """Its entry is removed."""
        if state.entry.owner == entry:
            yield attrs.evolve(state, entry=NO_ENTRY)

    def passes(self, state: State, x: str, entry: str) -> Iterable[State]:
        """The lease was seen to have passed."""
        if state.entry.owner == entry:
            yield attrs.evolve(state, entry=Entry(entry, passed=True))

    def expire(self, state: State) -> Iterable[State]:
        """The lease passes."""
        if state.entry.owner != NOBODY and not state.entry.passed:
            yield attrs.evolve(state, entry=Entry(state.entry.owner, passed=True))

    def die(self, state: State, x: str) -> Iterable[State]:
        """Its process is gone."""
        if state.proc[x] == "up":
            yield attrs.evolve(state, proc=state.proc.set(x, "dead"))

    def steps_of(self) -> Mapping[str, Action[State]]:
        """All actions, by name."""
        told: dict[str, Callable[..., Iterable[State]]] = {
            "Hear": self.hears, "ChangeSession": self.hears, "Answered": self.answered,
            "NotAnswered": self.not_answered, "Prepare": self.prepare, "Lead": self.lead, "Denied": self.denied,
            "ElectFails": self.elect_fails, "WorkFails": lambda s, p: self._told(s, p, DEPOSED), "Stop": self.stop,
            TAKES: self.takes, KEEPS: self.keeps, LETS_GO: self.lets_go, PASSES: self.passes,
            "Expire": self.expire, "Die": self.die,
        }  # fmt: skip
        return {
            **{name: Action(name, body) for name, body in told.items()},
            **{name: self.looks(name) for name in LOOKS},
        }
