"""One request to a peer, and the acknowledgement that belongs to it (bus.md a)."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.bus.client import ONCE, Answer, Client, NoResponse, Reply, Retry
from tenure.adapters.bus.messages.acks import INVALID
from tenure.adapters.bus.messages.envelopes import Ack, Request
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.wire import parse, request_line
from tenure.adapters.bus.wording import unanswered
from tenure.adapters.errors import printable

_WORDS: Final = 300
"""So much of what a peer says is passed on."""


@attrs.frozen
class NoAck:
    """No acknowledgement: why, in words, and whether the peer may have done what it was asked. `reached`: it has not,
    but the line has reached it, and it could not read it."""

    text: str
    sent: bool
    reached: bool = False


async def acknowledged(
    client: Client, path: str, request: Request, *, timeout_ms: float, retry: Retry = ONCE
) -> Ack | NoAck:
    """Send `request` to whoever listens at `path`, and answer what it acknowledges. Raises nothing but a cancellation,
    which closes the connection at once."""
    try:
        line = request_line(request)
        reply = await client.request(path, line, timeout_ms=timeout_ms, retry=retry)
    except (ValueError, RecursionError) as error:
        return NoAck(f"the request cannot be sent: {error}", sent=False)
    return _read(path, request, reply)


def said(ack: Ack) -> str:
    """What a peer says in a refusal: one line, not too long."""
    return printable((ack.message or "refused without a reason")[:_WORDS])


def _read(path: str, request: Request, reply: Reply) -> Ack | NoAck:
    if not isinstance(reply, Answer):
        return NoAck(unanswered(path, reply), sent=isinstance(reply, NoResponse) or reply.sent)
    found = parse(reply.line)
    if isinstance(found, Malformed):
        return NoAck(f"{path}: the answer is none ({found.reason})", sent=True)
    if not isinstance(found, Ack):
        return NoAck(f"{path}: the answer is no acknowledgement", sent=True)
    if found.request_id != request.request_id:
        if found.request_id == INVALID:
            return NoAck(f"{path}: {said(found)}", sent=False, reached=True)
        return NoAck(f"{path}: the acknowledgement is for another request", sent=True)
    return found
