"""Processes, owners and parties, in the two spellings there are: the journal's, and the bus's (bus.md d, e).

The journal names a process by one text, pid, birth, boot and pid namespace (`journal.liveness.process_name`); the bus
by its pid and its processBirthId, the part of that text before the @.
"""

from __future__ import annotations

import attrs

from tenure.adapters.bus.messages.envelopes_handoff import LeaderOfferQueueHandoff, QueueOwner
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.identities import linux_birth_id, parse_birth_id
from tenure.adapters.journal.liveness import process_name, process_named
from tenure.machines.handoff_identity import RecipientOwner
from tenure.machines.identity import Process
from tenure.machines.receipt_messages import Holder, Party


def party_of(process: Process, instance: str, session: int) -> Party:
    """One activation of a process, in one session."""
    return Party(instance, process_name(process), session)


def on_the_bus(process: str) -> tuple[int, str]:
    """Pid and processBirthId of a process that the journal names. Raises TenureError for a name that is none."""
    named = process_named(process)
    if named is None:
        raise TenureError(f"the journal names a process {process[:80]!r}, which is none of this program's")
    return named.pid, linux_birth_id(named.pid, named.birth.ticks)


def recipient_owner(party: Party) -> RecipientOwner:
    """Whom an offer is made to, as its id has it. Raises TenureError for a process that is none."""
    pid, birth = on_the_bus(party.process)
    return RecipientOwner(party.instance, pid, birth, party.session)


def queue_owner(holder: Holder, acquired_at_ms: int) -> QueueOwner:
    """An owner, as the answer to an offer tells it. Raises TenureError for a process that is none."""
    pid, birth = on_the_bus(holder.process)
    return QueueOwner(
        instance_id=holder.instance,
        process_id=pid,
        process_birth_id=birth,
        session_generation=holder.session,
        acquisition_id=str(holder.acquisition),
        acquired_at_ms=acquired_at_ms,
        handoff_id=None if holder.handoff is None else str(holder.handoff),
    )


def holder_of(owner: QueueOwner, here: Process) -> Holder:
    """The same, read: a process of this machine's boot and pid namespace, since nobody else is on this bus. One with a
    birth of another kind keeps it as its name, and is equal to no process of ours."""
    return Holder(
        owner.instance_id,
        _named(owner.process_id, owner.process_birth_id, here),
        owner.session_generation,
        owner.acquisition_id,
        owner.handoff_id,
    )


def donor_of(offer: LeaderOfferQueueHandoff, here: Process) -> Holder:
    """Who offers, as the envelope says; with the handoff by which it got the item (L6)."""
    return Holder(
        offer.donor_instance_id,
        _named(offer.donor_process_id, offer.donor_process_birth_id, here),
        offer.donor_session_generation,
        offer.donor_acquisition_id,
        offer.donor_handoff_id,
    )


def _named(pid: int, birth: str, here: Process) -> str:
    found = parse_birth_id(birth)
    if found is None or found.pid != pid or found.ticks is None:
        return birth
    return process_name(Process(pid, attrs.evolve(here.birth, ticks=found.ticks)))
