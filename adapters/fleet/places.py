"""Threads, slots and names in the three spellings there are: on the wire, on the board, and as the machines compare
them."""

from __future__ import annotations

import re
from typing import Final

from tenure.adapters.bus.messages.envelopes_shared import Place
from tenure.adapters.bus.messages.envelopes_shared import Target as WireTarget
from tenure.machines.follower_messages import Binding, Target
from tenure.machines.slot_board import Target as BoardTarget

_SPELLED: Final = re.compile(r"(-?[0-9]{1,16})(?:/([0-9]{1,16}))?")


def spelled(target: WireTarget | BoardTarget | None) -> Target | None:
    """``<chat>/<thread>``, or ``<chat>`` for the chat itself: what the machines compare."""
    if target is None:
        return None
    return str(target.chat_id) if target.thread_id is None else f"{target.chat_id}/{target.thread_id}"


def wire_target(target: Target | None) -> WireTarget | None:
    """As an envelope has it; None for what names no thread."""
    found = None if target is None else _SPELLED.fullmatch(str(target))
    if found is None:
        return None
    return WireTarget(int(found[1]), None if found[2] is None else int(found[2]))


def board_target(target: Target | None) -> BoardTarget | None:
    """As the board has it; None for what names no thread, as the chat itself."""
    found = wire_target(target)
    return None if found is None or found.thread_id is None else BoardTarget(found.chat_id, found.thread_id)


def bound(place: Place) -> Binding:
    """What a registration got."""
    return Binding(spelled(place.target), place.slot, place.thread_name)
