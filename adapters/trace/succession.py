"""The twin `Succession` instantiated from a trace: every member that was seen at one registry.

A node is a member, ``PROCESS/INSTANCE``; `tenure.adapters.fleet.succession.events` says what its events observe. Every
step of a member is recorded, and each is the machine's: what it was told, and all that it remembers afterwards, must be
what the twin has.

* Who owns, and when, is what the owners of the recording wrote (`registry`): a member `Takes` by winning exactly the
  election that it stands for, against exactly the entry that it observed, and only over a lease that has passed or
  whose process is dead. The twin's one step of giving up a lease and ceasing to lead is two events here: the write, and
  what the member was told of it.
* A look shows what stood in the registry at some time since the member's event before; so do an acknowledgement (its
  leader owned, and had begun to start or lead), a denial, the beginning of a promotion and of leading (the lease was
  the member's).
* The twin's leader L is anybody who owns and is no member: leaders of another system, `tenure lead`.
* Believed where it is needed: that a lease has passed (its owner may refresh it afterwards, as long as nobody has taken
  it: so has `LeaderElection`), that a process has died whose events are over, that a look could see nothing, that a
  heartbeat or a registration failed, what a leader says of rosters and threads, and which endpoint is published. A
  leader that leaves serves until its entry is gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from tenure.adapters.trace import registry
from tenure.adapters.trace.instance import BUDGET, NOT_SAID, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.adapters.trace.registry import DEFAULT, KEEPS, LETS_GO, PASSES, TAKES, WRITES, instance_of
from tenure.adapters.trace.succession_world import LOOKS, NOBODY, Members, is_over, who
from tenure.machines import succession_messages as own
from tenure.machines.follower_messages import NOTHING_BOUND
from tenure.machines.follower_messages import Binding as Thread
from tenure.machines.succession_messages import Look
from tenure.models.succession_state import NO_CALL, Call, Config, Node, State

STATES: Final = frozenset({"elsewhere", "stale", "inactive", "here", "unknown"})
ALONE: Final = frozenset({"Hear", "NotAnswered", "ElectFails", "WorkFails", "ChangeSession", "Stop"})
"""What a member was told whatever stands in the registry: a look that was told later may have been made before it."""
SHARED: Final = frozenset({*WRITES, "Die", "Expire"})
"""What changes more than one member's own."""


class Successions(Instance[State]):
    """One registry, and every member that was seen at it."""

    module: ClassVar[str] = "Succession"
    environment: ClassVar[frozenset[str]] = SHARED
    reorders = False
    """What a step rests on that others change is in the registry, whose writes are pinned; and a look may be late."""

    def __init__(self, nodes: Mapping[str, str], entries: Sequence[str], title: str) -> None:
        """`nodes`: the process of each member."""
        config = Config(tuple(nodes), frozenset(nodes), frozenset(), BUDGET)
        self.members = Members(config, entries, nodes)
        super().__init__(self.members, title)
        self.actions = dict(self.members.steps_of())
        self.nodes = nodes
        self.known = {instance_of(node): node for node in nodes}
        self.writers: frozenset[str] = frozenset()
        """Strangers whose writes are recorded."""

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> Successions:
        nodes = {e.node: e.process for e in events if e.action not in WRITES}
        known = {instance_of(node): node for node in nodes}
        entries: dict[str, None] = {}
        for event in events:
            if event.action in WRITES:
                entries[_named(str(event.args["entry"]), known)] = None
            for said in (event.observed.get("owner"), event.observed.get("leader"), event.args.get("leader")):
                if isinstance(said, str):
                    entries[_named(said, known)] = None
        # Nobody may have seen what somebody wrote who was killed in that moment.
        entries |= {f"{node}#?": None for node in nodes}
        found = cls(nodes, list(entries), title)
        writes = (str(e.args["entry"]) for e in events if e.action in WRITES and e.action != PASSES)
        found.writers = frozenset(who(_named(entry, known)) for entry in writes)
        return found

    @classmethod
    def beside(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        return list(registry.writes(events, cls.module, group[0].resource or DEFAULT))

    def process_of(self, event: Event) -> str:
        return event.node.removeprefix("=").partition("/")[0]

    def name(self, said: object) -> str:
        """The entry that the trace means."""
        return NOBODY if said is None else _named(str(said), self.known)

    def label(self, event: Event, binding: Binding) -> Label:
        if event.action in WRITES:
            entry = self.name(event.args["entry"])
            return Label(who(entry), event.action, (("entry", entry),), NOT_SAID, NOT_SAID, "")
        seen = event.observed
        roster, bound = seen.get("roster"), seen.get("binding")
        thread = _thread(bound)
        if thread is None or not isinstance(roster, (list, tuple)) or not all(isinstance(s, str) for s in roster):
            raise BadTrace(f"{event.place}: observed.binding is no thread, slot and name, or observed.roster no slots")
        after = Node(
            str(seen.get("phase")), self.name(seen.get("leader")), _int(seen.get("endpoint")), frozenset(roster),
            _int(seen.get("session")), bool(seen.get("deferred")), self.members.spelled(thread),
        )  # fmt: skip
        return Label(
            event.node, event.action, self._meant(event, after, thread), NOT_SAID, NOT_SAID, after.phase,
            () if event.action == "Stop" else (("node", after),),
        )  # fmt: skip

    def _meant(self, event: Event, after: Node, thread: Thread) -> tuple[tuple[str, Hashable], ...]:
        args, seen = event.args, event.observed
        if event.action in LOOKS:
            lease = seen.get("lease")
            number = self.members.numbers.get(self.name(seen.get("owner")), 0)
            if lease not in STATES:
                raise BadTrace(f"{event.place}: observed.lease is none of {', '.join(sorted(STATES))}")
            return (("look", Look(lease, number, _int(seen.get("published")))),)  # type: ignore[arg-type]
        match event.action:
            case "Hear":
                told = NOTHING_BOUND if args.get("cleared") else thread
                return (("message", own.Heard(tuple(sorted(after.roster)), told)),)
            case "ChangeSession":
                return (("message", own.SessionChanged(_int(args.get("session")))),)
            case "Answered":
                return (("leader", self.name(args.get("leader"))), ("thread", thread))
            case "NotAnswered":
                return (("leader", self.name(args.get("leader"))),)
        return ()

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((label.node, *(value for _, value in label.args)),)

    def spelled(self, action: str, args: Args) -> tuple[Args, ...]:
        return (args,)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        if label.phase and after.node[label.node].phase != label.phase:
            return False
        return all(after.node[label.node] == node for _, node in label.more)

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        """What others did whose record is lost or never was, and what time does."""
        owner = state.entry.owner
        if label.action in LOOKS:
            look = dict(label.args)["look"]
            assert isinstance(look, Look)
            if look.state == "unknown":
                return
            yield from self._comes(state, self.members.names[look.owner], ended)
        elif label.action == "Answered":
            yield from self._comes(state, str(dict(label.args)["leader"]), ended)
        elif label.action == "Denied":
            waits = [p for p, call in state.call.items() if call.kind == "elect" and p != label.node]
            for entry in self.members.entries:
                if who(entry) in waits or who(entry) in self.members.strangers:
                    yield from self._comes(state, entry, ended)
        if owner == NOBODY or is_over(state) or label.action in (KEEPS, LETS_GO, PASSES):
            return
        if self._over(who(owner), ended):
            yield Hidden(2, "Die", (who(owner),))
        if label.action in (*LOOKS, TAKES, "Denied"):
            yield Hidden(4, "Expire", ())

    def _comes(self, state: State, wanted: str, ended: frozenset[str]) -> Iterable[Hidden]:
        """So that this one owns."""
        owner = state.entry.owner
        if wanted == owner:
            return
        if wanted == NOBODY or who(wanted) in state.node:
            if owner != NOBODY and self._over(who(owner), ended):
                yield Hidden(3, LETS_GO, (who(owner), owner))
            if wanted != NOBODY and self._over(who(wanted), ended):
                yield Hidden(3, TAKES, (who(wanted), wanted))
        elif who(wanted) not in self.writers:
            yield Hidden(6, TAKES, (who(wanted), wanted))

    def _over(self, x: str, ended: frozenset[str]) -> bool:
        """What it did last may not be in the trace."""
        if x in self.nodes:
            return self.nodes[x] in ended
        return x not in self.writers or any(x in name for name in ended)

    # -- looks that were late -----------------------------------------------------------------------------------------

    def reads(self, label: Label) -> bool:
        return label.action not in SHARED

    def local(self, label: Label) -> bool:
        return label.action in ALONE

    def part(self, state: State, node: str) -> object:
        return state.node[node], state.call[node], state.timer[node], state.record[node]

    def graft(self, state: State, after: State, label: Label) -> State:
        p = label.node
        return self.fresh(
            attrs.evolve(
                state,
                node=state.node.set(p, after.node[p]),
                call=state.call.set(p, after.call[p]),
                timer=state.timer.set(p, after.timer[p]),
                record=state.record.set(p, after.record[p]),
            )
        )

    def forget(self) -> None:
        self.members.heard.clear()

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase if node in state.node else "owner"

    def shown(self, state: State) -> str:
        owner, passed = state.entry.owner, ""
        if owner != NOBODY and is_over(state):
            passed = " (its lease has passed)" if state.entry.passed else " (it is dead)"
        said = "; ".join(
            f"{p} {_told(n, state.call[p])}" for p, n in state.node.items() if n.phase not in ("idle", "ended")
        )
        return f"owner {owner}{passed}; {said}"


def _named(said: str, known: Mapping[str, str]) -> str:
    """``INSTANCE#EPOCH`` with the node of the instance, if that records."""
    instance, mark, epoch = said.rpartition("#")
    return f"{known.get(instance, instance)}{mark}{epoch}"


def _told(node: Node, call: Call) -> str:
    asked = f", its call {call.kind} {call.to}" if call != NO_CALL else ""
    return f"{node.phase}{asked}"


def _int(said: object) -> int:
    return said if type(said) is int else -1


def _thread(said: object) -> Thread | None:
    if not isinstance(said, (list, tuple)) or len(said) != 3:
        return None
    if not all(part is None or isinstance(part, str) for part in said):
        return None
    return Thread(*said)
