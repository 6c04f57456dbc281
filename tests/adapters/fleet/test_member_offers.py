"""A member takes offers of queued items as a follower, and passes them on as a leader."""

from __future__ import annotations

from pathlib import Path

import attrs

from tenure.adapters.bus.messages import acks, answers
from tenure.adapters.bus.messages.envelopes import Ack, CallApi
from tenure.adapters.bus.messages.envelopes_handoff import (
    FollowerOfferQueueHandoff,
    LeaderOfferQueueHandoff,
    QueueOwner,
    Staged,
)
from tenure.adapters.fleet.leader.requests import Route
from tests.adapters.fleet.envelopes_of import offer
from tests.adapters.fleet.fleet_room import run
from tests.adapters.fleet.member_room import Village

OWNER = QueueOwner(
    instance_id="i", process_id=1, process_birth_id="1:start:1", session_generation=1, acquisition_id="b",
    acquired_at_ms=5,
)  # fmt: skip
STAGED = Staged(receipt_id="r", source_update_ids=(1,), queue_owner=OWNER)


def test_a_member_takes_and_passes_on_what_is_offered(tmp_path: Path) -> None:
    """From a follower to its leader, which passes it on, to the other follower; other asks are served, or barred."""

    async def story() -> None:
        taken: list[LeaderOfferQueueHandoff] = []
        passed: list[tuple[str, float]] = []

        async def accept(request: LeaderOfferQueueHandoff) -> Staged:
            taken.append(request)
            return STAGED

        async def pass_on(request: FollowerOfferQueueHandoff, route: Route, left_ms: float) -> Ack:
            passed.append((route.entry.instance, left_ms))
            work = attrs.evolve(offer(LeaderOfferQueueHandoff, "g"), request_id=request.request_id)
            to, generation = request.recipient_instance_id, request.recipient_registration_generation
            return await lead.member.leader.forward(to, generation, work, timeout_ms=left_ms)

        async def serve(request: object, route: Route) -> Ack:
            return acks.done(request)  # type: ignore[arg-type]

        def authorise(request: object, route: Route) -> str | None:
            return "barred" if isinstance(request, CallApi) and request.method == "downloadFile" else None

        async with Village(tmp_path) as village:
            lead = await village.joins(50, pass_on=pass_on, serve=serve, authorise=authorise)
            recipient = await village.joins(101, accept=accept)
            donor = await village.joins(102)
            await recipient.follows(lead)
            await donor.follows(lead)
            to, me = recipient.member.follower, donor.member.identity.instance_id
            made = attrs.evolve(
                offer(FollowerOfferQueueHandoff, ""),
                instance_id=me,
                recipient_instance_id=recipient.member.identity.instance_id,
                recipient_registration_generation=str(to.generation),
            )
            ack = await donor.member.follower.ask(lambda g: attrs.evolve(made, registration_generation=str(g)))
            assert isinstance(ack, Ack)
            assert STAGED == answers.staged(ack)
            assert [me] == [instance for instance, _ in passed]
            assert 0 < passed[0][1] <= village.times.handoff_timeout_ms
            assert [str(to.generation)] == [request.recipient_registration_generation for request in taken]
            answered = []
            for method in ("call", "downloadFile"):
                call = CallApi(
                    request_id="", instance_id=me, registration_generation="", method=method, args=(), sent_at_ms=1
                )
                ack = await donor.member.follower.ask(
                    lambda g, call=call: attrs.evolve(call, registration_generation=str(g))
                )
                assert isinstance(ack, Ack)
                answered.append((ack.ok, ack.message))
            assert [(True, None), (False, "barred")] == answered

    run(story())
