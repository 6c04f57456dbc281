"""Followers of the other system (`other_fleet.py`) at a leader of ours."""

from __future__ import annotations

import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.real.conftest import stop
from tests.real.other_bus import IDENTITY
from tests.real.others import Mixed, request

FORWARDS = ("leader.forwardMessage", "leader.forwardEditedMessage", "leader.forwardCallback", "leader.forwardReaction")


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
    follower.kill()  # or it may well be the one that leads next
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
    if kind != "follower.register":
        follower.says("heartbeat failed")  # or it still follows as before, and is about to begin anew
    mixed.until(lambda: follower.role == "following" and len(mixed.state()["liveRoster"]["busFollowers"]) == 1)
    assert follower.ask("ask", kind="follower.heartbeat")["ok"]
    assert len([t for t in mixed.state()["threads"] if t["ownerKind"] != "leader"]) == 1
