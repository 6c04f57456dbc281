"""A doctor into which somebody else comes between any two calls (S36, A29, A31): another doctor, an owner, a person."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import Guarded, GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.looking.care import care
from tenure.adapters.looking.status import status
from tenure.adapters.testing.faulty import Call
from tenure.machines.identity import RUNNING

from .ward import DIRECTORY, FAST, GUARD, HOLDER, RECOVERY, REGISTRY, STATE, Ward

TORN = b'{"default": {"pid": 7'
THREADS = f"{STATE}/state.json"
LIMIT = 1_000
"""Calls that no doctor makes."""

Step = Callable[[Ward], None]


def torn_registry(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)


def torn_threads(ward: Ward) -> None:
    ward.put(THREADS, "{torn")


def empty_guard(ward: Ward) -> None:
    ward.files.make_directories(GUARD)


def foreign_guard(ward: Ward) -> None:
    ward.guard(name="lock")
    ward.put(THREADS, "{torn")


def file_guard(ward: Ward) -> None:
    ward.put(GUARD, "hello")


def old_guard(ward: Ward) -> None:
    ward.put(GUARD, ward.payload(pid=66))
    ward.put(REGISTRY, TORN)


PATIENTS: tuple[Step, ...] = (torn_registry, torn_threads, empty_guard, foreign_guard, file_guard, old_guard)


def doctor(ward: Ward) -> None:
    """A second doctor, from beginning to end."""
    care(ward.ports(101), DIRECTORY, FAST, process=ProcessState())


def owner(ward: Ward) -> None:
    """An owner comes if it can: inside the guard, and not into a registry that it cannot read."""

    def acquire(inside: Guarded) -> None:
        if ward.files.kind(REGISTRY) == "absent" or ward.files.read(REGISTRY) != TORN:
            ward.put(REGISTRY, {"default": ward.entry(age_ms=0)})

    ward.processes.start(HOLDER)
    try:
        GuardedFile(ward.ports(HOLDER), REGISTRY, FAST, process=ProcessState()).run(acquire, attempts=1)
    except TenureError:
        return


def holder(ward: Ward) -> None:
    """A person clears the damage at the guard's path away, and a live process stands inside a new guard."""
    found = status(ward.ports(103), DIRECTORY).guard
    if found.kind != "damaged" and found.form != "file":
        return
    if ward.files.kind(GUARD) == "directory":
        for name in ward.files.entries(GUARD):
            ward.files.unlink(f"{GUARD}/{name}")
        ward.files.remove_directory(GUARD)
    elif ward.files.kind(GUARD) != "absent":
        ward.files.unlink(GUARD)
    ward.processes.start(HOLDER)
    ward.guard()


def between(patient: Step, intruder: Step) -> list[tuple[Ward, int]]:
    """The ward after a doctor into whose run, before each of its calls in turn, the intruder came."""
    ended = []
    for number in range(LIMIT):
        ward = Ward()
        patient(ward)
        came = False

        def comes(call: Call, ward: Ward = ward, number: int = number) -> None:
            nonlocal came
            if call.number == number:
                came = True
                intruder(ward)

        try:
            care(ward.ports(100, comes), DIRECTORY, FAST, process=ProcessState())
        except TenureError as error:
            assert_one_line(error)
        if not came:
            assert ended
            return ended
        ended.append((ward, number))
    raise AssertionError("it never came to its end")


def assert_one_line(error: TenureError) -> None:
    assert "\n" not in str(error)


def contents(ward: Ward) -> list[bytes]:
    return [content for content in ward.tree().values() if isinstance(content, bytes)]


@pytest.mark.parametrize("patient", PATIENTS)
def test_two_doctors_heal_once_and_lose_nothing(patient: Step) -> None:
    before = Ward()
    patient(before)
    for ward, number in between(patient, doctor):
        found = status(ward.ports(102), DIRECTORY)
        assert () == found.problems, number
        assert "free" == found.guard.kind, number
        assert "absent" == ward.files.kind(RECOVERY), number
        for content in contents(before):
            assert contents(ward).count(content) == contents(before).count(content), number


@pytest.mark.parametrize("patient", PATIENTS)
def test_an_owner_that_comes_is_never_robbed_of_its_entry(patient: Step) -> None:
    """S36: whoever wrote its entry while the doctor was at work finds it there afterwards."""
    acquired = 0
    for ward, number in between(patient, owner):
        written = [c for c in contents(ward) if c.startswith(b'{"default": {"pid": 77')]
        if written:
            acquired += 1
            assert json.loads(ward.files.read(REGISTRY))["default"]["pid"] == HOLDER, number
        assert "absent" == ward.files.kind(RECOVERY), number
    assert acquired


@pytest.mark.parametrize("patient", [empty_guard, file_guard, old_guard])
def test_who_stands_in_the_guard_by_then_is_not_robbed_of_it(patient: Step) -> None:
    """What looked empty, or was a file, cannot be confused with a directory guard: the file system refuses."""
    came = 0
    for ward, number in between(patient, holder):
        if ward.processes.sighting(HOLDER).state == RUNNING:
            came += 1
            look = status(ward.ports(102), DIRECTORY).guard
            assert ("held", (HOLDER,)) == (look.kind, look.live), number
    assert came > 10
