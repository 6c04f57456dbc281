"""Recorded healings are explained by the twin of spec/RuntimeRecovery.tla, and doctored recordings are not."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import Guarded, GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.looking.doctor import Doctor
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Call, Fails, Fault, Kills, Plan
from tenure.adapters.trace.api import MemoryRecorder, explained
from tenure.adapters.trace.lines import Event

from ..looking.test_doctor_twin import wards
from ..looking.ward import DIRECTORY, FAST, GUARD, REGISTRY, STATE, Ward

OURS = "RuntimeRecovery"


def heal(ward: Ward, recorder: MemoryRecorder, pid: int = 100, plan: Plan | None = None) -> None:
    """One doctor from beginning to end, however it ends."""
    ports = attrs.evolve(ward.ports(pid, plan), recorder=recorder)
    try:
        Doctor(ports, DIRECTORY, FAST, process=ProcessState()).heal()
    except Killed:
        ward.processes.kill(pid)
    except TenureError:
        return


def patient() -> Ward:
    """Everything that can be damaged is."""
    made = Ward()
    made.put(REGISTRY, '{"default": {"pid": 7')
    made.put(f"{STATE}/state.json", "{torn")
    made.guard(name="lock")
    return made


def events(recorder: MemoryRecorder) -> list[Event]:
    return [event for event in recorder.events if event.module == OURS]


def actions(recorder: MemoryRecorder) -> list[str]:
    return [event.action for event in events(recorder)]


def test_a_healing_is_recorded_step_by_step() -> None:
    recorder = MemoryRecorder()
    heal(patient(), recorder)
    assert [
        "Connect", "StartFails", "Look", "Enter", "Inspect", "MoveGuard", "Secure",
        "Confirm", "MoveRegistry", "MoveState", "Finish",
    ] == actions(recorder)  # fmt: skip
    assert {1} == {len({event.node for event in events(recorder)})}
    verdict = explained(recorder)
    assert verdict, str(verdict)


@pytest.mark.parametrize("ward", [ward for ward, _ in wards()])
def test_every_healing_is_explained(ward: Ward) -> None:
    recorder = MemoryRecorder()
    heal(ward, recorder)
    heal(ward, recorder, 101)
    verdict = explained(recorder)
    assert verdict, str(verdict)


@pytest.mark.parametrize("fault", [Kills("before"), Kills("after"), Fails(5, "before"), Fails(5, "after")])
def test_a_doctor_that_dies_or_fails_at_any_call_and_the_next_one_are_explained(fault: Fault) -> None:
    ends = set()
    for number in range(1_000):
        ward, recorder = patient(), MemoryRecorder()
        came = False

        def plan(call: Call, number: int = number) -> Fault | None:
            nonlocal came
            came = came or call.number == number
            return fault if call.number == number else None

        heal(ward, recorder, plan=plan)
        ends.add(actions(recorder)[-1])
        heal(ward, recorder, 101)
        verdict = explained(recorder)
        assert verdict, (number, str(verdict))
        if not came:
            assert len(ends) >= 7
            return
    raise AssertionError("it never came to its end")


def owner(ward: Ward, recorder: MemoryRecorder) -> None:
    """An owner that acquires if it can, and does not record."""

    def acquire(inside: Guarded) -> None:
        if ward.files.kind(REGISTRY) == "absent":
            ward.put(REGISTRY, {"default": ward.entry(age_ms=0)})

    ward.processes.start(77)
    try:
        GuardedFile(ward.ports(77), REGISTRY, FAST, process=ProcessState()).run(acquire, attempts=1)
    except TenureError:
        return


def other(ward: Ward, recorder: MemoryRecorder) -> None:
    heal(ward, recorder, 101)


def damage(ward: Ward, recorder: MemoryRecorder) -> None:
    ward.put(REGISTRY, "torn")
    ward.put(f"{STATE}/state.json", "torn")


def litter(ward: Ward, recorder: MemoryRecorder) -> None:
    if ward.files.kind(GUARD) == "absent":
        ward.guard(name="lock")


@pytest.mark.parametrize("comes", [owner, other, damage, litter])
def test_whoever_comes_between_two_calls_it_is_explained(comes: Callable[[Ward, MemoryRecorder], None]) -> None:
    for number in range(1_000):
        ward, recorder = patient(), MemoryRecorder()
        came = False

        def plan(call: Call, ward: Ward = ward, recorder: MemoryRecorder = recorder, number: int = number) -> None:
            nonlocal came
            if call.number == number:
                came = True
                comes(ward, recorder)

        heal(ward, recorder, plan=plan)
        verdict = explained(recorder)
        assert verdict, (number, str(verdict))
        if not came:
            return
    raise AssertionError("it never came to its end")


def doctored(change: Callable[[list[Event]], None]) -> str:
    """What is said of the recording of one healing, changed."""
    recorder = MemoryRecorder()
    heal(patient(), recorder)
    change(recorder.events)
    for seq, event in enumerate(recorder.events, 1):
        event.seq = seq
    return str(explained(recorder))


def _drop(action: str) -> Callable[[list[Event]], None]:
    def change(found: list[Event]) -> None:
        found[:] = [event for event in found if event.action != action or event.module != OURS]

    return change


def _say(action: str, **observed: object) -> Callable[[list[Event]], None]:
    def change(found: list[Event]) -> None:
        for event in found:
            if event.action == action and event.module == OURS:
                event.observed = {**event.observed, **observed}

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_drop("Enter"), "Inspect"),
        (_drop("Inspect"), "MoveGuard"),
        (_drop("Confirm"), "MoveRegistry"),
        (_drop("MoveState"), "Finish"),
        (_say("Inspect", damage=[]), "Inspect"),
        (_say("Confirm", damage=["state"]), "Confirm"),
        (_say("Look", alive=True, owned=True), "Look"),
        (_say("Confirm", alive=True, owned=True), "Confirm"),
        (_say("Finish", phase="blocked"), "Finish"),
    ],
)
def test_a_doctored_healing_is_refused(change: Callable[[list[Event]], None], said: str) -> None:
    verdict = doctored(change)
    assert f"no behaviour of the model explains {OURS} {said} by" in verdict, verdict
