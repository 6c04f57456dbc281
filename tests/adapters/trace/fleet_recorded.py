"""A recording of a fleet by the real drivers: three members, work, a leader that leaves, a promotion, a goodbye."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from tenure.adapters.bus.messages.envelopes import Delivery, ForwardMessage
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.ports import Ports
from tenure.adapters.trace.api import MemoryRecorder
from tenure.adapters.trace.lines import Event
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import Village

FIRST, SECOND, THIRD = 101, 102, 103


class Recorder(MemoryRecorder):
    """One that several threads share."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        with self._lock:
            super().event(module, action, node, number, args, observed, tenure)

    def writes(self, pid: int) -> int:
        """How often that process wrote its lease."""
        return sum(e.module == "LeaderElection" and e.action == "Write" for e in self.events if _by(e, pid))


def _by(event: Event, pid: int) -> bool:
    return event.process.startswith(f"{pid}-")


class RecordedVillage(Village):
    """A village in which all members record."""

    def __init__(self, root: Path, **more: Any) -> None:
        super().__init__(root, **more)
        self.recorder = Recorder()

    def ports(self, pid: int) -> Ports:
        return attrs.evolve(super().ports(pid), recorder=self.recorder)


def fleet() -> list[Event]:
    """The events, to be doctored."""
    return [copy.copy(event) for event in _recorded()]


@cache
def _recorded() -> tuple[Event, ...]:
    events: list[Event] = []

    async def story() -> None:
        with TemporaryDirectory(prefix="tenure-") as root:
            village = RecordedVillage(Path(root))
            async with village:
                taken: list[object] = []

                async def takes(work: object) -> None:
                    taken.append(work)

                first = await village.joins(FIRST)
                second = await village.joins(SECOND, deliver=takes)
                third = await village.joins(THIRD, deliver=takes)
                for follower in first.member.leader.fleet_view().followers:
                    await first.member.leader.forward(
                        follower.instance_id, follower.generation, _work(follower.profile or "")
                    )
                assert len(taken) == 2
                kept = village.recorder.writes(FIRST)
                await until(lambda: village.recorder.writes(FIRST) > kept + 1)
                await first.member.leave()
                await second.leads()
                await third.follows(second)
                (follower,) = second.member.leader.fleet_view().followers
                await second.member.leader.forward(
                    follower.instance_id, follower.generation, _work(follower.profile or "")
                )
                assert len(taken) == 3
                beats = third.member.follower.statistics().heartbeats
                await until(lambda: third.member.follower.statistics().heartbeats > beats + 1)
                assert await third.member.leave(goodbye=True) == ""
                await second.member.leave()
            events.extend(village.recorder.events)

    run(story())
    return tuple(events)


def _work(key: str) -> ForwardMessage:
    delivery = Delivery(
        delivery_id=f"telegram-follower-v1-{'0' * 64}", source_update_id=5, recipient_binding_key=key
    )  # fmt: skip
    return ForwardMessage(
        request_id="w:m", delivery=delivery, message=Json({}), recipient_instance_id="",
        recipient_registration_generation="", sent_at_ms=1,
    )  # fmt: skip
