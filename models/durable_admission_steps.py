"""What leader and instance do in the twin of DurableAdmission, a transaction of the journal at a time.

`spec/DurableAdmissionLeader.tla` and `spec/DurableAdmissionInstance.tla` have the same steps under the same names.

An update at the leader, a delivery and a receipt are machines; a transaction of the journal is what it tells them, and
what they answer is performed here. The receipt's machine has a module of its own (QueueHandoff) that pins its rows:
here it is run through `step` and not `World.step`, as it is, but for two guards that this module takes away as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar, Final

import attrs

from tenure.machines import delivery as there
from tenure.machines import forwarding_messages as here
from tenure.machines import receipt_messages as right
from tenure.machines.chart import Step, Table, step
from tenure.machines.delivery import DELIVERY, Delivery
from tenure.machines.forwarding import FORWARDING, aside
from tenure.machines.laws import Law
from tenure.machines.receipt import RECEIPT
from tenure.models.durable_admission_state import (
    HOME,
    KIND,
    LIVE,
    NEWEST,
    NO,
    NOTHING,
    Config,
    Msg,
    Row,
    State,
    Work,
    admitted,
    answer,
    current,
    gone,
    holder,
    id_of,
    leads,
    of,
    owner_of,
    receipt_of,
    routed,
    same,
    seen,
    under_way,
    update_of,
    wanted,
    with_node,
    with_update,
    with_work,
)
from tenure.models.world import World, permission, prohibition, taken

RECEIPTS: Final = ("owner_proven_dead", "a_person_asks")
"""Guards of the receipt's machine that can be taken away here."""


class Steps(World[State]):
    """Polls, the leader, an instance, a worker."""

    module: ClassVar[str] = "DurableAdmission"
    tables = (FORWARDING, DELIVERY)
    environment = (
        prohibition("journal_first", Law.DURABLE_FIRST),
        prohibition("never_negative", Law.DURABLE_FIRST),
        prohibition("waits_for_instance", Law.PROOF),
        prohibition("ack_after_commit", Law.DURABLE_FIRST),
        prohibition("asked_again", Law.PROOF),
        permission("aside_passes", Law.UNKNOWN),
        permission("position_left_out", Law.LATE_IS_NOTHING),
        permission("poison_passes", Law.UNKNOWN),
        prohibition("started_first", Law.DURABLE_FIRST),
        prohibition("owner_proven_dead", Law.PROOF),
        prohibition("a_person_asks", Law.UNKNOWN),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.forwarding = self.weakened(FORWARDING)
        self.delivery = self.weakened(DELIVERY)
        names = self.off & set(RECEIPTS)
        self.receipt: Table[right.Receipt, right.Happening, right.Output] = (
            RECEIPT.without(*names) if names else RECEIPT
        )

    def _spend(self, state: State, cause: str) -> int | None:
        """The budget after that, or None; "none" costs nothing."""
        if cause == NO:
            return state.budget
        return state.budget - 1 if cause in self.config.causes and state.budget > 0 else None

    # -- polls --------------------------------------------------------------------------------------------------------

    def _poll(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if not leads(node) or node.poll != NOTHING:
            return
        if node.got == 0:
            yield with_node(state, p, attrs.evolve(node, poll=state.offset))
            if self.guard("never_negative", False):
                yield with_node(state, p, attrs.evolve(node, poll=NEWEST))
        elif node.got > state.offset and self.guard("journal_first", False):
            yield with_node(state, p, attrs.evolve(node, poll=node.got))

    def _serve(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if node.up != "yes" or node.poll == NOTHING:
            return
        ahead = node.poll > state.sent
        upto = max(state.confirmed, 0 if ahead else state.sent - 1 if node.poll == NEWEST else node.poll)
        for i in range(1, state.sent + 1):
            budget = self._spend(state, NO if i == upto + 1 else "old")
            if i <= upto + 1 and budget is not None:
                after = attrs.evolve(node, poll=NOTHING, got=i, anew=ahead and i == upto + 1)
                yield with_node(attrs.evolve(state, confirmed=upto, budget=budget), p, after)
        if upto >= state.sent and upto != state.confirmed:
            yield attrs.evolve(state, confirmed=upto)

    def _conflict(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        others = (other.poll != NOTHING for q, other in state.node.items() if q != p)
        if node.up == "yes" and node.poll != NOTHING and any(others):
            yield with_node(state, p, attrs.evolve(node, poll=NOTHING))

    def _journaled(self, state: State, p: str) -> tuple[Step[here.Update, here.Output] | None, int]:
        node = state.node[p]
        message = (here.Skip if node.skips else here.Admit)(node.epoch, state.fence, state.offset)
        return self._said(state, node.got, message), node.got

    def _journal(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if not leads(node) or node.got == 0:
            return ()
        done, i = self._journaled(state, p)
        if done is None:
            return ()
        after = attrs.evolve(self._with(state, i, done), offset=max(state.offset, i))
        unwanted = state.unwanted | {i} if node.skips else state.unwanted
        return (with_node(attrs.evolve(after, unwanted=unwanted), p, attrs.evolve(node, got=0, anew=False)),)

    def _numbered(self, state: State, p: str) -> bool:
        """What was answered lies below the offset, and would be admitted if that were where it follows on."""
        node = state.node[p]
        if not leads(node) or not 0 < node.got <= state.offset or not self.guard("asked_again", node.anew):
            return False
        return self._said(state, node.got, here.Admit(node.epoch, state.fence, node.got - 1)) is not None

    def _renumber(self, state: State, p: str) -> Iterable[State]:
        if self._numbered(state, p):
            yield attrs.evolve(state, offset=state.node[p].got - 1)

    def _journal_refused(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        refused = leads(node) and node.got != 0 and self._journaled(state, p)[0] is None
        if refused and not self._numbered(state, p):
            yield with_node(state, p, attrs.evolve(node, got=0, anew=False))

    def _open(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if current(state, p) and node.skips and node.got == 0 and state.offset == state.sent:
            yield with_node(attrs.evolve(state, opened=True), p, attrs.evolve(node, skips=False))

    # -- the leader ---------------------------------------------------------------------------------------------------

    def _said(self, state: State, i: int, message: here.Happening) -> Step[here.Update, here.Output] | None:
        """What the machine of update `i` answers, or None for a refusal."""
        row = state.update[i]
        return taken(self.step(self.forwarding, row.phase, update_of(i, row), message))

    def _with(self, state: State, i: int, done: Step[here.Update, here.Output]) -> State:
        return with_update(state, i, done, self.config.mute)

    def _moved(self, state: State, i: int, message: here.Happening) -> Iterable[State]:
        done = self._said(state, i, message)
        return () if done is None else (self._with(state, i, done),)

    def _ways(self, state: State, p: str, i: int, b: str) -> Iterable[tuple[str, Msg]]:
        """How a forward may go, and by which fault."""
        recipients, epoch = routed(state, p, b), state.node[p].epoch
        for q in recipients:
            plain = Msg("forward", q, epoch, i, b, 0)
            yield NO, plain
            yield "odd", attrs.evolve(plain, g=1)
            yield "forged", attrs.evolve(plain, body=2)
            yield "moved", attrs.evolve(plain, pos=1)
        if recipients:
            for q, node in state.node.items():
                if node.up == "yes" and HOME[q] != b:
                    yield "astray", Msg("forward", q, epoch, i, b, 0)

    def _in_turn(self, state: State, i: int, b: str) -> bool:
        """Those before it that are for `b` go first, unless they were sent in vain again and again."""
        return all(
            self.permit("aside_passes", aside(update_of(j, row)))
            for j, row in state.update.items()
            if j < i and row.phase in LIVE and owner_of(state, j) == b
        )

    def _forward(self, state: State, p: str, i: int) -> Iterable[State]:
        node = state.node[p]
        if not leads(node):
            return
        for b in wanted(state, i) - {HOME[p]}:
            if not self._in_turn(state, i, b):
                continue
            ways = tuple(self._ways(state, p, i, b))
            done = self._said(state, i, here.Forward(node.epoch, state.fence, b)) if ways else None
            if done is None:
                continue
            assert done.outputs == (here.Send(b, id_of(b, i, 0)),), done
            after = with_node(self._with(state, i, done), p, attrs.evolve(node, sending=node.sending | {i}))
            for cause, message in ways:
                budget = self._spend(state, cause)
                if budget is not None:
                    yield attrs.evolve(after, net=state.net | {message}, budget=budget)

    def _absent(self, state: State, p: str, i: int) -> Step[here.Update, here.Output] | None:
        owner = owner_of(state, i)
        if not leads(state.node[p]) or owner == HOME[p] or routed(state, p, owner):
            return None
        return self._said(state, i, here.Unserved(state.node[p].epoch, state.fence))

    def _unserved(self, state: State, p: str, i: int) -> Iterable[State]:
        done = self._absent(state, p, i)
        return () if done is None else (self._with(state, i, done),)

    def _drop(self, state: State, p: str, i: int) -> Iterable[State]:
        if self.guard("waits_for_instance", False) and self._absent(state, p, i) is not None:
            row = attrs.evolve(state.update[i], phase="delivered")
            yield attrs.evolve(state, update=state.update.set(i, row))

    def _keep(self, state: State, p: str, i: int) -> Iterable[State]:
        node, mine = state.node[p], HOME[p]
        if not leads(node) or mine not in wanted(state, i):
            return ()
        done = self._said(state, i, here.Keep(node.epoch, state.fence, mine))
        if done is None:
            return ()
        (asked,) = done.outputs
        assert asked == here.Deliver(mine, id_of(mine, i, 0)), asked
        message = Msg("forward", p, node.epoch, i, mine, 0)
        bound = state.update.set(i, Row("journaled", mine))
        work = self._admits(attrs.evolve(state, update=bound), p, message)
        return () if work is None else (attrs.evolve(self._with(state, i, done), work=work),)

    def _hear_ack(self, state: State, p: str, i: int) -> Iterable[State]:
        node = state.node[p]
        if not leads(node) or i not in node.sending:
            return
        for m in state.net:
            if (m.kind, m.epoch, m.i) == ("ack", node.epoch, i):
                named = m.b != NO
                delivery, update = (id_of(m.b, i, m.g), i) if named else (None, None)
                message = here.Acknowledged(node.epoch, state.fence, m.ok, delivery, update)
                done = self._said(state, i, message)
                after = attrs.evolve(state if done is None else self._with(state, i, done), net=state.net - {m})
                yield with_node(after, p, attrs.evolve(node, sending=node.sending - {i}))

    def _unanswered(self, state: State, p: str, i: int) -> Iterable[State]:
        node = state.node[p]
        if not leads(node) or i not in node.sending:
            return
        underway = {m for m in state.net if (m.epoch, m.i) == (node.epoch, i)}
        budget = self._spend(state, "late" if underway else NO)
        if budget is None:
            return
        done = self._said(state, i, here.Failed(node.epoch, state.fence, "acknowledgement-missing"))
        net = state.net - {m for m in underway if m.kind == "ack"}
        after = attrs.evolve(state if done is None else self._with(state, i, done), net=net, budget=budget)
        yield with_node(after, p, attrs.evolve(node, sending=node.sending - {i}))

    def _resume(self, state: State, p: str, i: int) -> Iterable[State]:
        node = state.node[p]
        if not leads(node) or i in node.sending:
            return ()
        return self._moved(state, i, here.Resume(node.epoch, state.fence))

    def _release(self, state: State, i: int) -> Iterable[State]:
        binding = state.update[i].binding
        if binding == NO:
            return ()
        return self._moved(state, i, here.Release(gone(state, binding), admitted(state, i)))

    # -- an instance --------------------------------------------------------------------------------------------------

    def _told(self, d: Work | None, binding: str, message: there.Happening) -> Step[Delivery, there.Output] | None:
        """What the machine of a delivery answers to the instance that serves `binding`, or None for a refusal."""
        phase, body = (DELIVERY.initial, "") if d is None else (d.phase, str(d.body))
        return taken(self.step(self.delivery, phase, Delivery(binding, body), message))

    def _body(self, m: Msg) -> int:
        return m.body if self.permit("position_left_out", True) else m.body + 10 * m.pos

    def _admits(self, state: State, q: str, m: Msg, *, foreign: bool = False) -> frozenset[Work] | None:
        """The deliveries after the instance has admitted it, or None for a refusal."""
        row = Row("forwarding", m.b) if foreign else state.update[m.i]
        known = next((d for d in state.work if same(d, m)), None)
        message = there.Admit(
            delivery=id_of(m.b, m.i, m.g),
            kind=KIND,
            binding=m.b,
            update=m.i,
            body=str(self._body(m)),
            row=seen(row),
            bound=None if row.binding == NO else row.binding,
            passed=m.i <= state.offset,
            room=under_way(state) < self.config.room,
        )
        done = self._told(known, HOME[q], message)
        if done is None:
            return None
        delivery = id_of(m.b, m.i, m.g)
        assert done.outputs[-1] == there.Receive(delivery, m.i), done
        if there.Insert(delivery, m.i) not in done.outputs:
            return state.work
        return state.work | {Work(m.i, m.b, m.g, HOME[q], int(done.data.body), done.phase)}

    def _hear_forward(self, state: State, q: str, i: int) -> Iterable[State]:
        if state.node[q].up != "yes" or i in self.config.mute:
            return
        for m in state.net:
            if (m.kind, m.to, m.i) != ("forward", q, i):
                continue
            seen_row = self._admits(state, q, m)
            for cause in (NO, "dup", "full", "foreign"):
                budget = self._spend(state, cause)
                if budget is None:
                    continue
                admits = self._admits(state, q, m, foreign=True) if cause == "foreign" else seen_row
                inserts = admits is not None and admits != state.work
                if (cause in ("full", "foreign") and not inserts) or (cause == "foreign" and seen_row == admits):
                    continue
                ok = self.guard("ack_after_commit", False) if cause == "full" else admits is not None
                work = state.work if admits is None or cause == "full" else admits
                reply = answer(state, m, ok, m.b if ok else NO, m.g if ok else 0)
                net = (state.net if cause == "dup" else state.net - {m}) | reply
                if (net, work) == (state.net, state.work):
                    continue
                at_home = any(same(d, m) and d.at == HOME[q] and d.body % 10 == m.body for d in state.work)
                safe = any(same(d, m) and d.body % 10 == m.body for d in work)
                harm = {"refused"} if not ok and at_home else {"unsafe"} if ok and not safe else set()
                yield attrs.evolve(state, net=net, work=work, harm=state.harm | harm, budget=budget)

    def _unheard(self, state: State, q: str, i: int) -> Iterable[State]:
        if state.node[q].up == "yes" and i in self.config.mute:
            for m in state.net:
                if (m.kind, m.to, m.i) == ("forward", q, i):
                    yield attrs.evolve(state, net=state.net - {m})

    def _babble(self, state: State, q: str, i: int) -> Iterable[State]:
        budget = self._spend(state, "babble")
        if state.node[q].up != "yes" or budget is None:
            return
        for m in state.net:
            if (m.kind, m.to, m.i) == ("forward", q, i):
                for ok, b, g in ((True, NO, 0), (True, m.b, 1), (False, m.b, m.g)):
                    net = (state.net - {m}) | answer(state, m, ok, b, g)
                    yield attrs.evolve(state, net=net, budget=budget)

    # -- a worker -----------------------------------------------------------------------------------------------------

    def _decided(self, d: Work, message: right.Happening) -> Work | None:
        """The work after its receipt was told `message`, or None where nothing changes."""
        done = taken(step(self.receipt, d.receipt, receipt_of(d), message))
        if done is None or any(isinstance(output, right.Same) for output in done.outputs):
            return None
        owner = NO if done.data.owner is None else done.data.owner.process
        tries = done.data.attempts if d.i in self.config.poison else 0
        ends: dict[str, there.Happening] = {"done": there.Settle(), "discarded": there.Discard()}
        phase = d.phase
        if done.phase in ends:
            ended = self._told(d, d.at, ends[done.phase])
            assert ended is not None, d
            phase = ended.phase
        tries = 0 if done.phase == "discarded" else tries
        return attrs.evolve(d, receipt=done.phase, owner=owner, tries=tries, phase=phase)

    def _passes(self, state: State, d: Work) -> bool:
        ended = (e.receipt in ("done", "discarded") for e in state.work if e.at == d.at and e.i < d.i)
        return self.permit("poison_passes", True) or all(ended)

    def _take(self, state: State, p: str, i: int) -> Iterable[State]:
        if state.node[p].up != "yes":
            return
        for d in of(state, i):
            if self._passes(state, d):
                serves: right.Right = "serves" if HOME[p] == d.at else "none"
                yield from with_work(state, d, self._decided(d, right.Take(right.Party(p, p), p, serves)))

    def _owned(self, state: State, p: str, i: int) -> Iterable[Work]:
        """What it has of an update."""
        return (d for d in of(state, i) if d.owner == p and state.node[p].up == "yes")

    def _start(self, state: State, p: str, i: int) -> Iterable[State]:
        for d in self._owned(state, p, i):
            yield from with_work(state, d, self._decided(d, right.Start(holder(p))))

    def _effect(self, state: State, p: str, i: int) -> Iterable[State]:
        if i in self.config.poison:
            return
        for d in self._owned(state, p, i):
            if not d.did and self.guard("started_first", d.receipt == "started"):
                (after,) = with_work(state, d, attrs.evolve(d, did=True))
                yield attrs.evolve(after, effects=state.effects.set(i, min(2, state.effects[i] + 1)))

    def _complete(self, state: State, p: str, i: int) -> Iterable[State]:
        for d in self._owned(state, p, i):
            if d.did and (after := self._decided(d, right.Complete(holder(p)))) is not None:
                yield from with_work(state, d, attrs.evolve(after, did=False))

    def _fail(self, state: State, p: str, i: int) -> Iterable[State]:
        if i in self.config.poison:
            for d in self._owned(state, p, i):
                yield from with_work(state, d, self._decided(d, right.Fail(holder(p))))

    def _recover(self, state: State, q: str, i: int) -> Iterable[State]:
        if state.node[q].up != "yes":
            return
        for d in of(state, i):
            if d.owner not in (NO, q):
                evidence: right.Evidence = "dead" if state.node[d.owner].up == "dead" else "alive"
                after = self._decided(d, right.Recover(d.owner, evidence))
                yield from with_work(state, d, None if after is None else attrs.evolve(after, did=False))
