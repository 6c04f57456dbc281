"""An inbox of the other system, read as it reads it: a snapshot, and the segments above it (bus.md d, FILES, READ).

Nothing is passed over: a gap, a member that does not belong there, another profile or bot, two entries of one receipt
that differ. Whoever takes half of it for the whole loses the other half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, cast

import attrs

from tenure.adapters.bus.messages.json_values import BadJson, dump_bytes, within
from tenure.adapters.errors import TenureError, printable
from tenure.adapters.files.replacing import read_or_absent
from tenure.adapters.journal.identity import BotIdentity, same_bot
from tenure.adapters.looking.looks import strict_json
from tenure.adapters.ports import Files
from tenure.machines.admission_identity import POSITION_FIELD, SOURCE_FIELD
from tenure.machines.lease import DEFAULT_KEY

T = TypeVar("T")
EntryState = Literal["pending", "retry-wait", "queued", "failed"]
Members = Mapping[str, object]

VERSION: Final = 1
_SEGMENT: Final = re.compile(r"([0-9]{16})\.json")
_SNAPSHOT_MEMBERS: Final = frozenset(
    {"version", "revision", "profile", "botIdentity", "entries", "operatorDispositions"}
)
_SEGMENT_MEMBERS: Final = frozenset(
    {
        "version",
        "revision",
        "previousRevision",
        "profile",
        "botIdentity",
        "upsertedEntries",
        "removedUpdateIds",
        "operatorDispositions",
    }
)
_COMMON: Final = frozenset({"updateId", "update", "admittedAtMs", "state"})
_OF_STATE: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset(),
    "retry-wait": frozenset({"failure", "nextRetryAtMs"}),
    "queued": frozenset({"queueKind", "queueReceiptId", "queueOwner"}),
    "failed": frozenset({"failure", "terminalAtMs", "terminalReason"}),
}
_PERHAPS: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"queueHandoff"}),
    "failed": frozenset({"terminalFailureId"}),
}


class ForeignInboxDamaged(TenureError):
    """An inbox of the other system cannot be read to its end. Nothing of it is taken."""


class SnapshotMissing(ForeignInboxDamaged):
    """Segments stand there without their snapshot: up to `revision`, of `bot`."""

    def __init__(self, message: str, revision: int, bot: BotIdentity) -> None:
        super().__init__(message)
        self.revision = revision
        self.bot = bot


class _Odd(ValueError):
    """A member has no shape that the other system writes; the message says which."""


@attrs.frozen
class QueueOwner:
    """Who has a queued entry: a process, as the bus spells it."""

    instance: str
    pid: int
    birth: str


@attrs.frozen
class Entry:
    """An update in an inbox. `raw`: the update as JSON text, as Telegram answered it: what the other system wrote into
    it on its way is taken out. `owner`: of a queued one."""

    update: int
    raw: str = attrs.field(repr=False)
    state: EntryState
    owner: QueueOwner | None = None
    receipt: str | None = None


@attrs.frozen
class Inbox:
    """All that one inbox holds, as of its `revision`."""

    path: str
    revision: int
    bot: BotIdentity
    entries: tuple[Entry, ...]


def segments_of(path: str) -> str:
    """The directory of an inbox's segments."""
    return f"{path}.segments"


def read_inbox(files: Files, path: str, key: str) -> Inbox | None:
    """The inbox at `path`, of the profile with that registry key; None where there is none.

    Raises `ForeignInboxDamaged`, which names the file.
    """
    where = path
    try:
        data = read_or_absent(files, path)
        numbers = _segments(files, path)
        if data is None:
            if not numbers:
                return None
            where = _segment_path(path, numbers[-1])
            last = _members(files.read(where), _SEGMENT_MEMBERS)
            raise SnapshotMissing(
                f"{path}: it has gone, though {segments_of(path)} still has segments of it; put it back, "
                "or move those away by hand if they were worked off",
                numbers[-1],
                _identity(last, key),
            )
        snapshot = _members(data, _SNAPSHOT_MEMBERS)
        bot = _identity(snapshot, key)
        revision = _natural(snapshot, "revision") if "revision" in snapshot else 0
        entries = {entry.update: entry for entry in _entries(snapshot, "entries")}
        for number in numbers:
            if number <= revision:
                continue
            where = _segment_path(path, number)
            segment = _members(files.read(where), _SEGMENT_MEMBERS)
            if not same_bot(bot, _identity(segment, key)):
                raise _Odd("botIdentity is that of another bot")
            if (_natural(segment, "revision"), _natural(segment, "previousRevision")) != (number, revision):
                raise _Odd(f"revision does not follow {revision}")
            removed = _removed(segment)
            upserted = tuple(_entries(segment, "upsertedEntries"))
            if removed & {entry.update for entry in upserted}:
                raise _Odd("an update is both upserted and removed")
            entries = {update: entry for update, entry in entries.items() if update not in removed}
            entries |= {entry.update: entry for entry in upserted}
            revision = number
        where = path
        _one_receipt_one_owner(entries.values())
    except OSError as error:
        raise ForeignInboxDamaged(
            f"{where}: cannot be read: {error.strerror or error}; give this user the right to read it"
        ) from error
    except _Odd as odd:
        raise ForeignInboxDamaged(
            f"{where}: {printable(str(odd))}; nothing was changed: let the other system mend it"
        ) from odd
    return Inbox(path, revision, bot, tuple(entries[update] for update in sorted(entries)))


def _segments(files: Files, path: str) -> list[int]:
    """The revisions of the segments that stand there."""
    place = segments_of(path)
    try:
        names = files.entries(place)
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        match = _SEGMENT.fullmatch(name)
        if match is not None:
            found.append(int(match[1]))
        elif not name.endswith(".tmp"):
            raise _Odd(f"{place} holds {name!r}, which is no segment")
    return sorted(found)


def _segment_path(path: str, number: int) -> str:
    return f"{segments_of(path)}/{number:016}.json"


# -- members ----------------------------------------------------------------------------------------------------------


def _members(data: bytes, known: frozenset[str]) -> Members:
    try:
        value = strict_json(data.decode("utf-8"))
    except ValueError as error:
        raise _Odd("it is empty" if not data else f"bad JSON ({error})") from error
    if not isinstance(value, dict):
        raise _Odd("not a JSON object")
    if value.get("version") != VERSION or value.get("version") is True:
        raise _Odd(f"version is {value.get('version')!r}, written by another version of the other system")
    if strange := sorted(value.keys() - known):
        raise _Odd(f"{strange[0]!r} does not belong there")
    return cast("Members", value)


def _identity(value: Members, key: str) -> BotIdentity:
    profile = value.get("profile")
    if profile not in ((None, "", DEFAULT_KEY) if key == DEFAULT_KEY else (key,)):
        raise _Odd(f"profile is {profile!r}, its name says {key}")
    found = _object(value, "botIdentity")
    if strange := sorted(found.keys() - {"botId", "tokenSha256"}):
        raise _Odd(f"botIdentity: {strange[0]!r} does not belong there")
    token, bot = found.get("tokenSha256"), found.get("botId")
    if not isinstance(token, str):
        raise _Odd("botIdentity.tokenSha256 is missing or no text")
    if bot is not None and type(bot) is not int:
        raise _Odd("botIdentity.botId is no integer")
    try:
        return BotIdentity(bot, token)
    except TenureError as error:
        raise _Odd(f"botIdentity: {error}") from error


def _entries(value: Members, name: str) -> Iterator[Entry]:
    members, last = value.get(name), -1
    if not isinstance(members, list):
        raise _Odd(f"{name} is no list")
    for number, member in enumerate(members):
        try:
            if not isinstance(member, dict):
                raise _Odd("it is no object")
            entry = _entry(member)
            if entry.update <= last:
                raise _Odd("updateId does not ascend")
        except _Odd as odd:
            raise _Odd(f"{name}[{number}]: {odd}") from odd
        last = entry.update
        yield entry


def _entry(value: Members) -> Entry:
    update_id = _natural(value, "updateId")
    update = _object(value, "update")
    if update.get("update_id") != update_id or type(update.get("update_id")) is not int:
        raise _Odd("update.update_id is not its updateId")
    _natural(value, "admittedAtMs")
    state = value.get("state")
    if not isinstance(state, str) or state not in _OF_STATE:
        raise _Odd(f"state {state!r} is none")
    wanted = _COMMON | _OF_STATE[state]
    if missing := sorted(wanted - value.keys()):
        raise _Odd(f"{missing[0]} is missing")
    if strange := sorted(value.keys() - wanted - _PERHAPS.get(state, frozenset())):
        raise _Odd(f"{strange[0]!r} does not belong there")
    owner, receipt = None, None
    if state in ("retry-wait", "failed"):
        _object(value, "failure")
    if state == "queued":
        owner, receipt = _owner(_object(value, "queueOwner")), _text(value, "queueReceiptId")
        if value.get("queueKind") not in ("prompt", "control"):
            raise _Odd("queueKind is neither prompt nor control")
    try:
        raw = within(dump_bytes(_plain(update)), long=True).decode()
    except BadJson as bad:
        raise _Odd(f"update {bad}") from bad
    return Entry(update_id, raw, cast("EntryState", state), owner, receipt)


def _owner(value: Members) -> QueueOwner:
    _text(value, "acquisitionId")
    return QueueOwner(_text(value, "instanceId"), _natural(value, "processId"), _text(value, "processBirthId"))


def _removed(value: Members) -> frozenset[int]:
    members = value.get("removedUpdateIds")
    if not isinstance(members, list) or any(type(member) is not int for member in members):
        raise _Odd("removedUpdateIds is no list of integers")
    if len(set(members)) != len(members):
        raise _Odd("removedUpdateIds has one twice")
    return frozenset(members)


def _one_receipt_one_owner(entries: Any) -> None:
    """All entries of one receipt name the same owner; else nobody knows who has it."""
    owners: dict[str | None, QueueOwner | None] = {}
    for entry in entries:
        if entry.receipt is not None and owners.setdefault(entry.receipt, entry.owner) != entry.owner:
            raise _Odd(f"receipt {entry.receipt} has two owners")


def _plain(update: Members) -> dict[str, object]:
    """The update as Telegram answered it (bus.md c): without its position in a batch, and without its own id in the
    message or whatever it carries."""
    found = {name: value for name, value in update.items() if name != POSITION_FIELD}
    for name, value in found.items():
        if isinstance(value, dict) and SOURCE_FIELD in value:
            found[name] = {inner: member for inner, member in value.items() if inner != SOURCE_FIELD}
    return found


def _object(value: Members, name: str) -> Members:
    return _member(value, name, "object", lambda found: found if isinstance(found, dict) else None)


def _text(value: Members, name: str) -> str:
    return _member(value, name, "text", lambda found: found if isinstance(found, str) and found else None)


def _natural(value: Members, name: str) -> int:
    return _member(value, name, "integer from 0 on", lambda found: _from_zero(found))


def _from_zero(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None


def _member(value: Members, name: str, what: str, read: Callable[[object], T | None]) -> T:
    found = read(value.get(name))
    if found is None:
        raise _Odd(f"{name} is missing, or no {what}")
    return found
