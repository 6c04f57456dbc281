"""Followers of ours at a leader of the other system, which is `other_fleet.py` and knows nothing of ours."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from tenure.adapters.bus.messages.envelopes import Ack, CallApi, Forward
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Following
from tests.real.conftest import stop
from tests.real.others import Mixed

FORWARDS = ("leader.forwardMessage", "leader.forwardEditedMessage", "leader.forwardCallback", "leader.forwardReaction")


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


def test_a_goodbye_to_a_leader_that_hangs(mixed: Mixed) -> None:
    """Who leaves stands for no election, also when the lease passes meanwhile."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start("--goodbye")
    mixed.follows(ours, leader)
    stop(leader.pid, mixed.registry)
    ours.kill(signal.SIGTERM)
    heartbeat = mixed.entry()["heartbeatMs"]
    mixed.until(lambda: time.time() * 1000 > heartbeat + 2000 + 625)
    assert mixed.entry()["pid"] == leader.pid
    os.kill(leader.pid, signal.SIGCONT)
    assert ours.ends() == 128 + signal.SIGTERM
    assert not any(role.startswith(("standing", "starting", "leading")) for role in ours.roles)
