"""A stand-in for processes of the other system: its guard and its registry as locks.md describes them, written apart.

Nothing here comes from tenure, and nothing here is better than the original: no births, no fsync, entries by pid and
heartbeat, a zombie is alive, contention is slept through 80 times. What the tests want to know is whether the two can
share a directory.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import secrets
import shutil
import string
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTENTION = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.EPERM, errno.EBUSY, errno.EACCES}
OWNER = re.compile(r"owner\.([A-Za-z0-9-]+)\.json")
MARKER = re.compile(
    r"owner\.reclaim\.([1-9][0-9]*)\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.json"
)
STALE_MS = 8_000
running: set[str] = set()


def alive(pid: int) -> bool:
    """Signal 0."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def payload(guard: Path) -> dict[str, Any] | None:
    """The verifiable payload at the path."""
    try:
        (name,) = os.listdir(guard)
        value = json.loads((guard / name).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int) or value["pid"] <= 0:
        return None
    owner, marker = OWNER.fullmatch(name), MARKER.fullmatch(name)
    if marker is None and (owner is None or owner[1] != value.get("generation")):
        return None
    return value


def publish(guard: Path) -> dict[str, Any] | None:
    """S1 to S3; None for contention."""
    mine = {"pid": os.getpid(), "acquiredAtMs": time.time_ns() // 10**6, "generation": str(uuid.uuid4())}
    staged = ""
    try:
        letters = "".join(random.choices(string.ascii_letters + string.digits, k=6))  # as Node's mkdtemp
        os.mkdir(f"{guard}.staged.{letters}", 0o700)
        staged = f"{guard}.staged.{letters}"
        with open(
            os.open(f"{staged}/owner.{mine['generation']}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as f:
            f.write(json.dumps(mine, separators=(",", ":")) + "\n")
        if os.path.lexists(guard):
            raise FileExistsError(errno.EEXIST, "occupied")
        os.rename(staged, guard)
    except OSError as error:
        if staged:
            shutil.rmtree(staged, ignore_errors=True)
        if error.errno in CONTENTION:
            return None
        raise
    return mine


def recover(guard: Path) -> None:
    """R1 to R6."""
    found = payload(guard)
    if found is None or alive(found["pid"]):
        return
    try:
        (name,) = os.listdir(guard)
    except (OSError, ValueError):
        return
    marker = MARKER.fullmatch(name)
    if marker is not None:
        claimant = int(marker[1])
        if alive(claimant) and not (claimant == os.getpid() and marker[2] not in running):
            return
    elif OWNER.fullmatch(name) is None or OWNER.fullmatch(name)[1] != found["generation"]:  # type: ignore[index]
        return
    mine = str(uuid.uuid4())
    running.add(mine)
    try:
        os.rename(guard / name, guard / f"owner.reclaim.{os.getpid()}.{mine}.json")
        stale = guard.parent / f"{guard.name}.stale.{os.getpid()}.{uuid.uuid4()}"
        os.rename(guard, stale)
        shutil.rmtree(stale, ignore_errors=True)
    except FileNotFoundError:
        return
    finally:
        running.discard(mine)


def transaction(resource: Path, operation: Callable[[], Any], attempts: int = 80) -> Any:
    """Run the operation inside; TimeoutError after the attempts."""
    guard = resource.with_name(f"{resource.name}.transaction")
    resource.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(attempts):
        mine = publish(guard)
        if mine is None:
            recover(guard)
            mine = publish(guard)
        if mine is not None:
            break
        if attempt == attempts - 1:
            raise TimeoutError(f"timed out: {guard}")
        time.sleep(0.025)
    assert mine is not None
    try:
        return operation()
    finally:
        now = payload(guard)
        if now is None and guard.exists():
            raise RuntimeError(f"unverifiable: {guard}")
        if now is not None:
            if (now["pid"], now["generation"]) != (mine["pid"], mine["generation"]):
                raise RuntimeError(f"replaced: {guard}")
            released = guard.parent / f"{guard.name}.released.{uuid.uuid4()}"
            os.rename(guard, released)
            shutil.rmtree(released, ignore_errors=True)


class Owner:
    """One runtime of the other system and its entry of the registry (locks.md 5 to 7)."""

    def __init__(
        self, registry: Path, key: str = "default", cwd: str = "/elsewhere", secret: str | None = None
    ) -> None:
        self.registry, self.key, self.cwd = registry, key, cwd
        self.secret = secrets.token_hex(8) if secret is None else secret
        self.door: str | None = None
        """busSocketPath."""
        self.started = time.time_ns() // 10**6
        self.token: dict[str, Any] | None = None

    def read(self) -> dict[str, Any]:
        """Strict."""
        try:
            value = json.loads(self.registry.read_text())
        except FileNotFoundError:
            return {}
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return value

    def write(self, value: dict[str, Any]) -> None:
        """Temp and rename."""
        temporary = self.registry.with_name(f"owners.json.{os.getpid()}.{time.time_ns() // 10**6}.1.tmp")
        temporary.write_text(json.dumps(value, indent=2) + "\n")
        os.chmod(temporary, 0o600)
        os.rename(temporary, self.registry)

    def identity(self, entry: dict[str, Any]) -> tuple[Any, ...]:
        """The five fields."""
        return tuple(entry.get(k) for k in ("pid", "cwd", "instanceId", "leaderEpoch", "runtimeGeneration"))

    def stale(self, entry: dict[str, Any]) -> bool:
        """Rows 3 to 5 of locks.md 5."""
        heartbeat = entry.get("heartbeatMs")
        if isinstance(heartbeat, (int, float)) and time.time_ns() // 10**6 - heartbeat > STALE_MS:
            return True
        return not alive(entry["pid"])

    def acquire(self) -> bool:
        """Ordinary acquisition."""

        def inside() -> bool:
            entries = self.read()
            entry = entries.get(self.key)
            if isinstance(entry, dict) and isinstance(entry.get("pid"), int):
                if self.token is not None and self.identity(entry) == self.identity(self.token):
                    return True
                if not self.stale(entry):
                    return False
            return self.take()

        return bool(transaction(self.registry, inside))

    def take(self) -> bool:
        """Row A5, inside the transaction."""
        self.token = {
            "pid": os.getpid(),
            "cwd": self.cwd,
            "instanceId": f"{os.getpid()}:{self.started}",
            "heartbeatMs": time.time_ns() // 10**6,
            "leaderEpoch": str(uuid.uuid4()),
            "runtimeGeneration": self.started,
            "busSecret": self.secret,
        }
        if self.door is not None:
            self.token["busSocketPath"] = self.door
        self.write(self.read() | {self.key: self.token})
        return True

    def entry(self) -> dict[str, Any] | None:
        """The entry, read plainly: whatever cannot be read is none."""
        try:
            entry = self.read().get(self.key)
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) and isinstance(entry.get("pid"), int) else None

    def state(self) -> str:
        """locks.md 5."""
        entry = self.entry()
        if entry is None:
            return "inactive"
        if entry["pid"] == os.getpid():
            return "active-here"
        return "stale" if self.stale(entry) else "active-elsewhere"

    def owns(self) -> bool:
        """The entry is my very own."""
        entry = self.entry()
        return entry is not None and self.token is not None and self.identity(entry) == self.identity(self.token)

    def elect(self, seen: dict[str, Any] | None) -> bool:
        """Row A2: over nobody, or over exactly the entry that was seen and is stale now."""

        def inside() -> bool:
            entry = self.read().get(self.key)
            if isinstance(entry, dict) and isinstance(entry.get("pid"), int):
                return seen is not None and self.identity(entry) == self.identity(seen) and self.stale(entry)
            return True

        # The stand-in looks and writes in one transaction, as the original does.
        return bool(transaction(self.registry, lambda: inside() and self.take()))

    def refresh(self) -> bool:
        """Rewrite the heartbeat of my exact entry."""

        def inside() -> bool:
            entries = self.read()
            entry = entries.get(self.key)
            if self.token is None or not isinstance(entry, dict) or self.identity(entry) != self.identity(self.token):
                self.token = None
                return False
            self.token = self.token | {"heartbeatMs": time.time_ns() // 10**6, "busSecret": self.secret}
            self.write(entries | {self.key: self.token})
            return True

        return bool(transaction(self.registry, inside))

    def release(self) -> None:
        """Delete my exact entry."""

        def inside() -> None:
            entries = self.read()
            entry = entries.get(self.key)
            if self.token is not None and isinstance(entry, dict) and self.identity(entry) == self.identity(self.token):
                del entries[self.key]
                self.write(entries)
            self.token = None

        transaction(self.registry, inside)

    def commit_if_owned(self, effect: Callable[[], None]) -> bool:
        """Run the effect inside, if the entry is mine."""

        def inside() -> bool:
            entry = self.read().get(self.key)
            if self.token is None or not isinstance(entry, dict) or self.identity(entry) != self.identity(self.token):
                self.token = None
                return False
            effect()
            return True

        return bool(transaction(self.registry, inside))
