"""The twin `DurableAdmission` with the names of a trace: one update, its deliveries, and what was done with them.

What a transaction is told is told the update's and the delivery's machines here. Of receipts, how each of them moves is
the affair of `QueueHandoff`; here they are environment, whose phases and owners say when there may be an effect, and
when a delivery is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from tenure.adapters.trace.instance import BUDGET
from tenure.machines import delivery as there
from tenure.machines import forwarding_messages as here
from tenure.machines.chart import Step
from tenure.machines.forwarding import FORWARDING
from tenure.models.durable_admission import DurableAdmission
from tenure.models.durable_admission_state import (
    NO,
    Config,
    Msg,
    Node,
    Row,
    State,
    Work,
    admitted,
    of,
    seen,
    with_update,
    with_work,
)
from tenure.models.world import Action, FrozenMap, taken

RECEIPTS: Final[Mapping[str, str]] = {
    "Take": "Take", "Freeze": "Freeze", "Accept": "Accept", "Cancel": "Cancel", "Start": "Start",
    "Complete": "Complete", "Fail": "Fail", "Doubt": "Doubt", "EndSession": "EndSession", "Recover": "Recover",
    "Reclaim": "Reclaim", "Retry": "Again", "Discard": "Waive",
}  # fmt: skip
"""What the events of `QueueHandoff` are called here."""
ENDS: Final[Mapping[str, there.Happening]] = {"Complete": there.Settle(), "Waive": there.Discard()}
OWNING: Final = frozenset({"queued", "started"})


@attrs.frozen(cache_hash=True)
class Said:
    """What an event says of the step. None, and "", where it does not."""

    epoch: int = 0
    binding: str = ""
    delivery: str | None = None
    kind: str = ""
    body: str = ""
    mine: str = ""
    why: here.Failure = "transport-failed"
    ok: bool = False
    skips: bool = False
    room: bool = True
    gone: bool = True
    update: int | None = None
    fence: int | None = None
    passed: int | None = None
    row: str | None = None
    bound: str | None = None
    acquisition: str = NO
    """Of a receipt: by which it is owned after the step; of an effect: under which it is had."""
    owner: str = NO
    """Of a receipt: by which it was owned before."""
    was: str = ""
    phase: str = ""
    partly: bool = False
    """Nobody says whether somebody executed."""


class Admissions(DurableAdmission):
    """One update, `number`; bindings, instances and acquisitions by their names."""

    def __init__(self, number: int, kind: str) -> None:
        self.number = number
        self.kind = kind
        """Of the envelope in which it is forwarded."""
        self.bodies: dict[str, int] = {}
        super().__init__(Config((), frozenset(), 1, False, NO, frozenset(), 1, frozenset(), BUDGET))

    def initial(self) -> Iterable[State]:
        nothing: FrozenMap[str, Node] = FrozenMap({})
        i = self.number
        yield State(
            sent=0,
            confirmed=-1,
            node=nothing,
            net=frozenset(),
            target=FrozenMap({i: NO}),
            fence=0,
            opened=True,
            offset=-1,
            update=FrozenMap({i: Row(FORWARDING.initial, NO)}),
            work=frozenset(),
            effects=FrozenMap({i: 0}),
            unwanted=frozenset(),
            harm=frozenset(),
            budget=BUDGET,
        )

    def actions(self) -> tuple[Action[State], ...]:
        return (
            Action("Lead", self._leads),
            Action("Journal", self._journals),
            Action("Forward", self._forwards),
            Action("Unserved", self._is_unserved),
            Action("Keep", self._keeps),
            Action("HearForward", self._arrives),
            Action("HearAck", self._answered),
            Action("Unanswered", self._fails_to_answer),
            Action("Retry", self._tries_again),
            Action("Resume", self._resumes),
            Action("Release", self._releases),
            Action("Discard", self._discards),
            Action("Effect", self._has_effect),
            *(Action(name, self._receipt_moves(name)) for name in RECEIPTS.values()),
        )

    # -- what all of the file share -----------------------------------------------------------------------------------

    def _leads(self, state: State, p: str, said: Said) -> Iterable[State]:
        """Somebody has raised the fence, which nobody lowers."""
        if said.fence is not None and said.fence >= state.fence:
            yield attrs.evolve(state, fence=said.fence)

    def _file(self, state: State, said: Said) -> State | None:
        """The file as the transaction saw it, after what was done to other rows; None: it cannot have been so."""
        fence = max(state.fence, said.epoch) if said.fence is None else said.fence
        passed = state.offset if said.passed is None else said.passed
        if fence < state.fence or passed < state.offset:
            return None
        return attrs.evolve(state, fence=fence, offset=passed)

    # -- the leader ---------------------------------------------------------------------------------------------------

    def _step(self, state: State, message: here.Happening) -> Step[here.Update, here.Output] | None:
        row = state.update[self.number]
        data = here.Update(self.number, self.kind, None if row.binding == NO else row.binding)
        return taken(self.step(self.forwarding, row.phase, data, message))

    def _told_update(self, state: State | None, said: Said, message: here.Happening | None) -> Iterable[State]:
        if state is not None and message is not None and (done := self._step(state, message)) is not None:
            yield with_update(state, self.number, done)

    def _journals(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        if now is None:
            return
        kind = here.Skip if said.skips else here.Admit
        for after in self._told_update(now, said, kind(said.epoch, now.fence, now.offset)):
            unwanted = state.unwanted | {self.number} if said.skips else state.unwanted
            yield attrs.evolve(after, offset=self.number, unwanted=unwanted)

    def _forwards(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        if now is None:
            return
        for after in self._told_update(now, said, here.Forward(said.epoch, now.fence, said.binding)):
            sent = Msg("forward", said.binding, 0, self.number, said.binding, 0)
            yield attrs.evolve(after, net=state.net | {sent})

    def _is_unserved(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        return () if now is None else self._told_update(now, said, here.Unserved(said.epoch, now.fence))

    def _keeps(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        done = None if now is None else self._step(now, here.Keep(said.epoch, now.fence, said.binding))
        if now is None or done is None:
            return
        bound = attrs.evolve(now, update=now.update.set(self.number, Row("journaled", said.binding)))
        work = self._admission(bound, said)
        if work is not None:
            yield attrs.evolve(with_update(now, self.number, done), work=state.work | work)

    def _answered(self, state: State, p: str, said: Said) -> Iterable[State]:
        """An answer comes. That it has the update says nobody who has not admitted it."""
        now = self._file(state, said)
        if now is None:
            return
        message = here.Acknowledged(said.epoch, now.fence, said.ok, said.delivery, said.update)
        for after in self._told_update(now, said, message):
            if after.update[self.number].phase != "delivered" or admitted(state, self.number):
                yield after

    def _fails_to_answer(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        return () if now is None else self._told_update(now, said, here.Failed(said.epoch, now.fence, said.why))

    def _tries_again(self, state: State, p: str, said: Said) -> Iterable[State]:
        return self._told_update(self._file(state, said), said, here.Retry())

    def _resumes(self, state: State, p: str, said: Said) -> Iterable[State]:
        now = self._file(state, said)
        return () if now is None else self._told_update(now, said, here.Resume(said.epoch, now.fence))

    def _releases(self, state: State, p: str, said: Said) -> Iterable[State]:
        """That nobody will serve that binding again is believed, as it is said."""
        message = here.Release(said.gone, admitted(state, self.number))
        return self._told_update(self._file(state, said), said, message)

    def _discards(self, state: State, p: str, said: Said) -> Iterable[State]:
        for after in self._told_update(self._file(state, said), said, here.Discard(admitted(state, self.number))):
            yield attrs.evolve(after, unwanted=state.unwanted | {self.number})

    # -- an instance --------------------------------------------------------------------------------------------------

    def _admission(self, state: State, said: Said) -> frozenset[Work] | None:
        """What is inserted when it is admitted: nothing, if it was before. None where that is refused."""
        i, row = self.number, state.update[self.number]
        known = next((d for d in of(state, i) if d.b == said.binding), None)
        # Where nothing is said of the delivery, it is as it was.
        silent = known is not None and not said.body
        body = known.body if known is not None and silent else self.bodies.setdefault(said.body, len(self.bodies) + 1)
        message = there.Admit(
            delivery=said.delivery or "",
            kind=said.kind,
            binding=said.binding,
            update=i,
            body=str(body),
            row=seen(row),
            bound=None if row.binding == NO else row.binding,
            passed=i <= state.offset,
            room=said.room,
        )
        done = self._told(known, said.mine, message)
        if done is None:
            return None
        if not any(isinstance(output, there.Insert) for output in done.outputs):
            return frozenset()
        return frozenset({Work(i, said.binding, 0, said.mine, body, done.phase)})

    def _arrives(self, state: State, p: str, said: Said) -> Iterable[State]:
        """A forward arrives that a leader has sent, and is admitted."""
        now = self._file(state, said)
        if now is None or all(m.b != said.binding for m in state.net):
            return
        row = now.update[self.number]
        looked = (None, None) if said.row is None else (seen(row), None if row.binding == NO else row.binding)
        if looked != (said.row, said.bound):
            return
        work = self._admission(now, said)
        if work:
            yield attrs.evolve(now, work=now.work | work)

    # -- a receipt, and an execution ----------------------------------------------------------------------------------

    def _receipt_moves(self, name: str) -> Callable[[State, str, Said], Iterable[State]]:
        def body(state: State, p: str, said: Said) -> Iterable[State]:
            # Two bindings may have it, of which each has a receipt; whether this one may move so is asked elsewhere.
            works = sorted(of(state, self.number), key=lambda d: (said.was != d.receipt, d.owner != said.owner, d.b))
            return self._moves(state, works[0], name, said) if works else ()

        return body

    def _moves(self, state: State, d: Work, name: str, said: Said) -> Iterable[State]:
        if (name == "Complete" and not d.did) or (name == "EndSession" and d.did):
            return  # it was never executed; or it was, and nobody knows that what is given back was not
        phase, owner = d.phase, said.acquisition if said.phase in OWNING else NO
        if name in ("Freeze", "Cancel"):
            owner = d.owner
        if name in ENDS:
            ended = self._told(d, d.at, ENDS[name])
            if ended is None:
                return
            phase = ended.phase
        did = d.did if name in ("Freeze", "Cancel") else False
        work = attrs.evolve(d, phase=phase, receipt=said.phase, owner=owner, did=did)
        for after in with_work(state, d, work):
            i = self.number
            # What has failed has certainly had no effect; and a person may want another one.
            effects = 0 if name in ("Fail", "Again") else after.effects[i]
            unwanted = after.unwanted | {i} if name == "Waive" else after.unwanted
            yield attrs.evolve(after, effects=after.effects.set(i, effects), unwanted=unwanted)

    def _has_effect(self, state: State, p: str, said: Said) -> Iterable[State]:
        """A handler is called."""
        i = self.number
        for d in of(state, i):
            if d.owner == said.acquisition and not d.did and self.guard("started_first", d.receipt == "started"):
                for after in with_work(state, d, attrs.evolve(d, did=True)):
                    yield attrs.evolve(after, effects=state.effects.set(i, min(2, state.effects[i] + 1)))
