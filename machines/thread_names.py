"""What a thread is called: one word for each letter, picked by time; and which names of others count (bus.md f, name).

Pure functions. The word begins with the letter of its slot, so that a person finds the slot from the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The slots, in their order: the smallest goes first when a leader has to be found."""
WORDS: Final = 5
"""How many words a letter has."""

PALETTE: Final[Mapping[str, tuple[str, ...]]] = {
    "A": ("Acorn", "Agate", "Alder", "Amber", "Arrow"),
    "B": ("Badger", "Basalt", "Beech", "Bramble", "Brook"),
    "C": ("Canyon", "Cobalt", "Condor", "Copper", "Crane"),
    "D": ("Dahlia", "Daisy", "Diamond", "Dolphin", "Dove"),
    "E": ("Ebony", "Eider", "Elm", "Emerald", "Ermine"),
    "F": ("Fennel", "Fern", "Finch", "Fox", "Frost"),
    "G": ("Galaxy", "Gentian", "Ginger", "Granite", "Gull"),
    "H": ("Hamlet", "Heath", "Heron", "Hickory", "Holly"),
    "I": ("Ibex", "Ibis", "Icicle", "Indigo", "Islet"),
    "J": ("Jackal", "Jaguar", "Jasmine", "Jay", "Juniper"),
    "K": ("Kelpie", "Kestrel", "Kingfisher", "Kiwi", "Koala"),
    "L": ("Larch", "Lark", "Lemon", "Lichen", "Lilac"),
    "M": ("Magnet", "Mallow", "Marten", "Mica", "Mint"),
    "N": ("Narwhal", "Nebula", "Nettle", "Newt", "Nutmeg"),
    "O": ("Oak", "Ocean", "Ocelot", "Orchid", "Otter"),
    "P": ("Panther", "Pear", "Pelican", "Plover", "Poplar"),
    "Q": ("Quail", "Quarry", "Quiet", "Quince", "Quokka"),
    "R": ("Rabbit", "Radish", "Rain", "Robin", "Rowan"),
    "S": ("Sage", "Sapphire", "Sorrel", "Sparrow", "Swift"),
    "T": ("Tansy", "Teal", "Thistle", "Topaz", "Tulip"),
    "U": ("Ulna", "Ultra", "Umbra", "Unicorn", "Upland"),
    "V": ("Valley", "Vanilla", "Velvet", "Viola", "Viper"),
    "W": ("Walnut", "Weasel", "Wheat", "Wren", "Wyvern"),
    "X": ("Xebec", "Xenia", "Xenolith", "Xeric", "Xylan"),
    "Y": ("Yak", "Yam", "Yellow", "Yew", "Yucca"),
    "Z": ("Zander", "Zest", "Zigzag", "Zinc", "Zinnia"),
}
"""Five words for each slot."""

_WORD: Final = re.compile(r"[A-Z][A-Za-z]{1,95}")
_TAKEN: Final = frozenset({"telegram", "leader", "follower"})
_FIRST_REAL_MS: Final = 10**12
"""Before this (2001) a clock is a test's, and the first word is taken."""


def slot_of(value: object) -> str | None:
    """`value` if it is a slot: one letter from A to Z."""
    return value if isinstance(value, str) and len(value) == 1 and value in LETTERS else None


def valid_name(value: object) -> str | None:
    """`value` if it may be a thread's name: one word of A-Za-z that begins with a capital, not a single letter, not
    telegram, leader or follower."""
    if not isinstance(value, str) or not _WORD.fullmatch(value) or value.lower() in _TAKEN:
        return None
    return value


def fnv1a(text: str) -> int:
    """The 32-bit FNV-1a hash of an ASCII text."""
    found = 2166136261
    for byte in text.encode("ascii", "replace"):
        found = ((found ^ byte) * 16777619) & 0xFFFFFFFF
    return found


def palette_names(slot: str, now_ms: int) -> tuple[str, ...]:
    """The words for `slot`, that of this time first."""
    first = 0 if now_ms < _FIRST_REAL_MS else fnv1a(str(now_ms)) % WORDS
    return PALETTE[slot][first:] + PALETTE[slot][:first]
