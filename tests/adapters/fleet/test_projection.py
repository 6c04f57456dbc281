"""`state.json`: written by the owner alone, read whatever stands there, never over the other system's work (I40)."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Mapping
from contextlib import suppress

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.errors import TenureError
from tenure.adapters.files.lease import LeaseRuntime, NotOwner, Won
from tenure.adapters.files.replacing import WriteFailed
from tenure.adapters.fleet.threads.projection import (
    CleanUp,
    LiveRoute,
    Projection,
    ProjectionDamaged,
    Snapshot,
    StateForeign,
    Superseded,
    look,
    projection_path,
)
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, ProvisionRequest
from tenure.adapters.fleet.threads.reading import Odd, decode, read
from tenure.adapters.fleet.threads.values import Mark
from tenure.adapters.fleet.threads.writing import encode, owner_of, render
from tenure.adapters.ports import Killed
from tenure.adapters.testing.agent import FakeAgent, FakeProcess
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, Fault, Kills
from tenure.machines.identity import Birth, Process
from tenure.machines.slot_board import Board, Identity, Pending, Record, Reservation, Target, Wish

PROCESS = Process(500, Birth(7, "boot", 3))
RECORD = Record("manual:x", "manual-follower", "500:1", "500:1:4", Target(0, 2), "B", "Otter", 10, 20, PROCESS)
OWN = Record("cwd:/here", "leader", "400:1", None, Target(0, 1), "A", None, 10, 10)
AFTER_Z = attrs.evolve(RECORD, key="profile:p:manual:y", slot=None, target=Target(0, 3), probe=True, process=None)
INTENT = CleanUp("501:1", "501:1:1", Target(0, 9), 30, key="manual:z")
FULL = Snapshot(
    Board(
        records=(OWN, RECORD, AFTER_Z),
        identities=(Identity("manual:z", "C", "Teal", 5), Identity("old", None, "Moss", 6)),
        reservations=(Reservation("D", Target(0, 8), "previous-leader", 3, 4), Reservation("E", Target(0, 7), "x", 3)),
        pendings=(
            Pending("provision:6:1:F:9", Wish("k", "manual-follower", "6:1", "6:1:2"), 4, "F", None, Target(0, 4), 9),
        ),
        last_slot="B",
        next_thread=10,
    ),
    (INTENT, attrs.evolve(INTENT, generation=None, key=None, kind="leader")),
    (
        LiveRoute("500:1", "manual:x", "500:1:4", 15, 500, "B", "Otter", Target(0, 2)),
        LiveRoute("7:1", "k", "7:1:1", 16),
    ),
)


class House:
    """A directory with an owner of the default key."""

    def __init__(self) -> None:
        self.agent = FakeAgent()
        self.agent.files.make_directories(self.agent.directory.state)
        self.path = projection_path(self.agent.directory, "default")
        self.process, self.lease, self.projection = self.member()
        self.own(self.lease)

    def member(self, key: str = "default") -> tuple[FakeProcess, LeaseRuntime, Projection]:
        process = self.agent.process()
        lease = process.lease(key)
        return process, lease, Projection(process.ports, self.agent.directory, key, lease.commit, instance="me:1")

    def own(self, lease: LeaseRuntime) -> None:
        assert isinstance(lease.acquire("plain"), Won)

    def put(self, content: object) -> bytes:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        if self.agent.files.kind(self.path) != "absent":
            self.agent.files.unlink(self.path)
        self.agent.files.create(self.path, data)
        return data

    def value(self) -> Mapping[str, object]:
        value = json.loads(self.agent.files.data[self.path])
        assert isinstance(value, dict)
        return value


@pytest.fixture
def house() -> House:
    return House()


# -- the file ------------------------------------------------------------


def test_what_is_published_is_loaded_again(house: House) -> None:
    assert house.projection.publish(FULL)
    assert FULL == house.projection.load()


def test_where_nothing_was_published_there_is_nothing(house: House) -> None:
    assert Snapshot() == house.projection.load()
    assert "absent" == house.agent.files.kind(house.path)


def test_each_profile_has_a_file_of_its_own(house: House) -> None:
    directory = house.agent.directory
    assert f"{directory.state}/state.json" == projection_path(directory, "default")
    assert f"{directory.state}/state.work.json" == projection_path(directory, "work")
    _, lease, other = house.member("work")
    house.own(lease)
    assert other.publish(FULL)
    assert "absent" == house.agent.files.kind(house.path)
    assert FULL == other.load()


def test_the_other_system_finds_what_it_reads(house: House) -> None:
    """bus.md f: the names and types of what its followers take from the file."""
    house.projection.publish(FULL)
    value = house.value()
    assert (1, "snapshot", house.agent.clock.wall) == (value["version"], value["source"], value["writtenAtMs"])
    assert {"threadMode": "enabled", "lastSlot": "B", "updatedAtMs": house.agent.clock.wall} == value["bot"]
    threads = value["threads"]
    assert isinstance(threads, list)
    assert {
        "owner": {"kind": "manual-follower", "instanceId": "x"},
        "target": {"chatId": 0, "threadId": 2},
        "status": "active",
        "createdAtMs": 10,
        "updatedAtMs": 20,
        "threadName": "Otter",
        "instanceId": "500:1",
        "slot": "B",
        "syncStatus": "open",
    }.items() <= threads[1].items()
    assert ["active", "active", "probe-required"] == [t["status"] for t in threads]
    assert [
        {"kind": "leader", "cwd": "/here"},
        {"kind": "manual-follower", "instanceId": "y", "telegramProfile": "p"},
    ] == [
        threads[0]["owner"],
        threads[2]["owner"],
    ]
    roster = value["liveRoster"]
    assert isinstance(roster, dict)
    assert {"target": {"chatId": 0, "threadId": 2}, "slot": "B", "threadName": "Otter"}.items() <= roster[
        "busFollowers"
    ][0].items()
    assert [
        {"profileKey": "manual:z", "threadName": "Teal", "slot": "C", "updatedAtMs": 5},
        {"profileKey": "old", "threadName": "Moss", "updatedAtMs": 6},
    ] == value["identities"]
    intents, pendings = value["pendingCleanups"], value["pendingProvisions"]
    assert isinstance(intents, list)
    assert isinstance(pendings, list)
    assert "cleanup:501:1:501:1:1:0:9" == intents[0]["id"]
    assert ("manual-follower", "in-flight", 4) == tuple(pendings[0][n] for n in ("owner", "status", "leaderEpoch"))


@pytest.mark.parametrize(
    ("key", "kind", "owner"),
    [
        ("manual:7:start:9", "manual-follower", {"kind": "manual-follower", "instanceId": "7:start:9"}),
        ("profile:p:cwd:/a:b", "leader", {"kind": "leader", "cwd": "/a:b", "telegramProfile": "p"}),
        ("leader:7:1", "leader", {"kind": "leader", "instanceId": "7:1"}),
        ("odd", "manual-follower", {"kind": "manual-follower", "instanceId": "odd"}),
        ("odd", "leader", {"kind": "legacy", "key": "odd"}),
    ],
)
def test_the_owner_is_named_as_the_other_system_names_it(key: str, kind: str, owner: dict[str, str]) -> None:
    assert owner == owner_of(key, "leader" if kind == "leader" else "manual-follower")


def test_it_is_private_and_leaves_no_temporary_file(house: House) -> None:
    house.projection.publish(FULL)
    assert {"owners.json", "epochs.json", "state.json"} == set(house.agent.files.entries(house.agent.directory.state))


def test_what_says_the_same_is_not_written_again(house: House) -> None:
    house.projection.publish(FULL)
    before = house.agent.files.data[house.path]
    house.agent.clock.advance(1_000)
    assert not house.projection.publish(FULL)
    assert before == house.agent.files.data[house.path]
    assert house.projection.publish(attrs.evolve(FULL, live=()))


def test_a_heartbeat_is_no_part_of_it() -> None:
    assert not {"heartbeat", "last_heartbeat_ms"} & {f.name for f in attrs.fields(LiveRoute)}


def test_an_open_intent_is_on_the_disk_before_anything_is_deleted(house: House) -> None:
    """Durable first: synced with its directory; what is no new intent is not synced."""
    house.projection.publish(attrs.evolve(FULL, clean_ups=()))
    calls = house.process.files.calls
    assert not [c for c in calls if c.name == "sync" and "state.json" in c.paths[0]]
    house.projection.publish(FULL)
    synced = [c.paths[0] for c in calls if c.name == "sync"]
    assert any("state.json" in path for path in synced)
    assert house.agent.directory.state in synced


# -- who may ------------------------------------------------------------


def test_who_does_not_own_the_key_writes_nothing(house: House) -> None:
    """I40, M40a."""
    _, _, stranger = house.member()
    with pytest.raises(NotOwner):
        stranger.publish(FULL)
    with pytest.raises(NotOwner):
        stranger.load()
    assert "absent" == house.agent.files.kind(house.path)


def test_a_displaced_owner_writes_nothing_over_its_successor(house: House) -> None:
    """I40, M40b: the test and the rename are one transaction."""
    house.projection.publish(FULL)
    house.agent.kill(house.process)
    _, lease, successor = house.member()
    house.own(lease)
    assert FULL == successor.load()
    successor.publish(attrs.evolve(FULL, live=()))
    after = house.agent.files.data[house.path]
    house.process.files.dead = False  # it was only stopped, and wakes up
    with pytest.raises(NotOwner):
        house.projection.publish(FULL)
    assert after == house.agent.files.data[house.path]


def test_what_was_written_under_a_higher_epoch_is_not_overwritten(house: House) -> None:
    data = house.put(render(FULL, Mark(99, "other:1"), 1))
    for call in (house.projection.load, lambda: house.projection.publish(FULL)):
        with pytest.raises(Superseded, match="epoch 99, ours is 1"):
            call()
    assert data == house.agent.files.data[house.path]


# -- the other system's ------------------------------------------------------------


FOREIGN = {
    "version": 1,
    "source": "snapshot",
    "writtenAtMs": 5,
    "bot": {"threadMode": "enabled", "lastSlot": "C"},
    "identities": [{"profileKey": "manual:z", "threadName": "Otter", "slot": "C", "updatedAtMs": 5}, 7, {"slot": "A"}],
    "reservations": [],
    "pendingProvisions": [],
    "syncObservations": [],
    "threads": [],
}


@pytest.mark.parametrize("member", ["threads", "pendingProvisions", "pendingCleanups", "reservations"])
def test_work_of_the_other_system_is_never_overwritten(house: House, member: str) -> None:
    """DESIGN 10: one line that names the file and says what to run; also where the work has no shape that we know."""
    for work in ([{"a": 1}], {"a": 1}, "text", 7):
        data = house.put({**FOREIGN, member: work})
        for call in (house.projection.load, lambda: house.projection.publish(FULL)):
            with pytest.raises(StateForeign) as found:
                call()
            said = str(found.value)
            assert f"{house.path}: " == said[: len(house.path) + 2]
            assert member in said
            assert "tenure import /agent" in said
            assert "\n" not in said
        assert data == house.agent.files.data[house.path]
    assert look(house.agent.files, house.agent.directory, "default").foreign


def test_what_the_other_system_left_without_work_is_replaced_and_its_names_are_remembered(house: House) -> None:
    house.put(FOREIGN)
    found = house.projection.load()
    assert Snapshot(Board(identities=(Identity("manual:z", "C", "Otter", 5),))) == found
    assert house.projection.publish(found)
    assert found == house.projection.load()


def test_a_file_of_ours_that_the_other_system_wrote_again_is_the_other_systems(house: House) -> None:
    """It drops what it does not know, our mark with it."""
    house.projection.publish(FULL)
    value = {name: member for name, member in house.value().items() if name != "tenure"}
    house.put(value)
    with pytest.raises(StateForeign):
        house.projection.load()


# -- damage ------------------------------------------------------------


def damaged(**members: object) -> dict[str, object]:
    return {**render(FULL, Mark(1, "me:1"), 1), **members}


def record(**members: object) -> dict[str, object]:
    found = render(FULL, Mark(1, "me:1"), 1)["threads"]
    assert isinstance(found, list)
    return {**found[0], **members}


DAMAGE: dict[str, tuple[object, str]] = {
    "empty": (b"", "it is empty"),
    "torn": (b'{"version": 1', "bad JSON"),
    "no object": (b"[]", "not a JSON object"),
    "NaN": (b'{"tenure": NaN}', "bad JSON"),
    "deep": (b"[" * 100_000, "bad JSON"),
    "not UTF-8": (b'{"a": "\xff"}', "not UTF-8"),
    "mark": (damaged(tenure=[]), "tenure is missing or has a wrong type"),
    "format": (damaged(tenure={"format": 2}), "written by a later version"),
    "epoch": (damaged(tenure={"format": 1, "epoch": "x", "instanceId": "i", "nextThread": 1}), "tenure.epoch"),
    "no list": (damaged(threads={}), "threads is no list"),
    "no record": (damaged(threads=[7]), "threads[0]: it is no object"),
    "no target": (damaged(threads=[record(target={"chatId": 1})]), "threads[0]: target"),
    "status": (damaged(threads=[record(status="gone")]), "threads[0]: status is 'gone'"),
    "bool": (damaged(threads=[record(createdAtMs=True)]), "threads[0]: createdAtMs"),
    "two of a slot": (
        damaged(threads=[record(), record(profileKey="x", target={"chatId": 0, "threadId": 5})]),
        "same slot",
    ),
    "two of a target": (damaged(threads=[record(), record(profileKey="x", slot="Q")]), "same target"),
    "no bot": (damaged(bot=7), "bot is missing"),
    "intent": (damaged(pendingCleanups=[{}]), "pendingCleanups[0]"),
    "roster": (damaged(liveRoster={}), "busFollowers is no list"),
}


@pytest.mark.parametrize(("content", "said"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_one_clear_error_and_stays(house: House, content: object, said: str) -> None:
    data = house.put(content)
    for call in (house.projection.load, lambda: house.projection.publish(FULL)):
        with pytest.raises(ProjectionDamaged) as found:
            call()
        assert said in str(found.value)
        assert house.path in str(found.value)
        assert "\n" not in str(found.value)
    assert data == house.agent.files.data[house.path]
    assert said in look(house.agent.files, house.agent.directory, "default").problem


def test_what_is_no_regular_file_is_an_error(house: House) -> None:
    house.agent.files.make_directory(house.path)
    with pytest.raises(ProjectionDamaged, match="cannot be read"):
        house.projection.load()
    assert "cannot be read" in look(house.agent.files, house.agent.directory, "default").problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
GOOD = render(FULL, Mark(1, "me:1"), 1)


@given(st.binary(max_size=80))
def test_whatever_bytes_stand_there_are_read_or_odd(data: bytes) -> None:
    with suppress(Odd):
        decode(data)


@given(st.data())
def test_whatever_one_member_is_it_is_read_or_odd(data: st.DataObject) -> None:
    """Total: an odd value at any place is an `Odd`, never another exception."""
    value: object = json.loads(encode(GOOD))
    place = value
    while True:
        if isinstance(place, dict) and place:
            key: object = data.draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = data.draw(st.integers(0, len(place) - 1))
        else:
            break
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = inner
    assert isinstance(value, dict)
    with suppress(Odd):
        read(value)


# -- the disk ------------------------------------------------------------


def test_whatever_call_fails_or_is_the_last_the_file_is_the_old_or_the_new() -> None:
    """Every call of a publication fails or kills; another leader then reads what stands there."""
    probe = House()
    probe.projection.publish(attrs.evolve(FULL, clean_ups=()))
    first = len(probe.process.files.calls)
    probe.projection.publish(FULL)
    count = len(probe.process.files.calls) - first
    assert count > 5
    for number in range(count):
        for fault in (*(Fails(e) for e in ERRORS), Fails(errno.EIO, "after"), Kills(), Kills("after")):
            _one_fault(number, fault)


def _one_fault(number: int, fault: Fault) -> None:
    house = House()
    old = attrs.evolve(FULL, clean_ups=())
    house.projection.publish(old)
    start = len(house.process.files.calls)

    def plan(call: Call) -> Fault | None:
        return fault if call.number == start + number else None

    house.process.files.plan = plan
    outcome: object
    try:
        outcome = house.projection.publish(FULL)
    except Killed:
        outcome = "killed"
    except TenureError as error:
        outcome = error
    house.agent.kill(house.process)
    process = house.agent.process()
    lease = process.lease()
    assert isinstance(lease.acquire("plain"), Won)
    found = Projection(process.ports, house.agent.directory, "default", lease.commit, instance="b:1").load()
    assert found in (old, FULL)
    if outcome is True:
        assert FULL == found
    if isinstance(outcome, WriteFailed) and outcome.outcome.name == "FAILED":
        assert old == found


# -- across leaders ----------------------------------------------------------


def test_slots_targets_and_names_outlive_leaders(house: House) -> None:
    """Five leaders die one after the other; each heir goes on from what the one before published."""

    def request(key: str, pid: int, **fields: object) -> ProvisionRequest:
        return attrs.evolve(ProvisionRequest(f"{pid}:1", "g", key, pid=pid, process_birth=f"{pid}:start:1"), **fields)

    async def scene() -> None:
        process, projection = house.process, house.projection
        local = LocalProvisioning(process.ports)
        local.begin_leading(projection.load().board, "cwd:/0", 1)
        own = request("cwd:/0", process.pid, kind="leader", generation=None)
        await local.provision(own, 1)
        given = {key: await local.provision(request(key, pid), 1) for key, pid in (("a", 501), ("b", 502))}
        for epoch in range(2, 7):
            projection.publish(Snapshot(local.board, (INTENT,)))
            house.agent.kill(process)
            process, lease, projection = house.member()
            house.own(lease)
            found = projection.load()
            assert (INTENT,) == found.clean_ups
            local = LocalProvisioning(process.ports)
            local.begin_leading(found.board, f"cwd:/{epoch}", epoch)
            await local.provision(request(f"cwd:/{epoch}", process.pid, kind="leader", generation=None), epoch)
            for key, before in given.items():
                assert before == await local.provision(request(key, 600 + epoch), epoch)
        slots = [r.slot for r in local.board.records] + [r.slot for r in local.board.reservations]
        assert (8, 8) == (len(slots), len(set(slots)))  # of five dead leaders each slot is kept for a while

    asyncio.run(scene())
