"""What a person calls something in the journal: an update id, a whole id, or the first digits of its hash."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tenure.adapters.errors import TenureError, printable
from tenure.adapters.journal import deliveries, looking, receipts
from tenure.adapters.journal.looking import Item
from tenure.adapters.journal.rows import text
from tenure.adapters.journal.transaction import Transaction

SHORT: Final = 10
"""So many digits of a hash are shown: enough to be the only one."""
LEAST: Final = 6
"""So many have to be given."""
SHOWN: Final = 5
"""So many candidates are named where several are meant."""

_ID: Final = re.compile(r"(telegram-(?:prompt|control|follower)-v1-)?([0-9a-f]{1,64})")
_RECEIPTS: Final = ("telegram-prompt-v1-", "telegram-control-v1-")
_DELIVERIES: Final = ("telegram-follower-v1-",)
_BEGIN: Final = "SELECT {0} FROM {1} WHERE {0} >= ? AND {0} < ? ORDER BY {0} LIMIT ?"


def short(name: str) -> str:
    """A delivery or receipt id as it is shown: the first digits of its hash; what is none stays as it is."""
    found = _ID.fullmatch(name)
    return found[2][:SHORT] if found is not None and found[1] is not None else name


def resolve(transaction: Transaction, name: str, listed_by: str) -> str:
    """The whole id that `name` means: an update id in decimal, a delivery id or a receipt id. An exact one comes before
    what begins so. `listed_by`: the command that shows all of them.

    Raises `TenureError` where nothing, or more than one thing, is called so.
    """
    exact = str(int(name)) if name.isascii() and name.isdecimal() and len(name) < 19 else name
    if _known(transaction, exact):
        return exact
    found = _ID.fullmatch(name.lower())
    if found is None:
        raise TenureError(
            f"{printable(name[:120])}: no update, delivery or receipt is called so; {listed_by} shows what there is"
        )
    if len(found[2]) < LEAST and not (found[1] is None and exact.isdecimal()):
        raise TenureError(f"{name}: give at least {LEAST} digits of the hash; {listed_by} shows what there is")
    meant = _beginning(transaction, found[1], found[2]) if len(found[2]) >= LEAST else []
    if not meant:
        raise TenureError(
            f"{name}: no update, delivery or receipt is called so, or what is settled is forgotten by now; "
            f"{listed_by} shows what there is"
        )
    if len(meant) > 1:
        several = ", ".join(meant[:SHOWN]) + (", ..." if len(meant) > SHOWN else "")
        raise TenureError(f"{name}: several begin so: {several}; give more digits")
    return meant[0]


def find(name: str, listed_by: str) -> Callable[[Transaction], tuple[str, Item]]:
    """The whole id that `name` means, and all that is known of it. Raises as `resolve`."""

    def work(transaction: Transaction) -> tuple[str, Item]:
        whole = resolve(transaction, name, listed_by)
        return whole, looking.item(transaction, whole)

    return work


def _known(transaction: Transaction, name: str) -> bool:
    if (
        name.isascii()
        and name.isdecimal()
        and len(name) < 19
        and deliveries.find_update(transaction, int(name)) is not None
    ):
        return True
    if receipts.find(transaction, name) is not None or deliveries.find(transaction, name) is not None:
        return True
    return transaction.one("SELECT 1 FROM decisions WHERE subject = ? LIMIT 1", (name,)) is not None


def _beginning(transaction: Transaction, prefix: str | None, digits: str) -> list[str]:
    places = [("receipt_id", "receipts", begin) for begin in _RECEIPTS]
    places += [("delivery_id", "deliveries", begin) for begin in _DELIVERIES]
    found: list[str] = []
    for column, table, begin in places:
        if prefix in (None, begin):
            # After the last digit comes g: so this range is everything that begins with them.
            cells = (f"{begin}{digits}", f"{begin}{digits}g", SHOWN + 1)
            found += [text(row[0]) for row in transaction.read(_BEGIN.format(column, table), cells)]
    return found
