"""Which binding had a thread, or got or wrote a message, last: for updates that name a thread that nobody has now, or
none at all (bus.md c; B44). Table `owners`.

It is no authority: who has a thread now is what the leader's routes say. The oldest are forgotten first; what is asked
for again and again stays.
"""

from __future__ import annotations

from typing import Final, Literal

import attrs

from tenure.adapters.journal.rows import integer, text
from tenure.adapters.journal.transaction import Transaction

KNOWN: Final = 100_000
"""So many threads and messages are known at most."""

Place = tuple[int, int]
"""A chat, and the number of a thread or a message in it."""
Thing = Literal["thread", "message"]

_GET: Final = "SELECT seq, binding FROM owners WHERE chat_id = ? AND thing = ? AND number = ?"
_PUT: Final = "INSERT OR REPLACE INTO owners (chat_id, thing, number, binding) VALUES (?, ?, ?, ?)"
_TRIM: Final = "DELETE FROM owners WHERE seq <= (SELECT max(seq) FROM owners) - ?"


@attrs.frozen
class About:
    """What an update is about, as far as it says: a thread, a message."""

    thread: Place | None = None
    message: Place | None = None

    @property
    def things(self) -> tuple[tuple[Thing, Place], ...]:
        """What there is of both, the message first."""
        named: tuple[tuple[Thing, Place | None], ...] = (("message", self.message), ("thread", self.thread))
        return tuple((thing, place) for thing, place in named if place is not None)


def remember(transaction: Transaction, about: About, binding: str) -> None:
    """They are the binding's from now on."""
    newest = transaction.one("SELECT max(seq) FROM owners")
    top = integer(newest[0]) if newest is not None and newest[0] is not None else 0
    for thing, (chat, number) in about.things:
        row = transaction.one(_GET, (chat, thing, number))
        if row is not None and text(row[1]) == binding and integer(row[0]) > top - KNOWN // 2:
            continue
        transaction.write(_PUT, (chat, thing, number, binding))
        transaction.write(_TRIM, (KNOWN,))


def remembered(transaction: Transaction, about: About) -> str | None:
    """Whose the message is, or else the thread was; None: nobody's that is known."""
    for thing, (chat, number) in about.things:
        row = transaction.one(_GET, (chat, thing, number))
        if row is not None:
            return text(row[1])
    return None
