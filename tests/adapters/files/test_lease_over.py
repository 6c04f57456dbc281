"""When the lease in an entry is over: death, age, clocks, foreign entries (locks.md 5; A13, A28, K2, K12, K14)."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import Held, Won
from tenure.machines.entry import Entry, parse_entry, render_entry
from tenure.machines.identity import Birth
from tenure.machines.lease import MAX_EPOCH

from .lease_house import LEASE_MS, House, foreign, held, won


def test_a13_a_live_pid_whose_lease_has_passed_blocks_nobody(house: House) -> None:
    """A13: exactly so old is not over."""
    hung, lease = house.process(1).lease(), house.process(2).lease()
    won(hung)
    house.pause(LEASE_MS)
    assert "active-elsewhere" == held(lease).state
    house.pause(1)
    assert Won(2, "plain", parse_entry(house.registry()["default"])) == lease.acquire("plain")


def test_a_dead_owner_is_replaced_at_once(house: House) -> None:
    """locks.md 5: death wins over a fresh heartbeat."""
    dead, lease = house.process(1).lease(), house.process(2).lease()
    won(dead)
    house.die(1)
    assert "stale" == lease.look().state
    won(lease)


def test_a28_a_pid_that_is_another_processs_is_no_live_owner(house: House) -> None:
    """A28, K1: another birth under the pid; and for a foreign entry, an expired heartbeat."""
    dead = house.process(1).lease()
    won(dead)
    house.first.start(1, 77)
    won(house.process(2).lease())
    foreign(house, heartbeatMs=house.clock.wall - 600_000)
    won(house.process(3).lease())


def test_k2_an_entry_of_a_process_that_had_my_pid_is_stale(house: House) -> None:
    """K2: pid 7 in every run of a container, another directory: no permanent refusal."""
    won(house.process(7, ticks=1).lease(cwd="/elsewhere"))
    lease = house.process(7, ticks=2).lease(cwd="/here")

    assert "stale" == lease.look().state
    won(lease)


def test_k12_a_heartbeat_from_the_future_is_watched(house: House) -> None:
    """K12: a foreign heartbeat from the future bars for one lease that this reader has seen it unchanged, not longer;
    a renewal begins anew."""
    foreign(house)
    house.clock.step(-3_600_000)
    lease = house.process(1).lease()
    assert "active-elsewhere" == held(lease).state
    house.pause(LEASE_MS)
    foreign(house, heartbeatMs=house.clock.wall + 1_000_000)
    assert "active-elsewhere" == held(lease).state
    house.pause(LEASE_MS)
    assert "active-elsewhere" == held(lease).state
    house.pause(1)
    won(lease)


def test_a_step_of_the_clock_evicts_none_of_ours(house: House) -> None:
    """DESIGN 10: the stamp decides among us, in both directions."""
    leader, other = house.process(1).lease(), house.process(2).lease()
    won(leader)
    house.clock.step(3_600_000)
    assert "active-elsewhere" == held(other).state
    house.clock.step(-7_200_000)
    assert "active-elsewhere" == held(other).state
    house.pause(LEASE_MS + 1)
    won(other)


def test_k14_an_equal_pid_of_another_namespace_is_neither_me_nor_dead(house: House) -> None:
    """K14: its lease decides, not its pid."""
    entry = Entry(1, "/here", "1:1", house.clock.wall, 4, 1, birth=Birth(1, house.first.boot_id, 2), stamp_ms=0)
    house.write({"default": render_entry(attrs.evolve(entry, stamp_ms=house.clock.monotonic))})
    lease = house.process(1).lease()
    house.first.kill(1)
    assert "active-elsewhere" == held(lease).state
    assert isinstance(lease.acquire("supersede"), Held)
    house.pause(LEASE_MS + 1)
    assert 5 == won(lease).epoch


def test_an_owner_of_an_earlier_boot_is_dead(house: House) -> None:
    """A reboot is proof."""
    entry = Entry(1, "/here", "1:1", house.clock.wall, 4, 1, birth=Birth(1, "earlier", 1), stamp_ms=0)
    house.write({"default": render_entry(entry)})
    won(house.process(1).lease())


def test_an_implausible_pid_bars_until_its_heartbeat_is_old(house: House) -> None:
    """DESIGN 10: readable but implausible is not dead."""
    for pid in (0, -5, 1.5):
        foreign(house, pid=pid)
        lease = house.process(1).lease()
        assert "active-elsewhere" == held(lease).state
        house.pause(LEASE_MS + 1)
        won(lease)


@pytest.mark.parametrize("epoch", ["a-uuid", 1.5, None, 41, MAX_EPOCH, 1e300])
def test_epochs_of_foreign_owners(house: House, epoch: object) -> None:
    """DESIGN 10: integers are ordered, strings are only compared; past the last there is none."""
    foreign(house, leaderEpoch=epoch, heartbeatMs=1)
    lease = house.process(1).lease()
    if epoch in (MAX_EPOCH, 1e300):
        text = house.text()
        with pytest.raises(TenureError, match=r"owners.json: default.leaderEpoch is so high that no epoch is left"):
            lease.acquire("plain")
        assert ("idle", text, 0) == (lease.phase, house.text(), house.mark())
        assert [] == house.left()
    else:
        assert (42 if epoch == 41 else 1) == won(lease).epoch
