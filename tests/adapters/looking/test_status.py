"""What ``status`` says of each thing that may stand in an agent directory; and that it changes none of them."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.lead.lock import Holder, Record
from tenure.adapters.looking.status import Status, status
from tenure.adapters.looking.status_json import as_json
from tenure.adapters.looking.wording import lines
from tenure.adapters.testing.faulty import Call, Fails, Fault
from tenure.machines.identity import UNKNOWN, ZOMBIE

from .ward import (
    BAD_GUARDS,
    BAD_REGISTRIES,
    CLAIM,
    DIRECTORY,
    GUARD,
    HOLDER,
    RECOVERY,
    REGISTRY,
    STATE,
    Ward,
    birth,
)


@pytest.fixture
def ward() -> Ward:
    return Ward()


def look(ward: Ward, key: str | None = None) -> Status:
    """One status, which has changed nothing."""
    before = ward.tree()
    found = status(ward.ports(), DIRECTORY, key)
    assert before == ward.tree()
    return found


def text(ward: Ward) -> str:
    return "\n".join(f"{line.label}: {line.text}" for line in lines(look(ward), ward.clock.wall))


# -- who leads ------------------------------------------------------------------


def test_nobody_leads_an_empty_directory_and_nothing_is_made_there() -> None:
    ward = Ward()
    ward.files.remove_directory(STATE)
    ward.files.remove_directory("/agent/tmp")
    found = look(ward)
    assert [("default", "inactive")] == [(k.key, k.state) for k in found.keys]
    assert "free" == found.guard.kind
    assert () == found.problems
    assert "key default: nobody leads" in text(ward)


def test_a_leader_is_shown_with_its_epoch_its_directory_and_its_age(ward: Ward) -> None:
    ward.stop(letter="S")
    ward.own(age_ms=500)
    said = text(ward)
    assert "led by pid 77 (running, a (b) c), epoch 4, renewed 0.5 s ago, in /home, instance 77:1" in said
    (key,) = look(ward).keys
    assert ("active-elsewhere", 500, "stamp", False) == (key.state, key.age_ms, key.age_by, key.expired)


@pytest.mark.parametrize(
    ("prepare", "life", "state"),
    [
        (lambda w: w.stop(letter="S"), "running", "active-elsewhere"),
        (lambda w: w.stop(letter="T"), "stopped", "active-elsewhere"),
        (lambda w: w.stop(letter="t"), "stopped", "active-elsewhere"),
        (lambda w: w.processes.turn(HOLDER, ZOMBIE), "zombie", "stale"),
        (lambda w: w.processes.kill(HOLDER), "dead", "stale"),
        (lambda w: w.processes.start(HOLDER, ticks=2), "reused", "stale"),
        (lambda w: w.processes.turn(HOLDER, UNKNOWN), "unknown", "active-elsewhere"),
    ],
)
def test_the_leaders_process_is_told_apart(ward: Ward, prepare: Callable[[Ward], None], life: str, state: str) -> None:
    ward.own()
    prepare(ward)
    (key,) = look(ward).keys
    assert key.owner is not None
    assert (life, state) == (key.owner.life, key.state)


def test_an_owner_of_another_boot_is_dead_and_one_of_another_namespace_cannot_be_seen(ward: Ward) -> None:
    ward.own(processBirth=birth(boot="another"))
    (key,) = look(ward).keys
    assert key.owner is not None
    assert ("earlier boot", "stale") == (key.owner.life, key.state)
    ward.own(processBirth=birth(namespace=2))
    (key,) = look(ward).keys
    assert key.owner is not None
    assert ("other namespace", "active-elsewhere") == (key.owner.life, key.state)
    assert "its death is not seen from here" in text(ward)


def test_a_lease_that_is_not_renewed_is_over_though_its_process_lives(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    ward.own(age_ms=8_001)
    (key,) = look(ward).keys
    assert ("stale", True, False) == (key.state, key.expired, key.live)
    assert "over (not renewed for 8.0 s): anybody may lead" in text(ward)


def test_a_stopped_leader_is_named_with_what_to_do(ward: Ward) -> None:
    ward.stop()
    ward.own()
    assert "kill -CONT 77" in text(ward)


def test_a_foreign_entry_counts_as_alive_while_its_pid_does(ward: Ward) -> None:
    ward.processes.start(HOLDER, ticks=99)
    ward.own(processBirth=None, monotonicMs=None, leaderEpoch="5e1f")
    (key,) = look(ward).keys
    assert ("active-elsewhere", "heartbeat") == (key.state, key.age_by)
    said = text(ward)
    assert "epoch 5e1f" in said
    assert "pid 77 recorded no birth (another system wrote it); it counts as alive while any process has that" in said
    (shown,) = as_json(look(ward))["keys"]
    assert shown["foreign"] is True


def test_a_heartbeat_from_the_future_is_said(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    ward.own(processBirth=None, monotonicMs=None, age_ms=-60_000)
    assert "heartbeat 60.0 s in the future" in text(ward)


@pytest.mark.parametrize("heartbeat", ["1" + "0" * 307, "-1" + "0" * 307, "1" + "0" * 400, "1e308", "-1e308"])
def test_a_heartbeat_that_no_clock_shows_is_said(ward: Ward, heartbeat: str) -> None:
    """Numbers that others write may be larger than any float; one that JavaScript reads as infinite is none."""
    ward.processes.start(HOLDER)
    ward.put(REGISTRY, f'{{"default": {{"pid": {HOLDER}, "heartbeatMs": {heartbeat}, "leaderEpoch": 7}}}}')
    said = "more than a year" if len(heartbeat) < 400 else "it has no heartbeat"
    assert said in text(ward)


@pytest.mark.parametrize("pid", [0, -1, 1.5])
def test_an_entry_that_can_neither_die_nor_grow_old_is_a_problem_for_a_person(ward: Ward, pid: float) -> None:
    """Nobody leads there: tenure lead refuses, and says to remove it."""
    ward.put(REGISTRY, {"default": {"pid": pid}})
    assert (f"{REGISTRY}: default.pid is no process",) == look(ward).problems
    assert "by hand: default.pid is no process" in text(ward)
    ward.put(REGISTRY, {"default": {"pid": pid, "heartbeatMs": 5}})
    assert () == look(ward).problems


def test_each_key_has_its_line_and_other_programs_keys_are_named_only(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    ward.put(REGISTRY, {"work": ward.entry(), "@other/thing": {"pid": 5}, "Big Key": [1]})
    found = look(ward)
    assert ["default", "work"] == [k.key for k in found.keys]
    assert ["@other/thing", "Big Key"] == [k.key for k in found.registry.strangers]
    assert ["work"] == [k.key for k in look(ward, "work").keys]


@pytest.mark.parametrize("value", [5, "x", [1], True, {"pid": "7"}, {"pid": True}])
def test_a_key_of_a_wrong_type_is_a_problem_of_that_key_alone(ward: Ward, value: object) -> None:
    ward.processes.start(HOLDER)
    ward.put(REGISTRY, {"default": value, "work": ward.entry()})
    found = look(ward)
    assert [("default", "unknown"), ("work", "active-elsewhere")] == [(k.key, k.state) for k in found.keys]
    (problem,) = found.problems
    assert problem.startswith(f"{REGISTRY}: default")
    assert not found.registry.damaged


@pytest.mark.parametrize("name", BAD_REGISTRIES)
def test_a_registry_that_nobody_can_use_is_said_in_one_line(ward: Ward, name: str) -> None:
    data, said = BAD_REGISTRIES[name]
    ward.put(REGISTRY, data)
    found = look(ward)
    (problem,) = found.problems
    assert problem.startswith(f"{REGISTRY}: ")
    assert said in problem
    assert "\n" not in problem
    assert all(key.state != "inactive" for key in found.keys)
    assert "run tenure doctor /agent" in text(ward)
    assert problem == as_json(found)["problem"]


def test_what_is_no_file_at_the_registrys_place_is_damage(ward: Ward) -> None:
    ward.files.make_directories(REGISTRY)
    assert "not a regular file" in look(ward).problems[0]
    assert look(ward).registry.damaged


def test_a_registry_that_may_not_be_read_is_a_problem_and_no_damage(ward: Ward) -> None:
    ward.own()
    found = status(ward.ports(plan=denies("read", REGISTRY)), DIRECTORY)
    assert [f"{REGISTRY}: cannot be read: Permission denied"] == list(found.problems)
    assert not found.registry.damaged


def test_a_directory_that_may_not_be_looked_at_is_one_line(ward: Ward) -> None:
    with pytest.raises(TenureError, match=r"^/agent/tmp/telegram: Permission denied; give this user"):
        status(ward.ports(plan=denies("entries", STATE)), DIRECTORY)


def denies(name: str, path: str) -> Callable[[Call], Fault | None]:
    return lambda call: Fails(errno.EACCES) if (call.name, call.paths[0]) == (name, path) else None


# -- the guards -----------------------------------------------------------------


def test_a_guard_that_is_held_says_by_whom_and_for_how_long(ward: Ward) -> None:
    ward.processes.start(HOLDER)
    ward.guard(processBirth=birth())
    found = look(ward).guard
    assert ("held", (HOLDER,)) == (found.kind, found.live)
    assert "guard: held by pid 77 (running) for 3.0 s" in text(ward)


def test_a_holder_that_is_stopped_is_named_with_what_to_do(ward: Ward) -> None:
    ward.stop()
    ward.guard(processBirth=birth())
    said = text(ward)
    assert "held by pid 77 (stopped, a (b) c)" in said
    assert "everybody waits until it runs or dies; kill -CONT 77" in said


def test_the_guard_of_a_dead_holder_is_abandoned_also_by_its_birth(ward: Ward) -> None:
    ward.guard()
    assert "abandoned" == look(ward).guard.kind
    assert "left by pid 77 (dead) 3.0 s ago" in text(ward)
    ward.processes.start(HOLDER, ticks=2)
    assert "held" == look(ward).guard.kind
    ward.put(f"{GUARD}/owner.11111111-1111-4111-8111-111111111111.json", ward.payload(processBirth=birth()))
    assert "abandoned" == look(ward).guard.kind


def test_a_claim_says_who_moves_what_away(ward: Ward) -> None:
    ward.guard(name=f"owner.reclaim.88.{CLAIM}.json")
    assert "abandoned" == look(ward).guard.kind
    ward.processes.start(88)
    found = look(ward).guard
    assert ("claimed", (88,)) == (found.kind, found.live)
    assert "pid 88 (running) moves away what pid 77 (dead) left" in text(ward)


def test_a_guard_pinned_by_a_reused_pid_is_explained(ward: Ward) -> None:
    """K1: nothing proves it, so a person is told what there is to see."""
    ward.processes.start(HOLDER, ticks=ward.clock.fence_ms() // 10)  # it began just now
    ward.guard(acquiredAtMs=ward.clock.wall - 3_600_000)
    said = text(ward)
    assert "names pid 77 without its birth (another system wrote it), so it counts as held" in said
    assert "the process that has it now is 0.0 s old, the guard 60 min: unless the clock was set, the pid was" in said


@pytest.mark.parametrize("name", BAD_GUARDS)
def test_a_guard_that_is_unverifiable_says_why(ward: Ward, name: str) -> None:
    make, said = BAD_GUARDS[name]
    make(ward)
    found = look(ward)
    assert "damaged" == found.guard.kind
    assert said in found.guard.problem
    assert f"{GUARD}: {found.guard.problem}" == found.problems[0]
    assert "run tenure doctor /agent" in text(ward)


def test_a_guard_that_is_taken_away_while_one_looks_is_no_damage(ward: Ward) -> None:
    """Between the opening and the listing it was released, so what was opened is empty."""
    ward.files.make_directories(GUARD)
    seen = 0

    def vanishes(call: Call) -> Fault | None:
        nonlocal seen
        if call.name == "kind" and call.paths == (GUARD,):
            seen += 1
            if seen == 2:
                ward.files.remove_directory(GUARD)
        return None

    assert "free" == status(ward.ports(plan=vanishes), DIRECTORY).guard.kind


def test_a_file_guard_of_an_old_version_says_so(ward: Ward) -> None:
    ward.put(GUARD, ward.payload())
    assert "a regular file of version 0.22.0, left by pid 77 (dead)" in text(ward)
    assert "run tenure doctor" in text(ward)
    ward.processes.start(HOLDER)
    assert ("held", "file") == (look(ward).guard.kind, look(ward).guard.form)


def test_the_neighbour_of_old_versions_is_shown_when_it_is_not_free(ward: Ward) -> None:
    ward.guard(f"{GUARD}.recovery")
    assert "neighbour: left by pid 77 (dead)" in text(ward)
    assert () == look(ward).problems


def test_the_guard_of_healing_is_shown_when_it_is_not_free(ward: Ward) -> None:
    assert "doctor:" not in text(ward)
    ward.files.make_directories(RECOVERY)
    said = text(ward)
    assert "doctor: damaged: it is empty" in said
    assert f"move {RECOVERY} away by hand" in said


# -- locks, marks, debris -------------------------------------------------------


def locked(*holders: Holder) -> Callable[[str], tuple[Record | None, tuple[Holder, ...]]]:
    record = Record(guardian=70, supervisor=69, pid=71, epoch=4, command=("bot",))
    return lambda path: (record, holders if path.endswith("lead.lock") else ())


def work_lines(found: Status, ward: Ward, label: str) -> list[str]:
    return [line.text for line in lines(found, ward.clock.wall) if line.label == label]


def test_who_keeps_the_work_lock_is_shown(ward: Ward) -> None:
    ward.stop(letter="S")
    ward.own()
    ward.put(DIRECTORY.work_lock("default"), "")
    holders = (Holder(70, "running", ("guardian",)), Holder(71, "running", ("bot",)))
    found = status(ward.ports(), DIRECTORY, locks=locked(*holders))
    assert [False] == [w.orphaned for w in found.work]
    said = "locked by pid 70 (guardian), pid 71 (bot); epoch 4, of them the guardian 70, the COMMAND 71"
    assert [said] == work_lines(found, ward, "work default")
    assert [] == work_lines(found, ward, "note")


def test_a_guardian_that_has_gone_is_said(ward: Ward) -> None:
    ward.stop(letter="S")
    ward.own()
    ward.put(DIRECTORY.work_lock("default"), "")
    found = status(ward.ports(), DIRECTORY, locks=locked(Holder(71, "running", ("bot",))))
    assert work_lines(found, ward, "work default")[0].endswith("; its guardian, pid 70, has gone")


@pytest.mark.parametrize(
    ("epoch", "who"), [(None, "the next leader starts"), (5, "pid 77, which leads, starts its own when that ends")]
)
def test_a_work_lock_of_a_tenure_that_is_over_says_why_nobody_else_starts(
    ward: Ward, epoch: int | None, who: str
) -> None:
    ward.processes.start(HOLDER)
    if epoch is not None:
        ward.own(leaderEpoch=epoch)
    ward.put(DIRECTORY.work_lock("default"), "")
    found = status(ward.ports(), DIRECTORY, locks=locked(Holder(71, "stopped", ("bot",))))
    assert [True] == [w.orphaned for w in found.work]
    first, second = work_lines(found, ward, "note")
    assert first.startswith(f"default: COMMAND of epoch 4, which is over, keeps {STATE}/lead.lock: {who}")
    assert first.endswith("end it: kill 71")
    assert "of these, stopped: 71; kill -CONT 71 lets them go on" == second


def test_a_damaged_registry_says_nothing_of_tenures(ward: Ward) -> None:
    """Law Unknown: whether the epoch is over cannot be read."""
    ward.put(REGISTRY, "torn")
    ward.put(DIRECTORY.work_lock("default"), "")
    found = status(ward.ports(), DIRECTORY, locks=locked(Holder(71, "running", ("bot",))))
    assert [False] == [w.orphaned for w in found.work]
    assert ["not known: what stands in the registry cannot be read"] == work_lines(found, ward, "key default")


def test_locks_of_keys_without_an_entry_are_looked_at_too(ward: Ward) -> None:
    ward.put(DIRECTORY.work_lock("work"), "")
    assert ["default", "work"] == [w.key for w in look(ward).work]
    assert ["work"] == [w.key for w in look(ward, "work").work]


@pytest.mark.parametrize(
    ("data", "problem"),
    [('{"highWater": 7}\n', ""), ("", "empty"), ("[1]", "not a JSON object"), ('{"highWater": "7"}', "not an integer")],
)
def test_the_mark_of_epochs(ward: Ward, data: str, problem: str) -> None:
    ward.put(DIRECTORY.high_water, data)
    found = look(ward)
    assert problem in found.marks.problem
    assert bool(problem) == bool(found.problems)
    assert ("up to 7 given out" in text(ward)) == (not problem)


def test_debris_is_listed_with_its_owners(ward: Ward) -> None:
    ward.put(f"{REGISTRY}.77.1.1.tmp", "")
    ward.put(f"{REGISTRY}.100.1.1.tmp", "")
    found = look(ward)
    assert [(100, False), (77, True)] == [(d.pid, d.dead) for d in found.debris]
    assert "owners.json.77.1.1.tmp, of pid 77 (dead)" in text(ward)


def test_what_others_wrote_does_not_steer_the_terminal(ward: Ward) -> None:
    ward.own(cwd="/x\x1b[2J\r\nnobody leads", pid=5)
    ward.put(f"{GUARD}/\udcff\n", "")
    said = [line.text for line in lines(look(ward), ward.clock.wall)]
    assert all(line.isprintable() for line in said)
    assert "/x\\x1b[2J\\r\\nnobody leads" in said[0]


def test_the_shape_of_json_stays(ward: Ward) -> None:
    ward.own()
    ward.guard()
    ward.put(DIRECTORY.work_lock("default"), "")
    found = as_json(status(ward.ports(), DIRECTORY, locks=locked(Holder(71, "running", ("bot",)))))
    assert {
        "directory",
        "problem",
        "problems",
        "staleAfterMs",
        "registry",
        "keys",
        "guard",
        "neighbour",
        "recoveryGuard",
        "work",
        "commit",
        "highWater",
        "debris",
        "quarantined",
        "fleets",
        "journals",
    } == set(found)
    assert found["keys"] == [
        {
            "key": "default",
            "state": "stale",
            "owner": {"pid": 77, "process": "dead", "provenDead": True, "birthKnown": True},
            "epoch": 4,
            "cwd": "/home",
            "instanceId": "77:1",
            "runtimeGeneration": 9,
            "foreign": False,
            "ageMs": 500,
            "ageBy": "stamp",
            "expired": False,
        }
    ]
    assert found["guard"] == {
        "path": GUARD,
        "state": "abandoned",
        "form": "directory",
        "holder": {"pid": 77, "process": "dead", "provenDead": True, "birthKnown": False},
        "claimant": None,
        "sinceMs": ward.clock.wall - 3_000,
        "generation": "11111111-1111-4111-8111-111111111111",
        "problem": None,
        "files": ["owner.11111111-1111-4111-8111-111111111111.json"],
    }
    assert found["work"] == [
        {
            "key": "default",
            "path": f"{STATE}/lead.lock",
            "exists": True,
            "holders": [{"pid": 71, "process": "running", "command": ["bot"]}],
            "last": {"guardian": 70, "supervisor": 69, "pid": 71, "epoch": 4, "command": ["bot"]},
            "orphaned": True,
        }
    ]
