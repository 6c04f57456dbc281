"""What is damaged in an agent directory, and which live processes forbid to move it: the classifier of locks.md 8.

Damage: a registry that is no JSON object, a thread state that is no JSON, an ownership guard that is unverifiable.
Config, logs, journals and the runtime-recovery guard are never looked at. An odd key in a registry that is JSON is no
damage, and a guard whose holder is dead is none either: the next one who enters takes it over.
"""

from __future__ import annotations

import errno
import os

import attrs

from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import Timings
from tenure.adapters.looking.looks import (
    PROFILE,
    GuardLook,
    RegistryLook,
    Seen,
    look_at_guard,
    look_at_registry,
    strict_json,
)
from tenure.adapters.ports import Ports
from tenure.machines.identity import under_my_pid
from tenure.machines.runtime_recovery import GUARD, REGISTRY, STATE


@attrs.frozen
class Damage:
    """`what` is GUARD, REGISTRY or STATE, the machine's words."""

    what: str
    path: str
    problem: str


@attrs.frozen
class Blocker:
    """A live process that forbids it: the owner of `key`, or (None) somebody inside the guard; `role` in words."""

    seen: Seen
    role: str
    key: str | None = None
    age_ms: int | None = None


@attrs.frozen
class Findings:
    """One look. `alive`: some owner is not proven dead; `blockers`: those of them whose lease is not over, and who is
    inside the ownership guard. `mine`: one of the blocking entries is of this very process. `own_guard`: the guard that
    stands there is mine."""

    damage: tuple[Damage, ...]
    blockers: tuple[Blocker, ...]
    alive: bool
    mine: bool
    own_guard: bool

    @property
    def owned(self) -> bool:
        """Whether some owner lives whose lease is not over."""
        return any(b.key is not None for b in self.blockers)

    @property
    def inside(self) -> bool:
        """Whether somebody who is not proven dead is inside the ownership guard, or takes it over."""
        return any(b.key is None for b in self.blockers)

    @property
    def led_elsewhere(self) -> bool:
        """Whether there are live owners, none of them in this process, and nobody is inside the guard."""
        return bool(self.blockers) and not self.mine and all(b.key is not None for b in self.blockers)

    @property
    def names(self) -> frozenset[str]:
        """What is damaged, in the machine's words."""
        return frozenset(d.what for d in self.damage)


def examine(ports: Ports, directory: AgentDirectory, timings: Timings, own: str | None = None) -> Findings:
    """Look at everything; `own` is the generation of the ownership guard that this very recovery holds. Its own pid is
    passed over there and nowhere else (A29). The guard is looked at first: whoever is inside it by then is seen there,
    or what it wrote is. Raises OSError for what cannot be read."""
    guard = look_at_guard(ports, directory.guard)
    states = _state_damage(ports, directory)
    registry = look_at_registry(ports, directory.registry, timings)
    if registry.problem and not registry.damaged:
        why = f"{registry.problem}; {registry.remedy}" if registry.remedy else registry.problem
        raise OSError(errno.EACCES, why, registry.path)
    own_guard = own is not None and guard.payload is not None and guard.payload.generation == own
    holders = () if own_guard else guard_blockers(guard)
    me = ports.processes.me()
    entries = (*registry.entries, *registry.strangers)
    owners = tuple(
        Blocker(e.owner, f"owner of key {e.key}", e.key, e.age_ms) for e in entries if e.live and e.owner is not None
    )
    return Findings(
        damage=(*_guard_damage(guard), *_registry_damage(registry), *states),
        blockers=(*owners, *holders),
        alive=any(e.owner is not None and not e.owner.proven_dead for e in entries),
        mine=any(e.live and e.entry is not None and under_my_pid(e.entry.pid, e.entry.birth, me) for e in entries),
        own_guard=own_guard,
    )


def guard_blockers(look: GuardLook) -> tuple[Blocker, ...]:
    """Holder and claimant of a guard, those that are not proven dead."""
    named = ((look.holder, "holder"), (look.claimant, "claimant"))
    return tuple(
        Blocker(seen, f"{role} of {os.path.basename(look.path)}")
        for seen, role in named
        if seen is not None and not seen.proven_dead
    )


def state_files(ports: Ports, directory: AgentDirectory) -> tuple[str, ...]:
    """The thread states that are there: `state.json` and `state.<profile>.json`."""
    try:
        names = ports.files.entries(directory.state)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(os.path.join(directory.state, name) for name in names if _is_state(name))


def _is_state(name: str) -> bool:
    match name.split("."):
        case ["state", "json"]:
            return True
        case ["state", profile, "json"]:
            return PROFILE.fullmatch(profile) is not None
    return False


def _guard_damage(look: GuardLook) -> tuple[Damage, ...]:
    return (Damage(GUARD, look.path, look.problem),) if look.kind == "damaged" else ()


def _registry_damage(look: RegistryLook) -> tuple[Damage, ...]:
    return (Damage(REGISTRY, look.path, look.problem),) if look.damaged else ()


def _state_damage(ports: Ports, directory: AgentDirectory) -> tuple[Damage, ...]:
    found = []
    for path in state_files(ports, directory):
        try:
            strict_json(ports.files.read(path, follow=True).decode("utf-8", "replace"))
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.EFBIG):
                raise
            found.append(Damage(STATE, path, "not a regular file of a plausible size"))
        except ValueError as error:
            found.append(Damage(STATE, path, f"bad JSON ({error})"))
    return tuple(found)
