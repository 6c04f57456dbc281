"""Hypothesis strategies for what travels on the bus, in one place."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import TypeVar

from hypothesis import strategies as st

from tenure.adapters.bus.messages import envelopes as e
from tenure.adapters.bus.messages import envelopes_handoff as h
from tenure.adapters.bus.messages import fleet_view as f
from tenure.adapters.bus.messages.envelopes_shared import Place, Target
from tenure.adapters.bus.messages.js_text import trimmed
from tenure.adapters.bus.messages.json_values import SAFE, Json, JsonValue
from tenure.adapters.bus.messages.protocol import ProtocolIdentity, protocol_identity

T = TypeVar("T")

PAIRED = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two halves that are one character once they have been written: no string that was read has them."""

characters = st.characters(codec=None, categories=None)
texts = st.text(characters, max_size=12).filter(lambda text: PAIRED.search(text) is None)
some_texts = texts.filter(bool)
visible_texts = texts.filter(lambda text: bool(trimmed(text)))
safe = st.integers(-SAFE, SAFE)
positive = st.integers(1, SAFE)
natural = st.integers(0, SAFE)
letters = st.sampled_from(string.ascii_uppercase)


def canonical(number: float) -> int | float:
    """A double as it is read: an integral one is an int."""
    return int(number) if number.is_integer() else number


numbers = st.one_of(safe, st.floats(allow_nan=False, allow_infinity=False).map(canonical))
leaves: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
jsons = json_values.map(Json)


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """Or None."""
    return st.one_of(st.none(), strategy)


targets = st.builds(Target, safe, maybe(safe))
threads = st.builds(Target, safe, safe)
places = st.builds(Place, target=targets, slot=maybe(letters), thread_name=maybe(texts))
capabilities = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)
protocols: st.SearchStrategy[ProtocolIdentity] = st.builds(
    lambda build, names, version: ProtocolIdentity(
        version, *(lambda own: (own.runtime_build, own.capabilities))(protocol_identity(build, names))
    ),
    visible_texts,
    st.lists(capabilities, max_size=4),
    positive,
)
registrations = st.builds(
    e.Registration,
    instance_id=texts,
    connected_at_ms=numbers,
    previous_instance_id=maybe(texts),
    profile_key=maybe(texts),
    thread_name=maybe(texts),
    slot=maybe(letters),
    cwd=maybe(texts),
    pid=maybe(positive),
    target=maybe(targets),
    bus_socket_path=maybe(texts),
    registration_generation=maybe(texts),
    protocol=maybe(protocols),
    session_generation=maybe(positive),
    process_birth_id=maybe(some_texts),
)
common: Mapping[str, st.SearchStrategy[object]] = {"request_id": texts, "auth": maybe(texts)}
asked: Mapping[str, st.SearchStrategy[object]] = {
    **common, "instance_id": texts, "registration_generation": maybe(texts), "sent_at_ms": numbers,
}  # fmt: skip
deliveries = st.builds(
    e.Delivery,
    delivery_id=st.from_regex("telegram-follower-v1-[0-9a-f]{64}", fullmatch=True),
    source_update_id=natural,
    recipient_binding_key=some_texts,
)
forwarded: Mapping[str, st.SearchStrategy[object]] = {
    **common,
    "recipient_instance_id": texts,
    "recipient_registration_generation": texts,
    "delivery": deliveries,
    "sent_at_ms": numbers,
}
selectors = st.one_of(
    st.builds(e.Selector, chat_id=maybe(safe), thread_id=positive),
    st.builds(e.Selector, chat_id=maybe(safe), thread_name=visible_texts.map(trimmed)),
)
messages = st.builds(e.AgentMessage, target=threads, message_id=positive, text=visible_texts)
errors = st.builds(
    e.AckError,
    code=st.sampled_from(["commit-unknown", "request-id-collision", "ledger-overloaded", "incompatible-protocol"]),
    method=maybe(texts),
)


def receipts(kind: str) -> st.SearchStrategy[tuple[h.AdmissionReceipt, ...]]:
    """Receipts of a payload."""
    one = st.builds(
        h.AdmissionReceipt,
        queue_kind=st.just(kind),
        receipt_id=some_texts,
        source_update_ids=st.sets(natural, min_size=1, max_size=4).map(lambda ids: tuple(sorted(ids))),
        journal_binding_key=maybe(visible_texts),
    )
    return st.lists(one, min_size=1, max_size=3).map(tuple)


base: Mapping[str, st.SearchStrategy[object]] = {
    "chat_id": safe,
    "reply_to_message_id": safe,
    "queue_order": safe,
    "lane_order": safe,
    "status_summary": texts,
    "target": maybe(targets),
    "transport_stamp": maybe(st.builds(h.TransportStamp, profile=texts, generation=texts)),
    "guest_query_id": maybe(texts),
}
payloads: st.SearchStrategy[h.HandoffPayload] = st.one_of(
    st.builds(
        h.ControlPayload,
        queue_lane=st.just("control"),
        admission_receipts=receipts("control"),
        control_type=st.sampled_from(["status", "model"]),
        **base,
    ),
    st.builds(
        h.PromptPayload,
        queue_lane=st.sampled_from(["priority", "default"]),
        admission_receipts=receipts("prompt"),
        source_message_ids=st.lists(safe, max_size=3).map(tuple),
        queued_attachments=st.lists(st.builds(h.Attachment, path=texts, file_name=texts), max_size=2).map(tuple),
        content=st.lists(
            st.one_of(st.builds(h.TextContent, text=texts), st.builds(h.ImageContent, data=texts, mime_type=texts)),
            max_size=3,
        ).map(tuple),
        history_text=texts,
        priority_emoji=maybe(texts),
        reaction_suppression_emoji=maybe(texts),
        voice_reply_preferred=maybe(st.booleans()),
        voice_reply_required=maybe(st.booleans()),
        **base,
    ),
)
offered: Mapping[str, st.SearchStrategy[object]] = {
    **common,
    "recipient_instance_id": texts,
    "recipient_registration_generation": texts,
    "donor_process_id": positive,
    "donor_process_birth_id": some_texts,
    "donor_session_generation": positive,
    "donor_acquisition_id": some_texts,
    "donor_acquired_at_ms": natural,
    "donor_handoff_id": maybe(some_texts),
    "handoff_token": st.text("0123456789_-aZ", min_size=32, max_size=40),
    "payload": payloads,
    "sent_at_ms": numbers,
}
by_kind: Mapping[type, st.SearchStrategy[e.Envelope]] = {
    e.Register: st.builds(e.Register, registration=registrations, **common),
    e.Heartbeat: st.builds(e.Heartbeat, **asked),
    e.Disconnect: st.builds(e.Disconnect, **asked),
    e.CallApi: st.builds(
        e.CallApi,
        method=st.sampled_from(["call", "callMultipart", "downloadFile"]),
        args=st.lists(jsons, max_size=3).map(tuple),
        **asked,
    ),
    e.ResolveAgentTarget: st.builds(e.ResolveAgentTarget, selector=selectors, **asked),
    e.RouteAgentMessage: st.builds(e.RouteAgentMessage, message=messages, **asked),
    e.ForwardMessage: st.builds(
        e.ForwardMessage,
        message=maybe(jsons),
        forward_comment_batch_position=maybe(st.sampled_from(["comment", "forward"])),
        **forwarded,
    ),
    e.ForwardEditedMessage: st.builds(e.ForwardEditedMessage, message=maybe(jsons), **forwarded),
    e.ForwardCallback: st.builds(e.ForwardCallback, query=maybe(jsons), **forwarded),
    e.ForwardReaction: st.builds(e.ForwardReaction, reaction_update=maybe(jsons), **forwarded),
    e.ReplaceFollowerTarget: st.builds(
        e.ReplaceFollowerTarget,
        recipient_instance_id=texts,
        recipient_registration_generation=maybe(texts),
        target=threads,
        old_target=maybe(threads),
        sent_at_ms=numbers,
        **common,
    ),
    h.FollowerOfferQueueHandoff: st.builds(
        h.FollowerOfferQueueHandoff, instance_id=texts, registration_generation=texts, **offered
    ),
    h.LeaderOfferQueueHandoff: st.builds(h.LeaderOfferQueueHandoff, donor_instance_id=texts, **offered),
    e.TenureStatus: st.builds(e.TenureStatus, instance_id=maybe(texts), **common),
    e.Ack: st.builds(
        e.Ack,
        ok=st.booleans(),
        message=maybe(texts),
        result=maybe(jsons),
        protocol=maybe(protocols),
        error=maybe(errors),
        **common,
    ),
}
envelopes: st.SearchStrategy[e.Envelope] = st.one_of(*by_kind.values())

ages = st.integers(0, SAFE)
fleets = st.builds(
    f.FleetView,
    leader=st.builds(
        f.LeaderView,
        pid=positive,
        instance_id=texts,
        epoch=st.one_of(safe, texts),
        slot=maybe(letters),
        name=maybe(texts),
        target=maybe(targets),
    ),
    followers=st.lists(
        st.builds(
            f.FollowerView,
            instance_id=texts,
            generation=texts,
            heartbeat_age_ms=ages,
            pid=maybe(positive),
            profile=maybe(texts),
            slot=maybe(letters),
            name=maybe(texts),
            target=maybe(targets),
        ),
        max_size=3,
    ).map(tuple),
    reservations=st.lists(
        st.builds(
            f.ReservationView,
            slot=letters,
            profile=maybe(texts),
            name=maybe(texts),
            age_ms=maybe(ages),
            left_ms=maybe(safe),
        ),
        max_size=2,
    ).map(tuple),
    pendings=st.lists(
        st.builds(
            f.PendingView,
            id=texts,
            instance_id=texts,
            status=texts,
            age_ms=ages,
            profile=maybe(texts),
            slot=maybe(letters),
            name=maybe(texts),
            target=maybe(targets),
        ),
        max_size=2,
    ).map(tuple),
    clean_ups=st.lists(
        st.builds(f.CleanUpView, instance_id=texts, generation=texts, age_ms=ages, target=maybe(targets)), max_size=2
    ).map(tuple),
)
