"""The parts of a leader by themselves: whose word counts, whose turn it is, and who shares a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import attrs
import pytest

from tenure.adapters.bus.peer import Peer
from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.identities import linux_birth_id
from tenure.adapters.fleet.leader.book import Book, Deposed
from tenure.adapters.fleet.leader.turns import BUSY, LINE, LineFull, Turns
from tenure.adapters.fleet.leader.witness import Claim, Witness
from tenure.adapters.testing.memory import FakeProcesses, memory_ports
from tenure.machines.chart import Refused, Step
from tenure.machines.routes_messages import Output, Routes
from tests.adapters.fleet.envelopes_of import registration
from tests.adapters.fleet.fleet_room import Ownership, run, until

T = TypeVar("T")

DONE: Step[Routes, Output] = Step("serving", Routes(), ())
ITSELF, RELAY, OTHER = Peer(101, 0), Peer(900, 0), Peer(901, 0)


def witness() -> tuple[Witness, FakeProcesses]:
    processes = FakeProcesses(50)
    processes.start(101, 1010)
    return Witness(memory_ports(processes=processes)), processes


# -- whose word counts ------------------------------------------------------------------------------------------------


def test_a_process_that_connects_itself_is_who_it_says() -> None:
    """Its birth is its word; a relay's claim of the same birth is another word, and each relay's is its own."""

    async def story() -> None:
        seen, _ = witness()
        asked = registration(101, "g")
        words = {seen.word(await seen.claim(asked, peer)) for peer in (ITSELF, RELAY, OTHER)}
        assert linux_birth_id(101, 1010) in words
        assert len(words) == 3

    run(story())


def test_the_relay_that_spoke_last_speaks_for_the_registration() -> None:
    """A proxy that came between them later: once it has brought a heartbeat, it may bring a registration; another one
    may not."""

    async def story() -> None:
        seen, _ = witness()
        asked = registration(101, "g")
        claim = await seen.claim(asked, ITSELF)
        seen.wrote("101:1", "g", claim, seen.word(claim), ITSELF)
        assert seen.word(await seen.claim(asked, RELAY)) != claim.word
        seen.heard("101:1", "old", RELAY)
        assert seen.word(await seen.claim(asked, RELAY)) != claim.word
        seen.heard("101:1", "g", RELAY)
        assert seen.word(await seen.claim(asked, RELAY)) == claim.word
        assert seen.word(await seen.claim(asked, OTHER)) != claim.word
        seen.forget("101:1", "g")
        assert seen.word(await seen.claim(asked, RELAY)) != claim.word

    run(story())


@pytest.mark.parametrize(
    "fields",
    [
        {"process_birth_id": None},
        {"process_birth_id": "nonsense"},
        {"process_birth_id": linux_birth_id(102, 1010)},
        {"pid": 102},
    ],
)
def test_who_names_no_birth_of_its_own_is_nobodys_process(fields: dict[str, object]) -> None:
    """No word, and no death to be proven."""

    async def story() -> None:
        seen, processes = witness()
        claim = await seen.claim(attrs.evolve(registration(101, "g"), **fields), ITSELF)  # type: ignore[arg-type]
        assert (seen.word(claim), claim.process) == ("", None)
        seen.wrote("101:1", "g", claim, "", ITSELF)
        processes.kill(101)
        assert await seen.dead([("101:1", "g")]) == frozenset()

    run(story())


def test_death_is_proven_only_for_who_was_seen_alive() -> None:
    """With that very birth: not for a pid that was somebody else's when it registered, nor for one that is alive."""

    async def story() -> None:
        seen, processes = witness()
        for pid, ticks in ((101, 1010), (101, 7), (102, 1020)):
            asked = attrs.evolve(registration(pid, f"{ticks}"), process_birth_id=linux_birth_id(pid, ticks))
            claim = await seen.claim(asked, Peer(pid, 0))
            seen.wrote(f"{pid}:{ticks}", str(ticks), claim, claim.word, Peer(pid, 0))
        routes = [("101:1010", "1010"), ("101:7", "7"), ("102:1020", "1020")]
        assert await seen.dead(routes) == frozenset()
        processes.kill(101)
        assert await seen.dead(routes) == {"101:1010"}

    run(story())


def test_one_is_never_dead_to_oneself() -> None:
    """A leader that was a follower a moment ago has a route of its own process, whatever a probe of it says."""

    async def story() -> None:
        seen, processes = witness()
        seen.wrote("50:1", "g", Claim("50:start:1", None, processes.me()), "50:start:1", Peer(50, 0))
        processes.kill(50)
        assert await seen.dead([("50:1", "g")]) == frozenset()

    run(story())


# -- whose turn it is -------------------------------------------------------------------------------------------------


def test_first_come_first_served() -> None:
    """Who waits is offered again when a change has ended, in the order of its coming; other profiles do not wait."""

    async def story() -> None:
        turns, busy, done = Turns(), True, []

        def offer(name: str) -> Callable[[], object]:
            async def offered() -> Step[Routes, Output] | Refused:
                if busy and name != "other":
                    return Refused("register", "serving", (BUSY,))
                done.append(name)
                return DONE

            return offered

        waiting = [asyncio.ensure_future(turns.take("k", offer(name))) for name in "abc"]  # type: ignore[arg-type]
        assert await turns.take("l", offer("other")) == DONE  # type: ignore[arg-type]
        for _ in range(3):
            turns.ended()
            await asyncio.sleep(0)
        assert done == ["other"]
        busy = False
        turns.ended()
        await asyncio.wait(waiting)
        assert done == ["other", "a", "b", "c"]
        assert turns._lines == {}

    run(story())


def test_other_refusals_do_not_wait_and_lines_are_bounded() -> None:
    """A refusal for good is an answer; who finds the line full is told so; who gives up leaves it."""

    async def story() -> None:
        turns = Turns()

        async def no() -> Step[Routes, Output] | Refused:
            return Refused("register", "serving", ("leads_here",))

        async def busy() -> Step[Routes, Output] | Refused:
            return Refused("register", "serving", (BUSY,))

        assert isinstance(await turns.take("k", no), Refused)
        waiting = [asyncio.ensure_future(turns.take("k", busy)) for _ in range(LINE)]
        await asyncio.sleep(0)
        with pytest.raises(LineFull):
            await turns.take("k", no)
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)
        assert isinstance(await turns.take("k", no), Refused)
        assert turns._lines == {}

    run(story())


# -- who shares a transaction -----------------------------------------------------------------------------------------


def book(own: Ownership, pages: list[int], epoch: int = 1) -> Book:
    return Book(memory_ports(), own.commit, epoch, lambda: pages.append)


def test_one_transaction_is_enough_for_all_who_wait() -> None:
    """It begins after they asked; what is published is what stands then."""

    async def story() -> None:
        own, pages = Ownership(), list[int]()
        kept = book(own, pages)
        asked = [asyncio.ensure_future(kept.owned()) for _ in range(20)]
        told = [asyncio.ensure_future(kept.published()) for _ in range(20)]
        assert await asyncio.gather(*asked) == [1] * 20
        await asyncio.gather(*told)
        assert (own.transactions, pages) == (1, [1])
        assert await kept.owned() == 1
        assert (own.transactions, pages) == (2, [1])
        await kept.close()
        assert await kept.owned() is None

    run(story())


def test_who_does_not_own_publishes_nothing() -> None:
    """Nobody's epoch, or another one than that of this leading."""

    async def story() -> None:
        for epoch in (None, 2):
            own, pages = Ownership(epoch), list[int]()
            kept = book(own, pages)
            assert await kept.owned() == epoch
            with pytest.raises(Deposed):
                await kept.published()
            assert pages == []
            await kept.close()

    run(story())


def test_what_could_not_be_published_is_published_later() -> None:
    """Whoever waited is told the error; the next one may be luckier; nothing is forgotten."""

    async def story() -> None:
        own, pages = Ownership(), list[int]()
        kept = book(own, pages)
        own.refuse = TenureError("busy")
        with pytest.raises(TenureError, match="busy"):
            await kept.published()
        with pytest.raises(TenureError, match="busy"):
            await kept.owned()
        own.refuse = None
        assert await kept.owned() == 1
        await until(lambda: pages == [1])
        await kept.close()

    run(story())


def test_what_is_to_be_published_as_a_transaction_ends_is_published() -> None:
    """Whoever waited for one has its next turn before the book has closed it."""

    async def story() -> None:
        own, pages = Ownership(), list[int]()
        kept = book(own, pages)
        assert await kept.owned() == 1
        kept.publish_soon()
        await until(lambda: pages == [1])
        await kept.close()

    run(story())


def test_a_book_that_is_closed_publishes_nothing_later() -> None:
    """Also where it was about to try again."""

    async def story() -> None:
        own, pages = Ownership(), list[int]()
        kept = book(own, pages)
        own.refuse = TenureError("busy")
        with pytest.raises(TenureError, match="busy"):
            await kept.published()
        later = kept._later
        assert later is not None
        await kept.close()
        assert later.cancelled()
        assert own.transactions == 1

    run(story())
