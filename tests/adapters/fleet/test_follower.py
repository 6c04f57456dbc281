"""A follower and a leader over real sockets: registering, beating, asking, taking work, saying goodbye."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import follower_path
from tenure.adapters.bus.messages.envelopes import Ack, CallApi, Delivery, ForwardMessage, ReplaceFollowerTarget
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.fleet.agreement import our_protocol
from tenure.adapters.fleet.follower.outcomes import Accepted, AskFailed, RefusedBy, Unreachable
from tenure.machines.follower_messages import Binding
from tests.adapters.fleet.fleet_room import Hand, House, Proxy, joined, run, until

DELIVERY = f"telegram-follower-v1-{'0' * 64}"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def work(hand: Hand, generation: str, *, delivery: str = DELIVERY, request: str = "w:1") -> ForwardMessage:
    follower = hand.follower
    return ForwardMessage(
        request_id=request,
        recipient_instance_id=follower.identity.instance_id,
        recipient_registration_generation=generation,
        delivery=Delivery(delivery_id=delivery, source_update_id=5, recipient_binding_key=follower.profile_key),
        sent_at_ms=1,
        message=Json({"text": "hi"}),
    )


def call(hand: Hand) -> CallApi:
    return CallApi(
        request_id="",
        instance_id=hand.follower.identity.instance_id,
        registration_generation=str(hand.follower.generation),
        method="call",
        args=(),
        sent_at_ms=1,
    )


def test_registered_is_who_was_acknowledged_and_heard(house: House) -> None:
    """`Accepted` comes after the first heartbeat: the roster is known, the route stands under that generation."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = house.follower(101)
            found = await hand.follower.register(chief.entry(), None)
            assert found == Accepted("101:1:1", Binding("0/2", "B", found.binding.name), ("B",))  # type: ignore[union-attr]
            assert chief.routes() == {"101:1": "101:1:1"}
            assert hand.follower.phase == "registered"
            await until(lambda: hand.follower.statistics().heartbeats > 3)
            assert hand.lost == []

    run(story())


def test_slot_thread_and_name_come_back_with_the_next_leader(house: House) -> None:
    """A new leader knows nothing, and gives what is carried (A55)."""

    async def story() -> None:
        async with house:
            first = await house.led()
            hand = await joined(house, first)
            before = hand.follower.binding
            await first.leader.close()
            second = await house.led(60, epoch=2, secret="t" * 43)
            await until(lambda: hand.lost)
            assert hand.lost[0][0] == before
            assert hand.follower.phase == "idle"
            found = await hand.follower.register(second.entry(), None)
            assert isinstance(found, Accepted)
            assert (found.binding, found.generation != "101:1:1") == (before, True)

    run(story())


def test_one_registration_at_a_time(house: House) -> None:
    """A second call is refused while one is under way, and while one is held (I12, L15)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            hand = house.follower(101)
            first = asyncio.ensure_future(hand.follower.register(chief.entry(), None))
            await until(lambda: chief.provisioning)
            busy = await hand.follower.register(chief.entry(), None)
            assert isinstance(busy, RefusedBy)
            assert busy.code == "busy"
            chief.hold.set()
            assert isinstance(await first, Accepted)
            again = await hand.follower.register(chief.entry(), None)
            assert isinstance(again, RefusedBy)
            assert again.code == "busy"
            assert chief.routes() == {"101:1": "101:1:1"}

    run(story())


def test_nobody_there(house: House) -> None:
    """All attempts fail: unreachable, idle, and the binding is kept."""

    async def story() -> None:
        async with house:
            hand = house.follower(101)
            chief = house.chief()
            found = await hand.follower.register(chief.entry(), Binding("0/9", "F", "Fern"))
            assert isinstance(found, Unreachable)
            assert found.text == f"{house.path}: nobody listens there"
            assert hand.follower.phase == "idle"
            assert hand.follower.generation is None

    run(story())


def test_the_secret_is_that_of_the_entry(house: House) -> None:
    """A leader with another secret refuses, and says no more than that."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = house.follower(101)
            stale = attrs.evolve(chief.entry(), bus_secret="x" * 43)
            found = await hand.follower.register(stale, None)
            assert isinstance(found, RefusedBy)
            assert "unauthorized" in found.text or "incompatible" in found.text
            assert chief.routes() == {}

    run(story())


def test_two_of_one_shell_live_side_by_side(house: House) -> None:
    """The second one of a profile is refused, and asks under a key of its own (L24)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            one = await joined(house, chief, 101, parent=7)
            two = await joined(house, chief, 102, parent=7)
            assert chief.routes() == {"101:1": "101:1:1", "102:1": "102:1:2"}
            assert (one.follower.data.own_key, two.follower.data.own_key) == (False, True)
            beats = one.follower.statistics().heartbeats
            await until(lambda: one.follower.statistics().heartbeats > beats + 3)
            assert one.lost == two.lost == []
            assert one.follower.binding.slot != two.follower.binding.slot

    run(story())


def test_work_is_taken_under_the_registration_that_is_held(house: House) -> None:
    """The receipt comes back through the leader; without, or under another generation, nothing is taken (M1c)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            generation = str(hand.follower.generation)
            ack = await chief.leader.forward("101:1", generation, work(hand, generation))
            assert ack.ok
            assert ack.result == Json({"deliveryId": DELIVERY, "sourceUpdateId": 5})
            assert [taken.delivery.delivery_id for taken in hand.taken] == [DELIVERY]
            for other in ("", "101:1:0"):
                ack = await chief.leader.forward("101:1", other, work(hand, other, request=f"w:{other}"))
                assert not ack.ok
            path = follower_path(house.directory, "default", "101:1")
            elsewhere = attrs.evolve(work(hand, generation).delivery, recipient_binding_key="manual:other")
            for bad in (
                attrs.evolve(work(hand, "101:1:0", request="w:6"), auth=chief.secret),
                attrs.evolve(work(hand, generation, request="w:7"), auth="x" * 43),
                attrs.evolve(work(hand, generation, request="w:8"), auth=chief.secret, recipient_instance_id="101:2"),
                attrs.evolve(work(hand, generation, request="w:9"), auth=chief.secret, delivery=elsewhere),
            ):
                assert not (await house.raw(bad, path)).ok
            assert len(hand.taken) == 1
            hand.follower.leave()
            late = await house.raw(attrs.evolve(work(hand, generation, request="w:10"), auth=chief.secret), path)
            assert "unauthorized" in (late.message or "")

    run(story())


def test_ask_without_a_registration_sends_nothing(house: House) -> None:
    """It is refused here, before the envelope is made."""

    async def story() -> None:
        async with house:
            hand = house.follower(101)
            made: list[object] = []

            def build(generation: object) -> CallApi:
                made.append(generation)
                return call(hand)

            found = await hand.follower.ask(build)
            assert found == AskFailed("there is no registration: nothing was sent", "unregistered")
            assert made == []

    run(story())


def test_ask_is_answered_by_the_leader(house: House) -> None:
    """By its port; without one it says that it has no API."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            ack = await hand.follower.ask(lambda generation: call(hand))
            assert isinstance(ack, Ack)
            assert not ack.ok
            assert ack.message == "this leader has no API"

    run(story())


def test_goodbye(house: House) -> None:
    """The thread is deleted, then the route; the follower is idle, and keeps its name only."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            assert await hand.follower.disconnect() is True
            assert (chief.routes(), hand.follower.phase, hand.follower.binding.target) == ({}, "idle", None)
            assert [record.kind for record in chief.local.board.records] == ["leader"]
            assert await hand.follower.disconnect() == "there is no registration to end"

    run(story())


def test_a_new_session_ends_the_attempt(house: House) -> None:
    """It answers at once; the late acknowledgement makes no registration (L25), and the next one begins at once."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            chief.hold = asyncio.Event()
            hand = house.follower(101)
            first = asyncio.ensure_future(hand.follower.register(chief.entry(), None))
            await until(lambda: chief.provisioning)
            hand.follower.set_session(2)
            second = asyncio.ensure_future(hand.follower.register(chief.entry(), None))
            for _ in range(5):
                await asyncio.sleep(0)
            assert first.done()
            answer = await first
            assert isinstance(answer, RefusedBy)
            assert answer.code == "abandoned"
            assert hand.follower.phase == "registering"
            chief.hold.set()
            found = await second
            assert isinstance(found, Accepted)
            assert chief.routes() == {"101:1": str(found.generation)}

    run(story())


@pytest.mark.parametrize("kind", ["follower.register", "follower.heartbeat", "follower.disconnect", "follower.callApi"])
def test_one_lost_acknowledgement(house: House, kind: str) -> None:
    """Of each kind: what follows is what the reference says, and in the end the follower is where it wants to be."""

    async def story() -> None:
        async with house, Proxy(house.path) as proxy:
            chief = await house.led()
            entry = chief.entry(proxy.path)
            hand = house.follower(101)
            if kind == "follower.register":
                proxy.drop = kind
                lost = await hand.follower.register(entry, None)
                assert isinstance(lost, Unreachable)
            found = await hand.follower.register(entry, None)
            assert isinstance(found, Accepted)
            assert chief.routes() == {"101:1": str(found.generation)}
            proxy.drop = kind
            match kind:
                case "follower.heartbeat":
                    await until(lambda: hand.lost)
                    again = await hand.follower.register(entry, None)
                    assert isinstance(again, Accepted)
                    assert again.binding == found.binding
                    assert chief.routes() == {"101:1": str(again.generation)}
                case "follower.disconnect":
                    assert await hand.follower.disconnect() is True
                    assert chief.routes() == {}
                case "follower.callApi":
                    failed = await hand.follower.ask(lambda generation: call(hand))
                    assert isinstance(failed, AskFailed)
                    assert failed.unknown
                    assert hand.follower.phase == "registered"

    run(story())


def test_a_moved_thread(house: House) -> None:
    """Under the generation that is held the target is another one now; nothing else changes (L22)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            before = hand.follower
            generation = str(before.generation)
            moved = ReplaceFollowerTarget(
                request_id="w:1",
                recipient_instance_id="101:1",
                target=Target(0, 77),
                sent_at_ms=1,
                recipient_registration_generation=generation,
            )
            assert (await chief.leader.forward("101:1", generation, moved)).ok
            assert hand.follower.binding.target == "0/77"
            assert (hand.follower.generation, hand.follower.binding.slot) == (generation, "B")
            assert hand.follower.leader_protocol == our_protocol()
            assert hand.follower.data.capabilities == our_protocol().capabilities

    run(story())


def test_work_without_a_session_is_refused(house: House) -> None:
    """bus.md a, FOLLOWER SERVER ORDER: a live host context exists. The registration stays, and work is taken again when
    a session is served."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            generation = str(hand.follower.generation)
            path = follower_path(house.directory, "default", "101:1")
            for session, taken in ((0, 0), (2, 1), (0, 1)):
                hand.follower.set_session(session)
                asked = work(hand, generation, request=f"w:{session}:{taken}")
                ack = await house.raw(attrs.evolve(asked, auth=chief.secret), path)
                assert ack.ok == (session != 0)
                assert ack.ok or "no session" in str(ack.message)
                assert len(hand.taken) == taken
            assert hand.follower.generation == generation

    run(story())
