"""What dead processes leave is swept, what the living need stays, and nothing else is touched (K10)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.files.debris import UNCHANGED_MS, debris, staged_pid, staged_word, sweep
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Kills
from tenure.adapters.testing.memory import MemoryFiles
from tenure.machines.guard_name import GREATEST_PID, Payload, marker, render_name, render_payload
from tenure.machines.identity import Birth, Process

from .guard_room import DIRECTORY, GUARD, RESOURCE, Room, count_calls, one_fault

UUID = "01234567-89ab-4cde-8f01-23456789abcd"


def lay(room: Room, path: str, name: str = "", text: bytes = b"") -> None:
    """A directory with at most one file."""
    assert isinstance(room.inner, MemoryFiles)
    room.inner.make_directory(path)
    if name:
        room.inner.create(f"{path}/{name}", text)


def payload(pid: int, birth: Birth | None = None) -> bytes:
    """An owner file's text."""
    return json.dumps(render_payload(Payload(pid, 1, "g", birth))).encode()


def test_the_debris_of_the_dead_goes_and_that_of_the_living_stays() -> None:
    """Each kind, of a process that lives (5), of one that is dead (6), of a pid that another process has now (7)."""
    room = Room()
    member = room.member(2)
    room.first.start(5)
    room.first.start(7, ticks=2)
    boot = room.first.boot_id
    for number, (pid, birth) in enumerate([(5, None), (6, None), (7, Birth(1, boot, 1))]):
        lay(room, f"{GUARD}.staged.abcde{number}", "owner.g.json", payload(pid, birth))
        lay(room, f"{GUARD}.released.{UUID[:-1]}{number}", "owner.g.json", payload(pid, birth))
        claim = render_name(marker(pid, birth or Birth(1, boot, 1), number))
        lay(room, f"{GUARD}.stale.{pid}.{UUID[:-1]}{number}", claim, payload(9))
    assert len(debris(member.ports, RESOURCE)) == 9

    removed = sweep(member.ports, RESOURCE, {})

    assert len(removed) == 6
    kept = [f".released.{UUID[:-1]}0", ".staged.abcde0", f".stale.5.{UUID[:-1]}0"]
    assert room.left() == [f"owners.json.transaction{name}" for name in sorted(kept)]


def test_a_file_guard_of_an_old_version_that_was_moved_away_goes_with_whoever_moved_it() -> None:
    room = Room()
    member = room.member(2)
    room.first.start(5)
    suspects: dict[str, int] = {}
    assert isinstance(room.inner, MemoryFiles)
    for number, guard in enumerate((GUARD, f"{GUARD}.recovery", f"{GUARD}.recovery.migration")):
        for pid in (5, 6):
            room.inner.create(f"{guard}.stale.{pid}.{UUID[:-1]}{number}", payload(9))
    assert () == sweep(member.ports, RESOURCE, suspects)
    room.clock.advance(UNCHANGED_MS + 1)
    assert 3 == len(sweep(member.ports, RESOURCE, suspects))
    assert [True] * 3 == [".stale.5." in name for name in room.left()]


def test_what_names_nobody_lies_a_while_first() -> None:
    """An empty staged directory is made a moment before its file; a temporary file a moment before it is renamed."""
    room = Room()
    member = room.member(2)
    assert isinstance(room.inner, MemoryFiles)
    lay(room, f"{GUARD}.staged.zzzzzz")
    lay(room, f"{GUARD}.staged.{staged_word(member.processes.me(), 1)}")
    room.inner.create(f"{RESOURCE}.6.1.1.tmp", b"{}")
    room.inner.create(f"{RESOURCE}.2.1.1.tmp", b"{}")
    suspects: dict[str, int] = {}

    assert sweep(member.ports, RESOURCE, suspects) == ()
    room.clock.advance(UNCHANGED_MS)
    assert sweep(member.ports, RESOURCE, suspects) == ()
    room.clock.advance(1)
    assert len(sweep(member.ports, RESOURCE, suspects)) == 2
    assert len(room.left()) == 2
    assert suspects == {}


def test_an_empty_one_that_was_moved_away_is_needed_by_nobody() -> None:
    """Its owner was about to remove it."""
    room = Room()
    lay(room, f"{GUARD}.released.{UUID}")
    lay(room, f"{GUARD}.stale.5.{UUID}")
    room.first.start(5)

    assert len(sweep(room.member(2).ports, RESOURCE, {})) == 2


@pytest.mark.parametrize(
    "name",
    ["owners.json", "owners.json.bak", "owners.json.transaction.staged.abc", "config.json.transaction.staged.abcdef",
     f"owners.json.transaction.stale.0.{UUID}", "owners.json.x.1.1.tmp", "telegram.json.6.1.1.tmp"],
)  # fmt: skip
def test_what_is_no_debris_of_this_guard_is_left_alone(name: str) -> None:
    """Other names, other resources."""
    room = Room()
    lay(room, f"{DIRECTORY}/{name}")

    assert debris(room.member(2).ports, RESOURCE) == ()


@pytest.mark.parametrize("number", range(count_calls()))
def test_whatever_a_process_dies_of_its_debris_is_gone_in_the_end(number: int) -> None:
    """Killed at each of its calls, and two sweeps of another process later the directory is clean."""
    for fault in (Kills("before"), Kills("after"), Kills(torn=3)):
        room = Room()
        with pytest.raises(Killed):
            room.member(3, one_fault(number, fault)).file.run(lambda inside: None)
        room.die(3)
        member = room.member(2)
        for _ in range(2):
            member.file.run(lambda inside: None)
            room.clock.advance(UNCHANGED_MS + 1)
        member.file.run(lambda inside: None)
        assert room.left() == []


@given(st.integers(1, 2**22 - 1), st.integers(0, 2**13 - 1))
def test_a_staged_name_says_who_made_it(pid: int, random: int) -> None:
    """Six characters, and the pid in them."""
    word = staged_word(Process(pid, Birth(1, "boot", 1)), random)

    assert len(word) == 6
    assert word.isalnum()
    assert staged_pid(word) == pid
    assert pid < GREATEST_PID
