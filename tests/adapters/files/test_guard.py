"""The guard on files in memory: every call fails or is the last, and nobody is robbed, doubled or locked out."""

from __future__ import annotations

import errno
import itertools
import json

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardBusy, GuardDamaged, Guarded, GuardedFile, GuardFailed, GuardLost
from tenure.adapters.files.passage import owner_text
from tenure.adapters.files.process_state import ProcessState
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Killed
from tenure.adapters.testing.faulty import Call, Fails, Kills
from tenure.adapters.testing.memory import MemoryFiles, Notes
from tenure.machines.guard_name import (
    OwnerName,
    Payload,
    marker,
    parse_name,
    parse_payload,
    render_name,
    render_payload,
)
from tenure.machines.identity import ZOMBIE, Birth

from .guard_room import DENIED, DIRECTORY, FAST, GUARD, RESOURCE, Room, count_calls, die_inside, one_fault

PLAIN = count_calls()
RECOVERING = count_calls(prepare=True)


def put(room: Room, pid: int, name: str | None = None, text: bytes | None = None, birth: Birth | None = None) -> None:
    """A guard that somebody else published."""
    assert isinstance(room.inner, MemoryFiles)
    payload = Payload(pid, 1, "theirs", birth)
    room.inner.make_directory(GUARD)
    room.inner.create(
        f"{GUARD}/{name or render_name(OwnerName('theirs'))}",
        json.dumps(render_payload(payload)).encode() if text is None else text,
    )


def test_what_is_published_is_what_everybody_reads() -> None:
    """One owner file of locks.md 2 in the guard while the operation runs, its result answered, nothing left."""
    room = Room()
    member = room.member(2)

    def operation(inside: Guarded) -> int:
        (name,) = room.inner.entries(GUARD)
        assert name == f"owner.{inside.generation}.json"
        text = room.inner.read(f"{GUARD}/{name}")
        assert text.endswith(b"}\n")
        payload = parse_payload(json.loads(text))
        assert payload == Payload(2, room.clock.wall, inside.generation, member.processes.me().birth)
        return 42

    assert member.file.run(operation) == 42
    assert room.left() == []


def test_the_parent_is_made_when_it_is_missing() -> None:
    """S0."""
    room = Room(MemoryFiles("/"))

    assert room.member(2).file.run(lambda inside: "in") == "in"
    assert room.inner.kind(DIRECTORY) == "directory"


def test_an_operation_that_fails_leaves_and_is_heard() -> None:
    """Its exception comes out, and the guard is free."""
    room = Room()

    def operation(inside: Guarded) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        room.member(2).file.run(operation)
    assert room.left() == []
    assert room.member(3).file.run(lambda inside: 3) == 3


@pytest.mark.parametrize("number", range(PLAIN))
@pytest.mark.parametrize("fault", [Kills("before"), Kills("after"), Kills(torn=0), Kills(torn=9)], ids=str)
def test_whoever_dies_at_any_call_keeps_nobody_out(number: int, fault: Kills) -> None:
    """A process dies before or after each call of its passage; the next one gets in at once, and is alone."""
    room = Room()
    dying = room.member(2, one_fault(number, fault))
    with pytest.raises(Killed):
        dying.file.run(lambda inside: None)
    room.die(2)

    after = room.member(3)
    assert after.file.run(lambda inside: room.inner.entries(GUARD)) == (f"owner.{_generation(after)}.json",)
    assert room.inner.kind(GUARD) == "absent"


@pytest.mark.parametrize("number", range(RECOVERING))
@pytest.mark.parametrize("when", ["before", "after"])
def test_whoever_dies_recovering_keeps_nobody_out(number: int, when: str) -> None:
    """V2: a recoverer dies before or after each of its calls; the next one takes the guard or the marker over."""
    room = Room()
    die_inside(room, 9)
    with pytest.raises(Killed):
        room.member(2, one_fault(number, Kills(when))).file.run(lambda inside: None)  # type: ignore[arg-type]
    room.die(2)

    assert room.member(3).file.run(lambda inside: "in") == "in"
    assert room.inner.kind(GUARD) == "absent"


@pytest.mark.parametrize("prepare", [False, True], ids=["free", "abandoned"])
@pytest.mark.parametrize("number", range(max(PLAIN, RECOVERING)))
@pytest.mark.parametrize(("error", "when"), [*itertools.product(DENIED, ["before", "after"])])
def test_any_call_may_fail(number: int, error: int, when: str, prepare: bool) -> None:
    """The operation has run at most once, exactly once if there is an answer, and never without its own guard; the
    error is one line; whatever happened, this process and another one get in afterwards."""
    room = Room()
    if prepare:
        die_inside(room, 9)
    member = room.member(2, one_fault(number, Fails(error, when)))  # type: ignore[arg-type]
    ran: list[str] = []

    def operation(inside: Guarded) -> str:
        assert room.inner.entries(GUARD) == (f"owner.{inside.generation}.json",)
        ran.append(inside.generation)
        return "in"

    failed: TenureError | None = None
    try:
        assert member.file.run(operation) == "in"
    except TenureError as error_:
        failed = error_
    assert "\n" not in str(failed)
    assert len(ran) == (failed is None or isinstance(failed, GuardLost))
    member.files.plan = None
    assert room.inner.kind(GUARD) in ("absent", "directory")
    assert member.file.run(lambda inside: "again") == "again"
    assert room.member(3).file.run(lambda inside: "third") == "third"
    assert room.inner.kind(GUARD) == "absent"


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_directory_that_takes_nothing_is_said_at_once(error: int) -> None:
    """K15: no two seconds of waiting, and no "timed out": the cause, and what to do; nothing is left."""
    room = Room()

    def plan(call: Call) -> Fails | None:
        return Fails(error) if call.name in ("make_directory", "create", "rename") else None

    before = room.clock.monotonic
    with pytest.raises(GuardFailed, match=r"owners\.json\.transaction: .*; (make|free)"):
        room.member(2, plan).file.run(lambda inside: None)
    assert room.clock.monotonic == before
    assert room.left() == []


def test_a_live_holder_is_waited_for_and_named() -> None:
    """The attempts are used up: 79 sleeps of 25 ms by default, and the error says who is inside."""
    room = Room()
    put(room, 5)
    room.first.start(5)

    before = room.clock.monotonic
    with pytest.raises(GuardBusy, match="held by pid 5, which lives") as caught:
        room.member(2, timings=Timings()).file.run(lambda inside: None)
    assert room.clock.monotonic - before == 79 * 25
    assert caught.value.standing.pid == 5
    assert room.left() == ["owners.json.transaction"]


BROKEN = {
    "empty": (None, None),
    "bad JSON": ("owner.theirs.json", b"{"),
    "no object": ("owner.theirs.json", b"[]"),
    "foreign name": ("lock", b"{}"),
    "other generation": ("owner.other.json", None),
    "pid 0": ("owner.theirs.json", b'{"pid": 0, "acquiredAtMs": 1, "generation": "theirs"}'),
    "pid true": ("owner.theirs.json", b'{"pid": true, "acquiredAtMs": 1, "generation": "theirs"}'),
    "pid 1.5": ("owner.theirs.json", b'{"pid": 1.5, "acquiredAtMs": 1, "generation": "theirs"}'),
    "no time": ("owner.theirs.json", b'{"pid": 7, "generation": "theirs"}'),
}


@pytest.mark.parametrize("case", [*BROKEN, "two files", "symbolic link", "link inside", "regular file"])
def test_a_damaged_guard_keeps_everybody_out(case: str) -> None:
    """S9: nobody enters, the error says what stands there, and nothing changes."""
    room = Room()
    assert isinstance(room.inner, MemoryFiles)
    if case == "symbolic link":
        room.inner.put_other(GUARD)
    elif case == "regular file":
        room.inner.create(GUARD, b'{"pid": 77, "acquiredAtMs": 1, "generation": "g"}')
    elif case in ("empty", "link inside"):
        room.inner.make_directory(GUARD)
        if case == "link inside":
            room.inner.put_other(f"{GUARD}/owner.theirs.json")
    else:
        put(room, 77, *BROKEN.get(case, ("owner.theirs.json", None)))
        if case == "two files":
            room.inner.create(f"{GUARD}/owner.more.json", b"{}")
    before = (dict(room.inner.data), {k: set(v) for k, v in room.inner.directories.items()})

    with pytest.raises(GuardDamaged, match="tenure doctor"):
        room.member(2).file.run(lambda inside: pytest.fail("inside"))
    assert before == (room.inner.data, room.inner.directories)


def test_the_guard_of_a_reused_pid_is_taken_over() -> None:
    """K1: the pid lives, and is another process."""
    room = Room()
    put(room, 5, birth=Birth(1, room.first.boot_id, 1))
    room.first.start(5, ticks=2)

    assert room.member(2).file.run(lambda inside: "in") == "in"


@pytest.mark.parametrize(
    ("birth", "enters"),
    [
        (Birth(1, "another boot", 1), True),
        (Birth(1, "another boot", 2), True),
        (None, False),
    ],
)
def test_what_another_boot_left_is_dead(birth: Birth | None, enters: bool) -> None:
    """A process of another boot is dead, whoever has its pid now; one without a birth lives as long as its pid."""
    room = Room()
    put(room, 5, birth=birth)
    room.first.start(5)
    member = room.member(2)

    if enters:
        assert member.file.run(lambda inside: "in") == "in"
    else:
        with pytest.raises(GuardBusy):
            member.file.run(lambda inside: None)


def test_a_holder_in_another_namespace_is_not_robbed() -> None:
    """K14: its pid says nothing here, neither as a payload nor as a claimant."""
    room = Room()
    elsewhere = Birth(1, room.first.boot_id, 2)
    put(room, 5, birth=elsewhere)
    with pytest.raises(GuardBusy):
        room.member(2).file.run(lambda inside: None)

    room = Room()
    put(room, 5, name=render_name(marker(6, elsewhere, 1)))
    with pytest.raises(GuardBusy):
        room.member(2).file.run(lambda inside: None)


def test_a_zombie_is_dead() -> None:
    """Nothing of it runs any more."""
    room = Room()
    put(room, 5)
    room.first.start(5)
    room.first.turn(5, ZOMBIE)

    assert room.member(2).file.run(lambda inside: "in") == "in"


@pytest.mark.parametrize(
    ("claimant", "enters"), [("dead", True), ("alive", False), ("reused", True), ("foreign alive", False)]
)
def test_a_marker_is_taken_over_when_its_claimant_is_dead(claimant: str, enters: bool) -> None:
    """S7, V2, A16, A26: the next one takes the marker of a dead claimant over, and robs no live one."""
    room = Room()
    birth = Birth(1, room.first.boot_id, 1)
    name = render_name(marker(6, birth, 1))
    if claimant == "foreign alive":
        name = "owner.reclaim.6.01234567-89ab-4cde-8f01-23456789abcd.json"
    put(room, 5, name=name)
    if claimant != "dead":
        room.first.start(6, ticks=2 if claimant == "reused" else 1)
    member = room.member(2)

    if enters:
        assert member.file.run(lambda inside: "in") == "in"
    else:
        with pytest.raises(GuardBusy, match="pid 6 moves away"):
            member.file.run(lambda inside: None)


def test_a_claim_of_my_own_that_does_not_run_is_taken_up_again() -> None:
    """A19, V3: and one that runs in another thread is not."""
    room = Room()
    member = room.member(2)
    mine = marker(2, member.processes.me().birth, 1)
    put(room, 5, name=render_name(mine))
    member.file.process.begin_reclaim(mine.uuid)
    with pytest.raises(GuardBusy):
        member.file.run(lambda inside: None)

    member.file.process.end_reclaim(mine.uuid)
    assert member.file.run(lambda inside: "in") == "in"
    assert member.file.process.running == set()


def test_a_recoverer_that_cannot_move_takes_its_claim_back() -> None:
    """A20: the marker becomes an owner file again, so that peers are not kept out by a live claimant."""
    room = Room()
    generation = die_inside(room, 9)
    member = room.member(
        2, lambda call: Fails(errno.EBUSY) if call.name == "rename" and ".stale." in call.paths[1] else None
    )

    with pytest.raises(GuardBusy):
        member.file.run(lambda inside: None)
    assert room.inner.entries(GUARD) == (f"owner.{generation}.json",)
    assert member.file.process.running == set()
    assert room.member(3).file.run(lambda inside: "in") == "in"


def test_a_replaced_guard_is_left_alone() -> None:
    """S8, A22: the caller is told, and the replacement stays."""
    room = Room()

    def operation(inside: Guarded) -> None:
        room.inner.rename(GUARD, f"{DIRECTORY}/elsewhere")
        put(room, 5)

    with pytest.raises(GuardLost, match="another guard"):
        room.member(2).file.run(operation)
    assert room.inner.entries(GUARD) == ("owner.theirs.json",)


def test_a_release_that_fails_for_good_is_made_up_for() -> None:
    """The caller is told, others wait, and the next passage of this process frees the path first."""
    room = Room()
    broken = [True]

    def plan(call: Call) -> Fails | None:
        return Fails(errno.EBUSY) if broken[0] and call.name == "rename" and ".released." in call.paths[1] else None

    member = room.member(2, plan)
    with pytest.raises(GuardLost, match="cannot be moved away"):
        member.file.run(lambda inside: None)
    with pytest.raises(GuardBusy, match="pid 2"):
        room.member(3).file.run(lambda inside: None)

    broken[0] = False
    assert member.file.run(lambda inside: "in") == "in"
    assert room.left() == []


def test_an_interrupt_leaves_nothing() -> None:
    """Whatever is no error of the protocol (a person's interrupt) frees the path on its way out."""
    for number in range(PLAIN):
        room = Room()

        def plan(call: Call, pending: list[int] = [number]) -> None:  # noqa: B006
            if call.number in pending:
                pending.clear()
                raise KeyboardInterrupt

        member = room.member(2, plan)
        with pytest.raises(KeyboardInterrupt):
            member.file.run(lambda inside: None)
        assert room.inner.kind(GUARD) == "absent", member.files.calls
        assert room.member(3).file.run(lambda inside: "in") == "in"
        assert room.inner.kind(GUARD) == "absent"


def test_the_neighbour_of_older_versions_is_cleared_after_a_recovery() -> None:
    """R8, A16, A23: a dead recovery guard goes, a live one stays and does not block."""
    for alive in (False, True):
        room = Room()
        assert isinstance(room.inner, MemoryFiles)
        die_inside(room, 9)
        room.inner.make_directory(f"{GUARD}.recovery")
        payload = json.dumps(render_payload(Payload(8, 1, "n"))).encode()
        room.inner.create(f"{GUARD}.recovery/owner.n.json", payload)
        if alive:
            room.first.start(8)

        assert room.member(2).file.run(lambda inside: "in") == "in"
        assert (room.inner.kind(f"{GUARD}.recovery") == "directory") is alive


def test_nesting_is_refused_at_once() -> None:
    """K13: no spinning; the operation outside goes on."""
    room = Room()
    member = room.member(2)

    def operation(inside: Guarded) -> str:
        before = room.clock.monotonic
        with pytest.raises(TenureError, match="inside it already"):
            member.file.run(lambda inside: None)
        assert room.clock.monotonic == before
        return "out"

    assert member.file.run(operation) == "out"


def test_an_owner_file_is_a_rendered_payload() -> None:
    """Written by hand for speed, and the same bytes."""
    me = Room().member(2).processes.me()
    payload = json.dumps(render_payload(Payload(2, 17, "g-1", me.birth)), separators=(",", ":"))

    assert owner_text(me, 17, "g-1") == payload.encode() + b"\n"


def test_names_are_read_back() -> None:
    """What a passage stages has a name that the sweep can read."""
    room = Room()
    member = room.member(2, one_fault(PLAIN, Kills()))
    file = GuardedFile(member.ports, RESOURCE, FAST, process=ProcessState())
    assert file.run(lambda inside: parse_name(f"owner.{inside.generation}.json")) is not None
    assert isinstance(member.ports.diagnostics, Notes)


def _generation(member: object) -> str:
    """The generation that the member's passage published last: the last owner file it made."""
    calls = member.files.calls  # type: ignore[attr-defined]
    (made,) = [c.paths[0] for c in calls if c.name == "create"][-1:]
    return str(made).rpartition("owner.")[2].removesuffix(".json")
