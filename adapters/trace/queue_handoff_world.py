"""The twin `QueueHandoff` with the names of a trace: any number of instances, each of some process.

What is done to the row is what the trace says, asked of the row's machine; what its owners have in their memory is told
to the donor's and the recipient's machines in the order in which such a step can only have been taken: an offer is sent
when the row is frozen, staged and accepted in one when the row is, withdrawn when nobody answers. Messages are on their
way for any time, and so are not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from tenure.adapters.trace.instance import BUDGET
from tenure.machines import donor_messages as give
from tenure.machines import receipt_messages as right
from tenure.machines import recipient_messages as take
from tenure.machines.receipt import RECEIPT
from tenure.machines.receipt_messages import Holder, Offer, Receipt
from tenure.models.queue_handoff import Decided, QueueHandoff
from tenure.models.queue_handoff_state import (
    DONORS,
    NO_OFFER,
    NOBODY,
    NONE,
    NOTHING,
    RECEIPT_ID,
    Config,
    Copy,
    Row,
    State,
    number,
    party,
    row_of,
)
from tenure.models.world import Action, FrozenMap, taken


@attrs.frozen(cache_hash=True)
class Dropped:
    """A donor drops its copy of `acquisition`: it was answered that `handoff` was accepted."""

    acquisition: int
    handoff: int


@attrs.frozen(cache_hash=True)
class Said:
    """What an event says of the step. `partly`: of the row's owner only the instance is said."""

    message: right.Happening | Dropped
    partly: bool = False


class Handoffs(QueueHandoff):
    """One receipt, and instances by their names."""

    def __init__(self, nodes: tuple[str, ...], process: Mapping[str, str], limit: int) -> None:
        self.process = dict(process)
        self.numbers: dict[str, int] = {}
        """Acquisitions and handoffs, in the order in which they are said first."""
        super().__init__(Config(nodes, frozenset(), BUDGET, limit))

    def number(self, said: str | None) -> int:
        """The number of an acquisition or a handoff; 0 for none."""
        return 0 if said is None else self.numbers.setdefault(said, len(self.numbers) + 1)

    def process_of(self, instance: str) -> str:
        """Its process; where nobody has said it, one of its own."""
        return self.process.get(instance, instance)

    def initial(self) -> Iterable[State]:
        nodes = self.config.nodes
        row = Row(RECEIPT.initial, NOBODY, NO_OFFER, NONE, 0)
        copies = FrozenMap(dict.fromkeys(nodes, NOTHING))
        yield State(row, copies, frozenset(nodes), frozenset(), 0, 0, self.config.budget)

    def actions(self) -> tuple[Action[State], ...]:
        return (
            Action("Take", self._taking),
            Action("Freeze", self._freezing),
            Action("Accept", self._accepting_it),
            Action("Cancel", self._withdrawing),
            Action("Acked", self._dropping),
            Action("Start", self._starting),
            Action("Complete", self._ending),
            Action("Fail", self._ending),
            Action("Doubt", self._ending),
            Action("EndSession", self._giving_back),
            Action("Recover", self._recovering),
            Action("Reclaim", self._reclaiming),
            Action("Retry", self._asking),
            Action("Discard", self._asking),
        )

    # -- the row ------------------------------------------------------------------------------------------------------

    def _receipt(self, row: Row) -> Receipt:
        owner = None
        if row.owner != NOBODY:
            node = row.owner.node
            owner = Holder(node, self.process_of(node), 0, row.owner.acq, row.owner.by or None)
        offer = None if row.offer == NO_OFFER else Offer(row.offer.h, row.offer.to, self.process_of(row.offer.to))
        fallen = None if row.fallen == NONE else Offer(0, row.fallen, self.process_of(row.fallen))
        return Receipt(self.config.limit, owner, offer, fallen, row.attempts)

    def _decides(self, state: State, said: Said) -> Decided | None:
        """What the row's machine decides; None where it refuses."""
        receipt, message = self._receipt(state.row), said.message
        assert not isinstance(message, Dropped)
        owner = receipt.owner
        if said.partly and owner is not None:
            if isinstance(message, right.Accept) and owner.instance == message.donor.instance:
                message = attrs.evolve(message, donor=owner)
            elif isinstance(message, right.Reclaim):
                message = attrs.evolve(message, process=owner.process)
        return taken(self.step(self.receipt, state.row.state, receipt, message))

    def _after(self, state: State, done: Decided, copies: Mapping[str, Copy], ran: int | None = None) -> State:
        node = state.node
        for p, copy in copies.items():
            node = node.set(p, copy)
        return attrs.evolve(state, row=row_of(done), node=node, ran=state.ran if ran is None else ran)

    def _copy(self, state: State, p: str, phases: Collection[str], acquisition: object) -> Copy | None:
        """What `p` has under that acquisition, if that is in one of these phases, and `p` lives."""
        copy = state.node.get(p, NOTHING)
        return copy if p in state.up and copy.phase in phases and copy.acq == acquisition else None

    # -- an owner -----------------------------------------------------------------------------------------------------

    def _taking(self, state: State, p: str, said: Said) -> Iterable[State]:
        done = self._decides(state, said)
        if done is None or p not in state.up or not isinstance(done.outputs[0], right.Taken):
            return
        yield self._after(state, done, {p: self._mine(p, number(done.outputs[0].holder.acquisition), 0)})

    def _starting(self, state: State, p: str, said: Said) -> Iterable[State]:
        assert isinstance(said.message, right.Start)
        copy = self._copy(state, p, ("holding",), said.message.by.acquisition)
        done = self._decides(state, said)
        if copy is None or done is None or self._gives(p, copy, give.Begun()) is None:
            return
        yield self._after(state, done, {p: Copy("executing", copy.acq, copy.by)}, min(2, state.ran + 1))

    def _ending(self, state: State, p: str, said: Said) -> Iterable[State]:
        message = said.message
        assert isinstance(message, (right.Complete, right.Fail, right.Doubt))
        copy = self._copy(state, p, ("executing",), message.by.acquisition)
        done = self._decides(state, said)
        if copy is None or done is None:
            return
        ran = state.ran - 1 if isinstance(message, right.Fail) else state.ran
        yield self._after(state, done, {p: self._gone(p, copy)}, ran)

    def _giving_back(self, state: State, p: str, said: Said) -> Iterable[State]:
        assert isinstance(said.message, right.Release)
        copy = self._copy(state, p, DONORS | {"executing"}, said.message.by.acquisition)
        done = self._decides(state, said)
        if copy is None or done is None:
            return
        if copy.phase == "executing":
            # It asked to begin, and ended before it did: to itself it held the item still.
            copy = attrs.evolve(copy, phase="holding")
            state = attrs.evolve(state, ran=state.ran - 1)
        if self._gives(p, copy, give.EndSession()) is not None:
            yield self._after(state, done, {p: self._gone(p, copy)})

    # -- a handoff ----------------------------------------------------------------------------------------------------

    def _freezing(self, state: State, p: str, said: Said) -> Iterable[State]:
        message = said.message
        assert isinstance(message, right.OfferTo)
        copy = self._copy(state, p, ("holding",), message.by.acquisition)
        done = self._decides(state, said)
        if copy is None or done is None or not isinstance(done.outputs[0], right.Offered):
            return
        to, h = message.recipient.instance, number(message.handoff)
        # Whether the leader can carry it is its own affair: nothing of the way is recorded.
        moved = self._gives(p, copy, give.Move(h, party(to), leader_carries=True))
        if moved is None:
            return
        copy = Copy(moved.phase, copy.acq, copy.by, h, to)
        sent = self._gives(p, copy, give.Offered())
        if sent is not None:
            yield self._after(state, done, {p: attrs.evolve(copy, phase=sent.phase)})

    def _accepting_it(self, state: State, r: str, said: Said) -> Iterable[State]:
        message = said.message
        assert isinstance(message, right.Accept)
        donor, h = message.donor.instance, number(message.handoff)
        given = state.node.get(donor, NOTHING)
        done = self._decides(state, said)
        if done is None or r not in state.up or not isinstance(done.outputs[0], right.Accepted):
            return
        if given.phase != "awaiting" or (given.h, given.to) != (h, r):
            return  # nobody has sent it
        staged = self._takes(
            r, NOTHING, take.Arrived(h, Holder(donor, donor, 0, given.acq, given.by or None), True, True)
        )
        holder = done.outputs[0].holder
        if (
            staged is None
            or taken(self.step(self.recipient, staged.phase, staged.data, take.AcceptedInJournal(holder))) is None
        ):
            return
        yield self._after(state, done, {r: Copy("holding", number(holder.acquisition), h)})

    def _withdrawing(self, state: State, p: str, said: Said) -> Iterable[State]:
        message = said.message
        assert isinstance(message, right.Cancel)
        copy = self._copy(state, p, ("awaiting",), message.by.acquisition)
        done = self._decides(state, said)
        if copy is None or done is None or copy.h != message.handoff:
            return
        waits_no_more = self._gives(p, copy, give.NoAnswer())
        if waits_no_more is None:
            return
        kept = self._gives(p, attrs.evolve(copy, phase=waits_no_more.phase), give.Cancelled())
        if kept is not None:
            yield self._after(state, done, {p: Copy(kept.phase, copy.acq, copy.by)})

    def _dropping(self, state: State, p: str, said: Said) -> Iterable[State]:
        """It is the recipient's, as he says, who has accepted it before."""
        assert isinstance(said.message, Dropped)
        copy = self._copy(state, p, ("awaiting",), said.message.acquisition)
        if copy is None or copy.h != said.message.handoff or state.row.owner.acq == copy.acq:
            return
        answer = give.Acked(RECEIPT_ID, Holder(copy.to, copy.to, 0, 0, copy.h))
        done = self._gives(p, copy, answer)
        if done is not None and done.phase == "gone":
            yield attrs.evolve(state, node=state.node.set(p, self._gone(p, copy)))

    # -- the owner is gone, or a person asks --------------------------------------------------------------------------

    def _recovering(self, state: State, p: str, said: Said) -> Iterable[State]:
        done = self._decides(state, said)
        if done is None or (p in state.node and p not in state.up):
            return
        process = self.process_of(state.row.owner.node)
        dead = frozenset(q for q in state.node if self.process_of(q) == process)
        after = self._after(state, done, dict.fromkeys(dead, NOTHING))
        yield attrs.evolve(after, up=state.up - dead)

    def _reclaiming(self, state: State, p: str, said: Said) -> Iterable[State]:
        done = self._decides(state, said)
        if done is not None and p in state.up:
            yield self._after(state, done, {state.row.owner.node: NOTHING})

    def _asking(self, state: State, p: str, said: Said) -> Iterable[State]:
        done = self._decides(state, said)
        if done is not None:
            yield self._after(state, done, {}, 0 if isinstance(said.message, right.Retry) else None)
