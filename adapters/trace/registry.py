"""What the owners of a recording wrote into the registry, for modules in which owners are environment.

They recorded it as `LeaderElection`, each write inside its transaction: so these events are pinned, and what other
modules say of who owns is held against them. That the writes themselves are right is that module's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.adapters.trace.lines import Event

DEFAULT: Final = "default"
TAKES, KEEPS, LETS_GO, PASSES = "Takes", "Keeps", "LetGo", "Passes"
WRITES: Final = frozenset({TAKES, KEEPS, LETS_GO, PASSES})


def writes(events: Sequence[Event], module: str, key: str) -> list[Event]:
    """An event of `module` for each write of an owner of `key`: it `Takes`, `Keeps` or `LetGo`; and one for each time
    that a lease was seen to have passed inside a transaction (`Passes`). `args.entry` is the exact entry,
    ``INSTANCE#EPOCH``; `args.lost` is true where the lease was seen to have passed before, or where the owner, stopped
    inside its refresh, saw behind it that it was too late, or was never heard of again. The node is the runtime, with
    ``=`` before it: these are in no order with what it does beside.
    """
    keys: dict[str, str] = {}
    found: list[Event] = []
    kept: dict[str, dict[str, object]] = {}
    for event in events:
        seen, node = event.observed, event.node
        if event.module == "PollingOwnership" and (refresh := kept.pop(node, None)) is not None:
            refresh["lost"] = seen.get("phase") == "losing"
        if event.module != "LeaderElection":
            continue
        kept.pop(node, None)
        if event.action in ("Start", "Switch"):
            keys[node] = str(event.args.get("key", DEFAULT))
        if keys.get(node, DEFAULT) != key:
            continue
        args: dict[str, object] = {"entry": f"{instance_of(node)}#{event.tenure}"}
        if event.action == "Write":
            action = KEEPS if not seen else TAKES if seen.get("phase") == "owner" else LETS_GO
            if action == KEEPS:
                kept[node] = args
        elif seen.get("age") == "passed" and event.number:
            action, args = PASSES, {"entry": f"{seen.get('owner')}#{seen.get('id')}"}
        else:
            continue
        found.append(
            Event(
                event.file, event.line, module, action, f"={node}", event.seq, event.number, event.at,
                args, {}, event.tenure, event.t,
            )
        )  # fmt: skip
    for refresh in kept.values():
        refresh["lost"] = True
    _judge(found)
    return found


def _judge(found: Sequence[Event]) -> None:
    """A lease that was seen to have passed may be refreshed all the same, as long as nobody has taken it."""
    passed: set[object] = set()
    for event in sorted(found, key=lambda event: event.number):
        entry, args = event.args["entry"], event.args
        if event.action == PASSES:
            passed.add(entry)
        elif event.action == KEEPS and entry in passed and isinstance(args, dict):
            args["lost"] = True
            passed.discard(entry)


def instance_of(node: str) -> str:
    """The instance behind a node's name, ``PROCESS/INSTANCE@KEY``."""
    return node.partition("@")[0].rpartition("/")[2]
