"""A lease on a registry: who wins, who is refused, what a displaced owner can do. Scenarios A and holes K by name."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardBusy, GuardDamaged, GuardLost
from tenure.adapters.files.high_water import MarkDamaged
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import Held, LeaseRuntime, NotOwner, Won
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.registry import RegistryDamaged
from tenure.adapters.files.replacing import WriteFailed
from tenure.adapters.ports import Recorder
from tenure.adapters.testing.faulty import Call, Fails, Fault
from tenure.adapters.testing.memory import FakeProcesses
from tenure.machines.entry import Entry, parse_entry, render_entry
from tenure.machines.identity import Birth, Owner
from tenure.machines.lease import MAX_EPOCH

from .lease_house import House

LEASE_MS = 8_000
FOREIGN = {"pid": 50, "cwd": "/there", "instanceId": "50:1", "leaderEpoch": "e0", "runtimeGeneration": 5}


@pytest.fixture(params=["memory", "real"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The same contract in memory and in a real directory; clocks and processes are ours in both.
    Whatever a test does: no guard and no temporary file is left."""
    made = House() if request.param == "memory" else House(PosixFiles(), str(tmp_path))
    yield made
    if made.inner.kind(made.directory.state) == "directory":
        assert [] == made.left()


def won(lease: LeaseRuntime) -> Won:
    answer = lease.acquire("plain")
    assert isinstance(answer, Won)
    return answer


def held(lease: LeaseRuntime) -> Held:
    answer = lease.acquire("plain")
    assert isinstance(answer, Held)
    return answer


def owner(house: House, key: str = "default") -> Owner:
    entry = parse_entry(house.registry()[key])
    assert entry is not None
    return entry.owner


def foreign(house: House, **fields: object) -> None:
    """A process of the other system owns the key: no birth, no stamp; pid 50 runs."""
    house.first.start(50, 9)
    house.write({"default": {**FOREIGN, "heartbeatMs": house.clock.wall, **fields}})


# -- the plain way -----------------------------------------------------------------


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


# -- force, election, supersession, resumption ---------------------------------------


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


# -- when a lease is over ------------------------------------------------------------------


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


@pytest.mark.parametrize("epoch", ["a-uuid", 1.5, None, 41, MAX_EPOCH])
def test_epochs_of_foreign_owners(house: House, epoch: object) -> None:
    """DESIGN 10: integers are ordered, strings are only compared; past the last there is none."""
    foreign(house, leaderEpoch=epoch, heartbeatMs=1)
    lease = house.process(1).lease()
    if epoch == MAX_EPOCH:
        text = house.text()
        with pytest.raises(TenureError, match="no epoch is left"):
            lease.acquire("plain")
        assert ("idle", text, 0) == (lease.phase, house.text(), house.mark())
        assert [] == house.left()
    else:
        assert (42 if epoch == 41 else 1) == won(lease).epoch


# -- a displaced owner --------------------------------------------------------------------


def test_a14_a_displaced_owner_commits_nothing(house: House) -> None:
    """A14, S24: the effect runs inside the transaction of the exact owner, or not at all; the loss is known then."""
    old, new = house.process(1).lease(), house.process(2).lease()
    won(old)
    house.pause(LEASE_MS + 1)
    won(new)
    with pytest.raises(NotOwner, match="default is not owned"):
        old.commit(lambda epoch: pytest.fail("a stale snapshot was published"))
    assert "idle" == old.phase
    assert "ok 2" == new.commit(lambda epoch: f"ok {epoch}")


def test_nobody_else_is_inside_while_an_effect_runs(house: House) -> None:
    """S24."""
    lease, other = house.process(1).lease(), house.process(2).lease()
    won(lease)

    def effect(epoch: int) -> int:
        with pytest.raises(GuardBusy):
            other.acquire("plain")
        return epoch

    assert 1 == lease.commit(effect)


def test_an_effect_that_raises_leaves_the_owner_and_no_guard(house: House) -> None:
    """The exception is the caller's."""
    lease = house.process(1).lease()
    won(lease)

    def effect(epoch: int) -> None:
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        lease.commit(effect)
    assert ("owner", [], "mine") == (lease.phase, house.left(), lease.refresh())


@pytest.mark.parametrize("name", ["acquire", "refresh", "release", "commit"])
def test_k13_an_operation_inside_an_effect_is_refused_at_once(house: House, name: str) -> None:
    """K13: no two seconds of waiting for oneself."""
    lease = house.process(1).lease()
    won(lease)
    operations: Mapping[str, Callable[[], object]] = {
        "acquire": lambda: lease.acquire("plain"),
        "refresh": lease.refresh,
        "release": lease.release,
        "commit": lambda: lease.commit(lambda epoch: None),
    }
    before = house.clock.monotonic

    def effect(epoch: int) -> None:
        assert lease.may_send() is None
        assert "mine" == lease.check()
        operations[name]()

    with pytest.raises(TenureError, match="end it first"):
        lease.commit(effect)
    assert before == house.clock.monotonic
    assert ("owner", "mine") == (lease.phase, lease.refresh())


def test_k11_past_the_own_lease_nothing_is_sent(house: House) -> None:
    """K11: by the own clock, which counts suspends, from when the last refresh was asked for."""
    lease = house.process(1).lease()
    assert (None, True) == (lease.may_send(), lease.lease_passed())
    won(lease)
    house.pause(LEASE_MS - 10)
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    lease.refresh()
    house.clock.suspend(LEASE_MS)
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    house.clock.suspend(1)
    assert (None, True) == (lease.may_send(), lease.lease_passed())
    assert "mine" == lease.refresh(), "a lease that has passed can be renewed while nobody has replaced it"
    assert (1, False) == (lease.may_send(), lease.lease_passed())
    lease.release()
    assert (None, True) == (lease.may_send(), lease.lease_passed())


def test_a_refresh_that_waits_counts_from_when_it_was_asked_for(house: House) -> None:
    """The wait for the guard is no part of the lease."""
    waits = 0

    def plan(call: Call) -> Fault | None:
        nonlocal waits
        if waits and ".staged." in call.paths[0] and call.name == "make_directory":
            waits -= 1
            house.pause(3_000)
        return None

    lease = house.process(1, plan).lease()
    won(lease)
    waits = 1
    lease.refresh()
    house.pause(LEASE_MS - 3_000)
    assert not lease.lease_passed()
    house.pause(1)
    assert (True, None) == (lease.lease_passed(), lease.may_send())


# -- what is damaged, missing, or full ---------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is empty"),
        (b'{"default": ', "bad JSON"),
        (b"[1, 2]", "an array instead of a JSON object"),
        (b'{"default": 5}', "default is a number instead of an object"),
        (b'{"default": {"pid": "12"}}', "default.pid is not a number"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_damaged_registry_is_named_and_left_alone(house: House, text: bytes, said: str) -> None:
    """S12, bad input: one line, the file, what is wrong; nothing on disk changed, no guard left behind."""
    house.write(text)
    lease = house.process(1).lease()
    view = lease.look()
    assert (None, "inactive", False) == (view.entry, view.state, view.readable)
    assert f"{house.directory.registry}: {said}" in view.problem
    with pytest.raises(RegistryDamaged) as caught:
        lease.acquire("plain")

    assert f"{house.directory.registry}: {said}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert text == house.text()
    assert ["owners.json"] == [n for n in house.inner.entries(house.directory.state) if not n.startswith(".")]
    assert "idle" == lease.phase


def test_an_owner_of_a_damaged_registry_waits_for_it_to_be_mended(house: House) -> None:
    """K6, Unknown: what cannot be read is no loss."""
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    good = house.text()
    house.write(b"{")
    assert ("unknown", "unknown") == (lease.check(), lease.refresh())
    assert 2 == len(dweller.notes.said("lock"))
    with pytest.raises(RegistryDamaged):
        lease.release()
    with pytest.raises(RegistryDamaged):
        lease.commit(lambda epoch: pytest.fail("ran"))
    with pytest.raises(RegistryDamaged):
        lease.acquire("plain")
    assert ("owner", b"{") == (lease.phase, house.text())
    assert good is not None
    house.write(good)
    assert ("mine", "mine") == (lease.check(), lease.refresh())


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_registry_that_cannot_be_read_is_no_empty_one(number: int) -> None:
    """Strict reading."""
    house = House()
    won(house.process(1).lease())
    text = house.text()
    lease = house.process(
        2, lambda c: Fails(number) if c.name == "read" and c.paths[0] == house.directory.registry else None
    ).lease()
    assert not lease.look().readable
    with pytest.raises(RegistryDamaged, match=house.directory.registry):
        lease.acquire("plain")
    assert (text, []) == (house.text(), house.left())


def test_a_damaged_mark_ends_the_acquisition(house: House) -> None:
    """DESIGN 10: never treated as 0; the error names the file and what to do."""
    house.make_state()
    house.inner.create(house.directory.high_water, b"{}")
    lease = house.process(1).lease()
    with pytest.raises(MarkDamaged, match=house.directory.high_water):
        lease.acquire("plain")

    assert ("idle", None, []) == (lease.phase, house.text(), house.left())


def test_a_damaged_guard_keeps_everybody_out(house: House) -> None:
    """S9: and nothing is changed."""
    house.make_state()
    house.inner.make_directory(house.directory.guard)
    with pytest.raises(GuardDamaged, match=r"owners\.json\.transaction"):
        house.process(1).lease().acquire("plain")
    assert house.text() is None
    house.inner.remove_directory(house.directory.guard)


@pytest.mark.parametrize("place", ["tmp", "tmp/telegram"])
def test_a_file_in_place_of_a_directory(house: House, place: str) -> None:
    """Named at once; nothing is waited for."""
    if place == "tmp/telegram":
        house.inner.make_directory(f"{house.directory.root}/tmp")
    house.inner.create(f"{house.directory.root}/{place}", b"")
    lease = house.process(1).lease()
    before = house.clock.monotonic
    with pytest.raises(TenureError, match=f"{house.directory.root}/{place}"):
        lease.acquire("plain")
    assert before == house.clock.monotonic


def test_no_directory_is_made_above_the_agents(tmp_path: Path) -> None:
    """DIR itself has to be there."""
    house = House(PosixFiles(), str(tmp_path / "gone"))
    with pytest.raises(TenureError, match="gone/tmp: cannot be made"):
        house.process(1).lease().acquire("plain")
    assert not (tmp_path / "gone").exists()


# -- K9: memory follows the file --------------------------------------------------------------


def renames_registry(house: House, fault: Fault, times: int = 1) -> Callable[[Call], Fault | None]:
    """The next `times` renames over the registry have that fault, once switched on by `armed`."""
    left = times

    def plan(call: Call) -> Fault | None:
        nonlocal left
        if call.name == "rename" and call.paths[1] == house.directory.registry and left:
            left -= 1
            return fault
        return None

    return plan


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


class LosesGuard:
    """An abstract transaction that is lost while the operation runs."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile
        self.number = 0

    def run(self, operation: Callable[[LosesGuard], object], *, attempts: int | None = None) -> object:
        operation(self)
        self.meanwhile()
        raise GuardLost("owners.json.transaction: another guard stands where mine was")


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


# -- one runtime, several threads; a fork; a recording ---------------------------------------------


def test_threads_of_one_runtime(tmp_path: Path) -> None:
    """Operations of several threads come one after the other, each whole."""
    house = House(PosixFiles(), str(tmp_path))
    ports = real_ports()
    dweller = house.process(1)
    dweller.ports = ports
    lease = dweller.lease()
    won(lease)
    count = tmp_path / "count"
    count.write_text("0")
    errors: list[BaseException] = []

    def bump(epoch: int) -> None:
        count.write_text(str(int(count.read_text()) + 1))

    def work() -> None:
        try:
            for _ in range(15):
                lease.commit(bump)
                assert "mine" == lease.refresh()
                assert "mine" == lease.check()
                assert lease.may_send() == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == errors
    assert "60" == count.read_text()


def test_waiting_for_the_guard_keeps_nobody_from_asking(house: House) -> None:
    """K6: a refresh that waits does not stop what asks whether it may send."""
    answers: list[int | None] = []
    lease_of: list[LeaseRuntime] = []

    def ask() -> None:
        answers.append(lease_of[0].may_send())

    def asked_elsewhere(duration_ms: float) -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(timeout=5)
        house.clock.advance(duration_ms)

    lease = house.process(1).lease()
    lease_of.append(lease)
    won(lease)
    other = house.process(2).lease("work")

    def effect(epoch: int) -> None:
        house.clock.on_sleep = lambda ms: (setattr(house.clock, "on_sleep", None), asked_elsewhere(ms))  # type: ignore[func-returns-value]
        assert "unknown" == lease.refresh()

    won(other)
    other.commit(effect)
    assert [1] == answers


def test_a_fork_owns_nothing() -> None:
    """Its memory is its parent's, its process is another."""
    house = House()
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    text = house.text()
    child = FakeProcesses(2, 1, house.first.table)
    object.__setattr__(lease.ports, "processes", child)
    with pytest.raises(TenureError, match="of process 1"):
        lease.release()
    assert ("unknown", text) == (lease.refresh(), house.text())


class Kept:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, int]] = []
        self.count = 0

    def order(self) -> int:
        self.count += 1
        return self.count

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        if module == "LeaderElection":
            self.events.append((action, node, number))


def recorded(ask: Callable[[LeaseRuntime, House], object]) -> list[str]:
    """What is recorded of `ask`, the start apart."""
    house, kept = House(), Kept()
    recorder: Recorder = kept
    dweller = house.process(1, recorder=recorder)
    lease = dweller.lease()
    assert [("Start", lease.node, 0)] == kept.events
    ask(lease, house)
    assert {lease.node} == {node for _, node, _ in kept.events}
    return [action for action, _, _ in kept.events[1:]]


def test_what_is_recorded_is_what_the_twin_calls_it() -> None:
    """DESIGN 8: the twin's actions in their order; nothing of what changes nothing, a refresh in one event."""
    acquired = ["Acquire", "Mint", "Raise", "Write"]

    def all_of_it(lease: LeaseRuntime, house: House) -> None:
        won(lease)
        lease.refresh()
        lease.commit(lambda epoch: None)
        lease.look()
        lease.release()

    assert [*acquired, "Write", "Commit", "Land", "Release", "Write"] == recorded(all_of_it)

    def displaced(lease: LeaseRuntime, house: House) -> None:
        won(lease)
        foreign(house)
        lease.refresh()
        held(lease)
        lease.look()

    assert [*acquired, "Displaced", "Look"] == recorded(displaced)

    def damaged(lease: LeaseRuntime, house: House) -> None:
        house.make_state()
        house.inner.create(house.directory.high_water, b"")
        with pytest.raises(MarkDamaged):
            lease.acquire("plain")

    assert ["Acquire", "Abandon"] == recorded(damaged)


def test_all_events_of_a_transaction_have_its_number() -> None:
    """DESIGN 8: numbered inside."""
    house, kept = House(), Kept()
    lease = house.process(1, recorder=kept).lease()
    won(lease)
    lease.refresh()
    lease.look()

    assert [0, 1, 1, 1, 1, 2] == [number for _, _, number in kept.events]
