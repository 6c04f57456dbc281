"""One look at the fleet of each key: from its leader where that answers, else from the projection (bus.md, annex L).

The leader is asked over the bus with the secret that its entry has, which this user alone may read. It has a second at
most, all leaders together: one that hangs is said to, and what it published is shown with its age. A leader of the
other system is not asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import attrs

from tenure.adapters.bus.client import TIMEOUT, Answer, Client, NoResponse
from tenure.adapters.bus.endpoints.paths import leader_path
from tenure.adapters.bus.messages import answers, wire
from tenure.adapters.bus.messages.envelopes import Ack, TenureStatus
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.fleet_view import FleetView, LeaderView
from tenure.adapters.bus.wording import unanswered
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import DEFAULT, Timings
from tenure.adapters.fleet.threads.projection import Look, look
from tenure.adapters.fleet.threads.views import (
    Kept,
    ListedFollower,
    bus_target,
    followers,
    foreign_followers,
    foreign_kept,
    kept,
    published,
)
from tenure.adapters.looking.looks import EntryLook, look_at_process
from tenure.adapters.ports import Ports
from tenure.machines.entry import integer
from tenure.machines.slot_board import Record

PATIENCE_MS: Final = 1_000
"""For how long ``tenure status`` waits for leaders, whatever the timings of the directory are."""

Source = Literal["leader", "projection"]
Told = FleetView | str
"""What a leader said of its fleet, or why it said nothing."""
Asking = Callable[[Iterable[EntryLook]], Mapping[str, Told]]
"""Asks the leaders of the keys, all at once."""


@attrs.frozen
class FleetLook:
    """The fleet of one key. `source`: who says so. `why`: why its leader does not, "" where it does. `age_ms`: since
    the projection was written, `path` is where it is. `problem`: why it cannot be read. `foreign`: the other system
    wrote it. `gone`: the pids of followers that no living process has."""

    key: str
    source: Source
    path: str
    why: str = ""
    age_ms: int | None = None
    foreign: bool = False
    problem: str = ""
    leader: LeaderView | None = None
    followers: tuple[ListedFollower, ...] = ()
    kept: Kept = attrs.field(factory=Kept)
    gone: frozenset[int] = frozenset()


def nobody_asked(leaders: Iterable[EntryLook]) -> Mapping[str, Told]:
    """Where no leader is to be asked."""
    return {leader.key: "it was not asked" for leader in leaders}


def fleets(
    ports: Ports, directory: AgentDirectory, keys: Iterable[EntryLook], asking: Asking = nobody_asked
) -> tuple[FleetLook, ...]:
    """The fleets of these keys; none of a key that has neither a leader that answers nor a projection."""
    known = {entry.key: entry for entry in keys}
    refused = {key: why for key, entry in known.items() if (why := not_to_ask(entry))}
    told = dict(asking([entry for key, entry in known.items() if key not in refused]))
    found = [
        _from_leader(key, answer, look(ports.files, directory, key))
        if isinstance(answer := told.get(key, refused.get(key, "")), FleetView)
        else _from_projection(entry, answer, look(ports.files, directory, key), ports.clock.wall_ms())
        for key, entry in known.items()
    ]
    return tuple(attrs.evolve(fleet, gone=_gone(ports, fleet)) for fleet in found if fleet is not None)


def _gone(ports: Ports, fleet: FleetLook) -> frozenset[int]:
    pids = {follower.pid for follower in fleet.followers if follower.pid is not None}
    return frozenset(pid for pid in pids if look_at_process(ports, pid, None).proven_dead)


def not_to_ask(entry: EntryLook) -> str:
    """Why the leader of a key is not asked; "" where it is."""
    if entry.entry is None or entry.owner is None:
        return "nobody leads"
    if not entry.live:
        return "its lease is over" if not entry.owner.proven_dead else "its leader is dead"
    if entry.entry.birth is None:
        return "its leader is of the other system"
    return "" if entry.entry.bus_secret else "its leader serves no bus"


class Asker:
    """Asks leaders over the bus: what ``tenure status`` uses."""

    def __init__(
        self, ports: Ports, directory: AgentDirectory, timings: Timings = DEFAULT, client: Client | None = None
    ) -> None:
        self._ports = ports
        self._directory = directory
        self._timeout_ms = min(PATIENCE_MS, timings.response_ms)
        self._client = Client() if client is None else client

    def __call__(self, leaders: Iterable[EntryLook]) -> Mapping[str, Told]:
        """Blocks until all have answered, or their time is over. Not from a coroutine: `ask` is for those."""
        asked = list(leaders)
        return asyncio.run(self.ask(asked)) if asked else {}

    async def ask(self, leaders: Iterable[EntryLook]) -> Mapping[str, Told]:
        """The same, for coroutines."""
        asked = list(leaders)
        return dict(zip([e.key for e in asked], await asyncio.gather(*map(self._one, asked)), strict=True))

    async def _one(self, leader: EntryLook) -> Told:
        entry = leader.entry
        assert entry is not None, "whoever is asked has an entry"
        request = f"status:{self._ports.identities.uuid()}"
        line = wire.encode(TenureStatus(request_id=request, auth=entry.bus_secret))
        path = entry.bus_socket_path or leader_path(self._directory, leader.key)
        try:
            reply = await self._client.request(path, line, timeout_ms=self._timeout_ms)
        except ValueError as error:  # others write any text into a path
            return f"its leader's endpoint has no usable path ({error})"
        if isinstance(reply, NoResponse):
            return "its leader closed without an answer"
        if not isinstance(reply, Answer):
            if reply.reason == TIMEOUT:
                return f"its leader did not answer within {self._timeout_ms / 1000:g} s"
            return f"its leader cannot be reached at {unanswered(path, reply)}"
        ack = wire.parse(reply.line)
        if not isinstance(ack, Ack) or ack.request_id != request:
            return "its leader's answer is none to this question"
        if not ack.ok:
            return f"its leader refused: {ack.message or 'without a reason'}"
        view = answers.fleet(ack)
        return f"its leader's answer is malformed: {view.reason}" if isinstance(view, Malformed) else view


def _from_leader(key: str, view: FleetView, projection: Look) -> FleetLook:
    return FleetLook(
        key,
        "leader",
        projection.path,
        problem=projection.problem,
        leader=view.leader,
        followers=followers(view.followers),
        kept=Kept(view.reservations, view.pendings, view.clean_ups),
    )


def _from_projection(entry: EntryLook, why: str, projection: Look, now_ms: int) -> FleetLook | None:
    found = FleetLook(entry.key, "projection", projection.path, why, problem=projection.problem)
    if projection.problem:
        return found
    if projection.written is not None:
        snapshot = projection.written.snapshot
        return attrs.evolve(
            found,
            age_ms=max(0, now_ms - projection.written.written_ms),
            leader=_leader(entry, snapshot.board.records),
            followers=published(snapshot),
            kept=kept(snapshot, now_ms),
        )
    if projection.value is None:
        return None if why in ("nobody leads", "its leader serves no bus") else found
    value = projection.value
    written = integer(value.get("writtenAtMs"))
    return attrs.evolve(
        found,
        foreign=True,
        age_ms=None if written is None else max(0, now_ms - written),
        leader=_leader(entry, ()),
        followers=foreign_followers(value),
        kept=foreign_kept(value, now_ms),
    )


def _leader(look: EntryLook, records: tuple[Record, ...]) -> LeaderView | None:
    """Who leads, as the registry says, with what the projection knows of its thread."""
    entry = look.entry
    if entry is None or not look.live or entry.instance_id is None:
        return None
    epoch = entry.leader_epoch
    own = next((r for r in records if r.kind == "leader" and r.instance == entry.instance_id), None)
    return LeaderView(
        pid=entry.pid,
        instance_id=entry.instance_id,
        epoch=epoch if isinstance(epoch, int | str) else "",
        slot=None if own is None else own.slot,
        name=None if own is None else own.name,
        target=None if own is None else bus_target(own.target),
    )
