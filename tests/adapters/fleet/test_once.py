"""Requests that come twice, as they do where an answer was lost: done once (bus.md a, LEDGER)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.endpoints.paths import follower_path
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, AckError, CallApi, ReplaceFollowerTarget
from tenure.adapters.fleet.follower.outcomes import Accepted
from tenure.adapters.fleet.leader.requests import Asked, Route
from tests.adapters.fleet.envelopes_of import asks, register, to_follower_only, works
from tests.adapters.fleet.fleet_room import House, joined, run, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_work_is_taken_once(house: House) -> None:
    """By a follower, whether its leader passes it on or it comes directly; and the receipt is the same."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            path = follower_path(house.directory, "default", "101:1")
            for number, request in enumerate(works(str(hand.follower.generation)), 1):
                named = attrs.evolve(request, auth=chief.secret)
                first = await house.raw(named, path)
                assert first.ok
                assert await house.raw(named, path) == first
                assert await chief.send(named) == first
                assert len(hand.taken) == number

    run(story())


def test_a_thread_is_moved_once(house: House) -> None:
    """Who repeats an old move does not move it back."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            path = follower_path(house.directory, "default", "101:1")
            move = attrs.evolve(to_follower_only(str(hand.follower.generation))[0], auth=chief.secret)
            assert isinstance(move, ReplaceFollowerTarget)
            assert (await house.raw(move, path)).ok
            again = attrs.evolve(move, request_id="w:back", target=attrs.evolve(move.target, thread_id=5))
            assert (await house.raw(again, path)).ok
            assert (await house.raw(move, path)).ok
            assert hand.follower.binding.target == "0/5"

    run(story())


@pytest.mark.parametrize("deposed", [False, True])
def test_what_may_have_been_done_is_not_done_again(house: House, deposed: bool) -> None:
    """An API whose answer was lost, or a leader that does not lead any more when it comes: nobody knows, and the same
    request is told so again (law Unknown)."""

    async def story() -> None:
        done: list[Asked] = []

        async def serve(request: Asked, route: Route) -> Ack:
            done.append(request)
            if deposed:
                chief.own.unaware = 0
            error = AckError(code="commit-unknown", method="sendMessage")
            return acks.done(request) if deposed else Ack(request_id=request.request_id, ok=False, error=error)

        async with house:
            chief = await house.led(serve=serve)
            hand = await joined(house, chief)
            call = asks(str(hand.follower.generation))[2]
            assert isinstance(call, CallApi)
            for _ in range(2):
                ack = await chief.send(call)
                assert (ack.ok, ack.error and ack.error.code) == (False, "commit-unknown")
                chief.own.unaware = None
                await asyncio.sleep(0)
            assert len(done) == 1

    run(story())


def test_a_registration_that_is_over_is_not_acknowledged_again(house: House) -> None:
    """Whether another one has taken its place or none; the one that stands is, under its own request (L14)."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            first, second = register("101:1:1"), register("101:1:2")
            assert (await chief.send(first)).ok
            assert (await chief.send(second)).ok
            assert not (await chief.send(first)).ok
            assert (await chief.send(second)).ok
            assert chief.routes() == {"101:1": "101:1:2"}
            house.clock.advance(house.times.prune_ms + 1)
            await until(lambda: not chief.routes())
            assert not (await chief.send(second)).ok

    run(story())


REPEATED = {"heartbeat": 0, "goodbye": 1, "ask": 2}


@pytest.mark.parametrize("which", ["register", *REPEATED])
def test_who_leads_no_more_repeats_no_answer(house: House, which: str) -> None:
    """A leader that was deposed answers nobody as one, not even what it has answered before; what it has done is not
    called undone."""

    async def serve(request: Asked, route: Route) -> Ack:
        return acks.done(request)

    async def story() -> None:
        async with house:
            chief = await house.led(serve=serve)
            registered = register("101:1:1")
            assert (await chief.send(registered)).ok
            request = registered if which == "register" else asks("101:1:1")[REPEATED[which]]
            assert (await chief.send(request)).ok
            chief.own.epoch = None
            again = await chief.send(request)
            assert not again.ok
            once = which in ("ask", "goodbye")
            assert ("commit-unknown" if once else None) == (again.error and again.error.code)

    run(story())


@pytest.mark.parametrize("which", list(REPEATED))
def test_what_was_answered_under_an_old_generation_is_refused_now(house: House, which: str) -> None:
    """A request of an old generation is refused, whatever its kind, also where it was answered while that was the
    live one; and it is not executed again."""
    served: list[str] = []

    async def serve(request: Asked, route: Route) -> Ack:
        served.append(request.request_id)
        return acks.done(request)

    async def story() -> None:
        async with house:
            chief = await house.led(serve=serve)
            assert (await chief.send(register("101:1:1"))).ok
            request = asks("101:1:1")[REPEATED[which]]
            assert (await chief.send(request)).ok
            assert (await chief.send(request)).ok
            assert (await chief.send(register("101:1:2"))).ok
            assert not (await chief.send(request)).ok
            assert served == ([request.request_id] if which == "ask" else [])

    run(story())


def test_work_of_an_old_generation_is_not_receipted_again(house: House) -> None:
    """Nor taken again: the follower is another registration now."""

    async def story() -> None:
        async with house:
            chief = await house.led()
            hand = await joined(house, chief)
            path = follower_path(house.directory, "default", "101:1")
            named = attrs.evolve(works(str(hand.follower.generation))[0], auth=chief.secret)
            assert (await house.raw(named, path)).ok
            hand.follower.leave()
            assert isinstance(await hand.follower.register(chief.entry(), None), Accepted)
            again = await house.raw(named, path)
            assert not again.ok
            assert again.error is not None
            assert again.error.code == "commit-unknown"
            assert len(hand.taken) == 1

    run(story())
