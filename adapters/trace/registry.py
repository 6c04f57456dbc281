"""What the owners of a recording wrote into the registry, for modules in which owners are environment.

They recorded it as `LeaderElection`, each write inside its transaction: so these events are pinned, and what other
modules say of who owns is held against them. That the writes themselves are right is that module's affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenure.adapters.trace.lines import Event

DEFAULT: Final = "default"
TAKES, KEEPS, LETS_GO = "Takes", "Keeps", "LetGo"
WRITES: Final = frozenset({TAKES, KEEPS, LETS_GO})


def writes(events: Sequence[Event], module: str, key: str) -> Iterator[Event]:
    """An event of `module` for each write of an owner of `key`: it `Takes`, `Keeps` or `LetGo`. The node is the
    runtime, with ``=`` before it: these are not in one order with what that runtime does beside."""
    keys: dict[str, str] = {}
    for event in events:
        if event.module != "LeaderElection":
            continue
        if event.action in ("Start", "Switch"):
            keys[event.node] = str(event.args.get("key", DEFAULT))
        elif event.action == "Write" and keys.get(event.node, DEFAULT) == key:
            phase = event.observed.get("phase")
            action = KEEPS if phase is None else TAKES if phase == "owner" else LETS_GO
            yield Event(
                event.file, event.line, module, action, f"={event.node}", event.seq, event.number, event.at,
                {}, {}, event.tenure, event.t,
            )  # fmt: skip


def instance_of(node: str) -> str:
    """The instance behind a node's name, ``PROCESS/INSTANCE@KEY``."""
    return node.partition("@")[0].rpartition("/")[2]
