"""Every call of every operation of a lease fails with every error, or is the process's last; then all others go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import Held, LeaseRuntime, Won
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, Fault, Kills
from tenure.machines.entry import Entry, parse_entry
from tenure.machines.identity import same_owner

from .lease_house import Dweller, House

OTHERS = b'{ "@other/tool" :{"x":1.0,"y":"\\u0041"} , "work":{"pid":50,"n":1e3}'
"""What is not ours, as it stands in the file."""
STALE = b',"default":{"pid":60,"leaderEpoch":7}}'

Operation = Callable[[LeaseRuntime], object]
OPERATIONS: Mapping[str, tuple[bool, bytes, Operation]] = {
    "acquire_free": (False, b"}", lambda lease: lease.acquire("plain")),
    "acquire_stale": (False, STALE, lambda lease: lease.acquire("plain")),
    "acquire_again": (True, b"}", lambda lease: lease.acquire("plain")),
    "elect": (False, STALE, lambda lease: lease.acquire("elect", _look(lease))),
    "refresh": (True, b"}", lambda lease: lease.refresh()),
    "release": (True, b"}", lambda lease: lease.release()),
    "commit": (True, b"}", lambda lease: lease.commit(lambda epoch: epoch)),
}
"""By name: whether the runtime owns already, what else is in the registry, and what it does then."""


def _look(lease: LeaseRuntime) -> object:
    entry = lease.look().entry
    return None if entry is None else entry.owner


@attrs.define
class Scene:
    """One runtime of process 1, about to do something."""

    house: House
    dweller: Dweller
    lease: LeaseRuntime
    operation: Operation

    def arm(self, number: int, fault: Fault) -> None:
        """The call with that number, counted from now, has that fault."""
        first = len(self.dweller.files.calls)

        def plan(call: Call) -> Fault | None:
            return fault if call.number - first == number else None

        self.dweller.files.plan = plan

    def entry(self) -> Entry | None:
        return parse_entry(self.house.registry().get("default"))

    def written_here(self) -> bool:
        """Whether the file names this runtime's generation."""
        entry = self.entry()
        return entry is not None and (1, self.lease.data.generation) == (entry.pid, entry.runtime_generation)

    def others_are_untouched(self) -> None:
        text = self.house.text()
        assert text is not None
        assert text.startswith(OTHERS)


def scene(name: str) -> Scene:
    owns, rest, operation = OPERATIONS[name]
    house = House()
    house.write(OTHERS + rest)
    dweller = house.process(1)
    lease = dweller.lease()
    if owns:
        assert isinstance(lease.acquire("plain"), Won)
    return Scene(house, dweller, lease, operation)


@cache
def calls_of(name: str) -> int:
    """How many calls on files the operation makes undisturbed."""
    played = scene(name)
    before = len(played.dweller.files.calls)
    played.operation(played.lease)
    return len(played.dweller.files.calls) - before


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", ERRORS, ids=os.strerror)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_call_that_fails(name: str, number: int, when: str) -> None:
    """Memory and file agree, or nobody knows and the runtime is doubtful; others' members are what they were; the same
    runtime and another process go on at once."""
    for call in range(calls_of(name)):
        played = scene(name)
        house, lease = played.house, played.lease
        played.arm(call, Fails(number, "before" if when == "before" else "after"))
        before = lease.epoch
        answer: object = None
        said = ""
        try:
            answer = played.operation(lease)
        except TenureError as error:
            said = str(error)
        assert not said or (house.directory.root in said and "\n" not in said)
        where = f"call {call} ({played.dweller.files.calls[-1]}), {answer=}, {lease.phase=}"

        played.others_are_untouched()
        tenure, entry = lease.data.tenure, played.entry()
        if lease.phase == "owner":
            assert tenure is not None, where
            assert same_owner(tenure.owner, None if entry is None else entry.owner), where
        elif lease.phase == "idle":
            assert not played.written_here(), where
        else:
            assert "doubtful" == lease.phase, where
            assert said or answer == "unknown", where
        if isinstance(answer, Won):
            assert ("owner", answer.epoch) == (lease.phase, lease.epoch), where
        if name in ("refresh", "commit", "acquire_again"):
            assert "owner" == lease.phase, f"an error is no loss (K6): {where}"
            assert before == lease.epoch, where

        assert all(left.startswith("owners.json.transaction.") for left in house.left()), where
        played.dweller.files.plan = None
        again = lease.acquire("plain")
        assert isinstance(again, Won), where
        assert played.written_here(), where
        other = house.process(2).lease()
        refused = other.acquire("plain")
        assert isinstance(refused, Held), where
        lease.release()
        later = other.acquire("plain")
        assert isinstance(later, Won), where
        assert later.epoch > again.epoch, where
        played.others_are_untouched()


@pytest.mark.parametrize("how", ["before", "after", "empty", "torn"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_call_that_is_the_last(name: str, how: str) -> None:
    """A death anywhere: the next process acquires at once, with a new epoch, and nobody's members are lost."""
    faults: Mapping[str, Kills] = {
        "before": Kills("before"),
        "after": Kills("after"),
        "empty": Kills(torn=0),
        "torn": Kills(torn=9),
    }
    for call in range(calls_of(name)):
        played = scene(name)
        house = played.house
        epochs = [house.mark()]
        played.arm(call, faults[how])
        with pytest.raises(Killed):
            played.operation(played.lease)
        house.die(1)
        played.others_are_untouched()
        entry = played.entry()
        if entry is not None and isinstance(entry.leader_epoch, int):
            epochs.append(entry.leader_epoch)
            assert house.mark() >= entry.leader_epoch or entry.pid == 60, "durable first: the mark before the entry"
        other = house.process(2).lease()
        answer = other.acquire("plain")
        assert isinstance(answer, Won), f"call {call}"
        assert answer.epoch > max(epochs)
        played.others_are_untouched()
        assert ["mine", answer.epoch] == [other.refresh(), other.commit(lambda epoch: epoch)]
        other.release()
        played.others_are_untouched()


@pytest.mark.parametrize("name", OPERATIONS)
def test_undisturbed(name: str) -> None:
    """The scenes themselves: nothing fails, nothing is left."""
    played = scene(name)
    played.operation(played.lease)
    played.others_are_untouched()
    assert ("idle" if name == "release" else "owner") == played.lease.phase
    assert [] == played.house.left()
