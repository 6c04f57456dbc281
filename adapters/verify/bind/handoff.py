"""A queued item that moves between processes, against the twin of `QueueHandoff` (bus.md d, e; I21-I31).

Each node runs the real drivers over the real journal (`handoff_desk`), which is one for all, in memory. Between them is
the real relay of a leader that dies with nobody, and a wire on which messages are lost, repeated and late. Every
transaction is a step, in every order that the nodes may have; each call of the database in it fails once, and a node
dies between any two of them (`journal_ports`). After each step the whole state is compared: the row, what each node has
in its memory, the messages. It has to be a step of the twin by that very node, or nothing to it.

An offer is on its way, to the twin, as soon as the row is frozen, and an answer as soon as the item is in the queue:
here something is read in between (`Told.owes`). What is sent then has to be that. The twin's fresh identity is the one
that is drawn here (`queue_handoff_state.fresh`). A look of a worker that finds nothing is made at once, but where
`Setting.looks` says otherwise.

Some steps here are several there, each a path of the twin (`_paths`): what may not begin is looked up at once; what a
worker has found is published. What the twin has not, and is added here (`Twin`, `found_and_given_back`): a recipient
that cannot read its journal refuses what it is offered (its answer is marked); a worker takes what its own process has
offered, when the recipient has accepted it and given it back, and the donor does not know yet; and it finds what is
given back at this moment, and has a copy then that it may not begin.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, Registration
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.fleet.leader.routing_steps import Live
from tenure.adapters.handoff.relay import Relay
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks, identity
from tenure.adapters.verify.bind.handoff_desk import (
    BINDINGS,
    EPOCHS,
    PIDS,
    TIMES,
    UNREAD,
    Desk,
    Known,
    Letter,
    Names,
    Seen,
    Told,
    party,
    update,
)
from tenure.adapters.verify.bind.journal_ports import LOOKS, Answered, Facts, Journals, Op
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.adapters.work.worker import AHEAD
from tenure.machines.admission_identity import delivery_id
from tenure.machines.follower_messages import Binding as Place
from tenure.machines.receipt_messages import Taken
from tenure.machines.routes_messages import Entry
from tenure.models.queue_handoff import QueueHandoff
from tenure.models.queue_handoff_state import (
    BARE,
    NO_OFFER,
    NOBODY,
    NONE,
    NOTHING,
    Config,
    Copy,
    Msg,
    Open,
    Owner,
    Row,
    State,
    answer,
    call,
    fresh,
    here,
)
from tenure.models.world import Action, FrozenMap

KIND: Final = "leader.forwardMessage"
_CAUSES: Final = "move crash check lose repeat late unknown unreadable reregister person poison"
CAUSES: Final = frozenset(_CAUSES.split())
"""Every fault that may happen here may happen in the twin; how many there are is bounded here."""


@attrs.frozen
class Setting:
    """One configuration. `causes`: what may befall the nodes; `moves`: how often an item may be offered; `budget`: how
    often something befalls them, and how many calls of a database fail, together."""

    nodes: tuple[str, ...] = ("a", "b")
    causes: frozenset[str] = frozenset()
    moves: int = 1
    budget: int = 1
    limit: int = 1
    looks: bool = False
    """A worker may look at any moment of an acceptance, and not only where it finds something."""


@attrs.frozen(cache_hash=True)
class Around:
    """What nodes share, and what is known of each. `letters`: what is really on the wire of what is on its way to the
    twin; `calls`: the last offer of each node; `was`: as it was before a step of which is not told yet what has come
    of it."""

    content: int
    known: tuple[tuple[str, Known], ...]
    generations: tuple[tuple[str, int], ...]
    dead: frozenset[str] = frozenset()
    net: frozenset[Msg] = frozenset()
    letters: frozenset[tuple[Msg, Letter]] = frozenset()
    calls: tuple[tuple[str, tuple[Msg, Letter]], ...] = ()
    ran: int = 0
    late: int = 0
    moved: int = 0
    told: Msg | None = None
    """The answer that is heard now."""
    keeps: bool = False
    """An offer that is given up stays on its way."""
    was: Around | None = None

    def of(self, p: str) -> Known:
        """What is known of a node."""
        return dict(self.known)[p]

    def knows(self, p: str, known: Known) -> Around:
        """The same, with this known."""
        return attrs.evolve(self, known=tuple((q, known if q == p else k) for q, k in self.known))

    def generation(self, p: str) -> str:
        """Of a node's registration."""
        return f"{p}{dict(self.generations)[p]}"

    def carrying(self, net: frozenset[Msg], *more: tuple[Msg, Letter]) -> Around:
        """The same, with this on its way."""
        letters = frozenset((m, letter) for m, letter in (*self.letters, *more) if m in net)
        return attrs.evolve(self, net=net, letters=letters)


class Twin(QueueHandoff):
    """The twin, whose faults cost nothing: how many there are is bounded where they happen."""

    def _spend(self, state: State, cause: str) -> State | None:
        return state if cause in self.config.causes else None

    def actions(self) -> tuple[Action[State], ...]:
        nodes = tuple((p,) for p in self.config.nodes)
        more = Action("RefuseUnread", self._refuse_unread, nodes), Action("TakeBeside", self._take_beside, nodes)
        return (*super().actions(), *more)

    def _take_beside(self, state: State, p: str) -> Iterable[State]:
        """Its recipient has given it back, and a worker takes it while its donor still waits for what comes of that."""
        copy = state.node[p]
        done = self._taken(state, p) if copy.phase in ("awaiting", "cancelling", "looking", "staged") else None
        if done is not None and here(state, p) and isinstance(done.outputs[0], Taken):
            yield self._put(state, p, copy, done)

    def _refuse_unread(self, state: State, r: str) -> Iterable[State]:
        """Whose journal cannot be read takes nothing."""
        for m in state.net if here(state, r) else ():
            if m.kind == "offer" and m.to == r:
                said = {attrs.evolve(k, acq=UNREAD) for k in answer(state, m.sender, r, m.h, 0)}
                yield attrs.evolve(state, net=(state.net - {m}) | said)


class HandoffBinding(Binding[State]):
    """The nodes of one configuration."""

    module: ClassVar[str] = "QueueHandoff"
    at_rest: ClassVar[Hashable] = ("told",)
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Desk, Setting, QueueHandoff)

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.model = Twin(Config(setting.nodes, CAUSES, 1, setting.limit), off)
        self.twin = self.model
        self.journals = Journals(Limits(attempts=setting.limit, grace_ms=0))
        self.handoffs: Names = {}
        self.participants = tuple(Participant(p, PIDS[p], self._program(p)) for p in setting.nodes)
        self.names = {PIDS[p]: p for p in setting.nodes}
        self.images: dict[Around, State] = {}
        self.states: dict[State, State] = {}

    def _program(self, name: str) -> Program:
        handoffs: list[Names] = [self.handoffs]

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(name, handoffs[0])
            try:
                while True:
                    replay.ask("told", desk.told(), desk.seen())
                    generation, what, *args = replay.ask("choose", desk.seen())
                    desk.do(generation, what, *args)
                    del generation, what, args
            finally:
                desk.loop.abandon()

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    @staticmethod
    def _journal(journal: Journal) -> None:
        raw = update().text
        journal.raise_fence(1, "b")
        journal.end_first_start(1, "b")
        journal.append([Incoming(1, raw, KIND)], 1, "b")
        journal.forward(1, 1, "A", "b")
        arrival = Arrival(delivery_id(KIND, "A", 1), KIND, "A", 1, raw)
        journal.admit(arrival, "A", "a")
        journal.acknowledged(1, 1, True, arrival.delivery, 1, "b")
        for p in BINDINGS:
            journal.serve(BINDINGS[p], party(p))

    def initial(self, disks: Disks) -> World:
        nodes = self.setting.nodes
        content = self.journals.first(self._journal)
        around = Around(content, tuple((p, Known()) for p in nodes), tuple((p, 1) for p in nodes))
        return attrs.evolve(super().initial(disks), extra=around)

    def outcomes(
        self, disks: Disks, world: World, participant: Participant, call: Call
    ) -> Iterable[tuple[Answer, World, int]]:
        around, p = world.extra, participant.name
        assert isinstance(around, Around)
        if call.name == "told":
            told = call.args[0]
            assert isinstance(told, Told)
            yield Got(), attrs.evolve(world, extra=self._settle(around, p, told)), 0
            return
        (seen,) = call.args
        assert isinstance(seen, Seen)
        for what, after, cost in self._choices(around, p, seen):
            pending = attrs.evolve(after, was=around)
            yield Got((around.generation(p), *what)), attrs.evolve(world, extra=pending), cost

    def _choices(self, around: Around, p: str, seen: Seen) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """What may happen to `p`, what is around it then, and what it costs."""
        s, known = self.setting, seen.known
        if seen.op is not None:
            for outcome in self.journals.outcomes(around.content, seen.op, self._facts(around), True):
                yield ("op", outcome.answer), attrs.evolve(around, content=outcome.content), int(outcome.fault)
        if seen.timers and (self._comes(around, p, known) or (seen.op is None and self._finds(around, p))):
            yield ("time",), around, 0
        if seen.held:
            yield ("free",), around, 0
        if seen.held and seen.op is None and around.moved < s.moves:
            for q in s.nodes:
                if q != p and q not in around.dead:
                    after = attrs.evolve(around, moved=around.moved + 1)
                    yield ("move", q, around.generation(q), fresh(self._image(around))), after, 0
        if known.calls:
            yield from self._ends(around, p, known)
        if known.hears is None and not known.taking:
            for m, letter in around.letters:
                if m.kind == "offer" and m.to == p:
                    yield ("hear", m, letter), around, 0
        if seen.running:
            yield ("end",), around, 0
            if "poison" in s.causes:
                yield ("raise",), around, 1

    def _comes(self, around: Around, p: str, known: Known) -> bool:
        """Whether something is about to be accepted, and its worker may look at any moment of that."""
        if not self.setting.looks:
            return False
        return known.taking or any(m.kind == "offer" and m.to == p for m, _ in around.letters)

    def _finds(self, around: Around, p: str) -> bool:
        """Whether a look of its worker would find something. One that finds nothing ends where it began."""
        me, content = party(p), around.content
        take = Op("take_some", (me, AHEAD), (("epoch", EPOCHS[p]),))
        if any(
            not self.journals.idle(content, Op(name, (me,)), self._facts(around)) for name in ("recover_all", "reclaim")
        ):
            return True
        found = self.journals.outcomes(content, take, self._facts(around), True)[0]
        if found.content != content or not isinstance(found.answer, Answered):
            return True
        return bool(found.answer.value) and self._image(around).node[p].phase in ("rebuilding", "staged", "accepted")

    def _facts(self, around: Around) -> Facts:
        return Facts(frozenset(party(q).process for q in around.dead), fresh(self._image(around)))

    def _ends(self, around: Around, p: str, known: Known) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """How its call may end."""
        mine = call(self._image(around), p)
        heard = any(k.hears in mine for _, k in around.known)
        for m, letter in around.letters if not heard else ():
            if m.kind == "ack" and m.to == p and m.h == known.copy.h:
                yield ("acked", letter), attrs.evolve(around, told=m), 0
        if not mine:
            yield ("unanswered",), around, 0
        elif "late" in self.setting.causes:
            if not heard:
                yield ("unanswered",), around, 1
            if any(m.kind == "offer" for m in mine):
                yield ("unanswered",), attrs.evolve(around, keeps=True), 1

    def _settle(self, around: Around, p: str, told: Told) -> Around:
        """What has come of a step."""
        was = around.was or around
        row, past = self._row(around), self._row(was)
        before, now = self._copy(past, p, around.of(p)), self._copy(row, p, told.known)
        net = around.net
        more: list[tuple[Msg, Letter]] = []
        if told.took is not None:
            net -= {told.took}
        if before.phase == "awaiting" and now.phase != "awaiting":
            gone = call(self._image(was), p)
            net -= {m for m in gone if not (around.keeps and m.kind == "offer")}
        if now.phase == "awaiting" and before.phase != "awaiting":
            net |= {Msg("ask", p, now.to, now.h, now.acq, now.by)}
        calls = around.calls
        if told.sent is not None:
            m = self._marked(around, told.sent[0])
            more.append((m, told.sent[1]))
            net |= {m}
            calls = (*(c for c in calls if c[0] != p), (p, (m, told.sent[1])))
        denies = told.known.denies
        if denies is not None and before.phase == "accepted" and now.phase in BARE and self._waits(around, denies):
            net |= {denies}
        if told.owes is not None and self._waits(around, told.owes):
            net |= {told.owes}
        if told.reply is not None and self._waits(around, told.reply[0]):
            net |= {told.reply[0]}
            more.append(told.reply)
        ran = around.ran
        if now.phase == "executing" and before.phase != "executing":
            ran = min(2, ran + 1)
        if before.phase == "executing" and now.phase != "executing" and row.state in ("pending", "failed"):
            ran -= int(past.state == "started")
        late = around.late
        if past.owner != NOBODY and past.owner.node in around.dead and row.owner == NOBODY:
            late = past.owner.acq
        after = attrs.evolve(around, calls=calls, ran=ran, late=late, told=None, keeps=False, was=None)
        known = told.known
        if told.runs and now.phase != "executing":
            known = attrs.evolve(known, copy=attrs.evolve(told.known.copy, phase="executing"))  # which it may not
        if around.told is not None and around.told.by != 0 and now.phase == "cancelling":
            known = attrs.evolve(known, copy=attrs.evolve(now, phase="deaf"))  # to the twin no answer came
        return after.carrying(net, *more).knows(p, known)

    def _waits(self, around: Around, m: Msg) -> bool:
        """Whether somebody waits for that answer."""
        copy = around.of(m.to).copy
        return m.to not in around.dead and (copy.phase, copy.h) == ("awaiting", m.h)

    @staticmethod
    def _marked(around: Around, m: Msg) -> Msg:
        """The request, as it stands to the registrations of now."""
        known = next((k for k in around.net if attrs.evolve(k, d=True, r=True) == m), m)
        return known

    # -- what befalls them --------------------------------------------------------------------------------------------

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around, causes = world.extra, self.setting.causes
        assert isinstance(around, Around)
        if around.was is not None:
            return
        hearing = {k.hears for _, k in around.known}
        owing = {k.owing for _, k in around.known}

        def move(label: str, after: Around, cost: int, *twin: tuple[str, tuple[Hashable, ...]]) -> Move:
            return Move(label, attrs.evolve(world, extra=after), cost, twin=twin)

        for m, letter in around.letters:
            if m.kind == "ask":
                assert isinstance(letter, FollowerOfferQueueHandoff)
                yield self._relays(world, around, m, letter)
            if "lose" in causes and m not in hearing | owing:
                yield move(f"{m} is lost", around.carrying(around.net - {m}), 1, ("Lose", ()))
        for p, known in around.known:
            if p in around.dead:
                continue
            sent = dict(around.calls).get(p)
            if "repeat" in causes and known.copy.phase == "awaiting" and known.calls and sent is not None:
                m = Msg("ask", p, known.copy.to, known.copy.h, known.copy.acq, known.copy.by)
                if m not in around.net and sent[0] == m and self._current(around, sent[1]):
                    yield move(f"{p} repeats its offer", around.carrying(around.net | {m}, sent), 1, ("Repeat", (p,)))
            if "reregister" in causes:
                yield from self._registers(world, around, p, hearing)
            if "crash" in causes:
                yield self._crashes(world, around, p)
        if "person" in causes:
            yield from self._persons(world, around)

    @staticmethod
    def _current(around: Around, letter: Letter) -> bool:
        """Whether it names the registrations of now."""
        assert isinstance(letter, FollowerOfferQueueHandoff)
        donor, to = letter.instance_id, letter.recipient_instance_id
        named = letter.registration_generation, letter.recipient_registration_generation
        return named == (around.generation(donor), around.generation(to))

    def _relays(self, world: World, around: Around, m: Msg, letter: FollowerOfferQueueHandoff) -> Move:
        """The leader passes it on, or refuses."""
        passed = relayed(around, letter)
        rest = around.net - {m}
        twin: tuple[tuple[str, tuple[Hashable, ...]], ...]
        if isinstance(passed, Ack):
            said = Msg("ack", m.to, m.sender, m.h, 0, 0)
            after = (
                around.carrying(rest | {said}, (said, passed)) if self._waits(around, said) else around.carrying(rest)
            )
            twin = (("RelayRefuses", (m.to,)),)
        else:
            by = 0 if passed.donor_handoff_id is None else self.handoffs[passed.donor_handoff_id]
            to, acq = passed.recipient_instance_id, identity(passed.donor_acquisition_id)
            on = Msg("offer", passed.donor_instance_id, to, m.h, acq, by, m.d, m.r)
            after = around.carrying(rest | {on}, (on, passed))
            twin = (("Relay", (m.to,)),)
        return Move(f"the leader relays {m}", attrs.evolve(world, extra=after), 0, twin=twin)

    @staticmethod
    def _registers(world: World, around: Around, p: str, hearing: Collection[Msg | None]) -> Iterator[Move]:
        def marked(m: Msg) -> Msg:
            return attrs.evolve(m, d=m.d and m.sender != p, r=m.r and m.to != p) if m.kind in ("ask", "offer") else m

        net = frozenset(map(marked, around.net))
        if {m for m, _ in around.letters} != around.net or any(k.copy.phase == "offering" for _, k in around.known):
            return  # for which registration something goes is not said yet
        if net == around.net or any(m is not None and marked(m) != m for m in hearing):
            return
        letters = tuple((marked(m), letter) for m, letter in around.letters)
        numbers = tuple((q, n + int(q == p)) for q, n in around.generations)
        after = attrs.evolve(around, generations=numbers).carrying(net, *letters)
        twin = (("Reregister", (p,)),)
        yield Move(f"{p} registers again", attrs.evolve(world, extra=after), 1, twin=twin)

    def _crashes(self, world: World, around: Around, p: str) -> Move:
        net = frozenset(m for m in around.net if not (m.to == p and m.kind in ("offer", "ack")))
        after = attrs.evolve(around.knows(p, Known()).carrying(net), dead=around.dead | {p})
        changed = attrs.evolve(world, extra=after).with_process(PIDS[p], False, 1)
        return Move(f"{p} dies", changed, 1, ends=frozenset({PIDS[p]}), twin=self.crash(PIDS[p]))

    def _persons(self, world: World, around: Around) -> Iterator[Move]:
        (receipt,) = self.journals.rows(around.content, "receipts")
        for name, method in (("Retry", "retry"), ("Discard", "discard")):
            op = Op(method, (receipt["receipt_id"], "ann"))
            content = self.journals.outcomes(around.content, op, Facts(), False)[0].content
            if content != around.content:
                ran = 0 if name == "Retry" else around.ran
                after = attrs.evolve(around, content=content, ran=ran)
                yield Move(f"a person: {op}", attrs.evolve(world, extra=after), 1, twin=((name, ()),))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (self.names[pid],)),)

    def faults(self, call: Call) -> tuple[()]:
        return ()

    def private(self, call: Call, observed: Hashable, world: World, left: int) -> bool:
        if call.name == "told":
            return True
        (seen,) = call.args
        assert isinstance(seen, Seen)
        around = world.extra
        assert isinstance(around, Around)
        if around.was is not None or seen.op is None:
            return False
        if seen.op.method in LOOKS and self._comes(around, seen.name, seen.known):
            return False
        return self.journals.idle(around.content, seen.op, self._facts(around))

    def settled(self, call: Call) -> bool:
        return True

    # -- comparing ----------------------------------------------------------------------------------------------------

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Its own, and the paths."""
        return (*super().actions(participant), *((f.__name__, f, (participant,)) for f in self._paths()))

    def _paths(self) -> tuple[Callable[..., Iterable[State]], ...]:
        by_name = {a.name: a.body for a in self.model.actions()}

        def looks_at_once(state: State, p: str) -> Iterable[State]:
            """What may not begin is looked up at once."""
            for s in by_name["StartRefused"](state, p):
                yield from by_name["Look"](s, p)

        def finds_it_again(state: State, p: str) -> Iterable[State]:
            """It drops its copy of what was taken beside it, and finds that."""
            for name in ("Look", "AcceptRefused", "Acked"):
                for s in by_name[name](state, p):
                    if s.node[p] == NOTHING and s.row.owner.node == p and s.row.state == "queued":
                        found = attrs.evolve(s, node=s.node.set(p, Copy("rebuilding")))
                        yield found
                        yield from by_name["Rebuild"](found, p)

        def published_at_once(state: State, p: str) -> Iterable[State]:
            """Its worker has found what it asks for again."""
            for s in by_name["Accept"](state, p):
                yield from by_name["Publish"](s, p)

        def found_and_given_back(state: State, p: str) -> Iterable[State]:
            """Its worker has found what is given back at this moment, and may not begin it."""
            copy = state.node[p]
            for s in by_name["CheckFails"](state, p):
                yield attrs.evolve(s, node=s.node.set(p, Copy("holding", copy.acq, copy.by)))

        return looks_at_once, finds_it_again, published_at_once, found_and_given_back

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        return self.at_rest

    def phase_in(self, state: State, participant: str) -> str:
        return "told"

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        return True

    def spent(self, state: State, left: int) -> bool:
        return True

    def shared_in(self, state: State) -> Hashable:
        return state

    def shared(self, disks: Disks, world: World) -> Hashable:
        around = world.extra
        assert isinstance(around, Around)
        return self._image(around.was or around)

    def _row(self, around: Around) -> Row:
        """The receipt's row, in the twin's words."""
        (r,) = self.journals.rows(around.content, "receipts")
        owner, offer = NOBODY, NO_OFFER
        if r["owner_acquisition"] is not None:
            owner = Owner(r["owner_instance"], identity(r["owner_acquisition"]), self._number(r["owner_handoff"]))
        if r["offer_handoff"] is not None:
            offer = Open(self._number(r["offer_handoff"]), r["offer_instance"])
        attempts = min(r["attempts"], self.setting.limit)
        return Row(r["phase"], owner, offer, r["fallen_instance"] or NONE, attempts)

    def _number(self, handoff: str | None) -> int:
        return 0 if handoff is None else self.handoffs[handoff]

    def _image(self, around: Around) -> State:
        """What is there, in the twin's words."""
        found = self.images.get(around)
        if found is None:
            row = self._row(around)
            node = {p: NOTHING if p in around.dead else self._copy(row, p, k) for p, k in around.known}
            up = frozenset(self.setting.nodes) - around.dead
            found = State(row, FrozenMap(node), up, around.net, around.ran, around.late, 1)
            self.images[around] = found
        return found

    @staticmethod
    def _copy(row: Row, p: str, known: Known) -> Copy:
        """Who has nothing, and owns it, does not know that yet; nor does who has given it up, and asks for that
        again."""
        copy = known.copy
        mine = (row.owner.node, row.owner.acq) == (p, copy.acq)
        if known.gives_up and not mine:
            copy = NOTHING
        lost = copy == NOTHING and row.owner.node == p and row.state in ("queued", "started")
        return Copy("rebuilding") if lost else copy


class _Leader:
    """The leader, as a relay needs it: the registrations of now."""

    epoch = 9
    protocol = our_protocol()

    def __init__(self, around: Around) -> None:
        self.around = around
        self.passed: LeaderOfferQueueHandoff | None = None

    def routes(self) -> tuple[Route, ...]:
        """Of everybody who lives: it has seen that the others do not."""
        return tuple(self.route(p) for p, _ in self.around.known if p not in self.around.dead)

    def route(self, p: str) -> Route:
        """Of one registration."""
        registration = Registration(instance_id=p, connected_at_ms=0, protocol=self.protocol)
        entry = Entry(p, self.around.generation(p), BINDINGS[p], "", Place(None, None, None), 0)
        return Route(entry, Live(registration, 0))

    async def forward(self, to: str, generation: str, work: LeaderOfferQueueHandoff, *, timeout_ms: float) -> Ack:
        """It is sent; what is answered is another step."""
        assert (to, generation) == (work.recipient_instance_id, work.recipient_registration_generation)
        self.passed = work
        return Ack(request_id="", ok=True)

    instance_id = "leader"


def relayed(around: Around, offer: FollowerOfferQueueHandoff) -> LeaderOfferQueueHandoff | Ack:
    """What the leader sends on, or how it refuses."""
    leader: Any = _Leader(around)
    route = leader.route(offer.instance_id)  # that of a donor that has died since, it has still

    async def nobody(work: LeaderOfferQueueHandoff) -> Any:
        raise TenureError("it is offered to nobody here")

    relay = Relay(leader, leader, TIMES, nobody)
    try:
        relay.pass_on(offer, route, TIMES.handoff_timeout_ms).send(None)
    except StopIteration:
        pass
    except TenureError as error:
        return acks.refused(offer, str(error))
    assert leader.passed is not None, "it was sent or refused"
    found: LeaderOfferQueueHandoff = leader.passed
    return found


def _causes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _bound(least: int, setting: Setting, thorough: bool = False) -> Bound:
    return Bound(lambda: HandoffBinding(setting), least, thorough)


_CRASH: Final = Setting(causes=_causes("crash person"))
_WIRE: Final = Setting(causes=_causes("lose repeat late reregister"))
_ABC: Final = ("a", "b", "c")


BOUND: Final[Mapping[str, Bound]] = {
    "moves": _bound(1_100, Setting(moves=2, budget=0)),
    "calls": _bound(1_500, Setting()),
    "crash": _bound(2_200, _CRASH),
    "wire": _bound(2_000, _WIRE),
    "poison": _bound(400, Setting(causes=_causes("poison person"), limit=2, moves=0, budget=2)),
    "calls, and back": _bound(9_000, Setting(moves=2), thorough=True),
    "two calls": _bound(5_000, Setting(budget=2), thorough=True),
    "wire, twice": _bound(10_000, attrs.evolve(_WIRE, budget=2), thorough=True),
    "wire, and back": _bound(14_000, attrs.evolve(_WIRE, moves=2), thorough=True),
    "looks": _bound(10_000, Setting(looks=True), thorough=True),
    "third": _bound(12_000, attrs.evolve(_CRASH, nodes=_ABC), thorough=True),
}
"""What the manifest names for the stage `bind`."""
