"""What the journal decides, recorded under the names of `spec/DurableAdmission.tla` and `spec/QueueHandoff.tla`
(DESIGN 8): updates and deliveries are events of the one, receipts of the other.

Every event is a transaction: its `number` is that of its decision in the table `decisions`, which is written with the
row, so that the order of events rests on nothing else. An event is recorded when the transaction is durable; a process
that is killed in between leaves the decision without the line. What was refused, and what was answered as before, has
changed nothing and is no event.

The node is ``PID-TICKS/PARTY@ID``: the process that decided, the instance (or person) that asked, and the id of the
update (`DurableAdmission`) or the receipt (`QueueHandoff`) whose row it is. `args` are the machine's message, member by
member, with the update that a receipt is for; `observed` is the phase after the step, `was` the one before it, as it
was read in that transaction, and what else of the row was read:

| module | observed besides |
|---|---|
| `DurableAdmission` | `fence`, `passed`: of the file; `bound`: of an update, the binding it is bound to |
| `QueueHandoff` | `owner`, `offer`: the acquisition and the handoff in the row; `fallen`: who was named; `attempts` |

`tenure` is the epoch or the acquisition under which it was done; of what begins one, that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from tenure.adapters.ports import Recorder
from tenure.machines import delivery as there
from tenure.machines import forwarding_messages as here
from tenure.machines import receipt_messages as right
from tenure.machines.delivery import Delivery
from tenure.machines.forwarding_messages import Update
from tenure.machines.identity import Process
from tenure.machines.receipt_messages import Holder, Party, Receipt, Same

ADMISSION: Final = "DurableAdmission"
HANDOFF: Final = "QueueHandoff"

ACTIONS: Final[dict[type[object], str]] = {
    here.Admit: "Journal",
    here.Skip: "Journal",
    here.Forward: "Forward",
    here.Keep: "Keep",
    here.Unserved: "Unserved",
    here.Acknowledged: "HearAck",
    here.Failed: "Unanswered",
    here.Retry: "Retry",
    here.Resume: "Resume",
    here.Release: "Release",
    here.Discard: "Discard",
    there.Admit: "HearForward",
    right.Take: "Take",
    right.OfferTo: "Freeze",
    right.Accept: "Accept",
    right.Cancel: "Cancel",
    right.Start: "Start",
    right.Complete: "Complete",
    right.Fail: "Fail",
    right.Doubt: "Doubt",
    right.Release: "EndSession",
    right.Recover: "Recover",
    right.Reclaim: "Reclaim",
    right.Retry: "Retry",
    right.Discard: "Discard",
}
"""By message, the twin's action. A receipt that is given back is `EndSession`, whatever it is given back for. That a
delivery is settled is part of its receipt's end."""

Data = Update | Delivery | Receipt


@attrs.frozen
class Decided:
    """One step of a machine in a transaction, and the decision that tells it. `update`: of a receipt, its first one.
    `phase` and `data` are the row as it was read."""

    seq: int
    subject: str
    update: int | None
    party: str | None
    tenure: str | None
    phase: str
    data: object
    message: object
    after: str
    outputs: tuple[object, ...]
    fence: int
    passed: int


class JournalEvents:
    """What one open journal tells the recorder."""

    def __init__(self, recorder: Recorder, process: Process) -> None:
        self._recorder = recorder
        self._process = f"{process.pid}-{process.birth.ticks}"

    def committed(self, decided: Sequence[Decided]) -> None:
        """These steps are durable, all of one transaction."""
        kept: Decided | None = None
        for one in decided:
            if isinstance(one.message, here.Keep):
                kept = one  # the delivery that follows in this transaction is part of it
            elif isinstance(one.message, there.Admit):
                self._admitted(one, kept)
                kept = None
            elif isinstance(one.data, Receipt):
                self._receipt(one, one.data)
            elif isinstance(one.data, Update):
                self._update(one, one.data)
        if kept is not None:
            self._kept(kept, {})  # the delivery is as it was, and is told already

    def _receipt(self, one: Decided, row: Receipt) -> None:
        if any(isinstance(output, Same) for output in one.outputs):
            return
        observed: dict[str, object] = {
            "phase": one.after,
            "was": one.phase,
            "owner": None if row.owner is None else row.owner.acquisition,
            "offer": None if row.offer is None else row.offer.handoff,
            "fallen": None if row.fallen is None else row.fallen.instance,
            "attempts": row.attempts,
        }
        args = {"update": one.update, "limit": row.limit, **dict(_members(one.message))}
        self._tell(HANDOFF, one, one.subject, args, observed)

    def _update(self, one: Decided, row: Update) -> None:
        observed = {**_observed(one), "bound": row.binding}
        args = dict(_members(one.message))
        if isinstance(one.message, here.Skip):
            args["skips"] = True
        if isinstance(one.message, here.Forward):
            args["kind"] = row.kind
        self._tell(ADMISSION, one, one.subject, args, observed)

    def _admitted(self, one: Decided, kept: Decided | None) -> None:
        if one.phase == one.after and kept is None:
            return
        message = one.message
        assert isinstance(message, there.Admit)
        assert isinstance(one.data, Delivery)
        args: dict[str, object] = {
            "delivery": message.delivery,
            "kind": message.kind,
            "binding": message.binding,
            "body": message.body,
            "mine": one.data.binding,
            "room": message.room,
        }
        if kept is None:
            observed = {**_observed(one), "row": message.row, "bound": message.bound}
            self._tell(ADMISSION, one, str(message.update), args, observed)
            return
        self._kept(kept, args)

    def _kept(self, one: Decided, delivery: dict[str, object]) -> None:
        row = one.data
        assert isinstance(row, Update)
        args = {**dict(_members(one.message)), "kind": row.kind, **delivery}
        self._tell(ADMISSION, one, one.subject, args, {**_observed(one), "bound": row.binding})

    def _tell(self, module: str, one: Decided, row: str, args: dict[str, object], observed: dict[str, object]) -> None:
        action = ACTIONS.get(type(one.message))
        if action is not None:
            node = f"{self._process}/{one.party}@{row}"
            self._recorder.event(module, action, node, one.seq, args, observed, one.tenure)


def _observed(one: Decided) -> dict[str, object]:
    return {"phase": one.after, "was": one.phase, "fence": one.fence, "passed": one.passed}


LOOKED_UP: Final = frozenset({"fence", "offset"})
"""Members of a message that the transaction reads: what they were is `observed`."""


def _members(message: object) -> Iterator[tuple[str, object]]:
    kind = type(message)
    assert attrs.has(kind)
    for field in attrs.fields(kind):
        value = getattr(message, field.name)
        if field.name not in LOOKED_UP:
            yield field.name, _spelled(value)


def _spelled(value: object) -> object:
    """A party is [instance, process]; a holder is that with its acquisition and its handoff."""
    if isinstance(value, Holder):
        return [value.instance, value.process, value.acquisition, value.handoff]
    return [value.instance, value.process] if isinstance(value, Party) else value
