"""What is seen and told of a node in the binding of `QueueHandoff`, and how nodes and the item are spelled."""

from __future__ import annotations

from typing import Any, Final

import attrs

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.messages.envelopes_handoff import FollowerOfferQueueHandoff, LeaderOfferQueueHandoff
from tenure.adapters.bus.messages.json_values import Json, JsonValue
from tenure.adapters.handoff.parties import party_of
from tenure.adapters.testing.memory import BOOT
from tenure.adapters.verify.bind.journal_ports import Op
from tenure.machines.identity import Birth, Process
from tenure.machines.receipt_messages import Party
from tenure.models.queue_handoff_state import NOTHING, Copy, Msg

PIDS: Final = {"a": 100, "b": 101, "c": 102}


UNREAD: Final = 1
"""Instead of an acquisition in an answer: its journal could not be read."""


EPOCHS: Final = {"a": None, "b": 1, "c": None}
"""Who leads, by what its journal knows."""


BINDINGS: Final = {"a": "A", "b": "B", "c": "C"}


def process_of(name: str) -> Process:
    """The process of a node."""
    return Process(PIDS[name], Birth(1, BOOT, 1))


def party(name: str) -> Party:
    """A node, as the journal has it."""
    return party_of(process_of(name), name, 1)


def update() -> Json:
    """The one update that there is."""
    chat: dict[str, JsonValue] = {"id": 5}
    return Json({"update_id": 1, "message": {"message_id": 1, "chat": chat, "text": "do it"}})


Names = dict[str, int]
"""The number of each handoff, by its id: that of the token that it was made of."""


Letter = FollowerOfferQueueHandoff | LeaderOfferQueueHandoff | Ack
"""What is on the wire."""


@attrs.frozen(cache_hash=True)
class Known:
    """What the twin knows of a node: its copy of the item. `hears`: an offer that has come and is not decided;
    `calls`: it waits for an answer; `taking`: an offer is being answered; `gives_up`: it asks the journal to take the
    item back, which may be done already; `denies`: what it will answer then; `owing`:
    what it will answer to what it has taken."""

    copy: Copy = NOTHING
    hears: Msg | None = None
    calls: bool = False
    taking: bool = False
    gives_up: bool = False
    denies: Msg | None = None
    owing: Msg | None = None


@attrs.frozen(cache_hash=True)
class Told:
    """What has come of a step. `sent`: an offer; `took`: what has come is decided; `owes`: what it is about to answer
    to that; `reply`: the answer that goes; `runs`: the handler has been called."""

    known: Known
    sent: tuple[Msg, Letter] | None = None
    took: Msg | None = None
    owes: Msg | None = None
    reply: tuple[Msg, Letter] | None = None
    runs: bool = False

    def __str__(self) -> str:
        parts = [f"is {self.known.copy.phase}"]
        parts += [f"sends {self.sent[0]}"] if self.sent is not None else []
        parts += [f"answers {self.reply[0]}"] if self.reply is not None else []
        return ", ".join(parts)


@attrs.frozen(cache_hash=True)
class Seen:
    """Everything that the next step of a node depends on."""

    name: str
    known: Known
    op: Op | None
    timers: int
    held: bool
    """The item may be offered."""
    running: bool
    rest: tuple[Any, ...]

    def __str__(self) -> str:
        return f"asks {self.op}" if self.op is not None else "waits"
