"""Which handoff of which receipt it is: one id for one offer, to one recipient, under one acquisition (bus.md e).

The id binds everything that an acceptance compares, so that none of it can be exchanged later: another recipient, an
older acquisition or another token have another id (I27). The token is never stored; who has it can compute the id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from tenure.machines.compact_json import digest

VERSION: Final = 1
PREFIX: Final = "handoff-"
DIGITS: Final = 32


@attrs.frozen
class RecipientOwner:
    """Whom an item is offered to: an activation of a process. `birth` is a processBirthId, `session` is positive; two
    sessions of one activation are the same process, but not the same offer."""

    instance: str
    pid: int
    birth: str
    session: int


def handoff_id(
    token: str,
    kind: str,
    receipt_id: str,
    update_ids: Sequence[int],
    donor_acquisition: str,
    recipient: RecipientOwner,
) -> str:
    """The id of the handoff. `kind` is the queue's, prompt or control; `update_ids` ascend, as the receipt has them."""
    found = digest(
        {
            "version": VERSION,
            "token": token,
            "queueKind": kind,
            "receiptId": receipt_id,
            "sourceUpdateIds": tuple(update_ids),
            "donorAcquisitionId": donor_acquisition,
            "recipientOwner": {
                "instanceId": recipient.instance,
                "processId": recipient.pid,
                "processBirthId": recipient.birth,
                "sessionGeneration": recipient.session,
            },
        }
    )
    return PREFIX + found[:DIGITS]
