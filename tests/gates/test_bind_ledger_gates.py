"""A mutated request ledger turns the stage `bind` red, with a story that ends where its twin cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenure.adapters.bus.serving import ledger as driver
from tenure.adapters.bus.serving.ledger import Done, Entries, Ledger
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.ledger import BOUND
from tenure.adapters.verify.bind.situations import Limits
from tenure.machines.request_ledger import REQUEST_LEDGER, Evict, MakeRoom, Output

Patch = pytest.MonkeyPatch
Server = Ledger[str, str]
LIMITS = Limits(20_000, 60)


def _without(name: str) -> Callable[[Patch], None]:
    """The driver's machine has not this guard or permit; the twin's has."""
    return lambda patch: patch.setattr(driver, "REQUEST_LEDGER", REQUEST_LEDGER.without(name))


def _takes_the_execution_along(patch: Patch) -> None:
    """Whoever leaves ends what all wait for."""

    class Unshielded:
        def __getattr__(self, name: str) -> object:
            return (lambda future: future) if name == "shield" else getattr(asyncio, name)

    patch.setattr(driver, "asyncio", Unshielded())


def _begins_anew(patch: Patch) -> None:
    """Who asks while the request is executed has it executed once more."""
    original = Ledger.run

    async def run(self: Server, key: str, body: str, kind: str, execute: Callable[[], Awaitable[Done[str]]]) -> str:
        if key in self._waiting:
            return (await execute()).ack
        return await original(self, key, body, kind, execute)  # type: ignore[arg-type]

    patch.setattr(Ledger, "run", run)


def _retries_what_broke(patch: Patch) -> None:
    """An error that nobody expected is taken for one without effect."""
    patch.setattr(Ledger, "_broken", lambda self, key: Done(self._refusal(key, "broken"), "failed"))


def _evicts_the_newest(patch: Patch) -> None:
    """What has just been settled gives way."""

    def ask(self: Entries[str, str], key: str, body: str, kind: str, *, stands: bool) -> tuple[Output, ...]:
        outputs = self._told(key, driver.Ask(body, kind, len(self.slots), len(self.settled), stands))  # type: ignore[arg-type]
        if MakeRoom() in outputs:
            self._told(list(self.settled)[-1], Evict())
        return outputs

    patch.setattr(Entries, "ask", ask)


def _does_not_ask_whether_it_stands(patch: Patch) -> None:
    """Every registration is taken for current."""
    original = Ledger.__init__

    def init(self: Server, refusal: object, stands: object, **rest: object) -> None:
        original(self, refusal, lambda key: True, **rest)  # type: ignore[arg-type]

    patch.setattr(Ledger, "__init__", init)


def _does_not_tell_at_the_end(patch: Patch) -> None:
    """A server that stops leaves alone those who wait."""
    patch.setattr(Ledger, "stop", lambda self: self._entries.stop())


def _remembers_after_the_end(patch: Patch) -> None:
    """A server that has stopped executes what comes."""

    def stop(self: Entries[str, str]) -> dict[str, tuple[Output, ...]]:
        return {key: self._told(key, driver.Stop()) for key in list(self.slots)}

    patch.setattr(Entries, "stop", stop)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "grows without bound": (_without("has_room"), "full"),
    "executes anything unrecorded": (_without("is_heartbeat"), "full"),
    "refuses heartbeats": (_without("heartbeats_pass"), "full"),
    "does not compare bodies": (_without("same_body"), "register"),
    "remembers failures": (_without("failure_is_forgotten"), "register"),
    "forgets everything": (_without("without_effect"), "register"),
    "acknowledges what is over": (_without("still_stands"), "register"),
    "does not ask whether it stands": (_does_not_ask_whether_it_stands, "register"),
    "takes the execution along": (_takes_the_execution_along, "register"),
    "begins anew": (_begins_anew, "register"),
    "retries what broke": (_retries_what_broke, "register"),
    "evicts the newest": (_evicts_the_newest, "order"),
    "does not tell at the end": (_does_not_tell_at_the_end, "register"),
    "remembers after the end": (_remembers_after_the_end, "register"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_ledger_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `RequestLedger` does not have, or breaks the ledger."""
    mutate, config = MUTATIONS[name]
    mutate(monkeypatch)

    found = explore(BOUND[config].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


@pytest.mark.parametrize("config", ["register", "full", "order"])
def test_the_ledger_as_it_is_is_green(config: str) -> None:
    """The same without a mutation, with as many situations as the stage asks for."""
    found = explore(BOUND[config].binding(), LIMITS)

    assert ((), "") == (found.story, found.limit)
    assert BOUND[config].least <= found.situations
