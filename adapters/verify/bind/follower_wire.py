"""What followers and leaders say to each other, as the twin of `FollowerRegistration` has it and as the bus has it."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Delivery,
    Disconnect,
    ForwardMessage,
    Heartbeat,
    Register,
    Registration,
    ReplaceFollowerTarget,
    ResolveAgentTarget,
    Selector,
)
from tenure.adapters.bus.messages.envelopes_shared import Place
from tenure.adapters.bus.messages.envelopes_shared import Target as WireTarget
from tenure.adapters.bus.messages.protocol import ProtocolIdentity
from tenure.adapters.bus.messages.wire import parse
from tenure.adapters.fleet.agreement import HELD, our_protocol
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.machines.follower_messages import Generation
from tenure.models.follower_registration_state import Config, Msg

STRANGER: Final = ProtocolIdentity(99, "another")
"""Who is odd."""
CHAT: Final = 0

Sent = Register | Heartbeat | Disconnect | ResolveAgentTarget


def number(value: Generation | None) -> int:
    """A generation, or a thread, as the twin has it; 0 for none."""
    return 0 if value is None else int(str(value).rpartition("/")[2])


def thread(target: int) -> str | None:
    """A thread as the machines compare it."""
    return f"{CHAT}/{target}" if target else None


def secret(lead: str) -> str:
    """What a leader's requests, and its own, have to bring."""
    return f"secret of {lead}"


def protocol(config: Config, who: str) -> ProtocolIdentity:
    """What `who` says of itself."""
    return STRANGER if who in config.odd else our_protocol()


def read(line: bytes) -> Sent:
    """A request of a follower."""
    request = parse(line)
    assert isinstance(request, Register | Heartbeat | Disconnect | ResolveAgentTarget), request
    return request


def message(identity: InstanceIdentity, request: Sent, lead: str) -> Msg:
    """A request of the follower `identity` to `lead`; to nobody where it brings another secret."""
    to = lead if request.auth == secret(lead) else "?"
    if not isinstance(request, Register):
        kind = "beat" if isinstance(request, Heartbeat) else "goodbye" if isinstance(request, Disconnect) else "ask"
        return Msg(kind, request.instance_id, number(request.registration_generation), to)
    r = request.registration
    keys = [identity.profile_key(), identity.own_profile_key()]
    assert r.profile_key in keys, r.profile_key
    gen = number(r.registration_generation) if request.request_id == r.registration_generation else -1
    target = 0 if r.target is None else r.target.thread_id or 0
    return Msg("register", r.instance_id, gen, to, r.session_generation or 0, r.profile_key == keys[1], target)


def question(who: str, generation: Generation) -> ResolveAgentTarget:
    """Something that a follower asks for."""
    return ResolveAgentTarget(
        request_id="", instance_id=who, selector=Selector(thread_name="x"), sent_at_ms=0,
        registration_generation=str(generation),
    )  # fmt: skip


def answer(config: Config, request: Sent, m: Msg) -> Ack:
    """The acknowledgement that `m` stands for."""
    said = protocol(config, m.lead)
    if isinstance(request, Register):
        if m.ok:
            return acks.registered(request, said, Place(target=WireTarget(CHAT, m.target)))
        return acks.register_refused(request, said, HELD if m.held else "no")
    if not m.ok:
        return acks.refused(request, "no")
    return acks.roster(request, ()) if m.kind == "beaten" else acks.done(request)


def work(m: Msg, key: str) -> ForwardMessage | ReplaceFollowerTarget:
    """What a leader sends; `key` is the profile's."""
    auth, gen = secret(m.lead), str(m.gen)
    if m.kind == "moved":
        return ReplaceFollowerTarget(
            request_id="w", auth=auth, recipient_instance_id=m.who, recipient_registration_generation=gen,
            sent_at_ms=0, target=WireTarget(CHAT, m.target),
        )  # fmt: skip
    return forward(m, key)


def forward(m: Msg, key: str = "any") -> ForwardMessage:
    """Work for one registration."""
    return ForwardMessage(
        request_id="w", auth=secret(m.lead), recipient_instance_id=m.who,
        recipient_registration_generation=str(m.gen), sent_at_ms=0,
        delivery=Delivery(delivery_id=f"telegram-follower-v1-{0:064x}", source_update_id=1, recipient_binding_key=key),
    )  # fmt: skip


def request(config: Config, m: Msg, key: str) -> Sent:
    """A request as its leader reads it; `key` is the profile's."""
    auth, gen = secret(m.lead), str(m.gen) if m.gen else None
    if m.kind == "register":
        registration = Registration(
            instance_id=m.who, connected_at_ms=0, profile_key=key, pid=1, registration_generation=gen,
            target=WireTarget(CHAT, m.target) if m.target else None, bus_socket_path=f"/{m.who}",
            protocol=protocol(config, m.who), session_generation=m.session, process_birth_id=m.who,
        )  # fmt: skip
        return Register(request_id=str(m.gen), auth=auth, registration=registration)
    if m.kind == "ask":
        return attrs.evolve(question(m.who, m.gen), request_id="q", auth=auth, registration_generation=gen)
    made = Heartbeat if m.kind == "beat" else Disconnect
    return made(request_id="q", auth=auth, instance_id=m.who, registration_generation=gen, sent_at_ms=0)


def target_of(ack: Ack) -> int:
    """The thread that an acknowledgement gives; 0 for none."""
    found = answers.place(ack) if ack.ok else None
    return 0 if not isinstance(found, Place) else found.target.thread_id or 0
