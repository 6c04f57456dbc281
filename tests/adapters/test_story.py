"""Stories: numbered, and in each step only what changed, down to the field."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.story import Step, Story, changes, lines, of_label
from tenure.adapters.tlavalue import canonical
from tenure.models.world import FrozenMap


@attrs.frozen
class Node:
    phase: str
    n: int


def state(**variables: object) -> dict[str, object]:
    return {name: canonical(value) for name, value in variables.items()}


def test_only_what_changed() -> None:
    before = state(node=FrozenMap({"a": Node("idle", 0), "b": Node("idle", 0)}), log=(1, 2), held=frozenset({1}))
    after = state(node=FrozenMap({"a": Node("busy", 0), "b": Node("idle", 0)}), log=(1, 3), held=frozenset({1, 2}))
    assert ['node.a.phase: "idle" -> "busy"', "log[2]: 2 -> 3", "held: {1} -> {1, 2}"] == changes(before, after)


def test_a_sequence_that_grows_is_shown_whole() -> None:
    assert ["log: <<1>> -> <<1, 2>>"] == changes(state(log=(1,)), state(log=(1, 2)))


def test_a_story_is_numbered() -> None:
    story = Story((Step("", state(x=0)), Step('Inc("a")', state(x=1)), Step("Stay", state(x=1))))
    assert [
        "  1. initially",
        "       x = 0",
        '  2. Inc("a")',
        "       x: 0 -> 1",
        "  3. Stay",
        "       (nothing changes)",
    ] == lines(story)
    assert 3 == len(story)


@pytest.mark.parametrize(
    ("values", "loop", "end"),
    [
        ((0, 1), 1, "nothing more need ever happen"),
        ((0, 1, 2), 1, "back to step 2"),
        ((0, 1, 2, 1), 1, "which is step 2 again"),
    ],
)
def test_how_a_liveness_story_ends(values: tuple[int, ...], loop: int, end: str) -> None:
    story = Story(tuple(Step("Go" if i else "", state(x=x)) for i, x in enumerate(values)), loop)
    assert end in lines(story)[-1]


def test_an_action_as_the_module_writes_it() -> None:
    assert "" == of_label(None)
    assert "Free" == of_label(("Free", ()))
    assert 'Die({"a", "b"}, 1)' == of_label(("Die", (frozenset({"b", "a"}), 1)))
    assert "Odd(None)" == of_label(("Odd", (None,))), "a parameter need not be a value"
