"""What stands at a guard's path, and what is known of whoever put it there (locks.md 3, 3.4; DESIGN 10).

`observe` is for the machine: it reads, probes, and sees that the same thing still stands there, so that its answer was
true at one moment. `look` is for people.
"""

from __future__ import annotations

import errno
import json
from typing import Final, Literal

import attrs

from tenure.adapters.ports import Ports
from tenure.machines.guard_name import (
    MarkerName,
    OwnerName,
    Payload,
    agree,
    another_boot,
    another_namespace,
    birth_hash,
    parse_name,
    parse_payload,
)
from tenure.machines.identity import GONE, ZOMBIE, Birth, Process, Sighting, proven_dead

Kind = Literal["free", "held", "abandoned", "claimed", "damaged"]
TURNS: Final = 1_000
"""How often a guard that changes at every look is looked at again."""


@attrs.frozen
class Seen:
    """R1 for the machine. A birth of 0 is not known, or there is nothing to compare it with."""

    verifiable: bool
    generation: str = ""
    alive: bool = False
    birth: int = 0
    birth_now: int = 0


UNVERIFIABLE: Final = Seen(False)


@attrs.frozen
class Claimant:
    """R3 for the machine: the process that a marker names."""

    alive: bool
    birth: int
    birth_now: int
    mine: bool

    @property
    def dead(self) -> bool:
        """Whether it is proven dead, for debris and for people; of a guard that stands the machine judges."""
        return not self.alive or (self.birth != 0 != self.birth_now and self.birth != self.birth_now)


@attrs.frozen
class Standing:
    """What stands at a guard's path, for people.

    `pid`, `birth`, `acquired_at_ms`, `generation`: the payload's; `alive`: that process is not proven dead. `claimant`:
    the pid in a marker. `problem`: what is wrong with a damaged one.
    """

    kind: Kind
    pid: int = 0
    birth: Birth | None = None
    acquired_at_ms: int = 0
    generation: str = ""
    alive: bool = False
    claimant: int = 0
    claimant_alive: bool = False
    problem: str = ""

    def describe(self) -> str:
        """In a few words."""
        match self.kind:
            case "free":
                return "it is free now"
            case "held":
                return f"held by pid {self.pid}, which lives"
            case "abandoned":
                return f"left by pid {self.pid}, which is dead"
            case "claimed":
                return f"pid {self.claimant} moves away what dead pid {self.pid} left"
            case _:
                return self.problem


def observe(ports: Ports, path: str, me: Process) -> Seen:
    """The payload at `path`, and what is known of its process, both at the same moment.

    A guard that is exchanged between the reading and the probe is looked at again: somebody else got on meanwhile.
    """
    for _ in range(TURNS):
        try:
            names = ports.files.entries(path)
        except OSError:
            return UNVERIFIABLE
        name = parse_name(names[0]) if len(names) == 1 else None
        if name is None:
            return UNVERIFIABLE
        try:
            payload = read_payload(ports, f"{path}/{names[0]}")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            return UNVERIFIABLE
        if payload is None or not agree(name, payload.generation):
            return UNVERIFIABLE
        alive, birth, birth_now = probe(ports, payload.pid, payload.birth, me)
        try:
            still_there = ports.files.kind(f"{path}/{names[0]}") == "file"
        except OSError:
            return UNVERIFIABLE
        if still_there:
            return Seen(True, payload.generation, alive, birth, birth_now)
    return UNVERIFIABLE


def probe(ports: Ports, pid: int, birth: Birth | None, me: Process) -> tuple[bool, int, int]:
    """Whether a process with that pid exists, the recorded birth and its own, as numbers (0: not known).

    A process of another boot is gone. Of one in another pid namespace nothing can be known here (hole K14).
    """
    if birth is not None and birth.boot_id != me.birth.boot_id:
        return False, 0, 0
    if birth is not None and birth.namespace != me.birth.namespace:
        return True, 0, 0
    seen = ports.processes.sighting(pid)
    return _exists(seen), _some(None if birth is None else birth.ticks), _some(seen.ticks)


def probe_claimant(ports: Ports, name: MarkerName, me: Process) -> Claimant:
    """The same for the claimant in a marker's name, whose birth is a hash."""
    claimed = name.birth_hash
    mine = name.claimant == me.pid and claimed in (None, birth_hash(me.birth))
    if claimed is not None and another_boot(claimed, me.birth):
        return Claimant(False, 0, 0, mine)
    if claimed is not None and another_namespace(claimed, me.birth):
        return Claimant(True, 0, 0, mine)
    seen = ports.processes.sighting(name.claimant)
    now = 0
    if seen.ticks is not None:
        now = birth_hash(Birth(seen.ticks, me.birth.boot_id, me.birth.namespace))
    return Claimant(_exists(seen), claimed or 0, now, mine)


def read_payload(ports: Ports, path: str) -> Payload | None:
    """The payload in a file; None where it says anything else. Raises OSError."""
    return parsed(ports.files.read(path))


def parsed(text: bytes) -> Payload | None:
    """The payload that a file's text is."""
    try:
        return parse_payload(json.loads(text))
    except (ValueError, RecursionError):
        return None


def neighbour_alive(ports: Ports, path: str, me: Process) -> tuple[bool, str]:
    """R8: whether the recovery guard at `path` has to be left alone: its holder lives, or cannot be told to be dead;
    and the name of the entry in it that this was told of, empty where none stands there.

    Raises OSError when it cannot be looked at.
    """
    kind = ports.files.kind(path)
    if kind == "absent":
        return False, ""
    names = ports.files.entries(path) if kind == "directory" else ()
    name = parse_name(names[0]) if len(names) == 1 else None
    if name is None:
        return True, ""
    payload = read_payload(ports, f"{path}/{names[0]}")
    if payload is None or not agree(name, payload.generation):
        return True, names[0]
    if not proven_dead(payload.birth, ports.processes.sighting(payload.pid), me):
        return True, names[0]
    return isinstance(name, MarkerName) and not probe_claimant(ports, name, me).dead, names[0]


def look(ports: Ports, path: str) -> Standing:
    """What stands at `path`. Changes nothing; never raises for what it finds."""
    me = ports.processes.me()
    try:
        kind = ports.files.kind(path)
    except OSError as error:
        return Standing("damaged", problem=f"it cannot be looked at: {error.strerror}")
    if kind == "absent":
        return Standing("free")
    if kind == "file":
        return _legacy(ports, path, me)
    if kind != "directory":
        return Standing("damaged", problem="neither a directory nor a file stands there")
    try:
        names = ports.files.entries(path)
    except OSError as error:
        return Standing("free") if error.errno == errno.ENOENT else Standing("damaged", problem=str(error.strerror))
    if not names:
        return Standing("damaged", problem="an empty directory stands there")
    if len(names) > 1:
        return Standing("damaged", problem=f"it holds {len(names)} files: {', '.join(map(repr, names[:3]))}")
    name = parse_name(names[0])
    if name is None:
        return Standing("damaged", problem=f"it holds {names[0]!r}, which is no owner file")
    try:
        text = ports.files.read(f"{path}/{names[0]}")
    except OSError as error:
        if error.errno == errno.ENOENT:
            return Standing("free")
        return Standing("damaged", problem=f"{names[0]} cannot be read: {error.strerror}")
    payload = parsed(text)
    if payload is None:
        return Standing("damaged", problem=f"{names[0]}: {_wrong(text)}")
    if not agree(name, payload.generation):
        return Standing("damaged", problem=f"{names[0]} names generation {payload.generation}")
    return _held(ports, name, payload, me)


def _held(ports: Ports, name: OwnerName | MarkerName, payload: Payload, me: Process) -> Standing:
    dead = proven_dead(payload.birth, ports.processes.sighting(payload.pid), me)
    found = Standing(
        "abandoned" if dead else "held",
        payload.pid,
        payload.birth,
        payload.acquired_at_ms,
        payload.generation,
        not dead,
    )
    if dead and isinstance(name, MarkerName):
        alive = not probe_claimant(ports, name, me).dead
        return attrs.evolve(
            found, kind="claimed" if alive else "abandoned", claimant=name.claimant, claimant_alive=alive
        )
    return found


def _legacy(ports: Ports, path: str, me: Process) -> Standing:
    """A regular file, as version 0.22.0 of the other system makes it (locks.md 3.3): held while its process lives; when
    that is dead nobody enters beside it here until it is healed."""
    try:
        payload = read_payload(ports, path)
    except OSError as error:
        return Standing("damaged", problem=f"a regular file stands there: {error.strerror}")
    if payload is None:
        return Standing("damaged", problem="a regular file stands there, and is no guard of version 0.22.0 either")
    dead = proven_dead(payload.birth, ports.processes.sighting(payload.pid), me)
    return Standing(
        "damaged" if dead else "held",
        payload.pid,
        payload.birth,
        payload.acquired_at_ms,
        payload.generation,
        not dead,
        problem=f"a guard of version 0.22.0, a regular file, of pid {payload.pid}, which is dead" if dead else "",
    )


def _wrong(text: bytes) -> str:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(value, dict):
        return "no JSON object"
    for field in ("pid", "acquiredAtMs", "generation"):
        if field not in value:
            return f"no {field}"
    return (
        f"pid {value['pid']!r}, acquiredAtMs {value['acquiredAtMs']!r}, generation {value['generation']!r}: implausible"
    )


def _exists(seen: Sighting) -> bool:
    return seen.state not in (GONE, ZOMBIE)


def _some(ticks: int | None) -> int:
    """Ticks as a number that is never 0."""
    return 0 if ticks is None else ticks + 1
