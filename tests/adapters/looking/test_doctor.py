"""What ``doctor`` moves, what it leaves, and what it says (locks.md 8; S36, V13; A28, A29, A31, A32; issue 3)."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.guard import GuardBusy, GuardedFile
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.looking.care import Report, as_json, care, lines
from tenure.adapters.looking.doctor import Doctor
from tenure.adapters.looking.status import status
from tenure.adapters.ports import READ_LIMIT, Killed
from tenure.adapters.testing.faulty import Call, Fails, Fault, Kills, Plan, at
from tenure.machines.identity import UNKNOWN

from .ward import (
    BAD_GUARDS,
    BAD_REGISTRIES,
    CLAIM,
    DIRECTORY,
    FAST,
    GENERATION,
    GUARD,
    HOLDER,
    RECOVERY,
    REGISTRY,
    STATE,
    Ward,
    birth,
)

TORN = b'{"default": {"pid": 7'
THREADS = f"{STATE}/state.json"


@pytest.fixture
def ward() -> Ward:
    return Ward()


def treat(ward: Ward, pid: int = 100, plan: Plan | None = None) -> Report:
    """One doctor, who leaves no guard and no debris behind."""
    report = care(ward.ports(pid, plan), DIRECTORY, FAST, process=ProcessState())
    clean(ward)
    return report


def clean(ward: Ward) -> None:
    left = [name for name in ward.files.entries(STATE) if ".transaction." in name or name.endswith(".tmp")]
    assert [] == left
    assert "absent" == ward.files.kind(RECOVERY)


def quarantined(ward: Ward) -> dict[str, bytes | str]:
    """What is in quarantine, by its path below the one directory of one healing."""
    root = DIRECTORY.quarantine
    places = ward.files.directories.get(root, set())
    tree = ward.tree()
    return {
        path[len(f"{root}/{place}/") :]: content
        for place in places
        for path, content in tree.items()
        if path.startswith(f"{root}/{place}/")
    }


def one_line(error: TenureError) -> None:
    assert "\n" not in str(error)


def said(report: Report) -> str:
    return "\n".join(lines(report))


# -- what is healed -------------------------------------------------------------


@pytest.mark.parametrize("prepare", [lambda w: None, lambda w: w.own(), lambda w: w.put(THREADS, "{}")])
def test_nothing_is_done_where_nothing_is_damaged(ward: Ward, prepare: Callable[[Ward], None]) -> None:
    prepare(ward)
    before = ward.tree()
    report = treat(ward)
    assert ("not-needed", True) == (report.outcome.kind, report.healthy)
    assert before == ward.tree()
    assert "nothing is damaged" in said(report)


@pytest.mark.parametrize("name", BAD_REGISTRIES)
def test_a_registry_that_nobody_can_use_is_quarantined(ward: Ward, name: str) -> None:
    data, _ = BAD_REGISTRIES[name]
    ward.put(REGISTRY, data)
    ward.put(f"{STATE}/telegram.json", "{torn")
    report = treat(ward)
    assert ("recovered", True) == (report.outcome.kind, report.healthy)
    assert {"owners.json": data} == quarantined(ward)
    assert "absent" == ward.files.kind(REGISTRY)
    assert b"{torn" == ward.files.read(f"{STATE}/telegram.json")
    assert "not-needed" == treat(ward).outcome.kind


@pytest.mark.parametrize("name", BAD_GUARDS)
def test_a_guard_that_is_unverifiable_is_quarantined_as_it_is(ward: Ward, name: str) -> None:
    make, _ = BAD_GUARDS[name]
    ward.own()
    make(ward)
    before = {p[len(STATE) + 1 :]: c for p, c in ward.tree().items() if p == GUARD or p.startswith(f"{GUARD}/")}
    entry = ward.files.read(REGISTRY)
    report = treat(ward)
    assert ("recovered", True) == (report.outcome.kind, report.healthy)
    assert before == quarantined(ward)
    assert "absent" == ward.files.kind(GUARD)
    assert entry == ward.files.read(REGISTRY)


@pytest.mark.parametrize("name", [f"owner.{GENERATION}.json", f"owner.reclaim.88.{CLAIM}.json"])
def test_a_live_holder_is_not_robbed_because_somebody_put_a_file_beside_its_own(ward: Ward, name: str) -> None:
    """It is shown to be inside, by a file that is in order (S36)."""
    ward.guard(name=name)
    ward.put(f"{GUARD}/.DS_Store", "")
    ward.processes.start(HOLDER if "reclaim" not in name else 88)
    before = ward.tree()
    outcome = Doctor(ward.ports(), DIRECTORY, FAST).heal()
    assert ("blocked", ward.tree()) == (outcome.kind, before)
    assert [HOLDER if "reclaim" not in name else 88] == [blocker.seen.pid for blocker in outcome.blockers]
    ward.processes.kill(outcome.blockers[0].seen.pid)
    assert "recovered" == treat(ward).outcome.kind


@pytest.mark.parametrize("size", ["deep", "large"])
def test_a_registry_that_only_we_cannot_read_is_left_to_its_owners(ward: Ward, size: str) -> None:
    """The other system reads it: nobody can show that no owner lives (S36)."""
    other = b"[" * 100_000 + b"]" * 100_000 if size == "deep" else b'"' + b"x" * READ_LIMIT + b'"'
    owner = json.dumps(ward.entry(processBirth=None, monotonicMs=None)).encode()
    ward.processes.start(HOLDER)
    ward.put(REGISTRY, b'{"other": ' + other + b', "default": ' + owner + b"}")
    before = ward.tree()
    with pytest.raises(TenureError, match=r"owners.json: cannot be read: .*too (large|deep).*; nothing was changed"):
        treat(ward)
    assert before == ward.tree()


def test_thread_states_that_are_torn_are_quarantined_and_the_others_stay(ward: Ward) -> None:
    ward.own()
    ward.put(THREADS, "{torn")
    ward.put(f"{STATE}/state.work.json", '{"a": 1}')
    ward.put(f"{STATE}/state.play.json", "")
    ward.put(f"{STATE}/state.a.b.json", "torn, but none of ours")
    assert "recovered" == treat(ward).outcome.kind
    assert {"state.json": b"{torn", "state.play.json": b""} == quarantined(ward)
    assert b'{"a": 1}' == ward.files.read(f"{STATE}/state.work.json")


def test_a_thread_state_that_is_no_file_is_quarantined(ward: Ward) -> None:
    ward.put(f"{THREADS}/x", "1")
    assert "recovered" == treat(ward).outcome.kind
    assert {"state.json": "directory", "state.json/x": b"1"} == quarantined(ward)


def test_everything_damaged_at_once_goes_into_one_quarantine(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.put(THREADS, "")
    ward.files.make_directories(GUARD)
    report = treat(ward)
    assert {"owners.json": TORN, "state.json": b"", "owners.json.transaction": "directory"} == quarantined(ward)
    assert 1 == len(ward.files.entries(DIRECTORY.quarantine))
    assert {"guard", "registry", "state"} == {d.what for d in report.outcome.found}
    (place,) = ward.files.entries(DIRECTORY.quarantine)
    assert place.startswith(f"{1_700_000_000_000}-100-")


def test_an_odd_key_is_no_damage_and_a_person_is_told(ward: Ward) -> None:
    ward.put(REGISTRY, {"default": 5, "other.program": {"x": [1]}})
    before = ward.tree()
    report = treat(ward)
    assert ("not-needed", False) == (report.outcome.kind, report.healthy)
    assert before == ward.tree()
    assert f"stays: {REGISTRY}: default is a number" in said(report)
    assert "nothing is damaged" not in said(report)
    assert "correct or remove that member" in said(report)


def test_an_abandoned_guard_is_no_obstacle(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.guard()
    assert "recovered" == treat(ward).outcome.kind
    assert {"owners.json": TORN} == quarantined(ward)


def test_a_dead_claimant_is_no_obstacle(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.guard(name=f"owner.reclaim.88.{CLAIM}.json")
    assert "recovered" == treat(ward).outcome.kind


@pytest.mark.parametrize("damaged", [True, False])
def test_a_file_guard_whose_holder_is_dead_is_taken_away_with_its_neighbour(ward: Ward, damaged: bool) -> None:
    """Left by 0.22.0 (locks.md 3.3)."""
    ward.put(GUARD, ward.payload())
    ward.put(f"{GUARD}.recovery", ward.payload())
    if damaged:
        ward.put(REGISTRY, TORN)
    report = treat(ward)
    assert ("recovered", True) == (report.outcome.kind, report.healthy)
    assert "absent" == ward.files.kind(GUARD)
    assert "absent" == ward.files.kind(f"{GUARD}.recovery")
    assert {"owners.json.transaction", "owners.json.transaction.recovery"} <= set(quarantined(ward))


def test_a_file_guard_whose_holder_lives_stays(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    ward.put(GUARD, ward.payload())
    before = ward.tree()
    report = treat(ward)
    assert before == ward.tree()
    assert "not-needed" == report.outcome.kind
    assert ("held", (HOLDER,)) == (report.after.guard.kind, report.after.guard.live)


@pytest.mark.parametrize("damaged", [True, False])
def test_a_file_guard_that_somebody_is_clearing_away_is_left_to_them(ward: Ward, damaged: bool) -> None:
    """They have seen the file, and move away what stands there next: it must not be the guard of a newcomer (3.3)."""
    ward.put(GUARD, ward.payload())
    ward.processes.start(88)
    ward.guard(f"{GUARD}.recovery", pid=88)
    if damaged:
        ward.put(REGISTRY, TORN)
    before = ward.tree()
    if damaged:
        outcome = Doctor(ward.ports(), DIRECTORY, FAST).heal()
        assert ("blocked", True) == (outcome.kind, "held by pid 88" in outcome.why)
    else:
        with pytest.raises(GuardBusy, match="held by pid 88"):
            treat(ward)
    assert before == ward.tree()


def test_a_file_guard_beside_a_damaged_neighbour_is_for_a_person(ward: Ward) -> None:
    ward.put(GUARD, ward.payload())
    ward.files.make_directories(f"{GUARD}.recovery")
    with pytest.raises(TenureError, match=r"recovery: an empty directory stands there: .* by hand"):
        treat(ward)
    assert "file" == ward.files.kind(GUARD)


def test_the_guards_of_old_versions_healing_that_dead_processes_left_go(ward: Ward) -> None:
    ward.guard(f"{GUARD}.recovery.migration")
    ward.put(f"{GUARD}.recovery", ward.payload())
    assert "recovered" == treat(ward).outcome.kind
    assert {"owners.json.transaction.recovery"} == set(quarantined(ward))
    ward.guard(f"{GUARD}.recovery")
    assert (f"{GUARD}.recovery",) == treat(ward).swept
    assert ["recovery"] == [name for name in ward.files.entries(STATE) if not name.startswith("runtime")]


def test_a_file_guard_that_has_become_a_directory_guard_is_left_alone(ward: Ward) -> None:
    """A process of the other system healed it and is inside now: the rename of a file does not rob it."""
    ward.put(GUARD, ward.payload())

    def exchanged(call: Call) -> Fault | None:
        if call.name == "rename" and call.paths[0] == GUARD and "recovery/" in call.paths[1]:
            ward.files.unlink(GUARD)
            ward.processes.start(88)
            ward.guard(pid=88)
        return None

    with pytest.raises(TenureError, match="directory"):
        treat(ward, plan=exchanged)
    assert (f"owner.{GENERATION}.json",) == ward.files.entries(GUARD)
    assert {} == quarantined(ward)


# -- what is blocked ------------------------------------------------------------


def blocked(ward: Ward) -> Report:
    """A doctor that is not allowed to: nothing at all is changed."""
    before = ward.tree()
    report = treat(ward)
    assert ("blocked", False) == (report.outcome.kind, report.healthy)
    assert before == ward.tree()
    assert "nothing was changed" in said(report)
    return report


@pytest.mark.parametrize("key", ["default", "work", "other.program"])
def test_a_live_owner_blocks_and_is_named(ward: Ward, key: str) -> None:
    ward.processes.start(HOLDER)
    ward.own(key)
    ward.files.make_directories(GUARD)
    report = blocked(ward)
    assert [(HOLDER, key)] == [(b.seen.pid, b.key) for b in report.outcome.blockers]
    assert f"alive: pid 77 (running), owner of key {key}, renewed 0.5 s ago" in said(report)


def test_a_live_owner_in_a_registry_that_only_the_other_system_can_read_blocks(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    text = json.dumps({"default": ward.entry(processBirth=None)}).encode()
    ward.put(REGISTRY, text.replace(b"/home", b"/home\xff"))
    assert [HOLDER] == [b.seen.pid for b in blocked(ward).outcome.blockers]


def test_a_reused_pid_with_an_expired_heartbeat_does_not_block(ward: Ward) -> None:
    """A28: the entry is ten minutes old, and its pid is somebody else's now."""
    ward.processes.start(HOLDER, ticks=99)
    ward.own(age_ms=600_000, processBirth=None, monotonicMs=None)
    ward.put(THREADS, "{torn")
    assert "recovered" == treat(ward).outcome.kind


def test_a_reused_pid_is_no_owner_where_a_birth_is_recorded(ward: Ward) -> None:
    ward.processes.start(HOLDER, ticks=99)
    ward.own()
    ward.put(THREADS, "{torn")
    assert "recovered" == treat(ward).outcome.kind


def test_an_owner_in_this_very_process_blocks(ward: Ward) -> None:
    """A29: the own pid is passed over as the guard's holder, and nowhere else."""
    ward.own(pid=100)
    ward.put(THREADS, "{torn")
    assert [100] == [b.seen.pid for b in blocked(ward).outcome.blockers]


def test_an_owner_that_cannot_be_probed_blocks_until_its_lease_is_over(ward: Ward) -> None:
    ward.processes.turn(HOLDER, UNKNOWN)
    ward.own()
    ward.put(THREADS, "{torn")
    blocked(ward)
    ward.clock.advance(9_000)
    assert "recovered" == treat(ward).outcome.kind


def test_an_implausible_pid_in_an_entry_proves_no_death(ward: Ward) -> None:
    ward.own(pid=0, processBirth=None)
    ward.put(THREADS, "{torn")
    assert [0] == [b.seen.pid for b in blocked(ward).outcome.blockers]


def test_a_holder_who_stays_inside_blocks_and_one_who_leaves_does_not(ward: Ward) -> None:
    ward.stop()
    ward.put(REGISTRY, TORN)
    ward.guard(processBirth=birth())
    report = blocked(ward)
    assert [(HOLDER, None)] == [(b.seen.pid, b.key) for b in report.outcome.blockers]
    assert "kill -CONT 77" in said(report)
    sleeps = 0

    def leaves(duration: float) -> None:
        nonlocal sleeps
        sleeps += 1
        if sleeps == 2:
            ward.files.unlink(f"{GUARD}/owner.{GENERATION}.json")
            ward.files.remove_directory(GUARD)

    ward.clock.on_sleep = leaves
    assert "recovered" == treat(ward).outcome.kind


def test_a_claimant_blocks(ward: Ward) -> None:
    ward.processes.start(88)
    ward.put(REGISTRY, TORN)
    ward.guard(name=f"owner.reclaim.88.{CLAIM}.json")
    report = blocked(ward)
    assert [(88, "claimant of owners.json.transaction")] == [(b.seen.pid, b.role) for b in report.outcome.blockers]


def test_another_doctor_at_work_blocks(ward: Ward) -> None:
    """A31: one recoverer at a time."""
    ward.processes.start(88)
    ward.put(REGISTRY, TORN)
    ward.guard(RECOVERY, pid=88)
    before = ward.tree()
    report = care(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert "blocked" == report.outcome.kind
    assert "held by pid 88, which lives" in report.outcome.why
    assert before == ward.tree()


def test_a_dead_doctor_does_not_block(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.guard(RECOVERY)
    assert "recovered" == treat(ward).outcome.kind


def test_the_guard_of_healing_itself_is_never_moved(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.files.make_directories(RECOVERY)
    before = ward.tree()
    report = care(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert ("blocked", before) == (report.outcome.kind, ward.tree())
    assert f"move {RECOVERY} away by hand" in said(report)


def test_a_damaged_guard_of_healing_is_a_persons_matter(ward: Ward) -> None:
    ward.files.make_directories(RECOVERY)
    report = care(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert ("not-needed", False) == (report.outcome.kind, report.healthy)
    assert f"stays: {RECOVERY}: it is empty" in said(report)


def test_an_owner_that_comes_between_the_looks_keeps_its_registry(ward: Ward) -> None:
    """S36: the second look, under the ownership guard, counts."""
    ward.put(THREADS, "{torn")
    ward.processes.start(HOLDER)

    def acquires(call: Call) -> Fault | None:
        if call.name == "rename" and call.paths[1] == GUARD and ward.files.kind(REGISTRY) == "absent":
            ward.own()
        return None

    report = treat(ward, plan=acquires)
    assert "blocked" == report.outcome.kind
    assert b"{torn" == ward.files.read(THREADS)


def test_of_two_doctors_the_second_finds_nothing_to_do(ward: Ward) -> None:
    """A31: what the first healed, and an owner wrote anew, is not moved by the second."""
    ward.put(REGISTRY, TORN)
    healed = False

    def interferes(call: Call) -> Fault | None:
        nonlocal healed
        if not healed and call.name == "rename" and call.paths[1] == RECOVERY:
            healed = True
            assert "recovered" == care(ward.ports(101), DIRECTORY, FAST, process=ProcessState()).outcome.kind
            ward.own()
        return None

    ward.processes.kill(HOLDER)
    report = treat(ward, plan=interferes)
    assert ("not-needed", ()) == (report.outcome.kind, report.moved)
    assert b'"leaderEpoch"' in ward.files.read(REGISTRY)


def test_damage_that_comes_back_is_said_and_not_healed_for_ever(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)

    def writes(call: Call) -> Fault | None:
        if call.name == "rename" and ".released." in call.paths[1] and ward.files.kind(REGISTRY) == "absent":
            ward.put(REGISTRY, b"torn again")
        return None

    report = treat(ward, plan=writes)
    assert "blocked" == report.outcome.kind
    assert "damage is there again after healing" in report.outcome.why
    assert {"owners.json": TORN} == quarantined(ward)


# -- epochs, debris, advice -----------------------------------------------------


@pytest.mark.parametrize(
    ("data", "mark"),
    [
        ("", 1_700_000_000_000),
        ('{"highWater": "7"}', 1_700_000_000_000),
        ('{"highWater": 1800000000000', 1_800_000_000_000),
        ('{"highWater": 99999999999999999999}', 1_700_000_000_000),
    ],
)
def test_a_damaged_mark_is_renewed_above_everything_that_can_be_read(ward: Ward, data: str, mark: int) -> None:
    """Law Fresh: never lowered, never missing; the old text is kept."""
    ward.put(DIRECTORY.high_water, data)
    ward.own(leaderEpoch=1_600_000_000_000)
    report = treat(ward)
    assert (mark, True) == (report.mark, report.healthy)
    assert f'{{"highWater": {mark}}}\n'.encode() == ward.files.read(DIRECTORY.high_water)
    assert {"epochs.json": data.encode()} == quarantined(ward)
    assert "can only be assumed" in said(report)


def test_the_mark_is_not_renewed_below_an_epoch_in_the_registry(ward: Ward) -> None:
    ward.put(DIRECTORY.high_water, "torn")
    ward.own(leaderEpoch=1_900_000_000_000)
    assert 1_900_000_000_000 == treat(ward).mark


def test_a_mark_that_cannot_be_read_stays(ward: Ward) -> None:
    ward.files.put_other(DIRECTORY.high_water)
    before = ward.tree()
    report = treat(ward)
    assert (None, False) == (report.mark, report.healthy)
    assert before == ward.tree()


def test_the_mark_is_never_missing_whatever_call_is_the_last(ward: Ward) -> None:
    for number in range(200):
        patient = Ward()
        patient.put(DIRECTORY.high_water, "torn")
        try:
            care(patient.ports(101, at(number, Kills())), DIRECTORY, FAST, process=ProcessState())
        except Killed:
            assert "file" == patient.files.kind(DIRECTORY.high_water)
            continue
        return
    pytest.fail("it never came to its end")


def test_debris_of_the_dead_is_swept_and_that_of_the_living_stays(ward: Ward) -> None:
    ward.put(f"{REGISTRY}.77.1.1.tmp", "")
    ward.put(f"{GUARD}.released.{CLAIM}/owner.{GENERATION}.json", ward.payload())
    ward.put(f"{REGISTRY}.100.1.1.tmp", "")
    report = care(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert {f"{REGISTRY}.77.1.1.tmp", f"{GUARD}.released.{CLAIM}"} == set(report.swept)
    assert ("owners.json.100.1.1.tmp",) == ward.files.entries(STATE)


def test_a_guard_pinned_by_a_reused_pid_is_explained_and_left(ward: Ward) -> None:
    """K1: without a birth nothing is proven."""
    ward.processes.start(HOLDER, ticks=ward.clock.fence_ms() // 10)
    ward.guard(acquiredAtMs=ward.clock.wall - 3_600_000)
    before = ward.tree()
    report = treat(ward)
    assert before == ward.tree()
    assert "if it is not the holder, move the guard away by hand" in said(report)


# -- what goes wrong ------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_where_nothing_can_be_written_it_is_one_line_and_nothing_is_changed(ward: Ward, number: int) -> None:
    ward.put(REGISTRY, TORN)
    before = ward.tree()
    with pytest.raises(TenureError) as raised:
        treat(ward, plan=lambda call: Fails(number) if call.name in ("make_directory", "create") else None)
    assert "\n" not in str(raised.value)
    assert RECOVERY in str(raised.value)
    assert before == ward.tree()


def test_a_full_disk_at_the_quarantine_leaves_everything_in_place(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.files.make_directories(GUARD)

    def full(call: Call) -> Fault | None:
        return Fails(errno.ENOSPC) if call.name == "make_directory" and DIRECTORY.quarantine in call.paths[0] else None

    report = treat(ward, plan=full)
    assert "blocked" == report.outcome.kind
    assert TORN == ward.files.read(REGISTRY)
    assert "directory" == ward.files.kind(GUARD)


def test_a_rename_that_fails_for_good_is_blocked_and_named(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)

    def fails(call: Call) -> Fault | None:
        return Fails(errno.EIO) if (call.name, call.paths[0]) == ("rename", REGISTRY) else None

    report = treat(ward, plan=fails)
    assert "blocked" == report.outcome.kind
    assert f"{REGISTRY} could not be moved: Input/output error" in report.outcome.why


def test_a_rename_that_is_refused_for_a_moment_is_tried_again(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    times = 0

    def refused(call: Call) -> Fault | None:
        nonlocal times
        if call.name == "rename" and call.paths[0] == REGISTRY:
            times += 1
            return Fails(errno.EBUSY) if times == 1 else None
        return None

    assert "recovered" == treat(ward, plan=refused).outcome.kind


PATIENTS: tuple[Callable[[Ward], None], ...] = (
    lambda ward: ward.put(REGISTRY, TORN),
    lambda ward: (ward.put(REGISTRY, TORN), ward.files.make_directories(GUARD)),
    lambda ward: (ward.put(THREADS, "{"), ward.guard(name="lock"), ward.own()),
    lambda ward: (ward.put(REGISTRY, TORN), ward.put(GUARD, ward.payload())),
    lambda ward: ward.put(GUARD, "hello"),
)


@pytest.mark.parametrize("patient", PATIENTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_doctor_that_is_killed_at_any_call_is_followed_by_one_that_finishes(
    patient: Callable[[Ward], None], when: str
) -> None:
    """V13; and nothing is lost: every file is in place or in quarantine, after each kill and in the end."""
    for number in range(500):
        ward = Ward()
        patient(ward)
        contents = sorted(c for c in ward.tree().values() if isinstance(c, bytes))
        try:
            care(ward.ports(101, at(number, Kills(when))), DIRECTORY, FAST, process=ProcessState())
        except Killed:
            ward.processes.kill(101)
        else:
            return
        kept = sorted(c for c in ward.tree().values() if isinstance(c, bytes))
        assert all(kept.count(content) >= contents.count(content) for content in contents)
        report = care(ward.ports(102), DIRECTORY, FAST, process=ProcessState())
        assert report.healthy
        after = ward.tree()
        in_place = {p: c for p, c in after.items() if isinstance(c, bytes)}
        kept = sorted(in_place.values())
        assert all(kept.count(content) >= contents.count(content) for content in contents)
        assert "free" == status(ward.ports(103), DIRECTORY).guard.kind
        assert "absent" == ward.files.kind(RECOVERY)
    pytest.fail("it never came to its end")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EBUSY, errno.ENOSPC, errno.EIO, errno.ENOENT])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_at_any_call_loses_nothing_and_leaves_no_guard(number: int, when: str) -> None:
    for place in range(500):
        ward = Ward()
        ward.put(REGISTRY, TORN)
        ward.guard(name="lock")
        contents = sorted(c for c in ward.tree().values() if isinstance(c, bytes))
        ports = ward.ports(101, at(place, Fails(number, when)))
        try:
            care(ports, DIRECTORY, FAST, process=ProcessState())
        except TenureError as error:
            one_line(error)
        kept = sorted(c for c in ward.tree().values() if isinstance(c, bytes))
        assert all(kept.count(content) >= contents.count(content) for content in contents)
        assert "absent" == ward.files.kind(RECOVERY)
        assert ward.files.kind(GUARD) == "absent" or ward.files.entries(GUARD) == ("lock",)
        if len(ports.files.calls) <= place:
            return
        assert care(ward.ports(102), DIRECTORY, FAST, process=ProcessState()).healthy
    pytest.fail("it never came to its end")


def test_the_machine_ends_where_the_outcome_says(ward: Ward) -> None:
    doctor = Doctor(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert ("idle", "not-needed") == (doctor.phase, doctor.heal().kind)
    assert "starting" == doctor.phase
    ward.processes.start(HOLDER)
    ward.own()
    ward.put(THREADS, "{torn")
    doctor = Doctor(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert ("blocked", "idle") == (doctor.heal().kind, doctor.phase)
    ward.files.make_directories(GUARD)
    doctor = Doctor(ward.ports(), DIRECTORY, FAST, process=ProcessState())
    assert ("blocked", "blocked") == (doctor.heal().kind, doctor.phase)


def test_what_is_healed_can_be_entered_at_once(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    ward.files.make_directories(GUARD)
    treat(ward)
    file = GuardedFile(ward.ports(103), REGISTRY, FAST, process=ProcessState())
    assert "inside" == file.run(lambda inside: "inside")


def test_the_shape_of_json_stays(ward: Ward) -> None:
    ward.put(REGISTRY, TORN)
    found = as_json(treat(ward))
    assert [
        "directory",
        "outcome",
        "healthy",
        "damage",
        "moved",
        "blockedBy",
        "why",
        "mark",
        "swept",
        "guard",
        "problems",
        "advice",
    ] == list(found)
    (moved,) = found["moved"]
    assert REGISTRY == moved["from"]
    ward.processes.start(HOLDER)
    ward.own()
    ward.put(THREADS, "{torn")
    (blocker,) = as_json(treat(ward))["blockedBy"]
    assert (77, "owner of key default", "default") == (blocker["pid"], blocker["role"], blocker["key"])


def test_a_directory_without_ours_below_it_is_left_without() -> None:
    ward = Ward()
    ward.files.make_directories("/elsewhere")
    before = ward.tree()
    assert care(ward.ports(), AgentDirectory("/elsewhere"), FAST, process=ProcessState()).healthy
    assert before == ward.tree()
