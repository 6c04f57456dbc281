"""Exactly one acknowledgement of each kind is lost between real processes: what was asked is done once, and the same
request again has the answer (bus.md a, LEDGER; g, L13).

Kinds that only followers of ours wait for (what they do about it is `tests/adapters/fleet/test_follower.py`) are sent
by hand here, as each transport retry sends them: the same envelope again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tenure.adapters.bus.messages.envelopes import Ack, Delivery, ReplaceFollowerTarget, Request, TenureStatus
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.wire import encode, parse
from tests.adapters.fleet.envelopes_of import asks, register, to_follower_only, works
from tests.real.conftest import until
from tests.real.others import Proxy, request

# A member that writes down what it does for others: as leader what it is asked for, as follower what it takes, with its
# thread of that moment.
MEMBER = """
import asyncio, sys
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes_handoff import QueueOwner, Staged
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.fleet.member import Member

done = open(sys.argv[2], "a", buffering=1)

async def serve(asked, route):
    done.write(f"served {asked.request_id}\\n")
    match asked.KIND:
        case "follower.callApi":
            return acks.called(asked, Json({"number": 7}))
        case "follower.resolveAgentTarget":
            return acks.resolved(asked, Target(1, 2))
        case "follower.routeAgentMessage":
            return acks.done(asked)
    owner = QueueOwner(
        instance_id="101:1", process_id=1, process_birth_id="1:start:1", session_generation=1, acquisition_id="a",
        acquired_at_ms=1,
    )
    return acks.staged(asked, Staged(receipt_id="r", source_update_ids=(1,), queue_owner=owner))

async def takes(work):
    done.write(f"taken {work.request_id} with {me.follower.binding.target}\\n")

me = Member(agent_directory(sys.argv[1]), deliver=takes, serve=serve)

async def main():
    async with me:
        await me.join()
        print(me.identity.instance_id, flush=True)
        await me.until_left()

asyncio.run(main())
"""
BY_HAND = "101:1"
"""A registration that the test holds itself."""


class Fleet:
    """A leader and a follower, each a process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "agent").mkdir()
        self.state = root / "agent" / "tmp" / "telegram"
        self.effects = root / "effects"
        self._proxies: dict[Path, Proxy] = {}
        self._members: list[subprocess.Popen[str]] = []
        self.instances = [self._starts() for _ in range(2)]
        self.number = 0

    def _starts(self) -> str:
        member = subprocess.Popen(
            [sys.executable, "-c", MEMBER, str(self.root / "agent"), str(self.effects)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._members.append(member)
        assert member.stdout is not None
        return member.stdout.readline().strip()

    @property
    def door(self) -> Path:
        """The leader's endpoint."""
        return Path(endpoint_path(str(self.state / "bus.sock")))

    @property
    def follower_door(self) -> Path:
        """The follower's, as its registration names it."""
        name = self.instances[1].replace(":", "_")
        return Path(endpoint_path(str(self.state / "followers" / f"{name}.sock")))

    @property
    def secret(self) -> str:
        return str(json.loads((self.state / "owners.json").read_text())["default"]["busSecret"])

    def view(self) -> dict[str, Any]:
        """What the leader says of its fleet."""
        ack = self.asks(self.door, self.named(TenureStatus(request_id="")))
        assert ack is not None
        assert ack.result is not None
        assert isinstance(ack.result.value, dict)
        return ack.result.value

    def route(self, instance: str) -> dict[str, Any] | None:
        """That of an instance, as the leader has it."""
        return next((f for f in self.view()["followers"] if f["instanceId"] == instance), None)

    def threads(self) -> list[dict[str, Any]]:
        """All that are remembered."""
        return list(json.loads((self.state / "state.json").read_text())["threads"])

    def named(self, asked: Request) -> Request:
        """With an id that was never used, and the secret."""
        self.number += 1
        return attrs.evolve(asked, request_id=f"test:{self.number}", auth=self.secret)

    def asks(self, door: Path, asked: Request) -> Ack | None:
        """The answer; None where the connection ends without one."""
        try:
            found = parse(json.dumps(request(str(door), json.loads(encode(asked)))).encode())
        except json.JSONDecodeError:
            return None
        assert isinstance(found, Ack)
        return found

    def joined(self) -> str:
        """The test is registered, with what is looked at again and again; the generation."""
        mine = self.named(register("", instance_id=BY_HAND, generation=f"by hand {self.number}", process_birth_id=None))
        ack = self.asks(self.door, mine)
        assert ack is not None
        assert ack.ok, ack.message
        route = self.route(BY_HAND)
        assert route is not None
        return str(route["generation"])

    def loses(self, door: Path, asked: Request) -> Proxy:
        """The next answer to `asked` at this door is lost, to whomever it is given there."""
        if door not in self._proxies:
            self._proxies[door] = Proxy(door)
        proxy = self._proxies[door]
        proxy.to_lose.add(asked.request_id)
        return proxy

    def lost(self, door: Path, asked: Request) -> None:
        """`asked` is sent, and its answer lost."""
        proxy = self.loses(door, asked)
        before = len(proxy.lost)
        assert self.asks(door, asked) is None
        assert proxy.lost[before:] == [asked.KIND]

    def did(self, asked: Request) -> int:
        """How often it was done."""
        said = self.effects.read_text().splitlines() if self.effects.exists() else []
        return sum(line.split()[1] == asked.request_id for line in said)

    def close(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()
        for member in self._members:
            member.kill()
            member.communicate()


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """One for all kinds: what is asked has an id of its own."""
    with tempfile.TemporaryDirectory(prefix="tenure-") as root:
        found = Fleet(Path(root))
        try:
            yield found
        finally:
            found.close()


ASKS = {asked.KIND: asked for asked in asks("g") if asked.KIND not in ("follower.heartbeat", "follower.disconnect")}
WORKS = {work.KIND: work for work in works("g")}


@pytest.mark.parametrize("kind", ASKS)
def test_what_a_follower_asks_for(fleet: Fleet, kind: str) -> None:
    """The API, a thread of an agent's, a message to it, an offer: done once, answered the second time."""
    generation = fleet.joined()
    asked = fleet.named(attrs.evolve(ASKS[kind], registration_generation=generation))
    fleet.lost(fleet.door, asked)
    again = fleet.asks(fleet.door, asked)
    assert again is not None
    assert again.ok, again.message
    assert fleet.asks(fleet.door, asked) == again
    assert fleet.did(asked) == 1


@pytest.mark.parametrize("leg", ["asker to leader", "leader to follower"])
@pytest.mark.parametrize("kind", WORKS)
def test_what_a_leader_sends_on(fleet: Fleet, kind: str, leg: str) -> None:
    """A message, an edit, a callback, a reaction: taken once. Where the follower's answer is lost, the leader says so,
    and the same work again brings its receipt."""
    follower = fleet.instances[1]
    route = until(lambda: fleet.route(follower))
    work = fleet.named(
        attrs.evolve(
            WORKS[kind],
            recipient_instance_id=follower,
            recipient_registration_generation=route["generation"],
            delivery=attrs.evolve(WORKS[kind].delivery, recipient_binding_key=route["profile"]),  # type: ignore[attr-defined]
        )
    )
    if leg == "asker to leader":
        fleet.lost(fleet.door, work)
    else:
        proxy = fleet.loses(fleet.follower_door, work)
        before = len(proxy.lost)
        first = fleet.asks(fleet.door, work)
        assert first is not None
        assert not first.ok
        assert "did not answer" in (first.message or "")
        assert proxy.lost[before:] == [kind]
    again = fleet.asks(fleet.door, work)
    assert again is not None
    assert again.ok, again.message
    assert again.result is not None
    delivery: Delivery = work.delivery  # type: ignore[attr-defined]
    assert again.result.value == {"deliveryId": delivery.delivery_id, "sourceUpdateId": delivery.source_update_id}
    assert fleet.did(work) == 1


def test_another_thread_for_a_follower(fleet: Fleet) -> None:
    """The answer to the first move is lost; the same move again, after a second one, moves nothing any more."""
    follower = fleet.instances[1]
    generation = until(lambda: fleet.route(follower))["generation"]

    def moves(thread: int) -> Request:
        (move, *_) = to_follower_only(generation)
        assert isinstance(move, ReplaceFollowerTarget)
        return fleet.named(attrs.evolve(move, recipient_instance_id=follower, target=Target(0, thread)))

    first, second = moves(88), moves(99)
    fleet.lost(fleet.follower_door, first)
    for move in (second, first, first):
        again = fleet.asks(fleet.follower_door, move)
        assert again is not None
        assert again.ok, again.message
    work = fleet.named(
        attrs.evolve(
            WORKS["leader.forwardMessage"],
            recipient_instance_id=follower,
            recipient_registration_generation=generation,
            delivery=attrs.evolve(
                WORKS["leader.forwardMessage"].delivery,  # type: ignore[attr-defined]
                recipient_binding_key=(fleet.route(follower) or {})["profile"],
            ),
        )
    )
    taken = fleet.asks(fleet.door, work)
    assert taken is not None
    assert taken.ok, taken.message
    assert f"taken {work.request_id} with 0/99" in fleet.effects.read_text()


def test_an_offer_to_a_follower_of_ours(fleet: Fleet) -> None:
    """It takes none, and says so the second time as well."""
    follower = fleet.instances[1]
    generation = until(lambda: fleet.route(follower))["generation"]
    (_, offer) = to_follower_only(generation)
    asked = fleet.named(attrs.evolve(offer, recipient_instance_id=follower))
    fleet.lost(fleet.follower_door, asked)
    again = fleet.asks(fleet.follower_door, asked)
    assert again is not None
    assert not again.ok
    assert "not taken here" in (again.message or "")


def test_a_registration_a_heartbeat_and_a_goodbye(fleet: Fleet) -> None:
    """One route and one thread, whose acknowledgement is the first one's; a heartbeat and a goodbye of it."""
    asked = fleet.named(register("", instance_id=BY_HAND, generation="by hand", process_birth_id=None))
    fleet.lost(fleet.door, asked)
    threads = len(fleet.threads())
    again = fleet.asks(fleet.door, asked)
    assert again is not None
    assert again.ok, again.message
    assert len(fleet.threads()) == threads
    beat, bye = (fleet.named(found) for found in asks("by hand")[:2])
    for kind in (beat, bye):
        fleet.lost(fleet.door, kind)
        answer = fleet.asks(fleet.door, kind)
        assert answer is not None
        assert answer.ok, answer.message
    assert fleet.route(BY_HAND) is None
    assert len(fleet.threads()) == threads - 1
    late = fleet.asks(fleet.door, asked)
    assert late is not None
    assert not late.ok or fleet.route(BY_HAND) is not None  # L14: what is over is not said again


def test_the_state_of_the_fleet(fleet: Fleet) -> None:
    """Nothing comes of it but the answer."""
    asked = fleet.named(TenureStatus(request_id=""))
    fleet.lost(fleet.door, asked)
    again = fleet.asks(fleet.door, asked)
    assert again is not None
    assert again.ok, again.message
