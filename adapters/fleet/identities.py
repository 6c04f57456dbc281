"""Who is who on the bus: instances, requests, births, profiles, secrets (bus.md 0).

Nothing is minted out of nothing here: pids, clocks and randomness are given.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from typing import Final

import attrs

from tenure.adapters.ports import Identities

SECRET_BITS: Final = 256

_LINUX: Final = re.compile(r"([1-9][0-9]{0,9}):start:([0-9]{1,20})")
_MAC: Final = re.compile(r"([1-9][0-9]{0,9}):start:([0-9a-f]{16})")
_OWN: Final = re.compile(
    r"(?:profile:[^:]+:)?manual:[1-9][0-9]{0,9}:(?:start|generation):.+:([1-9][0-9]{0,9}:start:[0-9]{1,20})", re.DOTALL
)
_SHARED: Final = re.compile(r"(?:profile:[^:]+:)?manual:([1-9][0-9]{0,9}:start:[0-9]{1,20})")
_FALLBACK: Final = re.compile(r"([1-9][0-9]{0,9}):generation:(.+)", re.DOTALL)


def instance_id(pid: int, activated_at_ms: int) -> str:
    """``<pid>:<ms>``: one activation of a process. Two activations of a process must not share a millisecond."""
    return f"{pid}:{activated_at_ms}"


@attrs.define
class RequestIds:
    """The request ids of one instance: ``<instanceId>:<n>``, n = 1, 2, 3... (law Fresh)."""

    instance_id: str
    last: int = 0

    def next(self) -> str:
        """A fresh one."""
        self.last += 1
        return f"{self.instance_id}:{self.last}"


@attrs.frozen
class BirthId:
    """A processBirthId, taken apart. `mark`: start ticks on Linux, 16 hex digits on macOS, else whatever identifies
    this activation. Only a `started` one proves deaths: another mark under the same pid is another process (bus.md d,
    LIVENESS)."""

    pid: int
    mark: str
    started: bool

    @property
    def ticks(self) -> int | None:
        """The start ticks, where it is a Linux one. (A macOS one of decimal digits only reads as one: compare ids.)"""
        return int(self.mark) if self.started and self.mark.isdecimal() else None

    def __str__(self) -> str:
        return f"{self.pid}:{'start' if self.started else 'generation'}:{self.mark}"


def linux_birth_id(pid: int, start_ticks: int) -> str:
    """``<pid>:start:<ticks>``: field 22 of /proc/pid/stat."""
    return f"{pid}:start:{start_ticks}"


def mac_birth_id(pid: int, lstart: str) -> str:
    """``<pid>:start:<16 hex>``: of the hash of what ps says as lstart."""
    return f"{pid}:start:{hashlib.sha256(lstart.encode()).hexdigest()[:16]}"


def fallback_birth_id(pid: int, generation: str) -> str:
    """``<pid>:generation:<x>``: identifies, and never proves a death."""
    return f"{pid}:generation:{generation}"


def parse_birth_id(text: str | None) -> BirthId | None:
    """A birth id taken apart; None for what is none, and then it proves nothing."""
    if text is None:
        return None
    if (found := _LINUX.fullmatch(text) or _MAC.fullmatch(text)) is not None:
        return BirthId(int(found[1]), found[2], True)
    if (found := _FALLBACK.fullmatch(text)) is not None:
        return BirthId(int(found[1]), found[2], False)
    return None


def manual_profile_key(owner_id: str, profile: str | None = None) -> str:
    """A follower's key: the birth of its parent process, usually the shell. Two live processes of one shell share it
    (L24)."""
    return _scoped(f"manual:{owner_id}", profile)


def own_profile_key(owner_id: str, own_birth_id: str, profile: str | None = None) -> str:
    """A follower's key that no other live process has: for when another one holds the shared key (L24)."""
    return _scoped(f"manual:{owner_id}:{own_birth_id}", profile)


def only_process(key: str) -> str | None:
    """The birth id of the only process that can ever have a key, where it is an `own_profile_key`; else None."""
    found = _OWN.fullmatch(key)
    return None if found is None else found[1]


def parent_process(key: str) -> str | None:
    """The birth id of the process whose children have a key, where it is a `manual_profile_key`; else None, also where
    nothing can prove that process's death."""
    found = _SHARED.fullmatch(key)
    return None if found is None else found[1]


def leader_profile_key(cwd: str, profile: str | None = None) -> str:
    """A leader's key: its directory's."""
    return _scoped(f"cwd:{cwd}", profile)


def _scoped(key: str, profile: str | None) -> str:
    return key if profile is None else f"profile:{profile}:{key}"


def new_secret(identities: Identities) -> str:
    """32 random bytes in base64url, without padding: 43 characters."""
    return urlsafe_b64encode(identities.bits(SECRET_BITS).to_bytes(SECRET_BITS // 8, "big")).rstrip(b"=").decode()


def same_secret(expected: str | None, given: str | None) -> bool:
    """Whether they are equal, in a time that tells nothing of where they differ. Nobody has the secret that nobody set:
    None and the empty one are never the same as anything."""
    if not expected or given is None:
        return False
    return hmac.compare_digest(expected.encode("utf-8", "surrogatepass"), given.encode("utf-8", "surrogatepass"))
