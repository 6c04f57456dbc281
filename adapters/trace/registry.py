"""What the owners of a recording wrote into the registry, for modules in which owners are environment.

They recorded it as `LeaderElection`, each write inside its transaction: so these events are pinned, and what other
modules say of who owns is held against them. That the writes themselves are right is that module's affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenure.adapters.trace.lines import Event

DEFAULT: Final = "default"
TAKES, KEEPS, LETS_GO, PASSES = "Takes", "Keeps", "LetGo", "Passes"
WRITES: Final = frozenset({TAKES, KEEPS, LETS_GO, PASSES})


def writes(events: Sequence[Event], module: str, key: str) -> Iterator[Event]:
    """An event of `module` for each write of an owner of `key`: it `Takes`, `Keeps` or `LetGo`; and one for each time
    that a lease was seen to have passed inside a transaction (`Passes`). `args.entry` is the exact entry,
    ``INSTANCE#EPOCH``. The node is the runtime, with ``=`` before it: these are in no order with what it does beside.
    """
    keys: dict[str, str] = {}
    for event in events:
        if event.module != "LeaderElection":
            continue
        seen, node = event.observed, event.node
        if event.action in ("Start", "Switch"):
            keys[node] = str(event.args.get("key", DEFAULT))
        if keys.get(node, DEFAULT) != key:
            continue
        if event.action == "Write":
            action = KEEPS if not seen else TAKES if seen.get("phase") == "owner" else LETS_GO
            entry = f"{instance_of(node)}#{event.tenure}"
        elif seen.get("age") == "passed" and event.number:
            action, entry = PASSES, f"{seen.get('owner')}#{seen.get('id')}"
        else:
            continue
        yield Event(
            event.file, event.line, module, action, f"={node}", event.seq, event.number, event.at,
            {"entry": entry}, {}, event.tenure, event.t,
        )  # fmt: skip


def instance_of(node: str) -> str:
    """The instance behind a node's name, ``PROCESS/INSTANCE@KEY``."""
    return node.partition("@")[0].rpartition("/")[2]
