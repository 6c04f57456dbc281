"""A mutated committer turns the stage `bind` red, with a story that ends where the twin cannot follow (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.files.guard import Guarded
from tenure.adapters.files.registry import Registry
from tenure.adapters.lead import commit as driver
from tenure.adapters.lead.commit import Committer, Verdict
from tenure.adapters.verify.bind.commit import CommitBinding, Setting
from tenure.adapters.verify.bind.commit_ports import Desk
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Found, Limits
from tenure.machines.fenced_commit import FENCED_COMMIT, Lock, Output, Swept
from tenure.machines.lease import Sight

Patch = pytest.MonkeyPatch
LIMITS = Limits(60_000, 60)
ALONE = Setting(1)
PAIR = Setting(1, (1, 1), owners=False)


def _without(guard: str) -> Callable[[Patch], None]:
    """The driver's machine has not this guard; the twin's has."""
    return lambda patch: patch.setattr(driver, "FENCED_COMMIT", FENCED_COMMIT.without(guard))


def _leaves_before_the_end(patch: Patch) -> None:
    """The guard is left while something of the command lives."""

    def sweep(self: Committer, output: Output) -> Output:
        self._errand.terminate()
        return self._told(Swept(True))

    patch.setattr(Committer, "_sweep", sweep)


def _ends_nothing(patch: Patch) -> None:
    """What a command leaves behind when it ends by itself is not ended."""
    patch.setattr(Committer, "_sweep", lambda self, output: self._told(Swept(True)))


def _ignores_the_lock(patch: Patch) -> None:
    """The command runs beside what an earlier one has left."""

    def try_lock(self: Committer) -> Output:
        self._lock = self._open_lock()
        return self._told(Lock(self._lock.take() or True))

    patch.setattr(Committer, "_try_lock", try_lock)


def _goes_by_the_first_look(patch: Patch) -> None:
    """What was read before the guard was entered decides."""
    original = Committer._read

    def read(self: Committer, *, inside: bool) -> tuple[Registry, Sight]:
        if not inside:
            self._first = original(self, inside=False)  # type: ignore[attr-defined]
        registry, sight = self._first  # type: ignore[attr-defined]
        return registry, attrs.evolve(sight, inside=inside)

    patch.setattr(Committer, "_read", read)


def _does_not_enter(patch: Patch) -> None:
    """The command runs outside of the guard."""

    def inside(self: Committer) -> Verdict:
        return self._look(Guarded("", 0))

    patch.setattr(Committer, "_inside", inside)


def _takes_unreadable_for_over(patch: Patch) -> None:
    """A read that failed counts as an empty registry: its caller is told that its tenure is over."""
    original = Committer._read

    def read(self: Committer, *, inside: bool) -> tuple[Registry, Sight]:
        registry, sight = original(self, inside=inside)
        return registry, attrs.evolve(sight, readable=True)

    patch.setattr(Committer, "_read", read)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], Setting]] = {
    "does not compare the epoch": (_without("epoch_is_current"), ALONE),
    "runs for a lease that is over": (_without("lease_is_live"), ALONE),
    "leaves before the end": (_leaves_before_the_end, ALONE),
    "ends nothing": (_ends_nothing, ALONE),
    "ignores the lock": (_ignores_the_lock, PAIR),
    "goes by the first look": (_goes_by_the_first_look, ALONE),
    "does not enter": (_does_not_enter, ALONE),
    "takes unreadable for over": (_takes_unreadable_for_over, ALONE),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_committer_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `FencedCommit` does not have."""
    mutate, setting = MUTATIONS[name]
    mutate(monkeypatch)

    found = explore(CommitBinding(setting), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"
    text = "\n".join(found.story)
    assert "no behaviour of the twin" in text or "the twin has no" in text, text


def test_a_committer_that_forgets_an_error_is_found(monkeypatch: Patch) -> None:
    """After an error it goes on as if its commit were open still: the next one finds no machine at rest."""
    monkeypatch.setattr(Committer, "_break_off", lambda self: None)
    with pytest.raises(AssertionError):
        _green(explore(CommitBinding(Setting(1, (2,), owners=False)), LIMITS))


def test_the_committer_as_it_is_is_green() -> None:
    """The same without a mutation."""
    for setting in {setting for _, setting in MUTATIONS.values()}:
        _green(explore(CommitBinding(setting), LIMITS))


def _green(found: Found) -> None:
    assert ((), "") == (found.story, found.limit)


def test_every_call_of_a_commit_is_met() -> None:
    """Nothing is skipped: guard, lock, command and the two looks are asked, and the clock."""
    asked: set[str] = set()
    original = Desk._do

    def noting(self: Desk, name: str, *args: int) -> object:
        asked.add(name)
        return original(self, name, *args)

    Desk._do = noting  # type: ignore[method-assign, assignment]
    try:
        explore(CommitBinding(ALONE), LIMITS)
    finally:
        Desk._do = original  # type: ignore[method-assign]
    calls = "begin leave lock.open take unlock start wait pause terminate destroy gone"
    assert set(calls.split()) == asked
