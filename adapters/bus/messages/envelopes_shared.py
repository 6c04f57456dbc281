"""What envelopes share: who asks under which secret, and where a thread is."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Envelope:
    """What every envelope has. `auth` is no part of its repr: secrets stay out of logs."""

    request_id: str
    auth: str | None = attrs.field(default=None, repr=False)


@attrs.frozen
class Target:
    """A thread of a chat, or the chat itself."""

    chat_id: int
    thread_id: int | None = None


@attrs.frozen(kw_only=True)
class Place:
    """What a registration got, or kept: its thread, its slot (one letter), its name."""

    target: Target
    slot: str | None = None
    thread_name: str | None = None
