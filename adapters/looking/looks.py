"""What a reader sees of a process, a guard and the registry: plain reads, no guard taken, nothing written.

For ``tenure status`` and ``tenure doctor``. A look proves nothing beyond its own moment; where a decision rests on one
it is made again under the guards (S36). What is unverifiable is told apart here, so that a person knows what to do.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping
from typing import Final, Literal

import attrs

from tenure.adapters.errors import forbidden, to_read
from tenure.adapters.files.registry import parse_registry
from tenure.adapters.files.standing import probe_claimant
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import NodeKind, Ports
from tenure.machines.entry import Entry, parse_entry
from tenure.machines.guard_name import (
    MarkerName,
    Payload,
    agree,
    holder_pid,
    parse_name,
    parse_payload,
)
from tenure.machines.identity import GONE, RUNNING, ZOMBIE, Birth, Sighting, proven_dead
from tenure.machines.lease import INACTIVE, Sight, classify, over, stamped

Life = Literal["running", "stopped", "zombie", "dead", "reused", "earlier boot", "other namespace", "unknown"]
"""What became of a recorded process. `reused`: it is dead, and its pid is another process's now. `earlier boot`: dead
with that. `other namespace`: cannot be told from here (K14). `unknown`: the probe could not tell; proves nothing."""

GuardKind = Literal["free", "held", "claimed", "abandoned", "damaged"]

PROFILE: Final = re.compile(r"[a-z0-9]{1,32}")
NOT_KNOWN: Final = "unknown"
"""The state of a key whose entry cannot be read. It is not "nobody" (law Unknown)."""
_LOOKS: Final = 5
"""How often a guard is looked at that changes hands meanwhile, or seems damaged: a guard that is being deleted under
another name looks empty to somebody who opened it before."""


@attrs.frozen
class Seen:
    """A process that a file names. `birth_known`: the file has its birth, so that a reused pid is told from it.
    `command` is the name of what has the pid now; `age_ms` says for how long that has been running."""

    pid: int
    life: Life
    proven_dead: bool
    birth_known: bool
    command: str | None = None
    age_ms: int | None = None


@attrs.frozen
class GuardLook:
    """What stands at a guard's path. `names`: of the files in it. `problem`: why it is damaged, in words."""

    path: str
    kind: GuardKind
    form: NodeKind
    names: tuple[str, ...] = ()
    payload: Payload | None = None
    holder: Seen | None = None
    claimant: Seen | None = None
    problem: str = ""

    @property
    def live(self) -> tuple[int, ...]:
        """Pids of holder and claimant, those that are not proven dead."""
        return tuple(s.pid for s in (self.holder, self.claimant) if s is not None and not s.proven_dead)


@attrs.frozen
class EntryLook:
    """One key of the registry. `entry` is None where the value is none (no numeric pid): it counts as nobody.

    `state` is `lease.classify`'s answer to an outsider, or `NOT_KNOWN`. `age_ms` is since the last renewal, by our
    `stamp` or the wall-clock `heartbeat`; None without either. `expired`: the lease is over, its owner's life apart.
    """

    key: str
    entry: Entry | None
    state: str
    owner: Seen | None = None
    age_ms: int | None = None
    age_by: Literal["stamp", "heartbeat"] | None = None
    expired: bool = False

    @property
    def endless(self) -> bool:
        """It can neither be seen to die nor grow old: no process has such a pid, and there is no heartbeat."""
        return self.entry is not None and self.entry.pid <= 0 and self.age_by is None

    @property
    def live(self) -> bool:
        """A live owner that counts when files may be moved (locks.md 8): not proven dead, and not expired."""
        return self.owner is not None and not self.owner.proven_dead and not self.expired


@attrs.frozen
class RegistryLook:
    """The registry. `problem`: why nobody can use it; `damaged`: because of what it contains, not of how it is read.
    `strangers` are the keys that name no profile: other programs'. `odd`: profiles whose member has a wrong type, or
    names no process; no damage to the others, but nobody leads there."""

    path: str
    exists: bool
    entries: tuple[EntryLook, ...] = ()
    strangers: tuple[EntryLook, ...] = ()
    problem: str = ""
    damaged: bool = False
    odd: tuple[str, ...] = ()
    remedy: str = ""
    """What to do so that it can be read; "" where that is not known."""


# -- a process ------------------------------------------------------------------


def look_at_process(ports: Ports, pid: int, birth: Birth | None) -> Seen:
    """The process that a file names by `pid` and, where the writer recorded one, `birth`."""
    sighting = ports.processes.sighting(pid)
    me = ports.processes.me()
    dead = proven_dead(birth, sighting, me)
    letter, command = _stat(ports, pid) if sighting.state == RUNNING else ("", None)
    age = None if sighting.ticks is None or sighting.state != RUNNING else _age(ports, sighting.ticks)
    return Seen(pid, _life(sighting, birth, dead, letter, me.birth), dead, birth is not None, command, age)


def _life(sighting: Sighting, birth: Birth | None, dead: bool, letter: str, mine: Birth) -> Life:
    if birth is not None and birth.boot_id != mine.boot_id:
        return "earlier boot" if dead else "unknown"
    if birth is not None and birth.namespace != mine.namespace:
        return "other namespace"
    if sighting.state == RUNNING:
        return "reused" if dead else "stopped" if letter in ("T", "t") else "running"
    return "zombie" if sighting.state == ZOMBIE else "dead" if sighting.state == GONE else "unknown"


def _stat(ports: Ports, pid: int) -> tuple[str, str | None]:
    """State letter and name of what has the pid now; nothing where there is no /proc."""
    try:
        line = ports.files.read(f"/proc/{pid}/stat").decode("utf-8", "replace")
    except OSError:
        return "", None
    name, found, rest = line.partition("(")[2].rpartition(") ")
    return (rest[:1], name) if found else ("", None)


def _age(ports: Ports, ticks: int) -> int | None:
    """How long a process has been running. Start ticks count from the boot, suspends included, as the fence clock."""
    try:
        rate = os.sysconf("SC_CLK_TCK")
    except (ValueError, OSError, AttributeError):
        return None
    return max(0, ports.clock.fence_ms() - ticks * 1000 // rate)


# -- a guard --------------------------------------------------------------------


def look_at_guard(ports: Ports, path: str) -> GuardLook:
    """What stands at a guard's path. Damage is believed when it looks the same each time. Raises OSError where the
    path cannot be looked at (EACCES, EIO)."""
    before: GuardLook | None = None
    for left in reversed(range(_LOOKS)):
        try:
            found = _guard(ports, path)
        except (FileNotFoundError, NotADirectoryError):
            found = None  # it changed hands between two calls of this look
        if found is not None and (found.kind != "damaged" or (found == before and left < 2)):
            return found
        before = found
    return before or GuardLook(path, "held", "directory", problem="it changes hands while one looks")


def _guard(ports: Ports, path: str) -> GuardLook:
    form = ports.files.kind(path)
    if form == "absent":
        return GuardLook(path, "free", form)
    if form == "other":
        return GuardLook(path, "damaged", form, problem="a symbolic link, or no file at all, in place of a directory")
    if form == "file":
        payload, problem = _payload(ports, path)
        if payload is None:
            return GuardLook(path, "damaged", form, problem=f"a regular file (guard of 0.22.0): {problem}")
        return _judged(ports, GuardLook(path, "held", form, payload=payload))
    names = ports.files.entries(path)
    damaged = GuardLook(path, "damaged", form, names)
    if len(names) != 1:
        if not names:
            return attrs.evolve(damaged, problem="it is empty")
        problem, inside = (
            f"it has {len(names)} files instead of one: {', '.join(names[:4])}",
            _inside(ports, path, names),
        )
        if inside is not None:
            problem += f" (and pid {inside.pid}, which is inside by one of them, is not dead)"
        return attrs.evolve(damaged, holder=inside, problem=problem)
    name = parse_name(names[0])
    if name is None:
        return attrs.evolve(damaged, problem=f"foreign name in it: {names[0]!r}")
    payload, problem = _payload(ports, os.path.join(path, names[0]))
    if payload is None:
        return attrs.evolve(damaged, problem=f"{names[0]}: {problem}")
    if not agree(name, payload.generation):
        return attrs.evolve(damaged, problem=f"{names[0]}: says generation {payload.generation!r}, its name another")
    return _judged(ports, GuardLook(path, "held", form, names, payload), name if isinstance(name, MarkerName) else None)


def _inside(ports: Ports, path: str, names: tuple[str, ...]) -> Seen | None:
    """Somebody who is not proven dead and is inside by one of several files: a desktop or a copying program put others
    beside it, and that must not let anybody else in."""
    for entry in names:
        name = parse_name(entry)
        payload = None if name is None else _payload(ports, os.path.join(path, entry))[0]
        if name is None or payload is None or not agree(name, payload.generation):
            continue
        look = GuardLook(path, "held", "directory", payload=payload)
        look = _judged(ports, look, name if isinstance(name, MarkerName) else None)
        found = [seen for seen in (look.holder, look.claimant) if seen is not None and not seen.proven_dead]
        if found:
            return found[0]
    return None


def _payload(ports: Ports, path: str) -> tuple[Payload | None, str]:
    """The payload of a guard's file, or what is wrong with it."""
    try:
        data = ports.files.read(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.EFBIG):
            return None, "not a regular file" if error.errno != errno.EFBIG else "far too large"
        raise
    if not data:
        return None, "empty"
    try:
        value = strict_json(data.decode("utf-8"))
    except ValueError:
        return None, "bad JSON"
    if not isinstance(value, Mapping):
        return None, "not a JSON object"
    if "pid" in value and holder_pid(value["pid"]) is None:
        return None, f"implausible pid {value['pid']!r}"
    payload = parse_payload(value)
    return payload, "" if payload is not None else "pid, acquiredAtMs or generation is missing or has a wrong type"


def _judged(ports: Ports, look: GuardLook, marker: MarkerName | None = None) -> GuardLook:
    """Who of those that the guard names lives."""
    assert look.payload is not None
    holder = look_at_process(ports, look.payload.pid, look.payload.birth)
    claimant = None if marker is None else _claimant(ports, marker)
    kind: GuardKind = "held"
    if holder.proven_dead:
        kind = "claimed" if claimant is not None and not claimant.proven_dead else "abandoned"
    return attrs.evolve(look, kind=kind, holder=holder, claimant=claimant)


def _claimant(ports: Ports, marker: MarkerName) -> Seen:
    """A marker has a hash of the claimant's birth at most: what has its pid now has that birth, or is another."""
    seen = look_at_process(ports, marker.claimant, None)
    found = probe_claimant(ports, marker, ports.processes.me())
    dead = found.dead
    life = seen.life
    if dead != seen.proven_dead:
        life = "reused" if dead else "other namespace"
    return attrs.evolve(seen, life=life, proven_dead=dead, birth_known=marker.birth_hash is not None)


# -- the registry ---------------------------------------------------------------


def look_at_registry(ports: Ports, path: str, timings: Timings) -> RegistryLook:
    """The registry as an outsider reads it. What cannot be read at all (EACCES, EIO) is a problem and no damage; nor is
    what is too large or too deep for us: the other system reads it, and its live owners cannot be shown (S36)."""
    try:
        data = ports.files.read(path, follow=True)
    except FileNotFoundError:
        if ports.files.kind(path) == "absent":
            return RegistryLook(path, False)
        return RegistryLook(path, True, problem="a symbolic link to nothing", damaged=True)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL, errno.ELOOP):
            return RegistryLook(path, True, problem="not a regular file", damaged=True)
        remedy = to_read(error) if forbidden(error) else ""
        return RegistryLook(path, True, problem=f"cannot be read: {error.strerror}", remedy=remedy)
    registry = parse_registry(data)
    if registry.too_deep:
        return RegistryLook(path, True, problem=f"cannot be read: {registry.problem}")
    damaged, problem = bool(registry.problem), registry.problem
    if damaged:  # the other system reads what is no UTF-8 all the same, and its live owners count
        registry = parse_registry(data.decode("utf-8", "replace").encode())
    values = {member.key: member.value for member in registry.members}
    looks = [look_at_entry(ports, key, value, timings) for key, value in values.items()]
    wrong = {} if damaged else {k: text for k in values if PROFILE.fullmatch(k) and (text := registry.implausible(k))}
    endless = [f"{look.key}.pid is no process" for look in looks if PROFILE.fullmatch(look.key) and look.endless]
    looks = [
        attrs.evolve(look, state=NOT_KNOWN) if look.entry is None and (damaged or look.key in wrong) else look
        for look in looks
    ]
    return RegistryLook(
        path,
        True,
        tuple(e for e in looks if PROFILE.fullmatch(e.key)),
        tuple(e for e in looks if not PROFILE.fullmatch(e.key)),
        problem,
        damaged,
        (*wrong.values(), *endless),
    )


def look_at_entry(ports: Ports, key: str, value: object, timings: Timings) -> EntryLook:
    """One key: who owns it, whether that process lives, and how old its lease is."""
    entry = parse_entry(value)
    if entry is None:
        return EntryLook(key, None, INACTIVE)
    me = ports.processes.me()
    sight = Sight(
        inside=False,
        readable=True,
        key=key,
        entry=entry,
        seen=ports.processes.sighting(entry.pid),
        wall_ms=ports.clock.wall_ms(),
        monotonic_ms=ports.clock.monotonic_ms(),
    )
    age: float | None = None
    by: Literal["stamp", "heartbeat"] | None = None
    if stamped(entry, me.birth.boot_id) and entry.stamp_ms is not None:
        age, by = sight.monotonic_ms - entry.stamp_ms, "stamp"
    elif entry.heartbeat_ms is not None:
        age, by = sight.wall_ms - entry.heartbeat_ms, "heartbeat"
    state = classify(entry, sight, me, timings.stale_ms)
    expired = over(entry, sight, me, timings.stale_ms)
    owner = look_at_process(ports, entry.pid, entry.birth)
    return EntryLook(key, entry, state, owner, None if age is None else round(age), by, expired)


def strict_json(text: str) -> object:
    """JSON as the other system reads it: no NaN, no infinity. Raises ValueError, also for what is nested too deep."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
