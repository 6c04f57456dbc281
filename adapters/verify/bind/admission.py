"""What processes do with updates, against the twin of `DurableAdmission` (bus.md c, d; annex D; I13-I18, I22, L21).

Each process runs the real drivers over the real journal (`admission_desk`); the journal is one for all, in memory.
Every transaction is a step, in every order that the processes may have; each call of the database in it fails once
(`journal_ports`), and a process dies between any two of them. After each step the whole state is compared: tables,
messages, what each process remembers. It has to be a step of the twin by that very process, or nothing to it.

Some steps here are several there, each a path of the twin (`paths`): a forward of what waits (Retry, Forward); one
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

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from tenure.adapters.journal.deliveries import Arrival
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.verify.bind.admission_desk import Desk
from tenure.adapters.verify.bind.admission_moves import AdmissionMoves
from tenure.adapters.verify.bind.admission_seen import Known, Parts, Seen, Told, party, update
from tenure.adapters.verify.bind.admission_twin import Setting, paths
from tenure.adapters.verify.bind.admission_world import PIDS, Around
from tenure.adapters.verify.bind.binding import Participant, World
from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.calls import Answer, Call, Got
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.disk import Disks, identities
from tenure.adapters.verify.bind.journal_ports import Facts
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.replay import Replay
from tenure.machines.admission_identity import delivery_id
from tenure.models.durable_admission_state import (
    HOME,
    KIND,
    NOTHING,
    State,
)


class AdmissionBinding(AdmissionMoves):
    """The processes of one configuration."""

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        super().__init__(setting, off)
        here = (p for p in setting.processes if p not in setting.away)
        self.participants = tuple(Participant(p, PIDS[p], self._program(p)) for p in here)

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

    def actions(self, participant: str) -> tuple[tuple[str, Callable[..., Iterable[State]], tuple[Any, ...]], ...]:
        """Its own, what time does to an update, and the paths."""
        own = super().actions(participant)
        updates = [(i,) for i in self.model.config.updates]
        later = [(a.name, a.body, i) for a in self.twin.actions() if a.name in ("Retry", "Release") for i in updates]
        several = [(f.__name__, f, (participant, *i)) for f in paths(self.model) for i in updates]
        return (*own, *later, *several)


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
    "forward": _bound(2_400, _twice(_FORWARD)),
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
