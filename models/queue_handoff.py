"""The twin of `spec/QueueHandoff.tla`: a row, the processes that take, move and execute its item, what befalls them.

Whatever somebody does he does by his machine: the row's decides in the journal, and a donor's, a recipient's and the
leader's say what is asked of it and what is sent; their outputs are performed here, so that a missing or a superfluous
one is another graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from tenure.machines import donor_messages as give
from tenure.machines import receipt_messages as right
from tenure.machines import recipient_messages as take
from tenure.machines.chart import Step
from tenure.machines.donor import DONOR
from tenure.machines.laws import Law
from tenure.machines.receipt import RECEIPT
from tenure.machines.recipient import RECIPIENT
from tenure.machines.relay import RELAY, Bounds, PassOn
from tenure.models import queue_handoff_properties as holds
from tenure.models.queue_handoff_state import (
    BARE,
    CONFIGS,
    DONORS,
    LIVE,
    NO_OFFER,
    NOBODY,
    NONE,
    NOTHING,
    RECEIPT_ID,
    TRIES,
    Config,
    Copy,
    Msg,
    Row,
    State,
    answer,
    at,
    call,
    fresh,
    here,
    holder,
    item_of,
    left,
    number,
    over,
    party,
    place_of,
    process,
    receipt_of,
    request,
    row_of,
    serves,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition, taken

__all__ = ["CONFIGS", "QueueHandoff"]

Decided = Step[right.Receipt, right.Output]


class QueueHandoff(World[State]):
    """One queued item, which moves while messages are lost and processes die."""

    module: ClassVar[str] = "QueueHandoff"
    tables = (RECEIPT, DONOR, RECIPIENT, RELAY)
    environment = (
        prohibition("released_in_journal", Law.DURABLE_FIRST),
        prohibition("owned_is_kept", Law.FENCE),
        prohibition("kept_until_acknowledged", Law.PROOF),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.receipt = self.weakened(RECEIPT)
        self.donor = self.weakened(DONOR)
        self.recipient = self.weakened(RECIPIENT)
        self.relay = self.weakened(RELAY)

    def initial(self) -> Iterable[State]:
        nodes = self.config.nodes
        yield State(
            Row(RECEIPT.initial, NOBODY, NO_OFFER, NONE, 0),
            FrozenMap(dict.fromkeys(nodes, NOTHING)),
            frozenset(nodes) - {"a2"},
            frozenset(),
            0,
            0,
            self.config.budget,
        )

    def actions(self) -> tuple[Action[State], ...]:
        nodes = tuple((p,) for p in self.config.nodes)
        pairs = tuple((p, r) for p in self.config.nodes for r in self.config.nodes)
        return (
            Action("Take", self._take, nodes),
            Action("Rebuild", self._rebuild, nodes),
            Action("Start", self._here(self._begins), nodes),
            Action("StartRefused", self._start_refused, nodes),
            Action("Complete", self._here(self._ends), nodes),
            Action("CompleteRefused", self._complete_refused, nodes),
            Action("Fail", self._fail, nodes),
            Action("Doubt", self._doubt, nodes),
            Action("Recover", self._recover, nodes),
            Action("Reclaim", self._reclaim, nodes),
            Action("Decide", self._decide, pairs),
            Action("Freeze", self._here(self._froze), nodes),
            Action("FreezeRefused", self._freeze_refused, nodes),
            Action("Acked", lambda s, p: self._hears(s, p, "gone"), nodes),
            Action("Denied", lambda s, p: self._hears(s, p, "cancelling"), nodes),
            Action("TimeOut", self._time_out, nodes),
            Action("Cancel", self._here(self._thaws), nodes),
            Action("CancelRefused", self._cancel_refused, nodes),
            Action("Look", self._look, nodes),
            Action("Unreadable", self._unreadable, nodes),
            Action("Relay", lambda s, r: self._relay(s, r, passes=True), nodes),
            Action("RelayRefuses", lambda s, r: self._relay(s, r, passes=False), nodes),
            Action("Stage", lambda s, r: self._arrives(s, r, "staged"), nodes),
            Action("Again", lambda s, r: self._arrives(s, r, "live"), nodes),
            Action("Refuse", lambda s, r: self._arrives(s, r, ""), nodes),
            Action("Accept", self._here(self._accepting), nodes),
            Action("AcceptRefused", self._accept_refused, nodes),
            Action("Publish", self._publish, nodes),
            Action("CheckFails", self._check_fails, nodes),
            Action("Straggle", self._straggle, nodes),
            Action("Unknown", self._unknown, nodes),
            Action("Forget", self._forget, nodes),
            Action("LateCall", self._late_call, nodes),
            Action("EndSession", self._end_session, nodes),
            Action("Retry", lambda s: self._person(s, right.Retry)),
            Action("Discard", lambda s: self._person(s, right.Discard)),
            Action("Sweep", self._sweep, mutant="owned_is_kept"),
            Action("DropEarly", self._drop_early, nodes, mutant="kept_until_acknowledged"),
            Action("Crash", self._crash, nodes),
            Action("Reload", self._reload),
            Action("Lose", self._lose),
            Action("Stray", self._stray, nodes),
            Action("Repeat", self._repeat, nodes),
            Action("Reregister", self._reregister, nodes),
            Action("NewLeader", self._new_leader),
        )

    # -- what the steps are made of -----------------------------------------------------------------------------------

    def _spend(self, state: State, cause: str) -> State | None:
        if cause not in self.config.causes or state.budget == 0:
            return None
        return attrs.evolve(state, budget=state.budget - 1)

    def _asked(self, state: State, message: right.Happening) -> Decided | None:
        """What the row's machine decides, or None for a refusal."""
        return taken(self.step(self.receipt, state.row.state, receipt_of(state.row, self.config.limit), message))

    def _gives(self, p: str, copy: Copy, message: give.Happening) -> Step[give.Item, give.Output] | None:
        """What the donor of a copy in the queue answers; one that is executed is gone for it."""
        return taken(self.step(self.donor, copy.phase, item_of(p, copy), message))

    def _takes(self, p: str, copy: Copy, message: take.Happening) -> Step[take.Place, take.Output] | None:
        """What the recipient at p answers."""
        return taken(self.step(self.recipient, *place_of(p, copy), message))

    def _mine(self, p: str, acq: int, by: int) -> Copy:
        """A copy that is in the queue from now on."""
        held = self._takes(p, NOTHING, take.Held(holder(p, acq, by)))
        assert held is not None, "there was nothing here"
        assert held.phase == "live", held
        return Copy("holding", acq, by)

    def _gone(self, p: str, copy: Copy) -> Copy:
        """A copy that is here no longer; what its donor hears later is nothing to it."""
        assert taken(self.step(self.donor, "gone", item_of(p, copy), give.NoAnswer())) is None, copy
        assert self._takes(p, copy, take.Left()) is not None, copy
        return NOTHING

    def _here(self, step: Callable[[State, str], Iterable[State]]) -> Callable[[State, str], Iterable[State]]:
        return lambda state, p: step(state, p) if here(state, p) else ()

    def _put(
        self,
        state: State,
        p: str,
        copy: Copy,
        done: Decided | None = None,
        net: frozenset[Msg] | None = None,
        ran: int | None = None,
    ) -> State:
        """`p` has this copy now; the row is as decided, where something was."""
        row = state.row if done is None else row_of(done)
        on_its_way, begun = state.net if net is None else net, state.ran if ran is None else ran
        return attrs.evolve(state, row=row, node=state.node.set(p, copy), net=on_its_way, ran=begun)

    def _me(self, state: State, p: str) -> right.Holder:
        copy = state.node[p]
        return holder(p, copy.acq, copy.by)

    # -- the row, and a worker ----------------------------------------------------------------------------------------

    def _taken(self, state: State, p: str) -> Decided | None:
        serving: right.Right = "serves" if serves(state, p) else "left" if left(state) else "none"
        return self._asked(state, right.Take(party(p), fresh(state), serving))

    def _take(self, state: State, p: str) -> Iterable[State]:
        done = self._taken(state, p) if at(state, p, NONE) else None
        if done is None or not isinstance(done.outputs[0], right.Taken):
            return ()
        return (self._put(state, p, self._mine(p, number(done.outputs[0].holder.acquisition), 0), done),)

    def _rebuild(self, state: State, p: str) -> Iterable[State]:
        if not at(state, p, "rebuilding"):
            return ()
        row = state.row
        if row.state == "queued" and (done := self._taken(state, p)) is not None:
            (same,) = done.outputs
            assert isinstance(same, right.Same), same
            copy = self._mine(p, number(same.holder.acquisition), number(same.holder.handoff))
            if same.offer is not None:
                copy = attrs.evolve(copy, phase="cancelling", h=number(same.offer.handoff))
            return (self._put(state, p, copy),)
        if row.state == "started" and row.owner.node == p:
            doubted = self._asked(state, right.Doubt(holder(p, row.owner.acq, row.owner.by)))
            return (self._put(state, p, NOTHING, doubted),)
        return (self._put(state, p, NOTHING),)

    def _begun(self, state: State, p: str) -> Decided | None:
        return None if p in self.config.idle else self._asked(state, right.Start(self._me(state, p)))

    def _executes(self, state: State, p: str, done: Decided | None) -> State:
        copy = state.node[p]
        return self._put(state, p, Copy("executing", copy.acq, copy.by), done, ran=min(2, state.ran + 1))

    def _begins(self, state: State, p: str) -> Iterable[State]:
        copy = state.node[p]
        done = self._begun(state, p) if copy.phase in TRIES else None
        if done is None:
            return ()
        if copy.phase in DONORS - {"awaiting"}:
            left_queue = self._gives(p, copy, give.Begun())
            assert left_queue is not None, copy
        return (self._executes(state, p, done),)

    def _start_refused(self, state: State, p: str) -> Iterable[State]:
        if not at(state, p, "holding") or p in self.config.idle or self._begun(state, p) is not None:
            return ()
        return self._turned(state, p, give.StartRefused())

    def _turned(self, state: State, p: str, message: give.Happening) -> Iterable[State]:
        """The donor goes into another phase, and nothing else happens."""
        done = self._gives(p, state.node[p], message)
        return () if done is None else (self._put(state, p, attrs.evolve(state.node[p], phase=done.phase)),)

    def _ends(self, state: State, p: str) -> Iterable[State]:
        copy = state.node[p]
        done = self._asked(state, right.Complete(self._me(state, p))) if copy.phase == "executing" else None
        return () if done is None else (self._put(state, p, self._gone(p, copy), done),)

    def _complete_refused(self, state: State, p: str) -> Iterable[State]:
        if not at(state, p, "executing") or self._asked(state, right.Complete(self._me(state, p))) is not None:
            return ()
        return (self._put(state, p, self._gone(p, state.node[p])),)

    def _fail(self, state: State, p: str) -> Iterable[State]:
        if "poison" not in self.config.causes or not at(state, p, "executing"):
            return ()
        done = self._asked(state, right.Fail(self._me(state, p)))
        return () if done is None else (self._put(state, p, self._gone(p, state.node[p]), done, ran=state.ran - 1),)

    def _doubt(self, state: State, p: str) -> Iterable[State]:
        spent = self._spend(state, "doubt")
        if spent is None or not at(state, p, "executing"):
            return ()
        done = self._asked(state, right.Doubt(self._me(state, p)))
        return () if done is None else (self._put(spent, p, self._gone(p, state.node[p]), done),)

    def _recover(self, state: State, p: str) -> Iterable[State]:
        if not here(state, p):
            return
        owner = state.row.owner
        for acq in {owner.acq, state.late} - {0}:
            # Of the acquisition that was seen dead it is still true; what is true of the owner's process is looked up.
            dead = acq == state.late or owner.node not in state.up
            done = self._asked(state, right.Recover(acq, "dead" if dead else "unknown"))
            if done is not None:
                yield attrs.evolve(state, row=row_of(done), late=acq)

    def _reclaim(self, state: State, p: str) -> Iterable[State]:
        done = self._asked(state, right.Reclaim(process(p), p)) if here(state, p) else None
        return () if done is None else (attrs.evolve(state, row=row_of(done)),)

    # -- a donor ------------------------------------------------------------------------------------------------------

    def _decide(self, state: State, p: str, r: str) -> Iterable[State]:
        spent = self._spend(state, "self" if r == p else "move")
        if spent is None or not at(state, p, "holding") or not here(state, r):
            return ()
        h = fresh(state)
        done = self._gives(p, state.node[p], give.Move(h, party(r), "leader" not in self.config.old))
        if done is None:
            return ()
        return (self._put(spent, p, attrs.evolve(state.node[p], phase=done.phase, h=h, to=r)),)

    def _offers(self, state: State, p: str, h: int, to: str, acq: int, by: int) -> Decided | None:
        return self._asked(state, right.OfferTo(holder(p, acq, by), h, party(to)))

    def _froze(self, state: State, p: str) -> Iterable[State]:
        c = state.node[p]
        if c.phase != "offering" or (done := self._offers(state, p, c.h, c.to, c.acq, c.by)) is None:
            return ()
        sent = self._gives(p, c, give.Offered())
        assert sent is not None, "it was offered"
        assert isinstance(sent.outputs[0], give.SendOffer), sent
        return (self._put(state, p, attrs.evolve(c, phase=sent.phase), done, net=state.net | {request(p, c)}),)

    def _freeze_refused(self, state: State, p: str) -> Iterable[State]:
        c = state.node[p]
        if not at(state, p, "offering") or self._offers(state, p, c.h, c.to, c.acq, c.by) is not None:
            return ()
        return self._turned(state, p, give.OfferRefused())

    def _hears(self, state: State, p: str, phase: str) -> Iterator[State]:
        """The donor hears an answer, and that brings it to `phase`."""
        c = state.node[p]
        if not at(state, p, "awaiting"):
            return
        for m in state.net:
            if m.kind != "ack" or m.to != p or m.h != c.h:
                continue
            done = self._gives(p, c, give.Acked(RECEIPT_ID, holder(m.sender, 0, m.by) if m.by else None))
            if done is not None and done.phase == phase:
                copy = self._gone(p, c) if phase == "gone" else attrs.evolve(c, phase=phase)
                yield self._put(state, p, copy, net=state.net - call(state, p))

    def _time_out(self, state: State, p: str) -> Iterator[State]:
        if not at(state, p, "awaiting"):
            return
        done = self._gives(p, state.node[p], give.NoAnswer())
        assert done is not None, "somebody waits"
        mine, spent = call(state, p), self._spend(state, "late")
        copy = attrs.evolve(state.node[p], phase=done.phase)
        yield self._put(state, p, copy, net=state.net - mine)
        for m in mine:
            if m.kind == "offer" and spent is not None:
                yield self._put(spent, p, copy, net=(state.net - mine) | {m})

    def _cancels(self, state: State, p: str, acq: int, by: int, h: int) -> Decided | None:
        return self._asked(state, right.Cancel(holder(p, acq, by), h))

    def _thaws(self, state: State, p: str) -> Iterable[State]:
        c = state.node[p]
        if c.phase != "cancelling" or (done := self._cancels(state, p, c.acq, c.by, c.h)) is None:
            return ()
        kept = self._gives(p, c, give.Cancelled())
        assert kept is not None, "it was withdrawn"
        return (self._put(state, p, Copy(kept.phase, c.acq, c.by), done),)

    def _cancel_refused(self, state: State, p: str) -> Iterable[State]:
        c = state.node[p]
        if not at(state, p, "cancelling") or self._cancels(state, p, c.acq, c.by, c.h) is not None:
            return ()
        return self._turned(state, p, give.CancelRefused())

    def _look(self, state: State, p: str) -> Iterable[State]:
        c = state.node[p]
        if not at(state, p, "looking"):
            return ()
        seen = receipt_of(state.row, self.config.limit)
        done = self._gives(p, c, give.Looked(state.row.state, seen.owner, seen.offer))
        assert done is not None, "what is looked up is answered"
        if done.outputs == (give.Begin(),):
            return (self._executes(state, p, None),)
        if done.phase == "gone":
            return (self._put(state, p, self._gone(p, c)),)
        return (self._put(state, p, Copy(done.phase, c.acq, c.by, number(done.data.handoff))),)

    def _unreadable(self, state: State, p: str) -> Iterable[State]:
        spent = self._spend(state, "unreadable")
        return () if spent is None or not at(state, p, "looking") else self._turned(spent, p, give.JournalFailed())

    # -- the leader between, and a recipient --------------------------------------------------------------------------

    def _relay(self, state: State, r: str, passes: bool) -> Iterator[State]:
        for m in state.net:
            if m.kind != "ask" or m.to != r:
                continue
            able = not {m.sender, m.to} & self.config.unable
            message = PassOn(m.d, m.r, able, m.by != 0, m.to not in self.config.old, 2)
            done = taken(self.step(self.relay, RELAY.initial, Bounds(1), message))
            if (done is not None and here(state, r)) != passes:
                continue
            if passes:
                carried = 0 if {m.to, "leader"} & self.config.old else m.by
                yield attrs.evolve(state, net=(state.net - {m}) | {attrs.evolve(m, kind="offer", by=carried)})
            else:
                yield attrs.evolve(state, net=(state.net - {m}) | answer(state, m.sender, r, m.h, 0))

    def _arrives(self, state: State, r: str, phase: str) -> Iterator[State]:
        """An offer arrives, and that brings the recipient to `phase`; "": it refuses."""
        c = state.node[r]
        if not here(state, r):
            return
        for m in state.net:
            if m.kind != "offer" or m.to != r:
                continue
            donor, able = holder(m.sender, m.acq, m.by), r not in self.config.idle and c.phase != "rebuilding"
            done = self._takes(r, c, take.Arrived(m.h, donor, m.r, able))
            rest = state.net - {m}
            if done is None:
                if phase == "" and c.phase in BARE | LIVE:
                    yield attrs.evolve(state, net=rest | answer(state, m.sender, r, m.h, 0))
            elif done.phase == phase == "staged":
                yield self._put(state, r, Copy("staged", m.acq, m.by, m.h, m.sender), net=rest)
            elif done.phase == phase == "live":
                (said,) = done.outputs
                assert isinstance(said, take.Confirm), said
                by = number(said.holder.handoff)
                yield attrs.evolve(state, net=rest | answer(state, m.sender, r, m.h, by))

    def _accepts(self, state: State, r: str) -> Decided | None:
        c = state.node[r]
        return self._asked(state, right.Accept(party(r), c.h, holder(c.to, c.acq, c.by), fresh(state)))

    def _accepting(self, state: State, r: str) -> Iterable[State]:
        c = state.node[r]
        done = self._accepts(state, r) if c.phase == "staged" else None
        if done is None:
            return ()
        (said,) = done.outputs
        assert isinstance(said, right.Accepted | right.Same), said
        mine = self._takes(r, c, take.AcceptedInJournal(said.holder))
        assert mine is not None, "it was accepted"
        return (self._put(state, r, Copy(mine.phase, number(said.holder.acquisition), c.h, 0, c.to), done),)

    def _accept_refused(self, state: State, r: str) -> Iterable[State]:
        c = state.node[r]
        if not at(state, r, "staged") or self._accepts(state, r) is not None:
            return ()
        denied = self._takes(r, c, take.AcceptRefused())
        assert denied is not None, "it was staged"
        return (self._put(state, r, Copy(denied.phase), net=state.net | answer(state, c.to, r, c.h, 0)),)

    def _publish(self, state: State, r: str) -> Iterable[State]:
        c = state.node[r]
        if not at(state, r, "accepted"):
            return ()
        done = self._takes(r, c, take.Published())
        assert done is not None, "it was accepted"
        (said,) = done.outputs
        assert isinstance(said, take.Confirm), said
        by = number(said.holder.handoff)
        told = state.net | answer(state, c.to, r, c.by, by)
        return (self._put(state, r, Copy("holding", number(said.holder.acquisition), by), net=told),)

    def _check_fails(self, state: State, r: str) -> Iterable[State]:
        c, spent = state.node[r], self._spend(state, "check")
        if spent is None or not at(state, r, "accepted"):
            return ()
        failed = self._takes(r, c, take.CheckFailed())
        assert failed is not None, "it was accepted"
        # The journal may fail for a while: it is asked until it has answered.
        for message in (take.JournalFailed(), take.Released()):
            ended = taken(self.step(self.recipient, failed.phase, failed.data, message))
            assert ended is not None, failed
        told = spent.net | answer(state, c.to, r, c.by, 0)
        if self.guard("released_in_journal", False):
            return (self._put(spent, r, NOTHING, net=told),)
        assert isinstance(failed.outputs[0], take.ReleaseInJournal), failed
        return (self._put(spent, r, NOTHING, self._asked(state, right.Release(failed.outputs[0].holder)), net=told),)

    # -- what befalls them --------------------------------------------------------------------------------------------

    def _straggle(self, state: State, p: str) -> Iterator[State]:
        if over(state, p):
            for step in (self._begins, self._ends, self._froze, self._thaws, self._accepting):
                yield from step(state, p)

    def _unknown(self, state: State, p: str) -> Iterator[State]:
        """The journal has done it, and whoever asked was not told: he asks again."""
        c, spent = state.node[p], self._spend(state, "unknown")
        if spent is None or not here(state, p):
            return
        done: Decided | None = None
        if c.phase == NONE:
            done = self._taken(state, p) if state.row.state == "pending" else None
            c = Copy("rebuilding")
        elif c.phase == "holding":
            done = self._begun(state, p)
        elif c.phase == "executing":
            done = self._asked(state, right.Complete(self._me(state, p)))
        elif c.phase == "offering":
            done = self._offers(state, p, c.h, c.to, c.acq, c.by)
            assert self._gives(p, c, give.JournalFailed()) is not None, c
        elif c.phase == "cancelling":
            done = self._cancels(state, p, c.acq, c.by, c.h)
            assert self._gives(p, c, give.JournalFailed()) is not None, c
        elif c.phase == "staged":
            done = self._accepts(state, p)
            assert self._takes(p, c, take.JournalFailed()) is not None, c
        if done is not None and row_of(done) != state.row:
            yield self._put(spent, p, c, done)

    def _forget(self, state: State, p: str) -> Iterable[State]:
        c, spent = state.node[p], self._spend(state, "forget")
        if spent is None or c.phase in BARE or not here(state, p):
            return ()
        rest = state.net - call(state, p)
        if c.phase == "offering":
            rest |= {Msg("freeze", p, c.to, c.h, c.acq, 0)}
        elif c.phase == "cancelling":
            rest |= {Msg("cancel", p, NONE, c.h, c.acq, 0)}
        elif c.phase == "executing":
            rest |= {Msg("complete", p, NONE, 0, c.acq, 0)}
        return (self._put(spent, p, Copy("rebuilding"), net=rest),)

    def _late_call(self, state: State, p: str) -> Iterator[State]:
        for m in state.net:
            if m.sender != p or m.kind not in ("freeze", "cancel", "complete"):
                continue
            if m.kind == "complete":
                done = self._asked(state, right.Complete(holder(p, m.acq, 0)))
            elif m.kind == "freeze":
                done = self._offers(state, p, m.h, m.to, m.acq, 0)
            else:
                done = self._cancels(state, p, m.acq, 0, m.h)
            yield attrs.evolve(state, row=state.row if done is None else row_of(done), net=state.net - {m})

    def _end_session(self, state: State, p: str) -> Iterable[State]:
        c, spent = state.node[p], self._spend(state, "session")
        if spent is None or c.phase not in DONORS or not here(state, p):
            return ()
        ends = self._gives(p, c, give.EndSession())
        assert ends is not None, c
        for message in (give.JournalFailed(), give.Released()):
            ended = taken(self.step(self.donor, ends.phase, ends.data, message))
            assert ended is not None, ends
        done = self._asked(state, right.Release(self._me(state, p)))
        return (self._put(spent, p, self._gone(p, c), done, net=state.net - call(state, p)),)

    def _person(self, state: State, kind: type[right.Retry | right.Discard]) -> Iterator[State]:
        spent = self._spend(state, "person")
        for person, after in (("ann", spent), ("", state)):
            done = None if after is None else self._asked(state, kind(person))
            if after is None or done is None:
                continue
            again = kind is right.Retry and person != ""
            yield attrs.evolve(after, row=row_of(done), ran=0 if again else state.ran)

    def _sweep(self, state: State) -> Iterable[State]:
        if state.row.state != "queued" or not self.guard("owned_is_kept", False):
            return ()
        done = attrs.evolve(state.row, state="done", owner=NOBODY, offer=NO_OFFER, fallen=NONE)
        return (attrs.evolve(state, row=done),)

    def _drop_early(self, state: State, p: str) -> Iterable[State]:
        if not at(state, p, "awaiting") or not self.guard("kept_until_acknowledged", False):
            return ()
        return (self._put(state, p, NOTHING),)

    def _crash(self, state: State, p: str) -> Iterable[State]:
        spent = self._spend(state, "crash")
        if spent is None or not here(state, p):
            return ()
        dead = {q for q in self.config.nodes if process(q) == process(p)}
        lost = {
            m
            for m in state.net
            if (m.to in dead and m.kind in ("offer", "ack"))
            or (m.sender in dead and m.kind in ("freeze", "cancel", "complete"))
        }
        node = FrozenMap({q: NOTHING if q in dead else copy for q, copy in state.node.items()})
        return (attrs.evolve(spent, up=state.up - dead, node=node, net=state.net - lost),)

    def _reload(self, state: State) -> Iterable[State]:
        spent = self._spend(state, "reload")
        if spent is None or "a2" not in self.config.nodes or "a" not in state.up or "a2" in state.up:
            return ()
        lost = {m for m in state.net if m.to == "a" and m.kind in ("offer", "ack")}
        return (attrs.evolve(spent, up=state.up | {"a2"}, net=state.net - lost),)

    def _lose(self, state: State) -> Iterator[State]:
        spent = self._spend(state, "lose")
        if spent is not None:
            for m in state.net:
                if m.kind in ("ask", "offer", "ack"):
                    yield attrs.evolve(spent, net=state.net - {m})

    def _stray(self, state: State, r: str) -> Iterator[State]:
        spent = self._spend(state, "astray")
        if spent is not None and here(state, r):
            for m in state.net:
                if m.kind == "offer" and r not in (m.sender, m.to):
                    yield attrs.evolve(spent, net=(state.net - {m}) | {attrs.evolve(m, to=r)})

    def _repeat(self, state: State, p: str) -> Iterable[State]:
        spent = self._spend(state, "repeat")
        asked = request(p, state.node[p])
        if spent is None or not at(state, p, "awaiting") or asked in state.net:
            return ()
        return (attrs.evolve(spent, net=state.net | {asked}),)

    def _reregister(self, state: State, p: str) -> Iterable[State]:
        if not here(state, p):
            return ()
        kinds = ("ask", "offer")
        return self._marked(
            state, "reregister", kinds, lambda m: attrs.evolve(m, d=m.d and m.sender != p, r=m.r and m.to != p)
        )

    def _new_leader(self, state: State) -> Iterable[State]:
        return self._marked(state, "leader", ("ask",), lambda m: attrs.evolve(m, d=False, r=False))

    def _marked(self, state: State, cause: str, kinds: Collection[str], of: Callable[[Msg], Msg]) -> Iterable[State]:
        spent = self._spend(state, cause)
        net = frozenset(of(m) if m.kind in kinds else m for m in state.net)
        return () if spent is None or net == state.net else (attrs.evolve(spent, net=net),)

    # -- properties ---------------------------------------------------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return holds.INVARIANTS

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {**holds.STEPS, "LiveGenerations_I31": lambda s, t: holds.live_generations(s, t, self.config.unable)}

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return holds.eventually(self.config)

    def fairness(self) -> tuple[Fair, ...]:
        together = (
            ("Take",),
            ("Rebuild",),
            ("Start", "StartRefused"),
            ("Complete", "CompleteRefused", "Fail"),
            ("Recover",),
            ("Reclaim",),
            ("Freeze", "FreezeRefused"),
            ("TimeOut",),
            ("Cancel", "CancelRefused"),
            ("Look",),
            ("Accept", "AcceptRefused"),
            ("Publish",),
        )
        return tuple(
            Fair(Strength.WEAK, frozenset((name, (p,)) for name in names))
            for p in self.config.nodes
            for names in together
        )
