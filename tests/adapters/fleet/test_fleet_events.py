"""What followers and leaders tell a recorder: steps of the twin, by its names, and nothing that cannot be written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tenure.adapters.bus.messages.envelopes import Heartbeat, TenureStatus
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.testing.memory import Notes
from tenure.adapters.trace.api import MemoryRecorder
from tenure.models.follower_registration import CONFIGS, FollowerRegistration
from tests.adapters.fleet.envelopes_of import asks, register, works
from tests.adapters.fleet.fleet_room import House, joined, run, until

NAMES = frozenset(action.name for action in FollowerRegistration(next(iter(CONFIGS.values()))).actions())


def test_events_are_steps_of_the_twin(tmp_path: Path) -> None:
    """Of a whole life: registered, asked, worked for, refused, silent, moved to a new session, gone."""

    async def story() -> None:
        house = House(tmp_path)
        house.recorder = recorder = MemoryRecorder()
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            assert (await chief.send(works(str(hand.follower.generation))[0])).ok
            for request in asks("101:1:0"):
                await chief.send(request)
            await hand.follower.ask(lambda generation: asks(str(generation))[2])  # type: ignore[arg-type, return-value]
            await chief.send(register("102:1:1", 102))
            await house.silence(hand)
            await until(lambda: "102:1" not in chief.routes())
            hand.follower.leave()
            chief.hold = asyncio.Event()
            late = asyncio.ensure_future(hand.follower.register(chief.entry(), None))
            await until(lambda: chief.provisioning)
            hand.follower.set_session(2)
            await late
            chief.hold.set()
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            assert await hand.follower.disconnect() is True
        seen = {event.action for event in recorder.events}
        assert seen <= NAMES
        assert {"Register", "HearAnswer", "HearBeat", "Beat", "Ask", "Deliver", "Leave", "Session", "Return"} <= seen
        assert {
            "HearRegister",
            "Provisioned",
            "Refresh",
            "Perform",
            "Forward",
            "HearGoodbye",
            "Delete",
            "Cleaned",
        } <= seen
        assert {"HearGone", "Disconnect", "Prune", "Close"} <= seen
        assert {event.node for event in recorder.events} == {"101-1010/101:1", "50-500/50:1"}
        assert json.dumps([[dict(event.args), dict(event.observed)] for event in recorder.events])

    run(story())


def test_a_recorder_or_a_sink_that_throws_changes_nothing(tmp_path: Path) -> None:
    """Diagnostics (A34), and callbacks that are wrong."""

    class Angry(Notes):
        def note(self, category: str, phase: str, fields: object) -> None:
            raise RuntimeError("no")

    async def story() -> None:
        house = House(tmp_path)
        house.notes = Angry()
        async with house:
            chief = await house.led()
            hand = house.follower(101)

            def wrong(*args: object) -> None:
                raise RuntimeError("no")

            hand.follower._on_change = wrong
            hand.follower._on_lost = wrong
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            ack = await chief.send(TenureStatus(request_id="x:1"), auth="wrong")
            assert not ack.ok
            beat = Heartbeat(request_id="x:2", instance_id="9:9", registration_generation="9", sent_at_ms=1)
            assert not (await chief.send(beat)).ok
            await chief.leader.close()
            await until(lambda: hand.follower.phase == "idle")

    run(story())
