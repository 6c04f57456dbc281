"""A mutated doctor turns the stage `bind` red."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.files.guard import Guarded
from tenure.adapters.looking import doctor
from tenure.adapters.looking.doctor import Doctor
from tenure.adapters.looking.examine import Findings
from tenure.adapters.verify.bind.doctor import BOUND
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Limits
from tenure.machines.runtime_recovery import GUARD, Inspect

Patch = pytest.MonkeyPatch
LIMITS = Limits(situations=60_000, seconds=40)


def _no_second_look(patch: Patch) -> None:
    """Under both guards it goes by what it saw before it had them."""
    look = Doctor._examine
    seen: dict[int, Findings] = {}

    def examine(self: Doctor, own: str | None = None) -> Findings:
        if own is None:
            seen[id(self)] = look(self)
            return seen[id(self)]
        return attrs.evolve(seen[id(self)], own_guard=True)

    patch.setattr(Doctor, "_examine", examine)


def _ignores_a_live_owner(patch: Patch) -> None:
    look = doctor.examine
    patch.setattr(doctor, "examine", lambda *given: attrs.evolve(look(*given), blockers=(), alive=False, mine=False))


def _moves_any_guard(patch: Patch) -> None:
    """It moves what stands at the guard's path, whatever it is."""
    patch.setattr(doctor, "Inspect", lambda alive, expired, damage: Inspect(alive, expired, damage | {GUARD}))
    patch.setattr(Doctor, "_quarantine_guard", lambda self: self._quarantine.move(self._directory.guard))


def _no_guard(patch: Patch) -> None:
    """It moves the files without having the ownership guard."""
    run = doctor.Doctor._under_recovery_guard

    def without(self: Doctor, guarded: Guarded) -> None:
        class Open:
            def run(self, operation: Callable[[Guarded], None]) -> None:
                operation(Guarded("nobody's", 0))

        self._guards = attrs.evolve(self._guards, ownership=Open())
        run(self, guarded)

    patch.setattr(Doctor, "_under_recovery_guard", without)


MUTATIONS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "no second look, another doctor": (_no_second_look, "two"),
    "no second look, an owner": (_no_second_look, "owner of a good registry"),
    "a live owner is ignored": (_ignores_a_live_owner, "owner of a good registry"),
    "any guard is moved": (_moves_any_guard, "owner"),
    "no ownership guard": (_no_guard, "owner"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutated_doctor_is_found_out(name: str, monkeypatch: Patch) -> None:
    mutate, config = MUTATIONS[name]
    mutate(monkeypatch)
    found = explore(BOUND[config].binding(), LIMITS)
    assert found.story, found
    assert "NotDeterministic" not in "\n".join(found.story)


def test_the_doctor_as_it_is_is_not(monkeypatch: Patch) -> None:
    found = explore(BOUND["owner of a good registry"].binding(), LIMITS)
    assert (found.story, found.limit) == ((), "")
