"""A lease on a registry: acquired, renewed, given up; what others have there stays theirs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardBusy
from tenure.adapters.files.lease import NotOwner, Won
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Call, Fault, Kills, nth

from .lease_house import House, foreign, held, owner, won


def test_a_look_writes_nothing_and_makes_no_directory(house: House) -> None:
    """locks.md 4: a plain read takes no guard; there is nothing to make for it."""
    lease = house.process(1).lease()

    view = lease.look()
    assert (None, "inactive", False, True, "") == attrs.astuple(view, recurse=False)
    assert () == house.inner.entries(house.directory.root)
    assert "other" == lease.check()
    assert "other" == lease.refresh()
    assert () == house.inner.entries(house.directory.root)


def test_a_first_acquisition(house: House) -> None:
    """locks.md 2.1: the entry has all fields, and ours beyond the format; the mark is raised; nothing else is left."""
    lease = house.process(3, ticks=4).lease()
    answer = lease.acquire("plain")

    assert Won(1, "plain", None) == answer
    assert {
        "default": {
            "pid": 3,
            "cwd": "/here",
            "instanceId": f"3:{house.clock.wall}",
            "heartbeatMs": house.clock.wall,
            "leaderEpoch": 1,
            "runtimeGeneration": house.clock.wall,
            "processBirth": {"ticks": 4, "bootId": house.first.boot_id, "pidNamespace": 1},
            "monotonicMs": house.clock.monotonic,
        }
    } == house.registry()
    assert 1 == house.mark()
    assert [] == house.left()
    assert "owner" == lease.phase
    assert 1 == lease.epoch
    assert "mine" == lease.check()
    assert lease.look().mine


def test_modes_of_what_is_written(tmp_path: Path) -> None:
    """Files 0600, directories 0700 (locks.md 2)."""
    house = House(PosixFiles(), str(tmp_path))
    won(house.process(1).lease())

    state = tmp_path / "tmp" / "telegram"
    assert [0o700, 0o700] == [p.stat().st_mode & 0o777 for p in (state.parent, state)]
    assert [0o600, 0o600] == [(state / n).stat().st_mode & 0o777 for n in ("owners.json", "epochs.json")]


def test_a_refresh_renews_heartbeat_and_stamp_and_nothing_else(house: House) -> None:
    """locks.md 7.2: pid, cwd, epoch and generation stay."""
    lease = house.process(1).lease()
    won(lease)
    before = house.registry()["default"]
    house.pause(2_000)

    assert "mine" == lease.refresh()
    after = house.registry()["default"]
    assert before | {"heartbeatMs": house.clock.wall, "monotonicMs": house.clock.monotonic} == after


def test_a_refresh_does_not_sync() -> None:
    """DESIGN 10: only the mark is durable."""
    dweller = House().process(1)
    lease = dweller.lease()
    won(lease)
    dweller.files.calls.clear()
    lease.refresh()

    assert "sync" not in {call.name for call in dweller.files.calls}


def test_a_refresh_keeps_a_secret_that_is_not_ours_to_choose(house: House) -> None:
    """locks.md 2.1: the secret is that of the runtime, or the stored one."""
    lease, other = house.process(1).lease(), house.process(2).lease("work", bus_secret="mine")
    won(lease)
    won(other)
    registry = house.registry()
    registry["default"]["busSecret"] = registry["work"]["busSecret"] = "stored"
    house.write(registry)
    assert ("mine", "mine") == (lease.refresh(), other.refresh())

    assert "stored" == house.registry()["default"]["busSecret"]
    assert "mine" == house.registry()["work"]["busSecret"]


def test_release_deletes_the_own_entry_and_the_next_epoch_is_higher(house: House) -> None:
    """A10: epochs never repeat, whatever the clock says; the mark outlives the entry."""
    first, second = house.process(1).lease(), house.process(2).lease()
    assert 1 == won(first).epoch
    first.release()
    assert {} == house.registry()
    assert ("idle", None) == (first.phase, first.epoch)
    assert 2 == won(second).epoch
    second.release()
    assert 3 == won(first).epoch
    with pytest.raises(NotOwner):
        second.commit(lambda epoch: pytest.fail("a stale clean-up was run"))


def test_an_owner_that_acquires_again_keeps_and_renews(house: House) -> None:
    """locks.md 7.1 A1."""
    lease = house.process(1).lease()
    won(lease)
    house.pause(5_000)

    assert Won(1, "kept") == lease.acquire("plain")
    assert Won(1, "kept") == lease.acquire("force", owner(house))
    assert Won(1, "kept") == lease.acquire("elect")
    assert Won(1, "kept") == lease.acquire("resume")
    assert house.clock.wall == house.registry()["default"]["heartbeatMs"]


def test_a01_of_two_that_acquire_one_is_refused_with_the_winners_entry(house: House) -> None:
    """A01, also when the second comes while the first is inside."""
    second = house.process(2).lease()
    busy: list[TenureError] = []

    def plan(call: Call) -> Fault | None:
        if call.name == "rename" and call.paths[1] == house.directory.registry and not busy:
            with pytest.raises(GuardBusy) as caught:
                second.acquire("plain")
            busy.append(caught.value)
        return None

    first = house.process(1, plan).lease()
    assert isinstance(first.acquire("plain"), Won)
    assert busy
    answer = held(second)
    assert answer.entry is not None
    assert owner(house) == answer.entry.owner
    assert ("active-elsewhere", 1) == (answer.state, answer.entry.pid)


def test_a02_sibling_keys_and_foreign_programs_survive(house: House) -> None:
    """A02, S11: every member that is not ours stays, byte for byte."""
    house.write(b'{ "@other/tool" :{"x":1.0,"y":"\\u0041" , "z":[1e3]},"work":{"pid":50}\n}\n')
    house.first.start(50)
    lease = house.process(1).lease()
    won(lease)
    house.pause(1_000)
    lease.refresh()
    text = house.text() or b""

    assert b'{ "@other/tool" :{"x":1.0,"y":"\\u0041" , "z":[1e3]},"work":{"pid":50}' == text[: text.index(b',\n  "def')]
    assert text.endswith(b"\n}\n")
    lease.release()
    assert b'{ "@other/tool" :{"x":1.0,"y":"\\u0041" , "z":[1e3]},"work":{"pid":50}\n}\n' == house.text()


def test_a05_release_deletes_only_its_exact_entry(house: House) -> None:
    """A05, S23: neither a foreign stale entry, nor that of whoever replaced us."""
    foreign(house, heartbeatMs=1)
    bystander = house.process(1).lease()
    text = house.text()
    bystander.release()
    assert text == house.text()

    lease = house.process(2).lease()
    assert "stale" == lease.look().state
    won(lease)
    foreign(house)
    text = house.text()
    lease.release()
    assert text == house.text()
    assert "idle" == lease.phase


def test_temporary_files_of_the_dead_are_swept() -> None:
    """K10: of the registry and of the mark, a while after the death of whoever wrote them."""
    house = House()
    for ticks, call in enumerate(("create", "create", "sync", "rename", "rename"), 1):
        dweller = house.process(5, nth(call, ticks % 3 + 1, Kills("after")), ticks=ticks)
        with suppress(Killed):
            dweller.lease().acquire("plain")
        house.die(5)
    lease = house.process(1).lease()
    won(lease)
    assert [name for name in house.left() if name.startswith("epochs.json.5.")]
    for _ in range(4):
        house.pause(9_000)
        lease.refresh()
    assert [] == house.left()
