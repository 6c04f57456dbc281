"""How a role reads: what failed last is a reason only for what follows from it."""

from __future__ import annotations

import pytest

from tenure.adapters.fleet.roles import Following, Leading, Left, Role, Seeking


@pytest.mark.parametrize(
    ("role", "text"),
    [
        (Leading(7), "leading with epoch 7"),
        (Leading(7, "B", "Beech"), "leading with epoch 7, slot B (Beech)"),
        (Following(4711, None, "g"), "following pid 4711, generation g"),
        (Seeking("idle"), "not joined"),
        (Seeking("waiting", "a full disk"), "waiting to try again: a full disk"),
        (Seeking("grace", "no answer"), "waiting for the leader to answer: no answer"),
        (Seeking("leading", "lost epoch 1"), "leads no more: lost epoch 1"),
        (Seeking("registering"), "registering"),
        (Seeking("registering", "lost epoch 1"), "registering (last: lost epoch 1)"),
        (Left(), "left"),
    ],
)
def test_in_words(role: Role, text: str) -> None:
    assert text == str(role)
