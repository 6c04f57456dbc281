"""What a donor does outside of the journal, recorded (DESIGN 8): that it drops its copy because an answer says that the
item is the recipient's. It is the step `Acked` of `spec/QueueHandoff.tla`; the rest of a handoff is in the journal
(`tenure.adapters.journal.events`).

The node is ``PID-TICKS/INSTANCE@RECEIPT``; `tenure` is the acquisition by which the donor had it, `args` name the
handoff and the update.
"""

from __future__ import annotations

from tenure.adapters.journal.events import HANDOFF
from tenure.adapters.ports import Ports
from tenure.adapters.work.items import Held
from tenure.machines import donor_messages as own
from tenure.machines.chart import Step


def answered(ports: Ports, held: Held, message: own.Happening, answer: Step[own.Item, own.Output]) -> None:
    """The donor's machine took `message`."""
    if ports.recorder is None or not isinstance(message, own.Acked) or answer.phase != "gone":
        return
    process = ports.processes.me()
    node = f"{process.pid}-{process.birth.ticks}/{held.holder.instance}@{held.receipt_id}"
    args = {"update": held.first_update, "handoff": answer.data.handoff}
    ports.recorder.event(HANDOFF, "Acked", node, 0, args, None, held.holder.acquisition)
