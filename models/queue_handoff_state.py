"""What the twin of QueueHandoff is made of: its state, its bounds, and the values of its machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import attrs

from tenure.machines.chart import Step
from tenure.machines.donor_messages import Item
from tenure.machines.receipt_messages import Handoff, Holder, Offer, Output, Party, Receipt
from tenure.machines.recipient_messages import Place
from tenure.models.world import FrozenMap


@attrs.frozen(cache_hash=True)
class Owner:
    """Who owns the row: a node, by which acquisition, and by which handoff that came (0: none)."""

    node: str
    acq: int
    by: int


@attrs.frozen(cache_hash=True)
class Open:
    """An open offer: its handoff, and whom it is for."""

    h: int
    to: str


NONE: Final = "none"
NOBODY: Final = Owner(NONE, 0, 0)
NO_OFFER: Final = Open(0, NONE)


@attrs.frozen(cache_hash=True)
class Row:
    """The receipt in the journal."""

    state: str
    owner: Owner
    offer: Open
    fallen: str
    attempts: int


@attrs.frozen(cache_hash=True)
class Copy:
    """What a node has in its memory: `acq`, `by`: the acquisition (of a staged copy, its donor's) and how that came;
    `h`, `to`: the handoff that is under way, and with whom."""

    phase: str
    acq: int = 0
    by: int = 0
    h: int = 0
    to: str = NONE


NOTHING: Final = Copy(NONE)


@attrs.frozen(cache_hash=True)
class Msg:
    """A request or an answer on its way, or a call of the journal that its worker has forgotten."""

    kind: str
    sender: str
    to: str
    h: int
    acq: int
    by: int
    d: bool = True
    r: bool = True


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    row: Row
    node: FrozenMap[str, Copy]
    up: frozenset[str]
    net: frozenset[Msg]
    ran: int
    late: int
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    nodes: tuple[str, ...]
    causes: frozenset[str]
    budget: int
    limit: int = 1
    idle: frozenset[str] = frozenset()
    unable: frozenset[str] = frozenset()
    old: frozenset[str] = frozenset()


def config(
    nodes: str, causes: str, budget: int, limit: int = 1, idle: str = "", unable: str = "", old: str = ""
) -> Config:
    sets = [frozenset(words.split()) for words in (causes, idle, unable, old)]
    return Config(tuple(nodes.split()), sets[0], budget, limit, *sets[1:])


CONFIGS: Final[Mapping[str, Config]] = {
    "two": config("a b", "move crash check lose repeat forget late", 2),
    "session": config("a b", "move late session", 3),
    "forget": config("a b", "move forget unknown unreadable late doubt", 3),
    "reload": config("a a2 b", "move reload person forget", 2),
    "third": config("a b c", "move crash astray", 2),
    "poison": config("a b", "move poison", 1, limit=2),
    "news": config("a b", "move self reregister leader", 2),
    "elder": config("a b", "move", 2, old="leader"),
    "peers": config("a b c d", "move", 2, idle="c", unable="d", old="a"),
    "all": config(
        "a a2 b",
        "move self late lose repeat check session crash forget unknown unreadable reload reregister leader person"
        " poison doubt",
        3,
    ),
}
"""The configurations of the manifest by name; each equals `spec/QueueHandoff_<name>.cfg`."""

OWNED: Final = frozenset({"queued", "started"})
BARE: Final = frozenset({NONE, "rebuilding"})
LIVE: Final = frozenset({"holding", "offering", "awaiting", "cancelling", "looking", "executing"})
DONORS: Final = frozenset({"holding", "offering", "awaiting", "cancelling", "looking"})
TRIES: Final = frozenset({"staged", "holding", "offering", "awaiting", "cancelling", "looking"})
SETTLED: Final = frozenset({"done", "interrupted", "failed", "discarded"})
RECEIPT_ID: Final = "item"


def process(p: str) -> str:
    """The process of a node: "a2" is the next activation of a's."""
    return "a" if p == "a2" else p


def party(p: str) -> Party:
    return Party(p, process(p))


def holder(p: str, acq: int, by: int) -> Holder:
    return Holder(p, process(p), 0, acq, by or None)


def number(value: Handoff | None) -> int:
    """A number of this world; 0 for None."""
    return value if isinstance(value, int) else 0


# -- the machines' values ---------------------------------------------------------------------------------------------


def receipt_of(row: Row, limit: int) -> Receipt:
    owner = None if row.owner == NOBODY else holder(row.owner.node, row.owner.acq, row.owner.by)
    offer = None if row.offer == NO_OFFER else Offer(row.offer.h, row.offer.to, process(row.offer.to))
    fallen = None if row.fallen == NONE else Offer(0, row.fallen, process(row.fallen))
    return Receipt(limit, owner, offer, fallen, row.attempts)


def row_of(done: Step[Receipt, Output]) -> Row:
    data = done.data
    owner = NOBODY if data.owner is None else owner_of(data.owner)
    offer = NO_OFFER if data.offer is None else Open(number(data.offer.handoff), data.offer.instance)
    fallen = NONE if data.fallen is None else data.fallen.instance
    return Row(done.phase, owner, offer, fallen, min(data.attempts, data.limit))


def owner_of(who: Holder) -> Owner:
    return Owner(who.instance, number(who.acquisition), number(who.handoff))


def item_of(p: str, copy: Copy) -> Item:
    """The donor's memory of a copy that is in the queue."""
    to = None if copy.to == NONE else party(copy.to)
    return Item(RECEIPT_ID, holder(p, copy.acq, copy.by), (), copy.h or None, to)


def place_of(p: str, copy: Copy) -> tuple[str, Place]:
    """The recipient's phase and memory."""
    if copy.phase in BARE:
        return NONE, Place(party(p))
    if copy.phase == "staged":
        return "staged", Place(party(p), copy.h, holder(copy.to, copy.acq, copy.by))
    phase = "accepted" if copy.phase == "accepted" else "live"
    return phase, Place(party(p), holder=holder(p, copy.acq, copy.by))


# -- what is true -----------------------------------------------------------------------------------------------------


def over(state: State, p: str) -> bool:
    """Its process goes on as another activation."""
    return p == "a" and "a2" in state.up


def here(state: State, p: str) -> bool:
    return p in state.up and not over(state, p)


def at(state: State, p: str, phase: str) -> bool:
    return state.node[p].phase == phase and here(state, p)


def serves(state: State, p: str) -> bool:
    return process(p) == "a" and not over(state, p)


def left(state: State) -> bool:
    return "a" not in state.up


def mine(state: State, p: str) -> bool:
    return state.row.owner.node == p and state.row.owner.acq == state.node[p].acq


def fresh(state: State) -> int:
    """The least identity that nobody refers to."""
    row = state.row
    used = {row.owner.acq, row.owner.by, row.offer.h, state.late}
    for copy in state.node.values():
        used |= {copy.acq, copy.by, copy.h}
    for m in state.net:
        used |= {m.h, m.acq, m.by}
    return least(used)


def least(used: Collection[int]) -> int:
    found = 1
    while found in used:
        found += 1
    return found


def request(p: str, copy: Copy) -> Msg:
    return Msg("ask", p, copy.to, copy.h, copy.acq, copy.by)


def call(state: State, p: str) -> frozenset[Msg]:
    """What is on its way of a donor's call."""
    return frozenset(
        m for m in state.net if (m.kind in ("ask", "offer") and m.sender == p) or (m.kind == "ack" and m.to == p)
    )


def answer(state: State, sender: str, recipient: str, h: int, by: int) -> frozenset[Msg]:
    """The answer to an offer of `sender`; nobody waits: nobody is told."""
    waits = at(state, sender, "awaiting") and state.node[sender].h == h
    return frozenset({Msg("ack", recipient, sender, h, 0, by)}) if waits else frozenset()
