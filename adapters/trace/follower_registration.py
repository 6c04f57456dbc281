"""The twin `FollowerRegistration` instantiated from a trace: every follower and every leader that was seen, and the
channel between them.

A node is an instance, ``PROCESS/INSTANCE``, which follows at one time and leads at another;
`tenure.adapters.fleet.follower.events` and `leader.events` say what its events observe. Instances, generations and
threads have the same names on both sides, so nothing has to be guessed: each event names the registration that it is
about, and is taken where the twin has exactly that message on its way, that call, that entry, that change.

* Everything that a follower or a leader does is recorded before anybody can see it, so events are taken in the order
  of their records, and no other order is looked for.
* What a follower hears with ok, and the work that it takes, its leader has said to that generation; what a leader hears
  a follower has said to it. What comes back to somebody must be what the machine answered, and its state afterwards
  what was observed: a follower's memory, a leader's routes.
* Who leads, and when, is what the owners of the recording wrote (`registry`). A leader registers, says goodbye and
  deletes threads only while it owns; that it knew less than that is believed.
* Believed where it is needed: that nothing came back, or a refusal that the routes did not speak (a bound of the
  endpoint or of its ledger); that a route was silent for too long; that a process has died whose events are over, and
  that a leader has no proof of that; what an authenticated peer can do; what the port of threads gives; what a leader
  that opens found on the disk. Followers and leaders that do not record (another system's) say and hear whatever is
  needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from tenure.adapters.trace.instance import NOT_SAID, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.lines import BadTrace, Event
from tenure.adapters.trace.registration_followers import Said
from tenure.adapters.trace.registration_world import LEADING, World
from tenure.adapters.trace.registry import DEFAULT, LETS_GO, TAKES, WRITES, instance_of, writes
from tenure.machines.chart import Refused
from tenure.models.follower_registration_state import Intent, State
from tenure.models.world import Action

_PARTS: Final = ("session", "generation", "acknowledged", "beating", "abandoned", "own_key", "target")
"""What is observed of a follower, beside its phase."""


class FollowerRegistrations(Instance[State]):
    """One registry, and every instance that was seen at it."""

    module: ClassVar[str] = "FollowerRegistration"
    environment: ClassVar[frozenset[str]] = frozenset({*WRITES, "Die", "Fall"})
    reorders = False

    def __init__(self, world: World, title: str) -> None:
        super().__init__(world, title)
        self.here = world
        bodies: Mapping[str, Callable[..., Iterable[State]]] = world.bodies()
        self.actions = {name: Action(name, body) for name, body in bodies.items()}

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> FollowerRegistrations:
        nodes = {e.node: e.process for e in events if e.action not in WRITES}
        known = {instance_of(node): node for node in nodes}
        world = World(nodes, any(e.action in WRITES for e in events))
        for event in events:
            for name in ("who", "lead"):
                said = event.args.get(name)
                if said is not None:
                    world.meet(known.get(str(said), str(said)))
            if event.action in WRITES:
                world.meet(known.get(instance_of(event.node), instance_of(event.node)))
            if event.action == "Register" and event.node in nodes:
                world.follows.add(event.node)
            if event.action == "HearRegister":
                who = known.get(str(event.args.get("who")), str(event.args.get("who")))
                word = str(event.args.get("process", world.process.get(who, who)))
                world.worded(who, world.generation(event.tenure), word, event.args.get("ok") is True)
        found = cls(world, title)
        found.known = known
        return found

    known: Mapping[str, str]
    """Nodes by their instances."""

    @classmethod
    def beside(cls, group: Sequence[Event], events: Sequence[Event]) -> list[Event]:
        key = group[0].resource or DEFAULT
        return [event for event in writes(events, cls.module, key) if event.action in (TAKES, LETS_GO)]

    def process_of(self, event: Event) -> str:
        return event.node.removeprefix("=").partition("/")[0]

    def name(self, said: object) -> str:
        """The node that the trace means."""
        return self.known.get(str(said), str(said))

    def label(self, event: Event, binding: Binding) -> Label:
        if event.action in WRITES:
            return Label(self.name(instance_of(event.node)), event.action, (), NOT_SAID, NOT_SAID, "")
        args, seen, here = event.args, event.observed, self.here
        said = Said(
            gen=here.generation(event.tenure),
            who=self.name(args["who"]) if "who" in args else "",
            lead=self.name(args["lead"]) if "lead" in args else "",
            ok=args.get("ok") is True,
            held=args.get("held") is True,
            compatible=args.get("compatible") is not False,
            call=str(args.get("call", "")),
            key=str(args.get("key", "")),
            word=str(args.get("process", here.process.get(self.name(args.get("who")), ""))),
            same=frozenset(self.name(who) for who in _texts(event, "same")),
            target=here.thread(args.get("target", seen.get("target"))),
            session=_int(seen.get("session")),
            guards=frozenset(_texts(event, "guards")),
            intents=frozenset(self._intent(event, found) for found in _list(event, args.get("intents", []))),
        )
        phase = seen.get("phase", "")
        more = self._leader(event) if event.action in LEADING else self._follower(event)
        return Label(event.node, event.action, (("said", said),), NOT_SAID, NOT_SAID, str(phase), more)

    def _leader(self, event: Event) -> tuple[tuple[str, Hashable], ...]:
        entries = event.observed.get("entries")
        if not isinstance(entries, dict):
            return ()
        pairs = frozenset((self.name(who), self.here.generation(gen)) for who, gen in entries.items())
        return (("entries", pairs),)

    def _follower(self, event: Event) -> tuple[tuple[str, Hashable], ...]:
        seen, here = event.observed, self.here
        parts: list[tuple[str, Hashable]] = []
        for name in _PARTS:
            if name not in seen:
                continue
            value = seen[name]
            if name in ("generation", "abandoned"):
                value = here.generation(value)
            elif name == "target":
                value = here.thread(value)
            elif not isinstance(value, (bool, int)):
                raise BadTrace(f"{event.place}: observed.{name} is neither a number nor true nor false")
            parts.append((name, value))
        return tuple(parts)

    def _intent(self, event: Event, found: object) -> Intent:
        parts = _list(event, found)
        if len(parts) != 4:
            raise BadTrace(f"{event.place}: an intent in args.intents is not instance, generation, key and thread")
        who, gen, key, target = parts
        return Intent(self.name(who), self.here.generation(gen), str(key), self.here.thread(target))

    def candidates(self, label: Label) -> tuple[Args, ...]:
        return ((label.node, *(value for _, value in label.args)),)

    def spelled(self, action: str, args: Args) -> tuple[Args, ...]:
        return (args,)

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        if label.action in LEADING:
            route = after.route[label.node]
            found = frozenset((e.who, e.gen) for e in route.entries)
            return label.phase in ("", route.phase) and all(found == pairs for _, pairs in label.more)
        if label.action in WRITES:
            return True
        node = after.node[label.node]
        return node.phase == label.phase and all(getattr(node, name) == value for name, value in label.more)

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        if label.action not in LEADING:
            return
        for p, around in state.outside.items():
            if around.up == "yes" and self.here.process.get(p, p) in ended:
                yield Hidden(2, "Die", (p,))
        if label.action == "Prune":
            said = dict(label.args)["said"]
            assert isinstance(said, Said)
            yield Hidden(2, "Fall", (label.node, said.who))

    def refusals(self, state: State, label: Label) -> tuple[Refused, ...]:
        self.here.heard.clear()
        return super().refusals(state, label)

    def phase(self, state: State, node: str) -> str:
        if node not in state.route:
            return "owner"
        return "serving" if state.route[node].phase == "serving" else state.node[node].phase

    def shown(self, state: State) -> str:
        generations = {number: name for name, number in self.here.generations.items()}
        routes = []
        for x, route in state.route.items():
            if route.phase == "serving":
                entries = sorted(f"{e.who} as {generations.get(e.gen)}" for e in route.entries)
                changes = sorted(f"{u.kind} of {u.who} under way" for u in route.mutations)
                routes.append(f"{x} serves {', '.join((*entries, *changes)) or 'nobody'}")
        busy = [
            f"{p} {n.phase}" + (f" as {generations.get(n.generation)}" if n.generation else "")
            for p, n in state.node.items()
            if n.phase != "idle"
        ]
        return "; ".join((f"owner {state.epoch}", *routes, *busy))


def _int(said: object) -> int:
    return said if type(said) is int else 0


def _list(event: Event, said: object) -> Sequence[object]:
    if not isinstance(said, (list, tuple)):
        raise BadTrace(f"{event.place}: args.intents is no list of lists")
    return said


def _texts(event: Event, name: str) -> Sequence[str]:
    said = event.args.get(name, [])
    if not isinstance(said, (list, tuple)) or not all(isinstance(text, str) for text in said):
        raise BadTrace(f"{event.place}: args.{name} is no list of names")
    return said
