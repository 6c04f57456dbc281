"""What befalls nodes and messages in the binding of `QueueHandoff`; the leader between relays, as it really does."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any

import attrs

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, Registration
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.fleet.leader.routing_steps import Live
from tenure.adapters.handoff.relay import Relay
from tenure.adapters.verify.bind.binding import Move, World
from tenure.adapters.verify.bind.disk import identity
from tenure.adapters.verify.bind.handoff_desk import TIMES
from tenure.adapters.verify.bind.handoff_seen import BINDINGS, PIDS, Known, Letter
from tenure.adapters.verify.bind.handoff_world import Around, HandoffWorld
from tenure.adapters.verify.bind.journal_ports import Facts, Op
from tenure.machines.follower_messages import Binding as Place
from tenure.machines.routes_messages import Entry
from tenure.models.queue_handoff_state import (
    Msg,
)


class HandoffMoves(HandoffWorld):
    """With what befalls it."""

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
