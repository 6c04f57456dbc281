"""Which instance a person means: by its id, its pid, its slot or its thread's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from tenure.adapters.bus.messages.fleet_view import LeaderView
from tenure.adapters.errors import TenureError, printable
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.threads.views import ListedFollower
from tenure.adapters.journal.liveness import Liveness, process_named
from tenure.adapters.journal.rows import ServerRow
from tenure.adapters.looking.fleet_look import Asker, FleetLook, fleets
from tenure.adapters.looking.looks import EntryLook, look_at_registry
from tenure.adapters.ports import Ports
from tenure.machines.lease import INACTIVE


@attrs.frozen
class Known:
    """An instance that is there. `serves`: what it serves out of the journal; nothing: it does not work out of it.
    `dead`: it wrote itself down there, and its process is proven dead by now."""

    instance: str
    pid: int | None = None
    slot: str | None = None
    name: str | None = None
    serves: tuple[str, ...] = ()
    dead: bool = False

    def __str__(self) -> str:
        parts = [] if self.pid is None else [f"pid {self.pid}"]
        parts += [] if self.slot is None else [f"slot {self.slot}"]
        parts += [] if self.name is None else [self.name]
        return f"{self.instance} ({', '.join(parts)})" if parts else self.instance


def fleet_of(ports: Ports, directory: AgentDirectory, key: str) -> FleetLook | None:
    """The fleet of a key as its leader says, or as it was published; None where there is none."""
    registry = look_at_registry(ports, directory.registry, DEFAULT)
    entry = next((entry for entry in registry.entries if entry.key == key), EntryLook(key, None, INACTIVE))
    found = fleets(ports, directory, [entry], Asker(ports, directory))
    return found[0] if found else None


def present(servers: Iterable[ServerRow], fleet: FleetLook | None, liveness: Liveness) -> tuple[Known, ...]:
    """Everybody who serves something out of the journal, or is in the fleet."""
    found: dict[str, Known] = {}
    for row in servers:
        if row.left_at is None:
            process = process_named(row.party.process)
            before = found.get(row.party.instance, Known(row.party.instance, None if process is None else process.pid))
            dead = liveness.evidence(row.party.process) == "dead"
            found[row.party.instance] = attrs.evolve(before, serves=(*before.serves, row.binding), dead=dead)
    views: list[LeaderView | ListedFollower] = []
    if fleet is not None:
        views += [] if fleet.leader is None else [fleet.leader]
        views += fleet.followers
    for view in views:
        known = found.get(view.instance_id, Known(view.instance_id, view.pid))
        found[view.instance_id] = attrs.evolve(known, slot=view.slot, name=view.name)
    return tuple(found[instance] for instance in sorted(found))


def meant(name: str, known: Iterable[Known]) -> Known:
    """The one that `name` means: an id comes before a pid, a pid before a slot, a slot before a name; and of several
    who are called so the one that is not dead.

    Raises `TenureError` where it is nobody, or several.
    """
    there = tuple(known)
    tests: tuple[Callable[[Known], bool], ...] = (
        lambda one: one.instance == name,
        lambda one: name.isascii() and name.isdecimal() and one.pid == int(name),
        lambda one: one.slot is not None and one.slot == name.upper(),
        lambda one: one.name is not None and one.name.casefold() == name.casefold(),
    )
    for test in tests:
        found = [one for one in there if test(one)]
        found = [one for one in found if not one.dead] or found  # one that was called so before is not meant
        if len(found) == 1:
            return found[0]
        if found:
            raise TenureError(f"--to {printable(name)}: several are called so: {_named(found)}; give an instance id")
    who = f"there are {_named(there)}" if there else "nobody is there"
    raise TenureError(f"--to {printable(name[:80])}: no instance, pid, slot or name of this fleet; {who}")


def _named(known: Iterable[Known]) -> str:
    return ", ".join(map(str, known))
