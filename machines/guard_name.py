"""Names and payloads of a guard's files, from and to text (locks.md 2, 3.1 and 18; DESIGN 10, "Files").

A guard of the resource R is the directory `R.transaction` with exactly one file in it:

* `owner.<generation>.json`: a holder is inside; the payload says who, and names the same generation;
* `owner.reclaim.<claimantPid>.<uuid>.json`: a claimant is moving a dead holder's guard away; the payload is still
  that of the dead.

Beside it lie `R.transaction.staged.<6 random>`, `.released.<uuid>` and `.stale.<pid>.<uuid>`, which carry no authority.
What has another shape is unverifiable and read as None: nobody enters, and nobody is proven dead by it.

Processes of the other system read and write the same files. Ours add the birth of the holder to the payload, and that
of the claimant to a marker's uuid: the version digit 8, which theirs never has, says that the last 64 bits hash it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import attrs

from tenure.machines.entry import integer, parse_birth, text
from tenure.machines.identity import Birth

_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = frozenset("0123456789")
_UUID: Final = (8, 4, 4, 4, 12)
_LOW: Final = 2**64
_VERSION: Final = 2**76
"""The version digit of a uuid counts in units of this."""
_OURS: Final = 8
STAGED_LENGTH: Final = 6
"""How many random characters end the name of a staged guard."""
GREATEST_PID: Final = 2**31 - 1
"""A pid beyond this is nobody's; asking for it is an error and no answer."""


@attrs.frozen
class OwnerName:
    """`owner.<generation>.json`."""

    generation: str


@attrs.frozen
class MarkerName:
    """`owner.reclaim.<claimant>.<uuid>.json`."""

    claimant: int
    uuid: str

    @property
    def birth_hash(self) -> int | None:
        """The hash of the claimant's birth; None where the other system wrote the marker."""
        return hash_in(int(self.uuid.replace("-", ""), 16))


@attrs.frozen
class Staged:
    """`<guard>.staged.<random>`: not published yet, or never; its owner file says who staged it."""

    random: str


@attrs.frozen
class Released:
    """`<guard>.released.<uuid>`: moved away by its holder, awaiting deletion."""

    uuid: str


@attrs.frozen
class Stale:
    """`<guard>.stale.<pid>.<uuid>`: moved away by the claimant `pid`."""

    pid: int
    uuid: str


Debris = Staged | Released | Stale


@attrs.frozen
class Payload:
    """What a guard's file says of its holder. `acquired_at_ms` is wall clock; `birth` is absent in foreign files."""

    pid: int
    acquired_at_ms: int
    generation: str
    birth: Birth | None = None


# -- decisions on parts that are split already --------------------------------


def holder_pid(value: object) -> int | None:
    """A payload's pid: a positive integer; an integral float is one, a bool is none, and 0 and -1 are no process."""
    found = integer(value)
    return found if found is not None and found > 0 else None


def plain_pid(pid: int | float | bool | str | None) -> int | None:
    """`holder_pid` of a JSON value that is neither object nor array.

    post: __return__ is None or (__return__ > 0 and __return__ == pid)
    post: not isinstance(pid, (bool, str)) or __return__ is None
    post: __return__ is not None or not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0
    """
    return holder_pid(pid)


def word(part: str) -> bool:
    """Whether `part` may be a generation: letters, digits and hyphens of ASCII, at least one.

    post: not __return__ or len(part) > 0
    post: not __return__ or ("." not in part and "/" not in part)
    """
    return part != "" and all(c in _WORD or c == "-" for c in part)


def decimal(part: str) -> int | None:
    """A pid as a name spells it: ASCII digits without a leading zero.

    post: __return__ is None or __return__ > 0
    post: __return__ is None or part[0] != "0"
    post: __return__ is None or len(part) <= 10
    """
    if not 0 < len(part) <= 10 or part[0] == "0" or not all(c in _DIGITS for c in part):
        return None
    return int(part)


def uuid_lengths(lengths: tuple[int, ...]) -> bool:
    """Whether groups of these lengths make a uuid.

    post: not __return__ or (len(lengths) == 5 and sum(lengths) == 32)
    post: __return__ or lengths != (8, 4, 4, 4, 12)
    """
    return lengths == _UUID


def agree(name: OwnerName | MarkerName, generation: str) -> bool:
    """Whether a file's name and its payload's generation belong together (S5); a marker's payload is the dead one's.

    post: __return__ or isinstance(name, OwnerName)
    post: not __return__ or isinstance(name, MarkerName) or name.generation == generation
    """
    return isinstance(name, MarkerName) or name.generation == generation


def with_hash(high: int, low: int, birth_hash: int) -> int:
    """The 128 bits of a marker's uuid: 48 random ones, the version digit 8, 12 random ones, then the hash.

    pre: 0 <= high < 2**48
    pre: 0 <= low < 2**12
    pre: 0 <= birth_hash < 2**64
    post: 0 <= __return__ < 2**128
    post: __return__ % 2**64 == birth_hash
    post: __return__ // 2**64 == high * 2**16 + 8 * 2**12 + low
    """
    return ((high * 16 + _OURS) * 2**12 + low) * _LOW + birth_hash


def hash_in(bits: int) -> int | None:
    """The hash in the last 64 bits of a marker's uuid; None where its version digit is not ours.

    pre: 0 <= bits < 2**128
    post: (__return__ is None) == (bits // 2**76 % 16 != 8)
    post: __return__ is None or 0 <= __return__ < 2**64
    post: __return__ is None or (bits - __return__) % 2**64 == 0
    """
    return bits % _LOW if bits // _VERSION % 16 == _OURS else None


# -- names --------------------------------------------------------------------


def is_uuid(part: str) -> bool:
    """Whether `part` is lowercase 8-4-4-4-12 hex; the version is not looked at."""
    groups = part.split("-")
    return uuid_lengths(tuple(map(len, groups))) and all(c in _HEX for g in groups for c in g)


def parse_name(name: str) -> OwnerName | MarkerName | None:
    """What a file inside a guard is by its name; None is unverifiable."""
    parts = name.split(".")
    if len(parts) == 3 and parts[0] == "owner" and parts[2] == "json" and word(parts[1]):
        return OwnerName(parts[1])
    if len(parts) == 5 and parts[:2] == ["owner", "reclaim"] and parts[4] == "json":
        pid = decimal(parts[2])
        return MarkerName(pid, parts[3]) if pid is not None and is_uuid(parts[3]) else None
    return None


def render_name(name: OwnerName | MarkerName) -> str:
    """The file's name."""
    if isinstance(name, OwnerName):
        return f"owner.{name.generation}.json"
    return f"owner.reclaim.{name.claimant}.{name.uuid}.json"


def parse_debris(guard: str, name: str) -> Debris | None:
    """What `name` is to the guard whose own name is `guard`; None is none of its debris, and is left alone."""
    if not name.startswith(f"{guard}."):
        return None
    match name[len(guard) + 1 :].split("."):
        case ["staged", random] if len(random) == STAGED_LENGTH and all(c in _WORD for c in random):
            return Staged(random)
        case ["released", uuid] if is_uuid(uuid):
            return Released(uuid)
        case ["stale", part, uuid] if (pid := decimal(part)) is not None and is_uuid(uuid):
            return Stale(pid, uuid)
    return None


def render_debris(guard: str, debris: Debris) -> str:
    """The sibling's name."""
    match debris:
        case Staged(random):
            return f"{guard}.staged.{random}"
        case Released(uuid):
            return f"{guard}.released.{uuid}"
        case Stale(pid, uuid):
            return f"{guard}.stale.{pid}.{uuid}"


# -- payloads -----------------------------------------------------------------


def parse_payload(value: object) -> Payload | None:
    """The payload that a JSON value is; None is unverifiable. Fields that nobody knows are passed over."""
    if not isinstance(value, Mapping):
        return None
    pid, acquired = holder_pid(value.get("pid")), integer(value.get("acquiredAtMs"))
    generation = text(value.get("generation"))
    if pid is None or acquired is None or generation is None or not word(generation):
        return None
    return Payload(pid, acquired, generation, parse_birth(value.get("processBirth")))


def render_payload(payload: Payload) -> dict[str, object]:
    """The JSON value, in the order of locks.md 2; the birth only where there is one."""
    fields: dict[str, object] = {
        "pid": payload.pid,
        "acquiredAtMs": payload.acquired_at_ms,
        "generation": payload.generation,
    }
    if payload.birth is not None:
        fields["processBirth"] = {
            "ticks": payload.birth.ticks,
            "bootId": payload.birth.boot_id,
            "pidNamespace": payload.birth.namespace,
        }
    return fields


# -- births in markers --------------------------------------------------------


def birth_hash(birth: Birth) -> int:
    """What a marker can say of its claimant in 64 bits: 16 of the boot, 16 of the pid namespace, 32 of the start.

    A part that differs proves a difference; a part that is equal proves nothing.
    """
    boot, namespace = _digest(birth.boot_id, 2), _digest(str(birth.namespace), 2)
    return boot << 48 | namespace << 32 | _digest(f"{birth.ticks} {birth.namespace} {birth.boot_id}", 4)


def _digest(spelled: str, size: int) -> int:
    return int.from_bytes(blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=size).digest(), "big")


def another_boot(claimed: int, me: Birth) -> bool:
    """Whether the claimant whose birth hashes to `claimed` lived in another boot: then it is dead."""
    return claimed >> 48 != birth_hash(me) >> 48


def another_namespace(claimed: int, me: Birth) -> bool:
    """Whether it lives in another pid namespace: then its pid says nothing here (hole K14)."""
    return claimed >> 32 & 0xFFFF != birth_hash(me) >> 32 & 0xFFFF


def marker(claimant: int, birth: Birth, random: int) -> MarkerName:
    """A marker of ours; `random` is 60 fresh bits."""
    digits = f"{with_hash(random // 2**12, random % 2**12, birth_hash(birth)):032x}"
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return MarkerName(claimant, "-".join(groups))
