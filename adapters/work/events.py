"""What a worker does outside of the journal, recorded (DESIGN 8): that a handler is called, which may have its effect
from then on. It is the step `Effect` of `spec/DurableAdmission.tla`.

The node is ``PID-TICKS/INSTANCE@UPDATE``, one event for each update of the item; `tenure` is the acquisition under
which it is executed, `args` name the receipt and the attempt. The rest of an execution is in the journal
(`tenure.adapters.journal.events`).
"""

from __future__ import annotations

from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.journal.events import ADMISSION
from tenure.adapters.ports import Recorder
from tenure.adapters.work.items import Handler, Item
from tenure.adapters.work.source import update_id


def recorded(handler: Handler, recorder: Recorder | None, identity: InstanceIdentity) -> Handler:
    """The handler, whose calls are recorded; itself, where nothing is."""
    if recorder is None:
        return handler
    tell = recorder.event
    process = identity.process
    node = f"{process.pid}-{process.birth.ticks}/{identity.instance_id}"

    async def calls(item: Item) -> None:
        args = {"receipt": item.receipt_id, "attempt": item.attempt}
        for update in item.updates:
            tell(ADMISSION, "Effect", f"{node}@{update_id(update)}", 0, args, None, item.tenure)
        await handler(item)

    return calls
