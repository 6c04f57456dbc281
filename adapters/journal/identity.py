"""Whose journal it is: the bot that all of its updates are for (bus.md d).

An update id means nothing without its bot. So a journal that holds work is refused to another bot (I24, law Fence), and
one that holds none is taken over, without what the other one left there.
"""

from __future__ import annotations

import hashlib

import attrs

from tenure.adapters.errors import TenureError


@attrs.frozen
class BotIdentity:
    """A bot: by its id, where that is known, and by the SHA-256 of its token, in hex."""

    bot_id: int | None
    token_sha256: str

    def __attrs_post_init__(self) -> None:
        if len(self.token_sha256) != 64 or not set(self.token_sha256) <= set("0123456789abcdef"):
            raise TenureError("the identity of a bot needs the SHA-256 of its token: 64 hex digits, in lower case")
        if self.bot_id is not None and (type(self.bot_id) is not int or self.bot_id < 1):
            raise TenureError(f"bot id {self.bot_id!r}: an id is an integer from 1 on")

    def __str__(self) -> str:
        return f"bot {self.bot_id}" if self.bot_id is not None else f"the bot of token {self.token_sha256[:8]}..."


def identity_of_token(token: str, bot_id: int | None = None) -> BotIdentity:
    """The identity of the bot with that token. A token begins with the bot's id, which is taken from there if it is not
    given; the token itself is kept nowhere."""
    if bot_id is None:
        head = token.partition(":")[0]
        bot_id = int(head) if head.isascii() and head.isdecimal() and 0 < int(head) < 2**53 else None
    return BotIdentity(bot_id, hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest())


def same_bot(left: BotIdentity, right: BotIdentity) -> bool:
    """Whether both are one bot: the ids are equal, or, where one is not known, the tokens. Two ids never are.

    post: not __return__ or left.bot_id == right.bot_id or left.token_sha256 == right.token_sha256
    post: not (__return__ and left.bot_id is not None and right.bot_id is not None) or left.bot_id == right.bot_id
    """
    if left.bot_id is not None and right.bot_id is not None:
        return left.bot_id == right.bot_id
    return left.token_sha256 == right.token_sha256


def learned(stored: BotIdentity, ours: BotIdentity) -> BotIdentity:
    """What is known of a bot once `ours` has come: its newest token, and its id if anybody knew it."""
    return BotIdentity(stored.bot_id if ours.bot_id is None else ours.bot_id, ours.token_sha256)
