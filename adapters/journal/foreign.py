"""What the other system has left of a profile's updates, and why nobody of ours leads over it (DESIGN 10; bus.md d).

Its leader has an inbox, and so has each of its followers. Updates that stand there were confirmed to Telegram: who led
over them would leave them to nobody. ``tenure import`` takes them over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.fleet.identities import parse_birth_id
from tenure.adapters.journal.foreign_inbox import Entry, Inbox, QueueOwner, read_inbox
from tenure.adapters.ports import Files, Ports, Processes
from tenure.machines.identity import GONE, RUNNING, ZOMBIE
from tenure.machines.lease import DEFAULT_KEY
from tenure.machines.receipt_messages import Evidence

_NAME: Final = re.compile(r"(?:inbox|follower-inbox-([0-9a-f]{16}))(?:\.([a-z0-9]{1,32}))?\.json(\.segments)?")


class ForeignWork(TenureError):
    """The other system left updates in an inbox: nobody of ours leads over that."""


def inboxes(files: Files, directory: AgentDirectory, key: str) -> tuple[str, ...]:
    """Where inboxes of that profile are, or segments of one; the leader's first. Raises OSError."""
    try:
        names = files.entries(directory.state)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found = {name.removesuffix(".segments") for name in names if _profile(name) == key}
    return tuple(f"{directory.state}/{name}" for name in sorted(found, key=lambda name: (name[0] != "i", name)))


def follower_of(path: str) -> str | None:
    """The first 16 hex digits of the SHA-256 of the binding that an inbox belongs to; None for the leader's."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return None if found is None else found[1]


def refuse_foreign_work(ports: Ports, directory: AgentDirectory, key: str) -> None:
    """A plain look, before anybody stands for election: raises `ForeignWork` or `ForeignInboxDamaged`.

    What a living follower of the other system has queued it is going to execute: that is no work that was left.
    """
    try:
        paths = inboxes(ports.files, directory, key)
    except OSError as error:
        raise TenureError(
            f"{directory.state}: {error.strerror or error}; give this user the right to read it"
        ) from error
    for path in paths:
        inbox = read_inbox(ports.files, path, key)
        entries = () if inbox is None else left(ports.processes, inbox)
        if entries:
            command = shlex.join(["tenure", "import", directory.root])
            more = "" if key == DEFAULT_KEY else f" --profile {key}"
            raise ForeignWork(
                f"{path}: the other system left {amount(len(entries))} there, and nobody of ours leads over that; let "
                f"it finish, or run {command}{more}"
            )


def left(processes: Processes, inbox: Inbox) -> tuple[Entry, ...]:
    """The entries of an inbox that nobody is going to execute by himself, as far as anybody can tell."""
    if follower_of(inbox.path) is None:
        return inbox.entries
    return tuple(entry for entry in inbox.entries if entry.owner is None or evidence(processes, entry.owner) != "alive")


def evidence(processes: Processes, owner: QueueOwner) -> Evidence:
    """What is known of the owner of an entry: by its pid, and by its birth where that proves anything."""
    seen = processes.sighting(owner.pid)
    if seen.state in (GONE, ZOMBIE):
        return "dead"
    birth = parse_birth_id(owner.birth)
    if seen.state != RUNNING or seen.ticks is None or birth is None or birth.pid != owner.pid or birth.ticks is None:
        return "unknown"
    return "alive" if birth.ticks == seen.ticks else "dead"


def amount(count: int) -> str:
    """So many updates."""
    return "1 update" if count == 1 else f"{count} updates"


def states(entries: Iterable[Entry]) -> str:
    """How many there are in which state."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.state] = counts.get(entry.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _profile(name: str) -> str | None:
    found = _NAME.fullmatch(name)
    return None if found is None else found[2] or DEFAULT_KEY
