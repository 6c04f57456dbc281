"""The doctor against the twin of spec/RuntimeRecovery.tla: each of its runs is one of the twin's behaviours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import attrs
import pytest

from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.looking.doctor import Doctor
from tenure.adapters.looking.doctor_events import ACTIONS as DOCTOR_ACTIONS
from tenure.adapters.ports import Fields, Ports
from tenure.models.runtime_recovery import (
    EMPTY,
    MISSING,
    OWNER,
    TORN,
    Config,
    Registry,
    RuntimeRecovery,
    State,
    entry,
)

from .ward import DIRECTORY, FAST, GUARD, HOLDER, RECOVERY, REGISTRY, STATE, Ward

THREADS = f"{STATE}/state.json"
ME = "p"
TWIN = RuntimeRecovery(Config((ME,)))
ACTIONS = {action.name: action.body for action in TWIN.actions()}


class Behaviour:
    """Follows the doctor's machine through the twin."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.taken: list[str] = []

    def note(self, category: str, phase: str, fields: Fields) -> None:
        if category != "recovery":
            return
        names = ("Release", "ReleaseFails")
        if fields["event"] != "release_ended":
            names = (DOCTOR_ACTIONS[str(fields["event"]), phase],) * 2
        after = [s for name in dict.fromkeys(names) for s in ACTIONS[name](self.state, ME)]
        assert 1 == len(after), (self.taken, names, self.state)
        (self.state,) = after
        self.taken.append(names[0])
        assert phase == self.state.node[ME].phase


def wards() -> Iterator[tuple[Ward, State]]:
    """Every state of the world that the twin begins in, and the same with a live owner or an empty registry."""
    nobody = next(iter(TWIN.initial()))
    owned = attrs.evolve(nobody, registry=entry(OWNER), owner="owning")
    for registry, threads, guard in product(
        (MISSING, TORN, EMPTY, entry("ghost"), entry(OWNER), Registry("valid", "stranger", False)),
        ("good", "damaged"),
        ("nobody", "abandoned", "damaged"),
    ):
        base = owned if registry == entry(OWNER) else nobody
        yield ward(registry, threads, guard), attrs.evolve(base, registry=registry, state=threads, guard=guard)


def ward(registry: Registry, threads: str, guard: str) -> Ward:
    made = Ward()
    if registry.owner in (OWNER, "stranger"):
        made.processes.start(HOLDER)
    if registry == TORN:
        made.put(REGISTRY, "torn")
    elif registry == EMPTY:
        made.put(REGISTRY, "{}")
    elif registry.kind == "valid":
        made.own(age_ms=0 if registry.fresh else 60_000)
    made.put(THREADS, "{}" if threads == "good" else "{torn")
    if guard == "abandoned":
        made.guard(pid=66)
    elif guard == "damaged":
        made.guard(name="lock")
    return made


def seen(ward: Ward, registry: Registry) -> tuple[str, str, str, str]:
    """What the twin says of the files: the registry's kind, the thread state, both guards."""
    data = None if ward.files.kind(REGISTRY) == "absent" else ward.files.read(REGISTRY)
    kind = "missing" if data is None else "damaged" if data == b"torn" else "valid"
    state = "missing" if ward.files.kind(THREADS) == "absent" else "good"
    if state == "good" and ward.files.read(THREADS) != b"{}":
        state = "damaged"
    names = ward.files.entries(GUARD) if ward.files.kind(GUARD) == "directory" else ()
    guard = "nobody" if not names else "damaged" if names == ("lock",) else "abandoned"
    return kind, state, guard, "nobody" if ward.files.kind(RECOVERY) == "absent" else "held"


@pytest.mark.parametrize(("ward", "state"), tuple(wards()))
def test_a_doctors_run_is_a_behaviour_of_the_twin(ward: Ward, state: State) -> None:
    """Action by action, and the files are in the end what the twin says."""
    behaviour = Behaviour(state)
    ports = attrs.evolve(ward.ports(), diagnostics=behaviour)
    assert isinstance(ports, Ports)
    doctor = Doctor(ports, DIRECTORY, FAST, process=ProcessState())
    outcome = doctor.heal()
    after = behaviour.state
    assert (after.registry.kind, after.state, after.guard, after.recovery) == seen(ward, state.registry)
    assert (doctor.data.again, doctor.data.seen) == (after.node[ME].again, after.node[ME].seen)
    assert "Connect" == behaviour.taken[0]
    assert ("Finish" in behaviour.taken) == (outcome.kind == "recovered")
