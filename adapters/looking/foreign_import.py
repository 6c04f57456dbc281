"""Taking over what the other system left in its inboxes: into our journal first, and only then aside (``tenure
import``).

Whoever imports leads meanwhile: he has the lease, raises the fence, and is inside the guard of each inbox. All updates
are appended in one transaction. That an inbox is taken over is written down before anything of it is moved, so whoever
is killed in between begins again and ends at the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.lease import Held, LeaseRuntime
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.threads.projection import look as look_at_projection
from tenure.adapters.fleet.threads.views import foreign_followers
from tenure.adapters.journal.bodies import same_body
from tenure.adapters.journal.capacity import size_of
from tenure.adapters.journal.foreign import amount, evidence, follower_of, inboxes
from tenure.adapters.journal.foreign_inbox import Entry, Inbox, SnapshotMissing, read_inbox, segments_of
from tenure.adapters.journal.identity import BotIdentity, same_bot
from tenure.adapters.journal.journal import Journal, journal_path
from tenure.adapters.journal.moves import evidence_of
from tenure.adapters.journal.updates import Appended, Conflict, Incoming, NoRoom
from tenure.adapters.looking.journal_look import look, there
from tenure.adapters.looking.quarantine import Moved, Quarantine
from tenure.adapters.ports import Ports
from tenure.machines.chart import Refused
from tenure.machines.identity import RUNNING

Failed = Literal["retry", "discard"]
"""What a person wants of entries that have failed for good."""

TAKEN: Final = "import"
"""The kind of evidence that an inbox was taken over, up to a revision: its path, and that number."""


@attrs.frozen
class Leftover:
    """Segments whose snapshot has gone: with it they were taken over, if that is written down."""

    path: str
    revision: int
    bot: BotIdentity


@attrs.frozen
class Plan:
    """What would be taken over: `updates`, each once and ascending; of them `discarded` ones are given up at once."""

    inboxes: tuple[Inbox, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    updates: tuple[Entry, ...] = ()
    discarded: frozenset[int] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that is moved aside."""
        return tuple([one.path for one in self.inboxes] + [one.path for one in self.leftovers])

    @property
    def bot(self) -> BotIdentity | None:
        """Whose updates these are."""
        bots = [one.bot for one in self.inboxes] + [one.bot for one in self.leftovers]
        return bots[0] if bots else None


@attrs.frozen
class Done:
    """What was taken over: `new` updates, and those that the journal had already; what was moved where."""

    new: int
    known: int
    discarded: int
    moved: tuple[Moved, ...]


def plan(ports: Ports, directory: AgentDirectory, key: str, failed: Failed | None) -> Plan:
    """A plain look at all inboxes of the profile. Raises `TenureError` for what cannot be taken over: then nothing is,
    of none of them."""
    found: list[Inbox] = []
    leftovers: list[Leftover] = []
    taken: dict[str, int] | None = None
    for path in _paths(ports, directory, key):
        try:
            inbox = read_inbox(ports.files, path, key)
        except SnapshotMissing as missing:
            taken = _taken(ports, directory, key) if taken is None else taken
            if taken.get(path, -1) < missing.revision:
                raise
            leftovers.append(Leftover(path, missing.revision, missing.bot))
            continue
        if inbox is not None:
            found.append(inbox)
    _one_bot([*found, *leftovers])
    _nobody_has(ports, directory, key, found)
    entries = _merged(found)
    gone = frozenset(entry.update for entry in entries if entry.state == "failed")
    if gone and failed is None:
        raise TenureError(
            f"{amount(len(gone))} of the other system's have failed for good ({_named(sorted(gone))}): say --failed "
            "retry to have them executed, or --failed discard to give them up; nothing was changed"
        )
    return Plan(tuple(found), tuple(leftovers), entries, gone if failed == "discard" else frozenset())


def take_over(ports: Ports, directory: AgentDirectory, key: str, failed: Failed | None, person: str) -> Done:
    """Take them over. Raises `TenureError`: where it is not said that the files were moved, they stand where they
    stood, and it can be begun again."""
    lease = LeaseRuntime(ports, directory, key, cwd=None)
    won = lease.acquire("plain")
    if isinstance(won, Held):
        owner = "somebody" if won.entry is None else f"pid {won.entry.pid}"
        raise TenureError(f"{directory.registry}: {owner} leads {key}; end that process first; nothing was changed")
    try:
        return _inside(
            ports,
            _paths(ports, directory, key),
            lambda: _take_over(ports, directory, key, failed, person, won.epoch, lease),
        )
    finally:
        with suppress(TenureError):  # it ends by itself when this process has
            lease.release()


def _take_over(
    ports: Ports,
    directory: AgentDirectory,
    key: str,
    failed: Failed | None,
    person: str,
    epoch: int,
    lease: LeaseRuntime,
) -> Done:
    found = plan(ports, directory, key, failed)
    if found.bot is None:
        return Done(0, 0, 0, ())
    by = lease.data.me.instance_id
    with Journal.open(ports, directory, key, bot=found.bot) as journal:
        _not_passed(journal, found.updates)
        _accepted(journal.raise_fence(epoch, by))
        batch = [Incoming(entry.update, entry.raw) for entry in found.updates]
        appended = journal.append(batch, epoch, by)
        if isinstance(appended, Conflict):
            raise TenureError(f"update {appended.update} is in {journal.path} with another body; nothing was changed")
        if isinstance(appended, NoRoom):
            raise TenureError(
                f"{journal.path}: no room for {amount(len(batch))}: {appended.updates} are unsettled; settle or "
                "discard some; nothing was changed"
            )
        if not isinstance(appended, Appended):
            raise _refused(appended)
        for update in sorted(found.discarded):
            row = journal.update(update)
            if row is not None and row.settled_at is None:
                _accepted(journal.discard_update(update, person))
        if found.updates:
            # The other system has begun long ago: what Telegram has got since is no history.
            _accepted(journal.end_first_start(epoch, by))
        for inbox in found.inboxes:
            journal.add_evidence(TAKEN, inbox.path, str(inbox.revision))
    return Done(len(appended.new), len(appended.known), len(found.discarded), _aside(ports, directory, found.paths))


def _aside(ports: Ports, directory: AgentDirectory, paths: Sequence[str]) -> tuple[Moved, ...]:
    """Snapshots first: segments without one are known for what is taken over already."""
    quarantine = Quarantine(ports, directory, DEFAULT)
    try:
        for path in [*paths, *map(segments_of, paths)]:
            if ports.files.kind(path) != "absent":
                quarantine.move(path)
        if quarantine.moved:
            for place in {directory.state, directory.quarantine, quarantine.moved[0].target.rpartition("/")[0]}:
                ports.files.sync(place)
    except OSError as error:
        raise TenureError(
            f"{error.filename or directory.state}: {error.strerror or error}; the updates are in the journal, and the "
            "other system's files were not all moved: run this again"
        ) from error
    return quarantine.moved


def _inside(ports: Ports, paths: Sequence[str], work: Callable[[], Done]) -> Done:
    """Inside the guards of all of them."""
    if not paths:
        return work()
    return GuardedFile(ports, paths[0]).run(lambda guarded: _inside(ports, paths[1:], work))


def _taken(ports: Ports, directory: AgentDirectory, key: str) -> dict[str, int]:
    """By path of an inbox: up to which revision it was taken over."""
    path = journal_path(directory, key)
    if not there(ports, path):
        return {}
    rows = look(ports, path, lambda transaction: evidence_of(transaction, TAKEN, None))
    return {row.subject: int(row.detail) for row in rows}


# -- what cannot be taken over ----------------------------------------------------------------------------------------


def _paths(ports: Ports, directory: AgentDirectory, key: str) -> tuple[str, ...]:
    try:
        return inboxes(ports.files, directory, key)
    except OSError as error:
        raise TenureError(
            f"{directory.state}: {error.strerror or error}; give this user the right to read it"
        ) from error


def _one_bot(found: Sequence[Inbox | Leftover]) -> None:
    for one in found:
        if not same_bot(found[0].bot, one.bot):
            raise TenureError(f"{one.path}: it is of {one.bot}, {found[0].path} of {found[0].bot}; nothing was changed")


def _nobody_has(ports: Ports, directory: AgentDirectory, key: str, found: Sequence[Inbox]) -> None:
    """Nobody who may live works on an entry: neither who has queued it, nor who follows with that inbox."""
    for inbox in found:
        for entry in inbox.entries:
            if entry.owner is None or (known := evidence(ports.processes, entry.owner)) == "dead":
                continue
            alive = "is running" if known == "alive" else "may be running"
            raise TenureError(
                f"{inbox.path}: update {entry.update} is queued by pid {entry.owner.pid} of the other system, which "
                f"{alive}; end it first; nothing was changed"
            )
    published = look_at_projection(ports.files, directory, key)
    if not published.foreign or published.value is None:
        return
    living = {
        hashlib.sha256(follower.profile.encode()).hexdigest()[:16]: follower.pid
        for follower in foreign_followers(published.value)
        if follower.profile is not None
        and follower.pid is not None
        and ports.processes.sighting(follower.pid).state == RUNNING
    }
    for inbox in found:
        pid = living.get(follower_of(inbox.path) or "")
        if inbox.entries and pid is not None:
            raise TenureError(
                f"{inbox.path}: pid {pid} of the other system, which works it off, is running; end it first; nothing "
                "was changed"
            )


def _merged(found: Sequence[Inbox]) -> tuple[Entry, ...]:
    """All of them, each update once: a leader may not know yet that its follower has one. Failed counts least."""
    entries: dict[int, Entry] = {}
    for inbox in found:
        for entry in inbox.entries:
            known = entries.setdefault(entry.update, entry)
            if not same_body(known.raw, entry.raw):
                raise TenureError(
                    f"{inbox.path}: update {entry.update} stands in another inbox with another body; nothing was "
                    "changed"
                )
            if known.state == "failed":
                entries[entry.update] = entry
    return tuple(entries[update] for update in sorted(entries))


def _not_passed(journal: Journal, entries: Sequence[Entry]) -> None:
    """What the journal has passed it takes no more; so it has to be there, and not with somebody else."""
    passed = journal.state().passed
    for entry in entries:
        if entry.update > passed:
            return
        row = journal.update(entry.update)
        if row is None or (row.phase == "delivered" and not journal.item(str(entry.update)).deliveries):
            raise TenureError(
                f"update {entry.update} was passed by {journal.path} already, and went to the other system: let that "
                "finish it; nothing was changed"
            )


def _accepted(answer: object) -> None:
    if isinstance(answer, Refused):
        raise _refused(answer)


def _refused(refused: Refused) -> TenureError:
    return TenureError(
        f"the journal refuses {refused.event} ({', '.join(refused.guards) or refused.phase}): somebody else leads by "
        "now; begin again"
    )


def bytes_of(found: Plan) -> int:
    """How much the updates take."""
    return sum(size_of(entry.raw) for entry in found.updates)


def _named(updates: Sequence[int]) -> str:
    return ", ".join(map(str, updates[:5])) + (", ..." if len(updates) > 5 else "")
