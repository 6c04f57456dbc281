"""What dead processes leave beside a guard, swept on proof of their death (locks.md 2; hole K10, DESIGN 10).

`G.staged.*`, `G.released.*`, `G.stale.*` and `<file>.<pid>.<ms>.<attempt>.tmp` never carry authority, so that nobody
needs them; but a staged directory and a temporary file are still needed by their owner while it lives.

* staged, with an owner file: the payload's process's; swept when that is proven dead;
* staged, empty or with a torn file: if ours made it, of the pid in its name; swept when there is no such process, and
  it has lain there unchanged for a while;
* released and stale: whoever moved it away deletes it next, best effort; swept when the payload's process, or the
  claimant, is proven dead, and at once when it is empty, for then nobody needs it;
* stale, a regular file (a guard of 0.22.0 that was moved away), and a temporary file: of the pid in its name; swept as
  an empty staged one.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from tenure.adapters.files.standing import parsed, probe_claimant
from tenure.adapters.ports import Files, Ports, tell
from tenure.machines.guard_name import (
    MarkerName,
    OwnerName,
    Payload,
    Released,
    Staged,
    Stale,
    parse_debris,
    parse_name,
)
from tenure.machines.identity import GONE, ZOMBIE, Process, proven_dead

UNCHANGED_MS: Final = 10_000
"""How long a staged directory that names nobody lies there before it is swept: its making takes microseconds."""
_BITS: Final = 13
_WORD: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BESIDE: Final = {"owners.json": ("epochs.json",)}
"""Other files that are replaced inside the guard of one."""
_TEMPORARY: Final = re.compile(r"\.([1-9][0-9]{0,9})\.[0-9]+\.[0-9]+\.tmp")


@attrs.frozen
class Litter:
    """One piece of debris. `pid` is its owner's, 0 where nobody can be told; `dead`: that one is proven dead."""

    path: str
    what: str
    pid: int
    dead: bool
    needed: bool
    """Its owner could still need it."""


def staged_word(me: Process, random: int) -> str:
    """Six characters for a staged directory that say who made it: the pid, and 13 random bits.

    Names of the other system are random, and read as some pid: that is why nobody is judged by this alone.
    """
    number = (me.pid % 2**22 << _BITS) | random % 2**_BITS
    letters = []
    for _ in range(6):
        number, digit = divmod(number, len(_WORD))
        letters.append(_WORD[digit])
    return "".join(reversed(letters))


def staged_pid(word: str) -> int:
    """The pid in such a word."""
    number = 0
    for letter in word:
        number = number * len(_WORD) + _WORD.index(letter)
    return number >> _BITS


def remove_aside(ports: Ports, path: str, known: str = "") -> None:
    """Delete a directory with at most files in it, best effort: what stays is debris. `known`: the one file that it
    most likely has."""
    files = ports.files
    try:
        for name in (known,) if known else files.entries(path):
            files.unlink(f"{path}/{name}")
        files.remove_directory(path)
    except OSError as error:
        if known:
            remove_aside(ports, path)
        else:
            tell(ports, "guard", "delete", path=path, error=str(error))


def debris(ports: Ports, resource: str) -> tuple[Litter, ...]:
    """What lies beside the guard of `resource`, and whose it is. Changes nothing."""
    directory, _, name = resource.rpartition("/")
    guard, files = f"{name}.transaction", _replaced(name)
    guards = guard, f"{guard}.recovery", f"{guard}.recovery.migration"
    try:
        names = ports.files.entries(directory)
    except OSError:
        return ()
    me = ports.processes.me()
    found = []
    for entry in names:
        litter = _judge(ports, directory, entry, guards, files, me)
        if litter is not None:
            found.append(litter)
    return tuple(found)


def sweep(ports: Ports, resource: str, suspects: dict[str, int]) -> tuple[str, ...]:
    """Remove what is nobody's any more, and answer what was removed. `suspects` remembers what named nobody, and since
    when. Two that sweep at once do no harm."""
    now = ports.clock.monotonic_ms()
    lying = debris(ports, resource)
    removed = []
    for litter in lying:
        if not litter.dead:
            continue
        if litter.needed and now - suspects.setdefault(litter.path, now) <= UNCHANGED_MS:
            continue
        if _remove(ports.files, litter):
            removed.append(litter.path)
            suspects.pop(litter.path, None)
    present = {litter.path for litter in lying}
    directory, _, name = resource.rpartition("/")
    ours = tuple(f"{directory}/{file}." for file in _replaced(name))
    for path in [path for path in suspects if path.startswith(ours) and path not in present]:
        del suspects[path]
    if removed:
        tell(ports, "guard", "sweep", removed=len(removed))
    return tuple(removed)


def _replaced(name: str) -> tuple[str, ...]:
    """The files that are replaced inside the guard of the file `name`."""
    return (name, *_BESIDE.get(name, ()))


def _judge(
    ports: Ports, directory: str, name: str, guards: tuple[str, ...], files: tuple[str, ...], me: Process
) -> Litter | None:
    path = f"{directory}/{name}"
    for file in files:
        if name.startswith(file) and (match := _TEMPORARY.fullmatch(name, len(file))):
            pid = int(match[1])
            return Litter(path, "temporary file", pid, _gone(ports, pid), True)
    for guard in guards:
        kind = parse_debris(guard, name)
        node = "absent" if kind is None else ports.files.kind(path)
        if kind is not None and node == "directory":
            return _directory(ports, path, kind, me)
        if isinstance(kind, Stale) and node == "file":
            return Litter(path, "stale file", kind.pid, _gone(ports, kind.pid), True)
    return None


def _directory(ports: Ports, path: str, kind: Staged | Released | Stale, me: Process) -> Litter | None:
    what = type(kind).__name__.lower()
    try:
        names = ports.files.entries(path)
        payload = parsed(ports.files.read(f"{path}/{names[0]}")) if len(names) == 1 else None
    except OSError:
        return None
    inside = parse_name(names[0]) if len(names) == 1 else None
    if isinstance(kind, Staged):
        if payload is not None and isinstance(inside, OwnerName):
            return Litter(path, what, payload.pid, _dead(ports, payload, me), False)
        pid = staged_pid(kind.random)
        return Litter(path, what, pid, _gone(ports, pid), True)
    if not names:
        return Litter(path, what, 0, True, False)
    if isinstance(kind, Stale):
        if isinstance(inside, MarkerName):
            return Litter(path, what, inside.claimant, probe_claimant(ports, inside, me).dead, False)
        return Litter(path, what, kind.pid, _gone(ports, kind.pid), False)
    if payload is None:
        return Litter(path, what, 0, False, False)
    return Litter(path, what, payload.pid, _dead(ports, payload, me), False)


def _dead(ports: Ports, payload: Payload, me: Process) -> bool:
    return proven_dead(payload.birth, ports.processes.sighting(payload.pid), me)


def _gone(ports: Ports, pid: int) -> bool:
    """No process has the pid here. In another namespace one may: hence it has to lie there a while."""
    return pid > 0 and ports.processes.sighting(pid).state in (GONE, ZOMBIE)


def _remove(files: Files, litter: Litter) -> bool:
    try:
        if litter.what.endswith(" file"):
            files.unlink(litter.path)
            return True
        for name in files.entries(litter.path):
            files.unlink(f"{litter.path}/{name}")
        files.remove_directory(litter.path)
    except OSError:
        return False
    return True
