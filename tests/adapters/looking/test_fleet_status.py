"""The fleet in ``status``: who says so, how old it is, what is kept; a leader that hangs or lies is one line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.client import ONCE, TIMEOUT, Answer, Client, NoResponse, Reply, Retry, Unreachable
from tenure.adapters.bus.messages import acks, wire
from tenure.adapters.bus.messages.envelopes import TenureStatus
from tenure.adapters.bus.messages.envelopes_shared import Target as BusTarget
from tenure.adapters.bus.messages.fleet_view import (
    CleanUpView,
    FleetView,
    FollowerView,
    LeaderView,
    PendingView,
    ReservationView,
)
from tenure.adapters.files.timings import Timings
from tenure.adapters.fleet.threads.projection import CleanUp, LiveRoute, Mark, Snapshot
from tenure.adapters.fleet.threads.views import foreign_followers, foreign_kept, whole_view
from tenure.adapters.fleet.threads.writing import render
from tenure.adapters.looking.care import care
from tenure.adapters.looking.fleet_look import Asker, Told
from tenure.adapters.looking.looks import EntryLook
from tenure.adapters.looking.status import Status, status
from tenure.adapters.looking.status_json import Json, as_json
from tenure.adapters.looking.wording import lines
from tenure.machines.slot_board import Board, Pending, Record, Reservation, Target, Wish

from .ward import DIRECTORY, HOLDER, REGISTRY, STATE, Ward

PATH: Final = f"{STATE}/state.json"
VIEW: Final = FleetView(
    leader=LeaderView(pid=HOLDER, instance_id="77:1", epoch=4, slot="A", name="Acorn", target=BusTarget(0, 1)),
    followers=(
        FollowerView(
            instance_id="80:1",
            generation="80:1:7",
            heartbeat_age_ms=400,
            pid=80,
            profile="manual:x",
            slot="B",
            name="Badger",
            target=BusTarget(0, 2),
        ),
        FollowerView(instance_id="81:1", generation="81:1:1", heartbeat_age_ms=4_200),
    ),
    reservations=(ReservationView(slot="D", profile="manual:z", name="Dove", age_ms=3_000),),
    pendings=(PendingView(id="p", instance_id="82:1", status="ambiguous", age_ms=8_000, slot="F"),),
    clean_ups=(CleanUpView(instance_id="83:1", generation="83:1:1", age_ms=60_000, target=BusTarget(0, 9)),),
)
SNAPSHOT: Final = Snapshot(
    Board(
        records=(
            Record("cwd:/home", "leader", "77:1", None, Target(0, 1), "A", "Acorn", 0, 0),
            Record("manual:x", "manual-follower", "80:1", "80:1:7", Target(0, 2), "B", "Badger", 0, 0),
            Record("manual:z", "manual-follower", "79:1", "79:1:1", Target(0, 3), "D", "Dove", 0, 0),
        ),
        reservations=(
            Reservation("C", Target(0, 4), "previous-leader", 0, 2**53),
            Reservation("E", Target(0, 5), "x", 0, 1),
        ),
        pendings=(
            Pending("p", Wish("manual:y", "manual-follower", "82:1", "82:1:1"), 4, "F", "Fern", Target(0, 6), 0),
        ),
    ),
    (CleanUp("83:1", "83:1:1", Target(0, 9), 0),),
    (
        LiveRoute("80:1", "manual:x", "80:1:7", 0, 80, "B", "Badger", Target(0, 2)),
        LiveRoute("81:1", "manual:w", "81:1:1", 0),
    ),
)


@pytest.fixture
def ward() -> Ward:
    ward = Ward()
    ward.processes.start(HOLDER)
    return ward


class Answers:
    """Leaders that answer; it remembers who was asked."""

    def __init__(self, answer: Told) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, leaders: Iterable[EntryLook]) -> Mapping[str, Told]:
        keys = [leader.key for leader in leaders]
        self.asked += keys
        return dict.fromkeys(keys, self.answer)


def look(ward: Ward, answer: Told | Answers = "its leader did not answer within 1 s", key: str | None = None) -> Status:
    """One status, which has changed nothing."""
    before = ward.tree()
    asking = answer if isinstance(answer, Answers) else Answers(answer)
    found = status(ward.ports(), DIRECTORY, key, asking=asking)
    assert before == ward.tree()
    return found


def said(ward: Ward, found: Status) -> str:
    return "\n".join(f"{line.label}: {line.text}" for line in lines(found, ward.clock.wall))


def shape(found: Status) -> Json:
    """The only fleet in JSON."""
    fleets = json.loads(json.dumps(as_json(found)))["fleets"]
    assert 1 == len(fleets)
    assert isinstance(fleets[0], dict)
    return fleets[0]


def publish(ward: Ward, snapshot: Snapshot = SNAPSHOT, age_ms: int = 3_000) -> None:
    ward.put(PATH, render(snapshot, Mark(4, "77:1"), ward.clock.wall - age_ms))


def lead(ward: Ward, **fields: object) -> None:
    ward.own(**{"busSecret": "s", "busSocketPath": "/agent/bus.sock", **fields})


# -- who says so ------------------------------------------------------------------


def test_a_leader_that_answers_tells_its_fleet_itself(ward: Ward) -> None:
    lead(ward)
    ward.processes.start(80)
    publish(ward)
    found = look(ward, VIEW)
    text = said(ward, found)
    assert "fleet: 2 followers, as its leader says" in text
    assert "slot A: leader: pid 77, instance 77:1, epoch 4, Acorn, thread 1" in text
    follower = "pid 80, instance 80:1, generation 80:1:7, heartbeat 0.4 s ago, profile manual:x, Badger, thread 2"
    assert f"slot B: {follower}" in text
    assert "no slot: instance 81:1, generation 81:1:1, heartbeat 4.2 s ago" in text
    assert "slot D: kept for manual:z, Dove, since 3.0 s" in text
    assert "pending: slot F for instance 82:1, ambiguous for 8.0 s" in text
    assert "clean-up: instance 83:1 of generation 83:1:1, wanted for 60.0 s, thread 9" in text
    assert ["good", "warn"] == [n.mood for n in lines(found, 0) if "heartbeat" in n.text]
    assert ("leader", None, None) == tuple(shape(found)[name] for name in ("source", "why", "ageMs"))


def test_one_that_does_not_answer_is_said_to_and_what_it_published_is_shown_with_its_age(ward: Ward) -> None:
    lead(ward)
    ward.processes.start(80)
    publish(ward)
    found = look(ward)
    text = said(ward, found)
    assert f"did not answer within 1 s; 2 followers, as its leader published 3.0 s ago in {PATH}" in text
    assert "slot A: leader: pid 77, instance 77:1, epoch 4, Acorn, thread 1" in text
    assert "slot B: pid 80, instance 80:1, generation 80:1:7, heartbeat not known, profile manual:x, Badger" in text
    assert "slot D: kept for manual:z, Dove" in text
    assert "slot C: kept for nobody, previous-leader" in text
    assert "slot E" not in text  # that reservation is over
    assert "pending: slot F for instance 82:1, profile manual:y, in-flight" in text
    assert "clean-up: instance 83:1 of generation 83:1:1" in text
    assert ("projection", 3_000) == tuple(shape(found)[name] for name in ("source", "ageMs"))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"processBirth": None, "monotonicMs": None}, "its leader is of the other system"),
        ({"busSecret": None}, "its leader serves no bus"),
        ({"age_ms": 9_000}, "its lease is over"),
        ({"pid": 78}, "its leader is dead"),
    ],
)
def test_who_cannot_answer_is_not_asked(ward: Ward, fields: dict[str, object], why: str) -> None:
    lead(ward, **fields)
    publish(ward)
    asking = Answers(VIEW)
    found = look(ward, asking)
    assert [] == asking.asked
    assert why == shape(found)["why"]
    assert why in said(ward, found)


def test_where_nobody_leads_what_is_left_is_shown_also_of_keys_that_are_in_no_registry(ward: Ward) -> None:
    publish(ward)
    ward.put(f"{STATE}/state.work.json", render(SNAPSHOT, Mark(4, "77:1"), ward.clock.wall))
    found = look(ward)
    assert [("default", "nobody leads", None), ("work", "nobody leads", None)] == [
        (fleet.key, fleet.why, fleet.leader) for fleet in found.fleets
    ]
    assert "fleet work: nobody leads; 2 followers" in said(ward, found)
    assert ["default"] == [k.key for k in found.keys]
    assert ["work"] == [fleet.key for fleet in look(ward, key="work").fleets]


def test_a_follower_that_has_died_is_said_to_be_gone(ward: Ward) -> None:
    """All have left, and nobody is there who would take it off the list."""
    publish(ward)
    ward.processes.start(80)
    assert "slot B: pid 80, instance 80:1" in said(ward, look(ward))
    ward.processes.kill(80)
    assert "slot B: pid 80 (gone), instance 80:1" in said(ward, look(ward))


def test_a_directory_without_a_fleet_has_none(ward: Ward) -> None:
    """What ``tenure lead`` makes: no bus, nothing published."""
    assert () == look(ward).fleets
    ward.own()
    assert () == look(ward).fleets


def test_each_leader_is_asked_once(ward: Ward) -> None:
    entry = ward.entry(busSecret="s")
    ward.put(REGISTRY, {"default": entry, "work": entry, "other.program": entry})
    asking = Answers(VIEW)
    look(ward, asking)
    assert ["default", "work"] == asking.asked


# -- what stands in the projection -------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"tenure": 1}', b'{"tenure": {"format": 1}}', b"\xff"])
def test_a_damaged_projection_is_one_line(ward: Ward, content: bytes) -> None:
    lead(ward)
    ward.put(PATH, content)
    for answer in ("no answer", VIEW):
        found = look(ward, answer)
        (problem,) = found.problems
        assert problem.startswith(f"{PATH}: ")
        assert "\n" not in problem
        assert 1 == said(ward, found).count(f"fleet: {problem}")
        assert (VIEW.leader if answer is VIEW else None) == found.fleets[0].leader


FOREIGN: Final = {
    "version": 1,
    "source": "snapshot",
    "threads": [
        {
            "owner": {"kind": "manual-follower", "instanceId": "x"},
            "instanceId": "90:1",
            "status": "active",
            "slot": "B",
        },
        {"owner": {"kind": "leader", "cwd": "/"}, "instanceId": "77:1", "status": "active", "slot": "A"},
        {
            "owner": {"kind": "manual-follower", "instanceId": "y"},
            "instanceId": "91:1",
            "status": "offline",
            "slot": "C",
        },
        7,
    ],
    "reservations": [{"slot": "D", "reason": "x", "target": {"chatId": 5, "threadId": 6}}, {"slot": 4}, {}],
    "pendingProvisions": [{"id": "p", "instanceId": "92:1", "status": "ambiguous"}, {"id": ""}, None],
    "pendingCleanups": [{"instanceId": "93:1", "runtimeGeneration": 7, "target": {"chatId": 5, "threadId": 8}}, 1],
}


def test_what_the_other_system_published_is_shown_for_what_it_has(ward: Ward) -> None:
    lead(ward, processBirth=None, monotonicMs=None, leaderEpoch="5e")
    ward.put(PATH, {**FOREIGN, "writtenAtMs": ward.clock.wall - 2_000})
    found = look(ward)
    text = said(ward, found)
    assert "the other system; 1 follower, as the other system published 2.0 s ago" in text
    assert "slot B: instance 90:1, heartbeat not known" in text
    assert "leader: pid 77, instance 77:1, epoch 5e" in text
    assert "slot D: kept for nobody, x" in text
    assert "pending: no slot for instance 92:1, ambiguous" in text
    assert "clean-up: instance 93:1 of generation 7, wanted for 0.0 s, thread 8 of chat 5" in text
    assert () == found.problems
    assert shape(found)["foreign"]


def test_its_roster_comes_before_its_threads() -> None:
    roster = {"busFollowers": [{"instanceId": "95:1", "slot": "Q", "threadName": "Opal"}, {"slot": "R"}]}
    assert ["95:1"] == [f.instance_id for f in foreign_followers({**FOREIGN, "liveRoster": roster})]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["chatId", "kind"]), inner, max_size=2),
    max_leaves=4,
)
MEMBERS = ("id", "instanceId", "slot", "status", "owner", "target", "expiresAtMs", "startedAtMs", "runtimeGeneration")
ROWS = st.lists(st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=4), max_size=2)


@given(st.dictionaries(st.sampled_from([*FOREIGN, "liveRoster"]), JSON | ROWS))
def test_whatever_the_other_system_wrote_is_shown_or_passed_over(value: dict[str, object]) -> None:
    foreign_followers(value)
    foreign_kept(value, 1_000)


# -- the question -----------------------------------------------------------------


@attrs.frozen
class Scripted(Client):
    """A client that sends nothing: `reply` says what comes of a line."""

    reply: Reply | bytes | Exception = attrs.field(kw_only=True)
    seen: list[tuple[str, bytes, float]] = attrs.field(factory=list, kw_only=True)

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        self.seen.append((path, line, timeout_ms))
        if isinstance(self.reply, Exception):
            raise self.reply
        if isinstance(self.reply, bytes):
            return Answer(self.reply)
        return self.reply


def ask(ward: Ward, reply: Reply | bytes | Exception, timings: Timings | None = None) -> tuple[Told, Scripted]:
    client = Scripted(reply=reply)
    entry = look(ward, Answers("x")).keys[0]
    asker = Asker(ward.ports(), DIRECTORY, timings or Timings(), client)
    return asker([entry])["default"], client


def answer(ward: Ward, ack: object = VIEW) -> bytes:
    """The line that a leader sends to the request that is made next."""
    request = f"status:00000000-0000-4000-8000-{ward.identities.next:012x}"
    envelope = TenureStatus(request_id=request, auth="s")
    made = acks.fleet(envelope, VIEW) if ack is VIEW else acks.refused(envelope, "no such kind\nhere")
    return wire.encode(made)


def test_the_leader_is_asked_with_its_own_secret_where_its_entry_says(ward: Ward) -> None:
    lead(ward)
    found, client = ask(ward, answer(ward))
    assert VIEW == found
    ((path, line, timeout_ms),) = client.seen
    assert ("/agent/bus.sock", 1_000) == (path, timeout_ms)
    assert ("tenure.status", "s") == tuple(json.loads(line)[name] for name in ("kind", "auth"))


def test_it_is_asked_at_its_usual_place_where_its_entry_names_none(ward: Ward) -> None:
    lead(ward, busSocketPath=None)
    _, client = ask(ward, answer(ward))
    assert f"{STATE}/bus.sock" == client.seen[0][0]


def test_nobody_is_waited_for_longer_than_a_second(ward: Ward) -> None:
    lead(ward)
    for response_ms, waited in ((1_000, 1_000), (50, 50), (30_000, 1_000)):
        _, client = ask(ward, answer(ward), Timings(response_ms=response_ms))
        assert waited == client.seen[0][2]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Unreachable(TIMEOUT, True, True), "its leader did not answer within 1 s"),
        (
            Unreachable("ECONNREFUSED", True, False),
            "its leader cannot be reached at /agent/bus.sock: nobody listens there any more",
        ),
        (NoResponse(), "its leader closed without an answer"),
        (b"hello", "its leader's answer is none to this question"),
        (b'{"kind": "bus.ack", "requestId": "other", "ok": true}', "its leader's answer is none to this question"),
        (ValueError("embedded null byte"), "its leader's endpoint has no usable path (embedded null byte)"),
    ],
)
def test_whatever_comes_instead_of_an_answer_is_said(ward: Ward, reply: Reply | bytes | Exception, why: str) -> None:
    lead(ward)
    assert why == ask(ward, reply)[0]


def test_a_refusal_is_said_with_its_reason_on_one_line(ward: Ward) -> None:
    lead(ward)
    publish(ward)
    found, _ = ask(ward, answer(ward, "refused"))
    assert "its leader refused: no such kind\nhere" == found
    assert "refused: no such kind\\nhere; 2 followers" in said(ward, look(ward, found))


def test_an_answer_without_what_there_has_to_be_is_said(ward: Ward) -> None:
    lead(ward)
    line = json.loads(answer(ward))
    del line["result"]["followers"][0]["generation"]
    found, _ = ask(ward, json.dumps(line).encode())
    assert isinstance(found, str)
    assert found.startswith("its leader's answer is malformed: result.followers[0].generation is missing")


def test_all_leaders_are_asked_at_once(ward: Ward) -> None:
    """Two that hang take the time of one."""

    async def scene() -> None:
        both = asyncio.Barrier(2)

        @attrs.frozen
        class Together(Client):
            async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
                await both.wait()  # one after the other would never come through
                return NoResponse()

        found = await Asker(ward.ports(), DIRECTORY, client=Together()).ask(look(ward, Answers("x")).keys)
        assert {"default", "work"} == set(found)

    entry = ward.entry(busSecret="s")
    ward.put(REGISTRY, {"default": entry, "work": entry})
    asyncio.run(scene())


def test_what_a_leader_tells_is_what_a_reader_of_its_projection_sees(ward: Ward) -> None:
    """But for heartbeats, which are its own."""
    live = [attrs.evolve(VIEW.followers[1], profile="manual:w"), VIEW.followers[0]]
    now = ward.clock.wall
    lead(ward)
    publish(ward)
    told = look(ward, whole_view(VIEW.leader, live, SNAPSHOT, now)).fleets[0]
    read = look(ward).fleets[0]
    assert told.kept == read.kept
    assert told.leader == read.leader
    assert [attrs.evolve(f, heartbeat_age_ms=None) for f in told.followers] == list(read.followers)


def test_what_a_publication_left_that_was_killed_is_debris_and_swept(ward: Ward) -> None:
    """Also where it was the first one."""
    litter = [f"{PATH}.77.1.1.tmp", f"{STATE}/state.work.json.77.1.1.tmp"]
    ward.processes.kill(HOLDER)
    for path in (*litter, f"{PATH}.100.1.1.tmp", f"{PATH}.provision-recovery.json"):
        ward.put(path, "{")
    assert {*litter, f"{PATH}.100.1.1.tmp"} == {d.path for d in look(ward).debris}
    assert set(litter) == set(care(ward.ports(), DIRECTORY).swept)
    assert ward.files.kind(f"{PATH}.provision-recovery.json") == "file"


def test_the_shape_of_a_fleet_in_json_stays(ward: Ward) -> None:
    lead(ward)
    found = shape(look(ward, VIEW))
    assert {
        "key": "default",
        "source": "leader",
        "why": None,
        "path": PATH,
        "ageMs": None,
        "foreign": False,
        "problem": None,
        "leader": {
            "pid": 77,
            "instanceId": "77:1",
            "epoch": 4,
            "slot": "A",
            "name": "Acorn",
            "target": {"chatId": 0, "threadId": 1},
        },
        "reservations": [{"slot": "D", "profile": "manual:z", "name": "Dove", "ageMs": 3_000, "leftMs": None}],
        "cleanUps": [
            {
                "instanceId": "83:1",
                "generation": "83:1:1",
                "target": {"chatId": 0, "threadId": 9},
                "ageMs": 60_000,
            }
        ],
    } == {name: value for name, value in found.items() if name not in ("followers", "pendings")}
    followers, pendings = found["followers"], found["pendings"]
    assert isinstance(followers, list)
    assert isinstance(pendings, list)
    assert {
        "instanceId": "80:1",
        "generation": "80:1:7",
        "pid": 80,
        "profile": "manual:x",
        "slot": "B",
        "name": "Badger",
        "target": {"chatId": 0, "threadId": 2},
        "heartbeatAgeMs": 400,
    } == followers[0]
    assert {"id", "instanceId", "profile", "slot", "name", "target", "status", "ageMs"} == pendings[0].keys()
