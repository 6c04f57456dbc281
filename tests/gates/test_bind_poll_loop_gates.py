"""A mutated poll loop turns the stage `bind` red, with a story that ends where its twin cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.poll_loop import BOUND
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.work import polling as driver
from tenure.adapters.work.polling import Poller
from tenure.machines import poll_loop as own
from tenure.machines.poll_loop import POLL_LOOP

Patch = pytest.MonkeyPatch
LIMITS = Limits(20_000, 60)


def _without(name: str) -> Callable[[Patch], None]:
    """The driver's machine has not this guard or permit; the twin's has."""
    return lambda patch: patch.setattr(driver, "POLL_LOOP", POLL_LOOP.without(name))


def _breaks_off_what_is_written(patch: Patch) -> None:
    """Who is told to stop waits for nothing."""
    patch.setattr(driver, "_WRITES", ())


def _believes_that_it_is_journaled(patch: Patch) -> None:
    """An append that failed is taken for one that was done."""
    original = Poller._record

    async def record(self: Poller, order: own.Record) -> own.Happening:
        answer = await original(self, order)
        assert isinstance(answer, own.RecordEnded)
        return own.RecordEnded(True, answer.opened)

    patch.setattr(Poller, "_record", record)


def _believes_that_it_is_persisted(patch: Patch) -> None:
    """A write of the offset that failed is taken for one that was done."""

    async def persist(self: Poller, order: own.Persist) -> own.Happening:
        with suppress(driver.TenureError):
            await self._inbox.persist(order.offset)
        return own.PersistEnded(True)

    patch.setattr(Poller, "_persist", persist)


def _takes_no_answer_for_no_updates(patch: Patch) -> None:
    """A request that failed is taken for one that found nothing."""
    patch.setattr(own, "TimedOut", own.AnsweredEmpty)


def _journals_history_as_work(patch: Patch) -> None:
    """What was there before the first start is executed."""
    original = Poller._record

    async def record(self: Poller, order: own.Record) -> own.Happening:
        return await original(self, own.Record(order.ids, skipped=order.skipped and not order.ids))

    patch.setattr(Poller, "_record", record)


def _journals_half_of_it(patch: Patch) -> None:
    """Of an answer nothing is journaled, and all is confirmed."""
    original = Poller._record

    async def record(self: Poller, order: own.Record) -> own.Happening:
        self._updates: tuple[Json, ...] = ()
        return await original(self, order)

    patch.setattr(Poller, "_record", record)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "takes old answers": (_without("in_order"), "work"),
    "moves past what failed": (_without("appended"), "work"),
    "moves before the disk": (_without("persisted"), "work"),
    "skips work": (_without("first_start"), "history"),
    "never opens": (_without("empty_ends_history"), "history"),
    "opens early": (_without("history_is_drained"), "history"),
    "never gives up": (_without("deaf_poll_ends"), "work"),
    "breaks off what is written": (_breaks_off_what_is_written, "work"),
    "believes that it is journaled": (_believes_that_it_is_journaled, "work"),
    "believes that it is persisted": (_believes_that_it_is_persisted, "work"),
    "takes a failure for an end": (_takes_no_answer_for_no_updates, "history"),
    "journals history as work": (_journals_history_as_work, "history"),
    "journals half of it": (_journals_half_of_it, "work"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_loop_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `PollLoop` does not have, or breaks the loop."""
    mutate, config = MUTATIONS[name]
    mutate(monkeypatch)

    found = explore(BOUND[config].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


@pytest.mark.parametrize("config", ["history", "work"])
def test_the_loop_as_it_is_is_green(config: str) -> None:
    """The same without a mutation, with as many situations as the stage asks for."""
    found = explore(BOUND[config].binding(), LIMITS)

    assert ((), "") == (found.story, found.limit)
    assert BOUND[config].least <= found.situations
