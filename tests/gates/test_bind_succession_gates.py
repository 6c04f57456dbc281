"""A mutated course turns the stage `bind` red, with a story that ends where its twin cannot go on."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.fleet.succession import course as driver
from tenure.adapters.fleet.succession.course import Course
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.verify.bind.succession import BOUND
from tenure.machines import succession_messages as own
from tenure.machines.succession import SUCCESSION

Patch = pytest.MonkeyPatch
LIMITS = Limits(20_000, 60)


def _without(name: str) -> Callable[[Patch], None]:
    """The driver's machine has not this guard or permit; the twin's has."""
    return lambda patch: patch.setattr(driver, "SUCCESSION", SUCCESSION.without(name))


def _remembers_a_loss(patch: Patch) -> None:
    """A loss is told, whatever has become of the registration meanwhile."""
    patch.setattr(Course, "_forget_loss", lambda self: None)


def _keeps_the_timer(patch: Patch) -> None:
    """A grace goes on when the phase that asked for it is left."""
    original = Course._perform

    def perform(self: Course, output: own.Output) -> None:
        timer, self._timer = self._timer, None
        original(self, output)
        self._timer = self._timer or timer

    patch.setattr(Course, "_perform", perform)
    patch.setattr(Course, "_disarm", lambda self: None)


def _skips(output: object) -> Callable[[Patch], None]:
    """What the machine asks for is not done."""

    def mutate(patch: Patch) -> None:
        original = Course._perform
        wanted = output if isinstance(output, type) else type(output)

        def perform(self: Course, asked: own.Output) -> None:
            if not (asked == output or (isinstance(output, type) and isinstance(asked, wanted))):
                original(self, asked)

        patch.setattr(Course, "_perform", perform)

    return mutate


def _stands_against_nobody(patch: Patch) -> None:
    """The election forgets whom the look has shown."""
    original = Course._elect
    patch.setattr(Course, "_elect", lambda self, observed: original(self, 0))


def _tells_success(patch: Patch) -> None:
    """A registration that failed counts as held."""
    original = Course.tell

    def tell(self: Course, message: own.Happening) -> bool:
        if isinstance(message, own.RegisterFailed):
            return original(self, own.Registered(message.leader, self.data.binding))
        return original(self, message)

    patch.setattr(Course, "tell", tell)


def _forgets_the_binding(patch: Patch) -> None:
    """A loss clears what the member was before it is carried on (A55)."""
    original = Course.lost

    def lost(self: Course, why: str) -> None:
        original(self, why)
        self.data = attrs.evolve(self.data, binding=own.NOTHING_BOUND)

    patch.setattr(Course, "lost", lost)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "elects over a living leader": (_without("leader_is_gone"), "alone"),
    "asks a dead leader": (_without("leader_lives"), "alone"),
    "does not defer": (_without("nobody_before_me"), "pair"),
    "defers for ever": (_without("one_grace_is_enough"), "pair"),
    "registers at every look": (_without("another_leader"), "alone"),
    "is stranded when it loses": (_without("loser_comes_back"), "pair"),
    "is stranded when a promotion fails": (_without("failure_is_retried"), "alone"),
    "is stranded when a leader reloads": (_without("failure_is_no_end"), "reload"),
    "is stranded when a look fails": (_without("tries_again"), "reload"),
    "acts for a session that is over": (_without("session_is_live"), "session"),
    "remembers a loss": (_remembers_a_loss, "alone"),
    "keeps the timer": (_keeps_the_timer, "reload"),
    "gives up nothing": (_skips("leave"), "alone"),
    "does not wait": (_skips("wait"), "alone"),
    "does not stand": (_skips(own.Elect), "alone"),
    "moves nothing": (_skips(own.MoveBinding), "alone"),
    "restores nothing": (_skips(own.RestoreBinding), "alone"),
    "stands against nobody": (_stands_against_nobody, "alone"),
    "takes a failure for a success": (_tells_success, "alone"),
    "forgets the binding": (_forgets_the_binding, "alone"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_course_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `Succession` does not have, or breaks the course."""
    mutate, config = MUTATIONS[name]
    mutate(monkeypatch)

    found = explore(BOUND[config].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


@pytest.mark.parametrize("config", ["alone", "reload", "session", "joining"])
def test_the_course_as_it_is_is_green(config: str) -> None:
    """The same without a mutation, with as many situations as the stage asks for."""
    found = explore(BOUND[config].binding(), LIMITS)

    assert ((), "") == (found.story, found.limit)
    assert BOUND[config].least <= found.situations
