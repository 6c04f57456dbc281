"""What processes do with updates, against the twin of `DurableAdmission` (bus.md c, d; annex D; I13-I18, I22, L21).

Each process runs the real drivers over the real journal (`admission_desk`); the journal is one for all, in memory.
Every transaction is a step, in every order that the processes may have; each call of the database in it fails once
(`journal_ports`), and a process dies between any two of them. After each step the whole state is compared: tables,
messages, what each process remembers. It has to be a step of the twin by that very process, or nothing to it.

Some steps here are several there, each a path of the twin (`_paths`): a forward of what waits (Retry, Forward); one
that is written down and not sent, since nobody knew that it was (Forward, Lose); an attempt that was given up and is
made again (Unanswered, Retry); a delivery that is admitted and refused, since nobody knew that it was (HearForward,
whose answer is lost, and a refusal of the same message when it comes once more); and a transaction that takes, or
recovers, all that there is.

What the twin has not, and is added here (`Twin`): an update that was polled and could not be journaled is dropped and
polled again; a leader that was displaced polls for less than the journal has by now; and one that was so in its first
start reads that this is over. What befalls others between a leader's look at who is there and the transaction that
follows comes after it: that is the same (but the transaction, nobody sees of it).
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.verify.bind.admission_desk import Desk, Known, Parts, Seen, Told, party, update
from tenure.adapters.verify.bind.binding import Binding, Move, Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Contents, Disks, identities
from tenure.adapters.verify.bind.journal_ports import Facts, Journals, Op
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.admission_identity import delivery_id
from tenure.models.durable_admission import DurableAdmission
from tenure.models.durable_admission_state import (
    HOME,
    IDLE,
    KIND,
    LIMIT,
    NO,
    NOTHING,
    Config,
    Msg,
    Node,
    Row,
    State,
    Work,
    id_of,
)
from tenure.models.world import Action, FrozenMap

PIDS: Final = {"a": 100, "b": 101, "c": 102}
_CAUSES: Final = "depose crash lose late dup odd astray forged moved babble full old silent replace person move"
CAUSES: Final = frozenset(_CAUSES.split())
"""Every fault that may happen here may happen in the twin; how many there are is bounded here."""


@attrs.frozen
class Setting:
    """One configuration. `leaders`: who leads, first the one that does at first, the others when they win; `parts`:
    what runs in every process; `admitted`: update 1 has been, for its target's binding; else it is journaled at the
    leader, but with `polls`. `causes`: what may befall them; `budget`: how often, and how many calls of a database may
    fail, together."""

    processes: tuple[str, ...]
    parts: Parts
    causes: frozenset[str] = frozenset()
    leaders: tuple[str, ...] = ("a",)
    target: str = "B"
    last: int = 1
    first: bool = False
    admitted: bool = False
    poison: bool = False
    budget: int = 1
    away: frozenset[str] = frozenset()
    """Of them those of whom nothing is seen: they do nothing."""


@attrs.frozen(cache_hash=True)
class Around:
    """What processes share, and what is known of each. `was`: as it was before a step of which is not told yet what
    has come of it."""

    content: int
    up: tuple[tuple[str, str], ...]
    known: tuple[tuple[str, Known], ...]
    reg: frozenset[str] = frozenset()
    net: frozenset[Msg] = frozenset()
    sent: int = 0
    confirmed: int = 0
    effects: tuple[int, ...] = ()
    given: frozenset[tuple[str, int]] = frozenset()
    """What was given up: to the twin an answer to it may still come."""
    skips: frozenset[str] = frozenset()
    """Who began to lead in the first start."""
    ended: frozenset[str] = frozenset()
    """Who has ended it, and may not know."""
    moved: bool = False
    """A and B have each other's threads."""
    again: bool = False
    """What is heard now stays on its way: it comes twice."""
    was: Around | None = None

    def of(self, p: str) -> Known:
        """What is known of a process."""
        return dict(self.known)[p]

    def knows(self, p: str, known: Known) -> Around:
        """The same, with this known."""
        return attrs.evolve(self, known=tuple((q, known if q == p else k) for q, k in self.known))

    def is_up(self, p: str) -> str:
        """yes, no, dead."""
        return dict(self.up)[p]


class Twin(DurableAdmission):
    """The twin, whose faults cost nothing: how many there are is bounded where they happen. It begins where the
    processes here begin, and has two steps more."""

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        poison = frozenset({1} if setting.poison else ())
        super().__init__(
            Config(
                setting.processes,
                frozenset(setting.leaders),
                setting.last,
                setting.first,
                setting.target,
                poison,
                99,
                CAUSES,
                1,
            ),
            off,
        )
        self.setting = setting

    def _spend(self, state: State, cause: str) -> int | None:
        return state.budget

    def initial(self) -> Iterable[State]:
        s = self.setting
        (state,) = super().initial()
        reg = attrs.evolve(IDLE, reg=s.parts.forwards)
        node = state.node.set("b", reg) if "b" in state.node else state.node
        state = attrs.evolve(state, node=node)
        if s.parts.polls:
            return (state,)
        state = attrs.evolve(state, sent=s.last, offset=s.last)
        for i in self.config.updates:
            state = attrs.evolve(state, update=state.update.set(i, Row("journaled", NO)))
            if s.admitted:
                work = state.work | {Work(i, s.target, 0, s.target, 1)}
                state = attrs.evolve(state, work=work, update=state.update.set(i, Row("forwarding", s.target)))
        return (state,)

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.processes)
        more = (
            Action("Drops", self._drops, each),
            Action("PollBehind", self._poll_behind, each),
            Action("Learns", self._learns, each),
        )
        return (*super().actions(), *more)

    def _drops(self, state: State, p: str) -> Iterable[State]:
        """What was polled is not journaled, and is polled again."""
        node = state.node[p]
        if node.got:
            yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, got=0)))

    def _poll_behind(self, state: State, p: str) -> Iterable[State]:
        """It asks for what the journal has already: that confirms nothing more. Or again, since there was nothing."""
        node = state.node[p]
        if node.up == "yes" and node.epoch > 0 and node.got == 0:
            for offset in range(state.offset + int(node.poll != NOTHING)):
                yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, poll=offset)))

    def _learns(self, state: State, p: str) -> Iterable[State]:
        """It reads that the first start is over."""
        node = state.node[p]
        if node.skips and state.opened:
            yield attrs.evolve(state, node=state.node.set(p, attrs.evolve(node, skips=False)))


class AdmissionBinding(Binding[State]):
    """The processes of one configuration."""

    module: ClassVar[str] = "DurableAdmission"
    at_rest: ClassVar[Hashable] = ("told",)
    at_end: ClassVar[Hashable] = None
    constants: ClassVar[tuple[type, ...]] = (Desk, Setting, DurableAdmission)

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.model = Twin(setting, off)
        self.twin = self.model
        self.journals = Journals(Limits(attempts=LIMIT))
        self.participants = tuple(
            Participant(p, PIDS[p], self._program(p)) for p in setting.processes if p not in setting.away
        )
        self.names = {PIDS[p]: p for p in setting.processes}
        self.images: dict[Around, State] = {}
        self.states: dict[State, State] = {}

    def _program(self, name: str) -> Program:
        s = self.setting

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = Desk(name, s.parts, int(name == "a"), s.target, present=name != "c")
            try:
                while True:
                    replay.ask("told", desk.told(), desk.seen())
                    routes, moved, what, *args = replay.ask("choose", desk.seen())
                    desk.do(routes, moved, what, *args)
                    del routes, moved, what, args
            finally:
                desk.loop.abandon()

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def contents(self) -> Contents:
        return {}

    def _journal(self, journal: Journal) -> None:
        s = self.setting
        journal.raise_fence(1, "a")
        if not s.first:
            journal.end_first_start(1, "a")
        if s.parts.polls:
            return
        journal.append([_incoming(i, s.target) for i in self.model.config.updates], 1, "a")
        for i in self.model.config.updates if s.admitted else ():
            journal.forward(i, 1, s.target, "a")
            arrival = Arrival(delivery_id(KIND, s.target, i), KIND, s.target, i, update(i, s.target).text)
            journal.admit(arrival, s.target, s.target)

    def initial(self, disks: Disks) -> World:
        s = self.setting
        content = self.journals.first(self._journal)
        known = {p: Known(epoch=int(p == "a"), alive=p != "c") for p in s.processes}
        up = tuple((p, "no" if p == "c" else "yes") for p in s.processes)
        sent = 0 if s.parts.polls else s.last
        reg = frozenset({"b"} if s.parts.forwards and "b" in s.processes else ())
        skips = frozenset({"a"} if s.first else ())
        around = Around(content, up, tuple(known.items()), reg, sent=sent, effects=(0,) * s.last, skips=skips)
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
            for changed in self._spoilt(around, told):
                yield Got(), attrs.evolve(world, extra=self._settle(around, p, changed)), 1
            return
        (seen,) = call.args
        assert isinstance(seen, Seen)
        routes = self._routes(around, p)
        for what, after, cost in self._choices(around, p, seen):
            pending = attrs.evolve(after, was=around)
            yield Got((routes, around.moved, *what)), attrs.evolve(world, extra=pending), cost

    def _spoilt(self, around: Around, told: Told) -> Iterator[Told]:
        """What is sent, as it may arrive where the bus is not ours."""
        causes = self.setting.causes
        for m in told.sent:
            other = next((q for q, up in around.up if up == "yes" and HOME[q] != m.b), m.to)
            ways = {
                "odd": attrs.evolve(m, g=1),
                "forged": attrs.evolve(m, body=2),
                "astray": attrs.evolve(m, to=other),
            }
            for cause, changed in ways.items():
                if cause in causes and changed != m:
                    yield attrs.evolve(told, sent=(changed,))

    def _fence(self, around: Around) -> int:
        fence: int = self.journals.rows(around.content, "meta")[0]["fence"]
        return fence

    def _routes(self, around: Around, p: str) -> tuple[str, ...]:
        """Who is registered with `p`, as far as it knows: one that was displaced has its routes still."""
        epoch = around.of(p).epoch
        if not epoch:
            return ()
        now = epoch == self._fence(around)
        return tuple(q for q, up in around.up if q != p and up == "yes" and (q in around.reg or not now))

    def _choices(self, around: Around, p: str, seen: Seen) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """What may happen to `p`, what is around it then, and what it costs."""
        s, known = self.setting, seen.known
        if not known.alive:
            beside = any(HOME[q] == HOME[p] and up == "yes" for q, up in around.up)
            up = tuple((q, "yes" if q == p else u) for q, u in around.up)
            yield ("arrive",), attrs.evolve(around, up=up), int(beside)
            return
        if seen.op is not None:
            for outcome in self.journals.outcomes(around.content, seen.op, self._facts(around, seen), True):
                yield ("op", outcome.answer), attrs.evolve(around, content=outcome.content), int(outcome.fault)
        elif seen.timers and known.poll == NOTHING and not seen.asks:
            yield ("time",), around, 0
        if seen.asks:
            yield ("asked",), around, 0
        elif known.poll != NOTHING and not known.empty:
            yield from self._served(around, p, known)
        for i in seen.waits:
            underway = {m for m in around.net if (m.epoch, m.i) == (known.epoch, i)}
            for m in underway:
                if m.kind == "ack":
                    yield ("acked", m), around, 0
            if not underway or "late" in s.causes:
                yield ("unanswered", i), around, int(bool(underway))
        for m in around.net:
            if m.kind == "forward" and m.to == p and known.hears is None:
                yield ("hear", m), around, 0
                if "dup" in s.causes:
                    yield ("hear", m), attrs.evolve(around, again=True), 1
        if seen.running:
            if s.poison:
                yield ("raise",), around, 0
            else:
                yield ("effect",), around, 0
        fence = self._fence(around)
        if known.epoch and known.epoch != fence and not known.got:
            yield ("notice",), attrs.evolve(around, given=frozenset(g for g in around.given if g[0] != p)), 0
        if not known.epoch and not known.tries and p in s.leaders[1:]:
            led = any(k.epoch == fence and around.is_up(q) == "yes" for q, k in around.known)
            yield ("lead", fence + 1), around, int(led)

    def _served(self, around: Around, p: str, known: Known) -> Iterator[tuple[tuple[Any, ...], Around, int]]:
        """What Telegram answers to a poll."""
        upto = max(around.confirmed, known.poll)
        after = attrs.evolve(around, confirmed=upto)
        for i in range(1, min(around.sent, upto + 1) + 1):
            if i == upto + 1 or "old" in self.setting.causes:
                yield ("served", (i,)), after, int(i != upto + 1)
        if upto >= around.sent:
            yield ("served", ()), after, 0
        if any(k.poll != NOTHING for q, k in around.known if q != p and around.is_up(q) == "yes"):
            yield ("conflict",), around, 0

    def _facts(self, around: Around, seen: Seen) -> Facts:
        """Who is dead; and the least identities to which neither the journal nor this process refers. (What others
        have in mind is in the journal, or is nobody's.)"""
        used = self.journals.identities(around.content) | identities((repr(seen),))
        dead = frozenset(party(q).process for q, up in around.up if up == "dead")
        return Facts(dead, 1 + max(used, default=0))

    def _settle(self, around: Around, p: str, told: Told) -> Around:
        """What has come of a step."""
        before = around.of(p)
        net, given = around.net, around.given
        phases = self._phases(around)
        was = phases if around.was is None else self._phases(around.was)
        for i, m in told.settled:
            if i in told.given_up and phases.get(i) == "forwarding":
                continue
            gone = {m} if m is not None else self._acks(net, before, (i,))
            net -= gone
        over = {i for q, i in given if q == p and (told.resumed or was.get(i) != phases.get(i))}
        net -= self._acks(net, before, over)
        given -= {(p, i) for i in over}
        given |= {(p, i) for i in told.given_up if phases.get(i) == "forwarding"}
        if told.answer is not None:
            m, answer = told.answer
            listens = self._listens(attrs.evolve(around, given=given), m)
            net = (net if around.again and answer.ok else net - {m}) | frozenset({answer} if listens else ())
        again = around.again and told.known.hears is not None
        net |= set(told.sent)
        effects = tuple(n + told.effects.count(i + 1) for i, n in enumerate(around.effects))
        reg = around.reg
        after = attrs.evolve(around, net=net, given=given, effects=effects, reg=reg, again=again, was=None)
        if self._leads_now(around, p, told.known) and not self._leads_now(around.was or around, p, before):
            skips = around.skips - {p} | frozenset(() if self._opened(around) else {p})
            after = attrs.evolve(after, reg=frozenset(), skips=skips)
        if around.was is not None and self._opened(around) and not self._opened(around.was):
            after = attrs.evolve(after, ended=around.ended | {p})
        if before.epoch and not told.known.epoch:  # nobody waits for the answers any more
            after = attrs.evolve(after, net=frozenset(m for m in net if m.kind == "forward" or m.epoch != before.epoch))
        return after.knows(p, told.known)

    def _opened(self, around: Around) -> bool:
        return bool(self.journals.rows(around.content, "meta")[0]["opened"])

    def _phases(self, around: Around) -> dict[int, str]:
        return {row["update_id"]: row["phase"] for row in self.journals.rows(around.content, "updates")}

    def _leads_now(self, around: Around, p: str, known: Known) -> bool:
        return self._epoch(around, known) == self._fence(around)

    def _epoch(self, around: Around, known: Known) -> int:
        """Under which it leads, as the fence tells: it may not know yet."""
        return known.tries if known.tries and known.tries == self._fence(around) else known.epoch

    @staticmethod
    def _acks(net: frozenset[Msg], known: Known, ids: Collection[int]) -> set[Msg]:
        return {m for m in net if m.kind == "ack" and m.epoch == known.epoch and m.i in ids}

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around, s = world.extra, self.setting
        assert isinstance(around, Around)
        if around.was is not None:
            return
        hearing = self._hearing(around)

        def move(label: str, name: str, args: tuple[Hashable, ...], after: Around, cost: int) -> Move:
            return Move(label, attrs.evolve(world, extra=after), cost, twin=((name, args),))

        waits = any(k.empty or (k.skips and k.poll == NOTHING) for _, k in around.known)
        if around.sent < s.last and not waits:
            yield move("an update is sent", "Send", (), attrs.evolve(around, sent=around.sent + 1), 0)
        if "lose" in s.causes:
            for m in around.net - hearing:
                yield move(f"{m} is lost", "Lose", (), attrs.evolve(around, net=around.net - {m}), 1)
        if "babble" in s.causes:
            yield from self._babbles(world, around, hearing)
        if "move" in s.causes and not any(k.deciding for _, k in around.known):
            yield move("the threads are exchanged", "Move", (1,), attrs.evolve(around, moved=not around.moved), 1)
        yield from self._persons(world, around)
        for p, k in around.known:
            up = around.is_up(p) == "yes"
            if any(other.deciding for q, other in around.known if q != p):
                continue
            if up and "silent" in s.causes and p in around.reg:
                yield move(f"{p} is silent", "Silent", (p,), attrs.evolve(around, reg=around.reg - {p}), 1)
            if up and self._registers(around, p, k):
                yield move(f"{p} registers", "Register", (p,), attrs.evolve(around, reg=around.reg | {p}), 0)
            if up and "crash" in s.causes and p not in s.away:
                yield from self._crashes(world, around, p, k)

    def _babbles(self, world: World, around: Around, hearing: set[Msg]) -> Iterator[Move]:
        """An instance that is not ours answers something."""
        for m in around.net - hearing:
            if m.kind == "forward" and around.is_up(m.to) == "yes" and self._listens(around, m):
                for ok, b, g in ((True, NO, 0), (True, m.b, 1), (False, NO, 0)):
                    said = Msg("ack", m.to, m.epoch, m.i, b, g, ok=ok)
                    after = attrs.evolve(around, net=(around.net - {m}) | {said})
                    twin = (("Babble", (m.to, m.i)),)
                    yield Move(f"somebody answers {said}", attrs.evolve(world, extra=after), 1, twin=twin)

    def _listens(self, around: Around, m: Msg) -> bool:
        return any(
            k.epoch == m.epoch and around.is_up(q) == "yes" and (m.i in k.sending or (q, m.i) in around.given)
            for q, k in around.known
        )

    def _persons(self, world: World, around: Around) -> Iterator[Move]:
        """What a person does with the journal; and that a binding is given up that nobody will serve."""
        rows, causes = self.journals.rows, self.setting.causes
        ops: list[tuple[str, int, Op, int]] = []
        for r in rows(around.content, "updates"):
            i = r["update_id"]
            gone = r["binding"] is not None and all(u == "dead" for p, u in around.up if HOME[p] == r["binding"])
            if "move" in causes:
                ops.append(("Release", i, Op("release_update", (i, "ann"), (("gone", gone),)), 0))
            if "person" in causes:
                ops.append(("Discard", i, Op("discard_update", (i, "ann")), 1))
        for d in rows(around.content, "deliveries") if "person" in causes else ():
            ops.append(("Waive", d["update_id"], Op("discard", (d["receipt_id"], "ann")), 1))
            ops.append(("Again", d["update_id"], Op("retry", (d["receipt_id"], "ann")), 1))
        for name, i, op, cost in ops:
            outcome = self.journals.outcomes(around.content, op, Facts(), False)[0]
            if outcome.content == around.content:
                continue
            effects = tuple(0 if name == "Again" and j == i - 1 else n for j, n in enumerate(around.effects))
            after = attrs.evolve(around, content=outcome.content, effects=effects)
            yield Move(f"a person: {op}", attrs.evolve(world, extra=after), cost, twin=((name, (i,)),))

    @staticmethod
    def _hearing(around: Around) -> set[Msg]:
        """What has arrived, and is on its way only to the twin."""
        return {m for _, k in around.known for m in (*k.heard, *((k.hears,) if k.hears else ()))}

    def _registers(self, around: Around, p: str, known: Known) -> bool:
        led = any(
            self._leads_now(around, q, k) and around.is_up(q) == "yes" and HOME[q] != HOME[p] for q, k in around.known
        )
        return self.setting.parts.forwards and led and p not in around.reg and not (known.epoch or known.tries)

    def _crashes(self, world: World, around: Around, p: str, known: Known) -> Iterator[Move]:
        up = tuple((q, "dead" if q == p else u) for q, u in around.up)
        epoch = self._epoch(around, known)
        dead = attrs.evolve(
            around.knows(p, Known(alive=False)),
            up=up,
            reg=around.reg - {p},
            given=frozenset(g for g in around.given if g[0] != p),
        )
        said = frozenset(m for m in around.net if (m.to != p if m.kind == "forward" else m.epoch != epoch))
        unsaid = frozenset(m for m in around.net if m.to != p and m.epoch != epoch)
        hearing = self._hearing(around.knows(p, Known()))
        for net in {said} if hearing & around.net else {said, unsaid}:
            after = attrs.evolve(world, extra=attrs.evolve(dead, net=net)).with_process(PIDS[p], False, 1)
            yield Move(f"{p} dies", after, 1, ends=frozenset({PIDS[p]}), twin=self.crash(PIDS[p]))

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
        return self.journals.idle(around.content, seen.op, self._facts(around, seen))

    def settled(self, call: Call) -> bool:
        return True

    # -- comparing ----------------------------------------------------------------------------------------------------

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Its own, what time does to an update, and the paths."""
        own = super().actions(participant)
        updates = [(i,) for i in self.model.config.updates]
        later = [(a.name, a.body, i) for a in self.twin.actions() if a.name in ("Retry", "Release") for i in updates]
        paths = [(f.__name__, f, (participant, *i)) for f in self._paths() for i in updates]
        return (*own, *later, *paths)

    def _paths(self) -> tuple[Callable[..., Iterable[State]], ...]:
        model = self.model

        def retried(state: State, p: str, i: int) -> Iterable[State]:
            """What waits is retried, and moved at once."""
            for s in _do(model, "Retry", state, i):
                yield from _do(model, "Forward", s, p, i)
                yield from _do(model, "Keep", s, p, i)

        def not_sent(state: State, p: str, i: int) -> Iterable[State]:
            """It is written down that it is sent, and it is lost."""
            for before in (state, *_do(model, "Retry", state, i)):
                for s in _do(model, "Forward", before, p, i):
                    yield attrs.evolve(s, net=before.net)

        def made_again(state: State, p: str, i: int) -> Iterable[State]:
            """An attempt that was given up is made again."""
            for s in _do(model, "Unanswered", state, p, i):
                yield from _do(model, "Retry", s, i)

        def admitted_and_refused(state: State, p: str, i: int) -> Iterable[State]:
            """It is admitted, its answer is lost, and it comes once more, and is refused."""
            for s in _do(model, "HearForward", state, p, i):
                for m in s.net - state.net:
                    yield attrs.evolve(s, net=(s.net - {m}) | {attrs.evolve(m, ok=False, b=NO, g=0)})

        def several(state: State, p: str, i: int) -> Iterable[State]:
            """One transaction takes, or recovers, all that there is."""
            for name in ("Take", "Recover"):
                states = [state]
                for j in model.config.updates:
                    states = [t for s in states for t in _do(model, name, s, p, j)]
                yield from states if len(model.config.updates) > 1 else ()

        return retried, not_sent, made_again, admitted_and_refused, several

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        return self.at_rest

    def phase_in(self, state: State, participant: str) -> str:
        return "told"

    def agrees(self, state: State, participant: str, observed: Hashable) -> bool:
        return True

    def spent(self, state: State, left: int) -> bool:
        return True

    def shared_in(self, state: State) -> Hashable:
        """All but what nobody here can see: what is only counted, and what a refusal says besides."""
        found = self.states.get(state)
        if found is None:
            net = frozenset(m if m.kind == "forward" or m.ok else attrs.evolve(m, b=NO, g=0) for m in state.net)
            found = attrs.evolve(state, net=net, unwanted=frozenset(), harm=frozenset(), budget=0)
            self.states[state] = found
        return found

    def shared(self, disks: Disks, world: World) -> Hashable:
        around = world.extra
        assert isinstance(around, Around)
        around = around.was or around
        found = self.images.get(around)
        if found is None:
            found = self.images[around] = self._image(around)
        return found

    def _image(self, around: Around) -> State:
        """What is there, in the twin's words."""
        rows = self.journals.rows
        (meta,) = rows(around.content, "meta")
        receipts = {r["receipt_id"]: r for r in rows(around.content, "receipts")}
        known = dict(around.known)
        updates = dict.fromkeys(self.model.config.updates, Row("absent", NO))
        for r in rows(around.content, "updates"):
            updates[r["update_id"]] = Row(r["phase"], r["binding"] or NO)
        work = set()
        for d in rows(around.content, "deliveries"):
            work.add(self._work(d, receipts.get(d["receipt_id"]), known))
        node = {}
        for p, k in known.items():
            up = around.is_up(p)
            epoch = self._epoch(around, k) if up == "yes" else 0
            sending = k.sending | {i for q, i in around.given if q == p}
            node[p] = Node(up, epoch, p in around.reg, k.poll, k.got, self._skips(around, p, k), sending)
        return State(
            sent=around.sent,
            confirmed=around.confirmed,
            node=FrozenMap(node),
            net=around.net,
            target=FrozenMap(dict.fromkeys(updates, self._target(around))),
            fence=meta["fence"],
            opened=bool(meta["opened"]),
            offset=max(meta["passed"], 0),
            update=FrozenMap(updates),
            work=frozenset(work),
            effects=FrozenMap(dict(zip(updates, around.effects, strict=True))),
            unwanted=frozenset(),
            harm=frozenset(),
            budget=0,
        )

    def _target(self, around: Around) -> str:
        here = self.setting.target
        return {"A": "B", "B": "A"}[here] if around.moved else here

    def _skips(self, around: Around, p: str, known: Known) -> bool:
        if p in around.ended or not self._epoch(around, known):
            return False
        return known.skips if known.loaded else p in around.skips

    def _work(self, d: dict[str, Any], receipt: dict[str, Any] | None, known: Mapping[str, Known]) -> Work:
        i, b = d["update_id"], d["binding"]
        g = int(d["delivery_id"] != id_of(b, i, 0))
        body = 1 if d["digest"] == hashlib.sha256(update(i, self.setting.target).text.encode()).hexdigest() else 2
        if receipt is None:
            return Work(i, b, g, b, body, d["phase"], "absent")
        owner = next((p for p in PIDS if party(p).process == receipt["owner_process"]), NO)
        did = owner != NO and receipt["phase"] == "started" and i in known[owner].did
        tries = receipt["attempts"] if self.setting.poison and receipt["phase"] not in ("discarded",) else 0
        return Work(i, b, g, b, body, d["phase"], receipt["phase"], owner, did, tries)


def _do(model: Twin, name: str, state: State, *args: Any) -> Iterable[State]:
    (action,) = (a for a in model.actions() if a.name == name)
    return action.body(state, *args)


def _incoming(i: int, target: str) -> Incoming:
    return Incoming(i, update(i, target).text, KIND)


def _bound(least: int, setting: Setting, thorough: bool = False) -> Bound:
    return Bound(lambda: AdmissionBinding(setting), least, thorough)


_A, _AB, _ABC = ("a",), ("a", "b"), ("a", "b", "c")


def _causes(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORKS: Final = Setting(_ABC, Parts(works=True), _causes("crash person"), admitted=True, away=frozenset("a"))
_LEADERS: Final = Setting(_AB, Parts(forwards=True), _causes("crash move"), _AB)
_CHANNEL: Final = Setting(_AB, Parts(forwards=True), _causes("odd forged astray babble silent person move"))
_FORWARD: Final = Setting(_AB, Parts(forwards=True), _causes("late dup lose"))
_FIRST: Final = Setting(_AB, Parts(polls=True), frozenset(), _AB, "A", first=True)
_OWN: Final = Setting(_A, Parts(forwards=True, works=True), _causes("crash"), target="A")
_POISON: Final = Setting(_AB, Parts(works=True), frozenset(), admitted=True, poison=True, away=frozenset("a"))
_POLL: Final = Setting(_AB, Parts(polls=True), _causes("old"), _AB, "A")


def _twice(setting: Setting, budget: int = 2) -> Setting:
    return attrs.evolve(setting, budget=budget)


BOUND: Final[Mapping[str, Bound]] = {
    "poll": _bound(2_500, _POLL),
    "first": _bound(100, attrs.evolve(_FIRST, processes=_A)),
    "forward": _bound(2_800, _twice(_FORWARD)),
    "channel": _bound(600, _CHANNEL),
    "own": _bound(400, _OWN),
    "work": _bound(900, _WORKS),
    "poison": _bound(350, _POISON),
    "leaders": _bound(1_700, _LEADERS),
    "polls": _bound(7_500, attrs.evolve(_POLL, last=2), thorough=True),
    "firsts": _bound(10_000, _FIRST, thorough=True),
    "forwards": _bound(10_000, _twice(_FORWARD, 3), thorough=True),
    "pair": _bound(1_500, attrs.evolve(_FORWARD, last=2), thorough=True),
    "channels": _bound(4_000, _twice(_CHANNEL), thorough=True),
    "owns": _bound(1_000, _twice(_OWN), thorough=True),
    "works": _bound(3_000, _twice(_WORKS), thorough=True),
    "queue": _bound(3_000, attrs.evolve(_WORKS, last=2), thorough=True),
    "successors": _bound(14_000, _twice(_LEADERS), thorough=True),
    "all": _bound(1_000, Setting(_AB, Parts(forwards=True, works=True), frozenset(), budget=0), thorough=True),
}
"""What the manifest names for the stage `bind`."""
