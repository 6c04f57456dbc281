"""Fleets of both systems on one directory: whoever leads, whoever follows, and whatever becomes of the leader.

The other system's side is `other_fleet.py`, which knows nothing of ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.adapters.bus.envelopes import Ack, CallApi, Forward
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following
from tests.real.conftest import Zygote, stop
from tests.real.other_bus import IDENTITY
from tests.real.others import Mixed, request

FORWARDS = ("leader.forwardMessage", "leader.forwardEditedMessage", "leader.forwardCallback", "leader.forwardReaction")


@pytest.fixture
def mixed(zygote: Zygote, tmp_path: Path) -> Iterator[Mixed]:
    """A directory, and processes of both systems in it."""
    made = Mixed(zygote, tmp_path)
    try:
        yield made
    finally:
        made.close()


# -- their leader, our follower ----------------------------------------------------------------------------------------


def test_their_leader_accepts_our_follower(mixed: Mixed) -> None:
    """Identity, generation, place and roster are as it wants them; work of each kind reaches us, and is answered."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    accepted = leader.says("accepted")
    registration = accepted["registration"]
    assert registration["registrationGeneration"] == ours.generation
    assert ours.generation.startswith(registration["instanceId"])
    assert registration["pid"] == ours.pid
    assert registration["processBirthId"].startswith(f"{ours.pid}:start:")
    assert registration["sessionGeneration"] == 1
    assert (ours.slot, accepted["slot"]) == ("B", "B")
    for kind in FORWARDS:
        answer = leader.ask("forward", instance=registration["instanceId"], kind=kind)
        assert not answer["ok"]
        assert "takes deliveries" in answer["message"]
    stale = leader.ask(
        "forward", instance=registration["instanceId"], generation="another", path=registration["busSocketPath"]
    )
    assert not stale["ok"]
    assert "generation" in stale["message"]
    heard = leader.ask("registry")[registration["instanceId"]]["heard"]
    mixed.until(lambda: leader.ask("registry")[registration["instanceId"]]["heard"] > heard)


def test_two_of_ours_of_one_shell_at_their_leader(mixed: Mixed) -> None:
    """Their leader evicts the one for the other, and says so to neither (L24): ours do not do that to each other for
    ever, one takes a key of its own."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = [mixed.start(), mixed.start()]

    def registered() -> set[str]:
        return {entry["registrationGeneration"] for entry in leader.ask("registry").values()}

    mixed.until(lambda: len(registered()) == 2 and registered() == {one.generation for one in ours})
    evicted, generations = len(leader.heard("evicted")), registered()
    heard = {name: entry["heard"] for name, entry in leader.ask("registry").items()}
    mixed.until(lambda: all(e["heard"] > heard[n] + 800 for n, e in leader.ask("registry").items()))
    assert len(leader.heard("evicted")) == evicted
    assert registered() == generations
    assert len({one.slot for one in ours}) == 2


@pytest.mark.parametrize("how", ["drop", "half", "garbage", "long", "other id", "no result", "null result"])
def test_their_leader_answers_a_registration_badly_once(mixed: Mixed, how: str) -> None:
    """It is no registration; the next one is, and nobody is promoted over a leader that lives."""
    leader = mixed.other()
    mixed.leads(leader)
    leader.ask("fault", kind="follower.register", how=how, times=1)
    ours = mixed.start()
    mixed.follows(ours, leader, 40.0)
    assert leader.role == "leading"
    assert not mixed.leading()
    assert list(leader.ask("registry")) == [leader.heard("accepted")[-1]["registration"]["instanceId"]]


@pytest.mark.parametrize("how", ["no protocol", "version 2", "incapable", "refusal", "no acknowledgement"])
def test_their_leader_is_of_another_kind(mixed: Mixed, how: str) -> None:
    """It is asked again, one grace apart, and says why; nobody is promoted over it."""
    leader = mixed.other()
    mixed.leads(leader)
    leader.ask("fault", kind="follower.register", how=how)
    ours = mixed.start()
    mixed.until(lambda: len(leader.heard("accepted")) >= 2)
    assert not any(role.startswith(("following", "leading")) for role in ours.roles)
    first, second = (e["at"] for e in leader.heard("accepted")[:2])
    assert second - first >= 500
    leader.ask("fault", kind="follower.register", how="", times=0)
    mixed.follows(ours, leader)


@pytest.mark.parametrize("how", ["drop", "garbage", "hang", "refusal"])
def test_their_leader_answers_a_heartbeat_badly_once(mixed: Mixed, how: str) -> None:
    """The registration is made anew, with the place that was held."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    slot, name, generation = ours.slot, ours.name, ours.generation
    leader.ask("fault", kind="follower.heartbeat", how=how, times=1)
    mixed.until(lambda: ours.generation not in (generation, "None"))
    mixed.follows(ours, leader)
    assert (ours.slot, ours.name) == (slot, name)
    assert leader.role == "leading"


def test_their_leader_changes_its_secret(mixed: Mixed) -> None:
    """Whoever is refused reads the registry again; the secret there counts."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    generation = ours.generation
    leader.ask("secret")
    mixed.until(lambda: ours.generation not in (generation, "None"))
    mixed.follows(ours, leader)
    assert not mixed.leading()


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_their_leader_is_reloaded(mixed: Mixed, pause: float) -> None:
    """Another activation of its process leads, under an epoch of its own: we register with that one, and keep our
    place. While nobody listens its lease holds, and nobody is promoted."""
    leader = mixed.other(threads=True)
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    place = (ours.slot, ours.name)
    assert leader.ask("restart", pause=pause)
    epoch = leader.heard("leading")[-1]["epoch"]
    ours.becomes(f"following pid {leader.pid}, epoch {epoch}")
    assert (ours.slot, ours.name) == place
    assert not any(role.startswith(("leading", "standing")) for role in ours.roles)


def test_the_entry_says_where_their_leader_listens(mixed: Mixed) -> None:
    """`busSocketPath` counts before the profile's own path."""
    leader = mixed.other("--door", "elsewhere.sock")
    mixed.leads(leader)
    assert not mixed.endpoint.exists()
    mixed.follows(mixed.start(), leader)


def test_our_follower_takes_what_their_leader_sends(mixed: Mixed) -> None:
    """Each kind of work, once, with the receipt that it wants; a thread that is moved is ours then; what is asked is
    answered. What is meant for another profile or registration is refused."""
    leader = mixed.other()
    mixed.leads(leader)
    taken: list[Forward] = []

    async def take(forward: Forward) -> None:
        taken.append(forward)

    async def story() -> None:
        timings = DEFAULT.scaled(0.25)
        async with (
            asyncio.timeout(40),
            Member(agent_directory(mixed.directory), timings=timings, deliver=take) as member,
        ):
            assert isinstance(await member.join(), Following)
            me = member.follower.identity.instance_id
            for number, kind in enumerate(FORWARDS):
                answer = await asyncio.to_thread(leader.ask, "forward", instance=me, kind=kind)
                assert answer["ok"], answer
                assert answer["result"]["deliveryId"] == taken[number].delivery.delivery_id
            for wrong in ({"binding": "manual:somebody"}, {"generation": "1:1:1"}):
                assert not (await asyncio.to_thread(leader.ask, "forward", instance=me, **wrong))["ok"]
            assert len(taken) == len(FORWARDS)
            moved = {"chatId": 777, "threadId": 999}
            assert (await asyncio.to_thread(leader.ask, "replace", instance=me, target=moved))["ok"]
            assert member.follower.binding.target == "777/999"
            asked = await member.follower.ask(
                lambda generation: CallApi(
                    request_id="",
                    instance_id=me,
                    registration_generation=str(generation),
                    method="call",
                    args=(),
                    sent_at_ms=1,
                )
            )
            assert isinstance(asked, Ack)
            assert asked.ok
            assert await member.leave(goodbye=True) == ""
            assert me not in await asyncio.to_thread(leader.ask, "registry")

    asyncio.run(story())


def test_a_goodbye_whose_answer_is_lost(mixed: Mixed) -> None:
    """It is sent again as it is: their leader has done it once, and says so."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start("--goodbye")
    mixed.follows(ours, leader)
    leader.ask("fault", kind="follower.disconnect", how="drop", times=1)
    ours.kill(signal.SIGTERM)
    assert ours.ends() == 128 + signal.SIGTERM
    assert ours.said == ""
    assert leader.ask("registry") == {}


# -- our leader, their follower ----------------------------------------------------------------------------------------


def test_our_leader_serves_their_follower(mixed: Mixed) -> None:
    """The state file lets it register; it is heard, registers again, is refused under other generations whatever it
    asks, and says goodbye."""
    leader = mixed.start()
    mixed.leads(leader)
    follower = mixed.other()
    following = follower.says("following", leader=leader.pid)
    assert (following["slot"], following["target"]["chatId"]) == ("B", 0)
    assert follower.says("roster")["slots"] == ["B"]
    thread = next(t for t in mixed.state()["threads"] if t["instanceId"] == follower.instance)
    assert thread["owner"]["kind"] == "manual-follower"
    assert (thread["target"], thread["status"], thread["slot"]) == (following["target"], "active", "B")

    target = {"chatId": 0, "threadId": 1}
    asked = {
        "follower.heartbeat": {},
        "follower.callApi": {"method": "call", "args": ["getMe", {}]},
        "follower.resolveAgentTarget": {"selector": {"threadName": "Birch"}},
        "follower.routeAgentMessage": {"message": {"target": target, "messageId": 1, "text": "hi"}},
        "follower.disconnect": {},
    }
    for kind, members in asked.items():
        for generation in (None, "another", following["generation"] + "0", 7, ""):
            answer = follower.ask("ask", kind=kind, registrationGeneration=generation, **members)
            assert not answer["ok"], (kind, generation)
            assert "stale registration generation" in answer["message"]
        unknown = follower.ask("ask", kind=kind, instanceId="1:1", **members)
        assert not unknown["ok"]
        assert "unknown instance" in unknown["message"]
    call = follower.ask("ask", kind="follower.callApi", method="call", args=["getMe", {}])
    assert (call["ok"], call["message"]) == (False, "this leader has no API")

    assert follower.ask("register")
    again = follower.heard("following")[-1]
    assert again["generation"] != following["generation"]
    assert (again["slot"], again["target"], again["name"]) == tuple(following[k] for k in ("slot", "target", "name"))
    late = follower.ask("ask", kind="follower.disconnect", registrationGeneration=following["generation"])
    assert not late["ok"]
    assert follower.ask("ask", kind="follower.disconnect")["ok"]
    mixed.until(lambda: not [t for t in mixed.state()["threads"] if t["target"] == following["target"]])


def test_our_leader_relays_to_their_follower(mixed: Mixed) -> None:
    """Each kind of work reaches the registration that it names, and its receipt comes back as it is."""
    leader = mixed.start()
    mixed.leads(leader)
    follower = mixed.other()
    following = follower.says("following", leader=leader.pid)
    secret, door = mixed.entry()["busSecret"], str(mixed.endpoint)
    bodies = dict(zip(FORWARDS, ("message", "message", "query", "reactionUpdate"), strict=True))
    for number, (kind, body) in enumerate(bodies.items()):
        delivery = {"deliveryId": f"telegram-follower-v1-{number:064x}", "sourceUpdateId": number}
        delivery["recipientBindingKey"] = follower.said[0]["key"]
        request = {
            "kind": kind,
            "requestId": f"1:1:{number}",
            "auth": secret,
            "recipientInstanceId": follower.instance,
            "recipientRegistrationGeneration": following["generation"],
            "delivery": delivery,
            body: {"text": "h\ud800i", "n": 1.5},
            "sentAtMs": 1,
        }
        answer = follower.ask("send", path=door, request=request)
        assert answer["ok"], answer
        assert answer["result"] == {k: delivery[k] for k in ("deliveryId", "sourceUpdateId")}
        stale = request | {"recipientRegistrationGeneration": "1:1:1", "requestId": f"1:2:{number}"}
        assert "stale" in follower.ask("send", path=door, request=stale)["message"]
    assert [e["kind"] for e in follower.heard("delivered")] == list(FORWARDS)


def test_their_follower_is_replaced_while_its_work_is_under_way(mixed: Mixed) -> None:
    """What comes back for a registration that is over is no receipt."""
    leader = mixed.start()
    mixed.leads(leader)
    follower = mixed.other()
    following = follower.says("following", leader=leader.pid)
    key = follower.said[0]["key"]
    delivery = {"deliveryId": f"telegram-follower-v1-{0:064x}", "sourceUpdateId": 1, "recipientBindingKey": key}
    work = {"kind": "leader.forwardMessage", "requestId": "1:1:1", "auth": mixed.entry()["busSecret"], "sentAtMs": 1}
    work |= {"recipientInstanceId": follower.instance, "recipientRegistrationGeneration": following["generation"]}
    work |= {"delivery": delivery, "message": {"text": "hi"}}
    follower.ask("hold")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(request, str(mixed.endpoint), work)
        follower.says("asked to deliver")
        assert follower.ask("register")
        follower.ask("go on")
        found = answer.result(20)
    assert not found["ok"]
    assert "stale" in found["message"]
    assert len(follower.heard("delivered")) == 1


def test_two_of_theirs_of_one_shell_at_our_leader(mixed: Mixed) -> None:
    """Neither is evicted: who came first stays, the other is refused until that one has gone."""
    leader = mixed.start()
    mixed.leads(leader)
    first = mixed.other("--shell", "7:start:7")
    following = first.says("following")
    second = mixed.other("--shell", "7:start:7")
    mixed.until(lambda: len(second.heard("refused")) >= 5)
    assert all("held by another live process" in e["text"] for e in second.heard("refused"))
    assert first.ask("ask", kind="follower.heartbeat")["ok"]
    assert first.heard("following") == [following]
    assert not first.heard("heartbeat failed")
    first.kill()
    taken = second.says("following")
    assert (taken["slot"], taken["target"]) == (following["slot"], following["target"])


def test_their_follower_is_reloaded(mixed: Mixed) -> None:
    """Another activation of the same process takes its place at once; what the one before held is over."""
    leader = mixed.start()
    mixed.leads(leader)
    follower = mixed.other()
    first = follower.says("following")
    instance = follower.ask("reload")
    second = follower.heard("following")[-1]
    assert instance != follower.instance
    assert (second["slot"], second["target"], second["name"]) == (first["slot"], first["target"], first["name"])
    late = follower.ask(
        "ask", kind="follower.heartbeat", instanceId=follower.instance, registrationGeneration=first["generation"]
    )
    assert not late["ok"]
    assert [r["instanceId"] for r in mixed.state()["liveRoster"]["busFollowers"]] == [instance]


def test_requests_that_waited_while_a_leader_was_stopped(mixed: Mixed) -> None:
    """It was deposed meanwhile: when it goes on it acknowledges none of them, and passes nothing on."""
    leader = mixed.start()
    mixed.leads(leader)
    second = mixed.start()
    mixed.follows(second, leader)
    follower = mixed.other()
    following = follower.says("following")
    mine = {"instanceId": follower.instance, "registrationGeneration": following["generation"], "sentAtMs": 1}
    to_me = {"recipientInstanceId": follower.instance, "recipientRegistrationGeneration": following["generation"]}
    delivery = {"deliveryId": f"telegram-follower-v1-{0:064x}", "sourceUpdateId": 1}
    delivery["recipientBindingKey"] = follower.said[0]["key"]
    place = {"instanceId": "new", "connectedAtMs": 1, "registrationGeneration": "new", "protocol": IDENTITY}
    requests = [
        {"kind": "follower.heartbeat", **mine},
        {"kind": "follower.register", "registration": place},
        {"kind": "follower.disconnect", **mine},
        {"kind": "leader.forwardMessage", **to_me, "delivery": delivery, "message": {"text": "hi"}, "sentAtMs": 1},
    ]
    secret, door = mixed.entry()["busSecret"], str(mixed.endpoint)
    stop(leader.pid, mixed.registry)
    waiting = []
    for number, asked in enumerate(requests):
        end = socket.socket(socket.AF_UNIX)
        waiting.append(end)
        end.settimeout(20)
        end.connect(door)
        end.sendall(json.dumps(asked | {"requestId": str(number), "auth": secret}).encode() + b"\n")
    mixed.leads(second)
    os.kill(leader.pid, signal.SIGCONT)
    for end in waiting:
        with end:
            answer = b""
            with suppress(ConnectionResetError):
                answer = end.makefile("rb").readline()
            assert not answer or not json.loads(answer)["ok"]
    mixed.follows(leader, second)
    assert not follower.heard("delivered")
    assert "new" not in {r["instanceId"] for r in mixed.state()["liveRoster"]["busFollowers"]}


def test_whoever_names_somebody_elses_instance(mixed: Mixed) -> None:
    """Gets nothing by it: neither its thread nor its route (L16)."""
    leader = mixed.start()
    mixed.leads(leader)
    first = mixed.other()
    following = first.says("following")
    second = mixed.other("--previous", first.instance, "--thread", str(following["target"]["threadId"]))
    assert second.says("following")["target"] != following["target"]
    assert first.ask("ask", kind="follower.heartbeat")["ok"]


def test_odd_registrations_spoil_nothing(mixed: Mixed) -> None:
    """Whatever one says, what is published after it is complete, and a leader of ours goes on from it."""
    leader = mixed.start()
    mixed.leads(leader)
    secret = mixed.entry()["busSecret"]
    plain = {"connectedAtMs": 1, "protocol": IDENTITY, "busSocketPath": "/nowhere"}
    odd: list[dict[str, object]] = [
        {"registrationGeneration": ""},
        {"registrationGeneration": "\ud800\0", "threadName": "\n", "cwd": "\0", "slot": "AA"},
        {"profileKey": "", "pid": 2**53, "processBirthId": "x", "sessionGeneration": 0},
        {"profileKey": "profile::manual:", "pid": 1.5, "previousInstanceId": "", "target": {"chatId": -(2**52)}},
        {"instanceId": "\u2028", "target": {"chatId": 0, "threadId": -1}},
        {"instanceId": "", "registrationGeneration": "x"},
    ]
    answers = []
    for number, members in enumerate(odd):
        name = f"odd{number}"
        asked = {"instanceId": name, "profileKey": f"manual:{name}", "registrationGeneration": name} | plain | members
        register = {"kind": "follower.register", "requestId": name, "auth": secret, "registration": asked}
        answers.append(request(str(mixed.endpoint), register)["ok"])
    assert answers == [False, True, True, True, True, False]
    follower = mixed.other("--follow")
    follower.says("following")
    live = {route["instanceId"] for route in mixed.state()["liveRoster"]["busFollowers"]}
    assert live == {"odd1", "odd2", "odd3", "\u2028", follower.instance}
    leader.kill()
    mixed.leads(mixed.start())


def test_their_follower_is_silent(mixed: Mixed) -> None:
    """It leaves the routes, keeps its thread, and has both again when it goes on."""
    leader = mixed.start()
    mixed.leads(leader)
    follower = mixed.other()
    following = follower.says("following")
    follower.kill(signal.SIGSTOP)
    mixed.until(lambda: not mixed.state()["liveRoster"]["busFollowers"])
    assert [t for t in mixed.state()["threads"] if t["instanceId"] == follower.instance]
    follower.kill(signal.SIGCONT)
    again = mixed.until(lambda: follower.heard("following")[1:])[0]
    assert (again["slot"], again["target"]) == (following["slot"], following["target"])


@pytest.mark.parametrize("kind", ["follower.register", "follower.heartbeat", "follower.disconnect"])
def test_one_answer_of_our_leader_is_lost(mixed: Mixed, kind: str) -> None:
    """The same request again is the same registration, and a goodbye that was done is done."""
    leader = mixed.start()
    mixed.leads(leader)
    proxy = mixed.proxy()
    proxy.to_lose.add(kind)
    follower = mixed.other()
    if kind == "follower.disconnect":
        follower.says("following")
        request = follower.ask("request", kind=kind)
        door = str(mixed.endpoint)
        assert follower.ask("send", path=door, request=request) is None
        assert follower.ask("send", path=door, request=request)["ok"]
    mixed.until(lambda: proxy.lost == [kind])
    mixed.until(lambda: follower.role == "following" and len(mixed.state()["liveRoster"]["busFollowers"]) == 1)
    assert follower.ask("ask", kind="follower.heartbeat")["ok"]
    assert len([t for t in mixed.state()["threads"] if t["ownerKind"] != "leader"]) == 1


# -- the leader goes ---------------------------------------------------------------------------------------------------

WAYS = [
    (leader, followers, how)
    for leader in ("theirs", "ours")
    for followers in ("ours theirs", "theirs ours")
    for how in ("killed", "ended", "stopped")
    if (leader, followers, how)
    not in (
        ("theirs", "theirs ours", "ended"),
        ("ours", "theirs ours", "ended"),
        ("theirs", "theirs ours", "stopped"),
        ("ours", "ours theirs", "stopped"),
    )
]


@pytest.mark.parametrize(("leader", "followers", "how"), WAYS)
def test_a_leader_goes(mixed: Mixed, leader: str, followers: str, how: str) -> None:
    """The smaller slot leads, and never two do; the other follows it, with its place where the new leader knows it.
    Their follower waits for a leader that hangs for minutes (K3), so that then ours leads whatever its slot."""
    first = mixed.other() if leader == "theirs" else mixed.start()
    mixed.leads(first)
    both = []
    for which in followers.split():
        both.append(mixed.other() if which == "theirs" else mixed.start())
        mixed.follows(both[-1], first)
    ours = both[0] if followers.startswith("ours") else both[1]
    theirs = both[1] if ours is both[0] else both[0]
    rosters = (lambda: theirs.heard("roster", slots=["B", "C"]), lambda: mixed.live(first) == 2)
    mixed.until(lambda: all(roster() for roster in rosters))
    winner, loser = both
    if how == "stopped":
        stop(first.pid, mixed.registry)
        winner, loser = ours, theirs
    else:
        first.kill(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    mixed.leads(winner)
    assert mixed.entry()["pid"] == winner.pid
    if how == "stopped":
        os.kill(first.pid, signal.SIGCONT)
        mixed.follows(first, winner)
    mixed.follows(loser, winner)
    assert mixed.entry()["pid"] == winner.pid
    if winner is theirs:
        assert not mixed.leading()
    else:
        assert theirs.role == "following"
        assert len(mixed.leading()) == 1


@pytest.mark.parametrize("ours_first", [True, False])
def test_their_threads_are_no_base_of_ours(mixed: Mixed, ours_first: bool) -> None:
    """Their leader left threads in the state file: nobody of ours leads over them. Theirs does, whatever its slot."""
    leader = mixed.other(threads=True)
    mixed.leads(leader)
    if ours_first:
        ours = mixed.start()
        mixed.follows(ours, leader)
    theirs = mixed.other(threads=True)
    mixed.follows(theirs, leader)
    if not ours_first:
        ours = mixed.start()
        mixed.follows(ours, leader)
    place = (ours.slot, ours.name)
    leader.kill()
    mixed.leads(theirs)
    mixed.follows(ours, theirs)
    assert (ours.slot, ours.name) == place
    assert not any(role.startswith("leading") for role in ours.roles)
    assert [t["slot"] for t in mixed.state()["threads"] if t["instanceId"].startswith(f"{ours.pid}:")] == [ours.slot]


@pytest.mark.parametrize(
    ("leader", "what"),
    [
        ("theirs", "unlinked"),
        ("theirs", "plain file"),
        ("ours", "unlinked"),
        ("ours", "dangling"),
        ("ours", "plain file"),
        ("ours", "directory"),
    ],
)
def test_the_endpoint_is_damaged(mixed: Mixed, leader: str, what: str) -> None:
    """Nobody is promoted over a leader that lives. Where its path has vanished it is published again, by both; what
    else stands there only ours replaces, and it never loses anything by it."""
    first = mixed.other() if leader == "theirs" else mixed.start()
    mixed.leads(first)
    second = mixed.start() if leader == "theirs" else mixed.other()
    mixed.follows(second, first)
    path = mixed.endpoint
    path.unlink()
    if what == "dangling":
        path.symlink_to(".pt-0000000000000000.sock")
    elif what == "plain file":
        path.write_text("")
    elif what == "directory":
        path.mkdir()
    asked = mixed.entry()["heartbeatMs"]
    mixed.until(lambda: mixed.entry()["heartbeatMs"] > asked)
    if what in ("plain file", "directory"):
        mixed.until(lambda: mixed.entry()["heartbeatMs"] > asked + 1200)
        if path.is_dir():
            path.rmdir()
        elif not path.is_symlink():
            path.unlink()
    mixed.until(lambda: path.is_symlink() and path.is_socket())
    mixed.follows(second, first)
    third = mixed.other()
    mixed.follows(third, first)
    assert mixed.entry()["pid"] == first.pid


def test_the_state_file_is_removed(mixed: Mixed) -> None:
    """Without it nobody of the other system registers: our leader publishes it again, as it does its endpoint."""
    leader = mixed.start()
    mixed.leads(leader)
    first = mixed.other()
    mixed.follows(first, leader)
    mixed.registry.with_name("state.json").unlink()
    second = mixed.other()
    mixed.follows(second, leader)
    assert mixed.live(leader) == 2


# -- entries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [True, False])
def test_a_leader_that_accepts_and_never_answers(mixed: Mixed, silent: bool) -> None:
    """As long as its lease is fresh nobody is promoted over it; once it is stale, ours is, within one grace (K3)."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    for kind in ("follower.heartbeat", "follower.register"):
        leader.ask("fault", kind=kind, how="hang")
    ours.becomes("registering")
    if silent:
        stop(leader.pid, mixed.registry)
        heartbeat = mixed.entry()["heartbeatMs"]
        ours.becomes("leading")
        waited = time.time() * 1000 - heartbeat
        assert 2000 < waited < 2000 + 625 + 1000
        os.kill(leader.pid, signal.SIGCONT)
        mixed.follows(leader, ours)
    else:
        heartbeat = mixed.entry()["heartbeatMs"]
        mixed.until(lambda: mixed.entry()["heartbeatMs"] > heartbeat + 2000 + 625)
        assert not mixed.leading()
        assert mixed.entry()["pid"] == leader.pid


@pytest.mark.parametrize("whose", ["dead", "reused", "elsewhere"])
def test_an_entry_of_theirs_that_nobody_keeps(mixed: Mixed, whose: str) -> None:
    """Without a birth a pid proves death, and nothing else: a process that has it now holds the lease until the
    heartbeat is too old. Where its endpoint is meant to be makes no difference."""
    sleeper = mixed.sleeper()
    if whose == "dead":
        sleeper.kill()
        sleeper.wait()
    entry = {"pid": sleeper.pid, "cwd": "/x", "instanceId": f"{sleeper.pid}:1", "heartbeatMs": time.time_ns() // 10**6}
    entry |= {"leaderEpoch": "7d9f3c1e-0000-4000-8000-000000000000", "runtimeGeneration": 1, "busSecret": "s" * 43}
    if whose == "elsewhere":
        entry["busSocketPath"] = str(mixed.root / "nowhere.sock")
    mixed.change(entry)
    ours = mixed.start()
    ours.becomes("leading")
    waited = time.time() * 1000 - entry["heartbeatMs"]
    assert waited < 2000 if whose == "dead" else waited > 2000
    assert mixed.entry()["pid"] == ours.pid
    assert json.dumps(mixed.state())


def test_both_refresh_one_registry(mixed: Mixed) -> None:
    """Two profiles, a leader of each system: neither loses the other's entry."""
    ours = mixed.start("--profile", "ours")
    theirs = mixed.other("--profile", "theirs")
    mixed.leads(ours)
    mixed.leads(theirs)

    def beats() -> list[int]:
        entries = json.loads(mixed.registry.read_text())
        return [entries["ours"]["heartbeatMs"], entries["theirs"]["heartbeatMs"]]

    before = beats()
    mixed.until(lambda: min(now - then for now, then in zip(beats(), before, strict=True)) > 1500)
    assert (ours.role[:7], theirs.role) == ("leading", "leading")
