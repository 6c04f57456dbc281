"""What is seen and told of a process in the binding of `DurableAdmission`; how processes and updates are spelled."""

from __future__ import annotations

from typing import Any, Final

import attrs

from tenure.adapters.bus.messages.json_values import Json, JsonValue
from tenure.adapters.verify.bind.journal_ports import Op
from tenure.machines.receipt_messages import Party
from tenure.models.durable_admission_state import NOTHING, Msg

CHAT: Final = 5


THREADS: Final = {"A": 1, "B": 2}
"""The thread of each binding's instance."""


DECIDED: Final = ("forward", "keep", "unserved", "remembered")
"""Operations that follow from who is there."""


def party(name: str) -> Party:
    """A process, as the journal has it."""
    return Party(name, f"process {name}")


def update(i: int, target: str) -> Json:
    """Update `i`: a message in the thread of that binding's instance."""
    chat: dict[str, JsonValue] = {"id": CHAT}
    return Json({"update_id": i, "message": {"message_id": i, "chat": chat, "message_thread_id": THREADS[target]}})


@attrs.frozen(cache_hash=True)
class Known:
    """What the twin knows of a process: of which epoch it leads, the cursor of its poll, an update that is not
    journaled, whose answers it waits for, of which updates it remembers the effect. `tries`: to lead under that epoch;
    `empty`: its queue was empty, and it writes that down; `hears`: a forward that it is about to admit; `heard`:
    answers that it is about to journal; `deciding`: it has seen who is there, and journals what follows from that;
    `loaded`: it has seen whether the first start is over; `alive`: it has come."""

    epoch: int = 0
    tries: int = 0
    poll: int = NOTHING
    got: int = 0
    skips: bool = False
    empty: bool = False
    sending: frozenset[int] = frozenset()
    did: frozenset[int] = frozenset()
    hears: Msg | None = None
    heard: frozenset[Msg] = frozenset()
    deciding: bool = False
    loaded: bool = False
    alive: bool = True


@attrs.frozen(cache_hash=True)
class Told:
    """What has come of a step. `sent`: forwards; `effects`: of which updates; `answer`: what it heard, and what it says
    to that; `settled`: of which updates an answer, or that there is none, was told to the journal; `given_up`: of
    which that failed, or that they are sent; `resumed`: what was given up is to be sent again."""

    known: Known
    sent: tuple[Msg, ...] = ()
    effects: tuple[int, ...] = ()
    answer: tuple[Msg, Msg] | None = None
    settled: tuple[tuple[int, Msg | None], ...] = ()
    given_up: tuple[int, ...] = ()
    resumed: bool = False

    def __str__(self) -> str:
        parts = [f"sends {m}" for m in self.sent] + [f"effect of {i}" for i in self.effects]
        if self.answer is not None:
            parts.append(f"answers {self.answer[1]}")
        parts += [f"settles {i}" for i, _ in self.settled] + [f"gives up {i}" for i in self.given_up]
        return ", ".join(parts) or "nothing"


@attrs.frozen(cache_hash=True)
class Seen:
    """Everything that the next step of a process depends on."""

    known: Known
    op: Op | None
    timers: int
    waits: tuple[int, ...]
    """Of which updates an answer may come."""
    running: int
    """The update that is being executed; 0: none."""
    asks: bool
    """It is about to poll."""
    rest: tuple[Any, ...]

    def __str__(self) -> str:
        return f"asks {self.op}" if self.op is not None else "waits"


@attrs.frozen
class Parts:
    """What runs in a process: polls and forwards while it leads, the others always."""

    polls: bool = False
    forwards: bool = False
    works: bool = False
