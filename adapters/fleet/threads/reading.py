"""`state.json` read: what is ours, strictly, and what the other system left there (bus.md f, FILES).

A record of ours that was dropped because it is odd would free a slot that somebody has: so one odd member makes the
file damaged. Nothing here raises anything but `Odd`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from tenure.adapters.fleet.threads.values import FORMAT, STATUS, CleanUp, LiveRoute, Mark, Snapshot, Written
from tenure.adapters.looking.looks import strict_json
from tenure.machines.entry import integer, parse_birth, text
from tenure.machines.identity import Process
from tenure.machines.slot_board import Board, Identity, OwnerKind, Pending, Record, Reservation, Target, Wish
from tenure.machines.thread_names import slot_of, valid_name

T = TypeVar("T")

WORK: Final = ("threads", "pendingProvisions", "pendingCleanups", "reservations")
"""What a file of the other system may hold that must not be lost."""


class Odd(ValueError):
    """A member has no shape that we write; the message says which."""


def decode(data: bytes) -> dict[str, object]:
    """The JSON object that a file's bytes are. Raises `Odd`."""
    try:
        value = strict_json(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Odd(f"not UTF-8 (byte {error.start + 1} of the file)") from error
    except (ValueError, RecursionError) as error:
        raise Odd("it is empty" if not data else f"bad JSON ({error})") from error
    if not isinstance(value, dict):
        raise Odd("not a JSON object")
    return value


def ours(value: Mapping[str, object]) -> bool:
    """Whether it carries our mark."""
    return "tenure" in value


def held(value: Mapping[str, object]) -> tuple[str, ...]:
    """What a file that is not ours holds and must not be lost: names of members that are not empty."""
    return tuple(name for name in WORK if value.get(name) not in (None, [], {}))


def read(value: Mapping[str, object]) -> Written:
    """A file with our mark. Raises `Odd`, with the member that is no such."""
    mark = _member(value, "tenure", _object)
    if (found := _member(mark, "format", _integer, "tenure.")) != FORMAT:
        raise Odd(f"tenure.format is {found}, written by a later version")
    board = Board(
        records=_list(value, "threads", _read_record),
        identities=_list(value, "identities", _read_identity),
        reservations=_list(value, "reservations", _read_reservation),
        pendings=_list(value, "pendingProvisions", _read_pending),
        last_slot=slot_of(_member(value, "bot", _object).get("lastSlot")),
        next_thread=_member(mark, "nextThread", _integer, "tenure."),
    )
    _once("threads", "slot", [r.slot for r in board.records if r.slot is not None])
    _once("threads", "target", [r.target for r in board.records])
    _once("threads", "profileKey", [r.key for r in board.records])
    roster = _member(value, "liveRoster", _object)
    snapshot = Snapshot(
        board, _list(value, "pendingCleanups", _read_clean_up), _list(roster, "busFollowers", _read_live)
    )
    written = Mark(
        _member(mark, "epoch", _integer, "tenure."), _member(mark, "instanceId", _text, "tenure."), board.next_thread
    )
    return Written(snapshot, written, _member(value, "writtenAtMs", _integer))


def remembered(value: Mapping[str, object]) -> tuple[Identity, ...]:
    """The names and slots that an empty file of the other system remembers; what is odd there is passed over."""
    members = value.get("identities")
    found = []
    for member in members if isinstance(members, list) else ():
        try:
            found.append(_read_identity(_object(member) or {}))
        except Odd:
            continue
    return tuple({identity.key: identity for identity in found}.values())


def _object(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _integer(value: object) -> int | None:
    return integer(value)


def _text(value: object) -> str | None:
    return text(value) or None


def _member(value: Mapping[str, object], name: str, kind: Callable[[object], T | None], path: str = "") -> T:
    found = kind(value.get(name))
    if found is None:
        raise Odd(f"{path}{name} is missing or has a wrong type")
    return found


def _list(value: Mapping[str, object], name: str, read_one: Callable[[Mapping[str, object]], T]) -> tuple[T, ...]:
    members = value.get(name)
    if not isinstance(members, list):
        raise Odd(f"{name} is no list")
    found = []
    for number, member in enumerate(members):
        try:
            if not isinstance(member, Mapping):
                raise Odd("it is no object")
            found.append(read_one(member))
        except Odd as odd:
            raise Odd(f"{name}[{number}]: {odd}") from odd
    return tuple(found)


def _once(where: str, what: str, values: Sequence[object]) -> None:
    if len(values) != len(set(values)):
        raise Odd(f"{where}: two have the same {what}")


def _read_target(value: object) -> Target | None:
    fields = _object(value)
    if fields is None:
        return None
    chat, thread = integer(fields.get("chatId")), integer(fields.get("threadId"))
    return None if chat is None or thread is None else Target(chat, thread)


def _kind(value: object) -> OwnerKind | None:
    match value:
        case "leader" | "manual-follower":
            return value
    return None


def _read_process(value: object) -> Process | None:
    fields = _object(value)
    birth = parse_birth(value)
    pid = None if fields is None else integer(fields.get("pid"))
    return None if birth is None or pid is None else Process(pid, birth)


def _read_record(value: Mapping[str, object]) -> Record:
    status = _member(value, "status", _text)
    if status not in STATUS.values():
        raise Odd(f"status is {status!r}")
    return Record(
        key=_member(value, "profileKey", _text),
        kind=_member(value, "ownerKind", _kind),
        instance=_member(value, "instanceId", _text),
        generation=text(value.get("registrationGeneration")),
        target=_member(value, "target", _read_target),
        slot=slot_of(value.get("slot")),
        name=valid_name(value.get("threadName")),
        created_ms=_member(value, "createdAtMs", _integer),
        updated_ms=_member(value, "updatedAtMs", _integer),
        process=_read_process(value.get("process")),
        probe=status == STATUS[True],
    )


def _read_identity(value: Mapping[str, object]) -> Identity:
    return Identity(
        _member(value, "profileKey", _text),
        slot_of(value.get("slot")),
        valid_name(value.get("threadName")),
        _member(value, "updatedAtMs", _integer),
    )


def _read_reservation(value: Mapping[str, object]) -> Reservation:
    return Reservation(
        _member(value, "slot", slot_of),
        _member(value, "target", _read_target),
        _member(value, "reason", _text),
        _member(value, "createdAtMs", _integer),
        integer(value.get("expiresAtMs")),
    )


def _read_pending(value: Mapping[str, object]) -> Pending:
    wish = Wish(
        _member(value, "profileKey", _text),
        _member(value, "owner", _kind),
        _member(value, "instanceId", _text),
        text(value.get("registrationGeneration")),
    )
    return Pending(
        _member(value, "id", _text),
        wish,
        _member(value, "leaderEpoch", _integer),
        slot_of(value.get("slot")),
        valid_name(value.get("threadName")),
        _member(value, "target", _read_target),
        _member(value, "startedAtMs", _integer),
    )


def _read_clean_up(value: Mapping[str, object]) -> CleanUp:
    return CleanUp(
        instance=_member(value, "instanceId", _text),
        generation=text(value.get("runtimeGeneration")),
        target=_member(value, "target", _read_target),
        requested_ms=_member(value, "requestedAtMs", _integer),
        kind=_member(value, "owner", _kind),
        key=text(value.get("profileKey")),
    )


def _read_live(value: Mapping[str, object]) -> LiveRoute:
    return LiveRoute(
        instance=_member(value, "instanceId", _text),
        key=_member(value, "profileKey", _text),
        generation=_member(value, "registrationGeneration", _text),
        connected_ms=_member(value, "connectedAtMs", _integer),
        pid=integer(value.get("pid")),
        slot=slot_of(value.get("slot")),
        name=valid_name(value.get("threadName")),
        target=_read_target(value.get("target")),
    )
