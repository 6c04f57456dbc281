"""Who wins a lease over whom: by force, election, as the newer runtime, by resuming (locks.md 7.1; A04-A11, A49-50)."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.files.lease import Held, NotOwner, Won
from tenure.adapters.testing.faulty import Call, Fault
from tenure.machines.entry import parse_entry

from .lease_house import LEASE_MS, House, held, owner, won


def test_a04_force_needs_the_exact_owner_that_was_shown(house: House) -> None:
    """A04, S15: another owner meanwhile, another tenure of the same one, or nobody named: refused."""
    first, second, third = (house.process(pid).lease() for pid in (1, 2, 3))
    won(first)
    shown = held(third).entry
    assert shown is not None
    first.release()
    won(second)

    answer = third.acquire("force", shown.owner)
    assert isinstance(answer, Held)
    assert answer.entry is not None
    assert 2 == answer.entry.pid
    assert isinstance(third.acquire("force"), Held)
    second.release()
    won(second)
    assert isinstance(third.acquire("force", answer.entry.owner), Held)
    assert Won(4, "forced", parse_entry(house.registry()["default"])) == third.acquire("force", owner(house))
    assert "other" == second.check()


def test_force_over_nobody_or_a_lease_that_is_over_is_an_ordinary_acquisition(house: House) -> None:
    """locks.md 7.1 A5: the owner that was shown has left meanwhile."""
    first, second = house.process(1).lease(), house.process(2).lease()
    won(first)
    shown = held(second).entry
    assert shown is not None
    first.release()
    assert Won(2, "plain") == second.acquire("force", shown.owner)


def test_a_force_is_compared_at_commit_time(house: House) -> None:
    """A04: the replacement happens between the look and the transaction."""
    first, other = house.process(1).lease(), house.process(2).lease()
    won(first)
    shown = owner(house)
    done: list[Won | Held] = []

    def plan(call: Call) -> Fault | None:
        if call.name == "make_directory" and ".staged." in call.paths[0] and not done:
            done.append(other.acquire("force", shown))
        return None

    lease = house.process(3, plan).lease()
    lease.look()
    answer = lease.acquire("force", shown)
    assert isinstance(done[0], Won)
    assert isinstance(answer, Held)
    assert answer.entry is not None
    assert 2 == answer.entry.pid


def test_a49_an_election_does_not_evict_a_refreshed_lease(house: House) -> None:
    """A49, S16: staleness is judged again at commit time."""
    leader, follower = house.process(1).lease(), house.process(2).lease()
    won(leader)
    house.pause(LEASE_MS + 1)
    view = follower.look()
    assert "stale" == view.state
    assert view.entry is not None
    leader.refresh()

    answer = follower.acquire("elect", view.entry.owner)
    assert isinstance(answer, Held)
    assert "active-elsewhere" == answer.state


def test_a50_an_election_after_nobody_does_not_evict_a_newcomer(house: House) -> None:
    """A50, S17: no expectation is no wildcard, even when the newcomer's lease is over."""
    newcomer, follower = house.process(1).lease(), house.process(2).lease()
    assert "inactive" == follower.look().state
    won(newcomer)
    assert isinstance(follower.acquire("elect"), Held)
    house.pause(LEASE_MS + 1)
    assert isinstance(follower.acquire("elect"), Held)


def test_an_election_wins_over_exactly_the_stale_owner_seen_or_over_nobody(house: House) -> None:
    """locks.md 7.1 A2; the second of two candidates has seen another owner."""
    leader, first, second, third = (house.process(pid).lease() for pid in (1, 2, 3, 4))
    won(leader)
    house.pause(LEASE_MS + 1)
    seen = owner(house)
    for candidate in (first, second):
        candidate.look()

    answer = first.acquire("elect", seen)
    assert isinstance(answer, Won)
    assert "election" == answer.how
    assert isinstance(second.acquire("elect", seen), Held)
    house.pause(LEASE_MS + 1)
    assert isinstance(second.acquire("elect", seen), Held), "another owner than expected, though stale"
    first.release()
    assert isinstance(third.acquire("elect", seen), Won), "nobody owns: whatever was expected"


def test_an_election_is_compared_at_commit_time(house: House) -> None:
    """S16: between the look and the transaction another candidate wins, and dies: that is another owner."""
    leader, other = house.process(1).lease(), house.process(2).lease()
    won(leader)
    seen = owner(house)
    house.die(1)
    done: list[Won | Held] = []

    def plan(call: Call) -> Fault | None:
        if call.name == "make_directory" and ".staged." in call.paths[0] and not done:
            done.append(other.acquire("elect", seen))
            house.die(2)
        return None

    lease = house.process(3, plan).lease()
    lease.look()
    answer = lease.acquire("elect", seen)
    assert isinstance(done[0], Won)
    assert isinstance(answer, Held)
    assert "stale" == answer.state
    assert answer.entry is not None
    assert 2 == answer.entry.pid


def test_a07_only_a_newer_runtime_of_a_process_takes_over(house: House) -> None:
    """A07, S18, V9: a plain acquisition does it; the older one never gets it back."""
    dweller = house.process(1)
    old = dweller.lease()
    new = dweller.lease()
    won(old)
    assert "active-here" == new.look().state

    answer = new.acquire("plain")
    assert isinstance(answer, Won)
    assert "superseding" == answer.how
    for mode in ("plain", "supersede"):
        assert isinstance(old.acquire(mode), Held)  # type: ignore[arg-type]
    assert isinstance(old.acquire("force", owner(house)), Held)
    house.pause(LEASE_MS + 1)
    assert isinstance(old.acquire("plain"), Held), "also when the lease has passed"
    assert "other" == old.refresh()


def test_a_newer_runtime_of_another_directory_is_no_reload(house: House) -> None:
    """locks.md 7.1: supersession needs the same directory."""
    dweller = house.process(1)
    old, new = dweller.lease(cwd="/here"), dweller.lease(cwd="/elsewhere")
    won(old)

    assert isinstance(new.acquire("plain"), Held)
    assert isinstance(new.acquire("supersede"), Held)


def test_a08_an_equal_instance_id_is_no_ownership(house: House) -> None:
    """A08: two runtimes with equal ids (those of one millisecond are given different ones) have different
    generations."""
    dweller = house.process(1)
    assert dweller.lease().instance_id != dweller.lease().instance_id
    first, second = dweller.lease(instance_id="1:1"), dweller.lease(instance_id="1:1")
    won(first)

    assert not second.look().mine
    assert ("other", None) == (second.refresh(), second.epoch)
    with pytest.raises(NotOwner):
        second.commit(lambda epoch: pytest.fail("ran"))
    assert isinstance(second.acquire("supersede"), Won)
    assert "other" == first.check()


def test_a11_a_tenure_is_of_one_key(house: House) -> None:
    """A11, S22: two keys of one process do not touch each other."""
    dweller = house.process(1)
    default, work = dweller.lease("default"), dweller.lease("work")
    won(default)
    house.write(house.registry() | {"work": {"pid": 1}})
    text = house.text()
    work.release()
    assert text == house.text()
    assert not work.look().mine
    default.release()
    assert {"work": {"pid": 1}} == house.registry()


def test_resume_replaces_exactly_what_was_observed_and_creates_nothing(house: House) -> None:
    """S33, A38: a session that resumes; the heartbeat is fresh afterwards."""
    gone, lease = house.process(1).lease(), house.process(2).lease()
    won(gone)
    observed = owner(house)
    assert isinstance(lease.acquire("resume", observed), Held), "it lives"
    house.die(1)
    assert Held(None, "inactive") == _without_entry(house, lambda: lease.acquire("resume", observed))
    other = attrs.evolve(observed, runtime_generation=1)
    assert isinstance(lease.acquire("resume", other), Held)
    assert isinstance(lease.acquire("resume"), Held)

    assert isinstance(lease.acquire("resume", observed), Won)
    assert house.clock.wall == house.registry()["default"]["heartbeatMs"]


def test_a_resume_is_compared_at_commit_time(house: House) -> None:
    """S33: between the look and the transaction another session takes it over, and dies: that is another owner."""
    gone, other = house.process(1).lease(), house.process(2).lease()
    won(gone)
    observed = owner(house)
    house.die(1)
    done: list[Won | Held] = []

    def plan(call: Call) -> Fault | None:
        if call.name == "make_directory" and ".staged." in call.paths[0] and not done:
            done.append(other.acquire("resume", observed))
            house.die(2)
        return None

    lease = house.process(3, plan).lease()
    lease.look()
    answer = lease.acquire("resume", observed)
    assert isinstance(done[0], Won)
    assert "resume" == done[0].how
    assert isinstance(answer, Held)
    assert "stale" == answer.state
    assert answer.entry is not None
    assert 2 == answer.entry.pid


def test_resume_takes_over_from_an_older_runtime(house: House) -> None:
    """9.4: same process, exactly the entry observed."""
    dweller = house.process(1)
    old, new = dweller.lease(), dweller.lease()
    won(old)

    assert isinstance(new.acquire("resume", attrs.evolve(owner(house), leader_epoch=7)), Held)
    assert isinstance(new.acquire("resume", owner(house)), Won)


def _without_entry(house: House, ask: Callable[[], Won | Held]) -> Won | Held:
    registry = house.registry()
    house.write({})
    answer = ask()
    assert {} == house.registry()
    house.write(registry)
    return answer
