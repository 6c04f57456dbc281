"""Memory follows the file: what failed, what nobody knows, what was broken off (K9, law Unknown)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

import pytest

from tenure.adapters.files.guard import GuardLost
from tenure.adapters.files.lease import Held, Won
from tenure.adapters.files.registry import RegistryDamaged
from tenure.adapters.files.replacing import WriteFailed
from tenure.adapters.testing.faulty import Call, Fails, Fault

from .lease_house import House, LosesGuard, foreign, renames_registry, won


def test_k9a_a_release_that_fails_keeps_the_lease() -> None:
    """K9 a: the write fails; the entry is there, and it is ours, in memory as well."""
    house = House()
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    dweller.files.plan = renames_registry(house, Fails(errno.ENOSPC))
    with pytest.raises(WriteFailed, match=r"owners\.json: was not written: No space left"):
        lease.release()
    assert ("owner", "mine", []) == (lease.phase, lease.check(), house.left())
    lease.release()
    assert {} == house.registry()


def test_k9b_a_refresh_that_fails_changes_nothing() -> None:
    """K9 b: the tenure in memory is the one in the file, and its age is that of the last lease written."""
    house = House()
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    text = house.text()
    house.pause(5_000)
    dweller.files.plan = renames_registry(house, Fails(errno.EBUSY), times=3)
    assert "unknown" == lease.refresh()
    assert (text, "mine", 1) == (house.text(), lease.check(), lease.epoch)
    assert "owners.json" in str(dweller.notes.said("lock", "refresh")[0]["error"])
    house.pause(3_000)
    assert lease.lease_passed()


def test_k9c_an_error_on_the_way_out_does_not_lose_a_lease_that_is_written() -> None:
    """K9 c: somebody tampered with the guard; the registry names us, and we know it."""
    house = House()

    tampered: list[int] = []
    dweller = house.process(1)

    def tamper(call: Call) -> Fault | None:
        if call.name == "rename" and call.paths[1] == house.directory.registry and not tampered:
            tampered.append(1)
            (name,) = house.inner.entries(house.directory.guard)
            house.inner.unlink(f"{house.directory.guard}/{name}")
        return None

    dweller.files.plan = tamper
    lease = dweller.lease()
    assert Won(1, "plain") == lease.acquire("plain")
    assert ("owner", "mine", 1) == (lease.phase, lease.check(), lease.may_send())
    assert dweller.notes.said("lock", "leave")


def test_after_a_lost_guard_the_file_decides() -> None:
    """X1: whoever was inside as well may have written over it; then we own nothing."""
    house = House()
    lease = house.process(1).lease(guard=LosesGuard(lambda: foreign(house)))
    answer = lease.acquire("plain")

    assert isinstance(answer, Held)
    assert answer.entry is not None
    assert (50, "idle", None) == (answer.entry.pid, lease.phase, lease.epoch)


def test_a_commit_that_may_not_have_been_alone_says_so() -> None:
    """X1: it has run."""
    house = House()
    guard = LosesGuard(lambda: None)
    lease = house.process(1).lease(guard=guard)
    won(lease)
    ran: list[int] = []
    with pytest.raises(GuardLost):
        lease.commit(ran.append)
    assert ([1], "owner", "mine") == (ran, lease.phase, lease.refresh())


@pytest.mark.parametrize("landed", [False, True])
def test_an_acquisition_that_nobody_can_say_of_is_read_again(landed: bool) -> None:
    """Unknown: an EIO from the rename. The file decides, at once."""
    house = House()
    dweller = house.process(1, renames_registry(house, Fails(errno.EIO, "after" if landed else "before")))
    lease = dweller.lease()
    if landed:
        assert Won(1, "resolved") == lease.acquire("plain")
        assert (1, False) == (lease.may_send(), lease.lease_passed())
    else:
        with pytest.raises(WriteFailed, match="may or may not have been written"):
            lease.acquire("plain")
        assert ("idle", None) == (lease.phase, house.text())
    assert [] == house.left()


@pytest.mark.parametrize("landed", [False, True])
def test_a_doubt_stays_until_it_can_be_read(landed: bool) -> None:
    """K9: neither success nor failure; nothing is sent, the next operation reads first."""
    house = House()
    dweller = house.process(1)
    lease = dweller.lease()
    blind = False

    def plan(call: Call) -> Fault | None:
        nonlocal blind
        if call.name == "rename" and call.paths[1] == house.directory.registry and not blind:
            blind = True
            return Fails(errno.EIO, "after" if landed else "before")
        if call.name == "read" and call.paths[0] == house.directory.registry and blind:
            return Fails(errno.EIO)
        return None

    dweller.files.plan = plan
    with pytest.raises(WriteFailed):
        lease.acquire("plain")
    assert ("doubtful", None, "unknown") == (lease.phase, lease.may_send(), lease.check())
    assert 1 == lease.epoch
    assert "unknown" == lease.refresh()
    with pytest.raises(RegistryDamaged):
        lease.release()
    assert "doubtful" == lease.phase
    dweller.files.plan = None
    assert "unknown" == lease.check(), "a plain read resolves nothing"
    assert ("mine" if landed else "other") == lease.refresh()
    assert ("owner" if landed else "idle") == lease.phase


def test_a_doubtful_release() -> None:
    """The deletion was done, or not: the file says."""
    house = House()
    dweller = house.process(1)
    for when, left in (("before", True), ("after", False)):
        lease = dweller.lease()
        won(lease)
        dweller.files.plan = renames_registry(house, Fails(errno.EIO, "after" if when == "after" else "before"))
        if left:
            with pytest.raises(WriteFailed):
                lease.release()
            assert ("owner", "mine") == (lease.phase, lease.check())
            lease.release()
        else:
            lease.release()
        assert ("idle", {}) == (lease.phase, house.registry())


@pytest.mark.parametrize("name", ["read", "create", "sync", "rename"])
@pytest.mark.parametrize("operation", ["acquire", "refresh", "release", "commit"])
def test_an_interrupt_at_any_call_is_survived(name: str, operation: str) -> None:
    """Ctrl-C is no death: the runtime goes on, with what the file says; and nobody is locked out."""
    for number in range(1, 9):
        house = House()
        dweller = house.process(1)
        lease = dweller.lease()
        if operation != "acquire":
            won(lease)
        seen = 0

        def plan(call: Call, number: int = number) -> Fault | None:
            nonlocal seen
            if call.name == name:
                seen += 1
                if seen == number:
                    raise KeyboardInterrupt
            return None

        dweller.files.plan = plan
        operations: Mapping[str, Callable[[], object]] = {
            "acquire": lambda lease=lease: lease.acquire("plain"),
            "refresh": lease.refresh,
            "release": lease.release,
            "commit": lambda lease=lease: lease.commit(lambda epoch: None),
        }
        try:
            operations[operation]()
        except KeyboardInterrupt:
            pass
        else:
            return
        dweller.files.plan = None
        answer = lease.acquire("plain")
        assert isinstance(answer, Won)
        assert ("owner", "mine", [answer.epoch]) == (
            lease.phase,
            lease.refresh(),
            [house.registry()["default"]["leaderEpoch"]],
        )
