"""``tenure explain``: what a module asks, and the shortest story of what happens without a guard of it (DESIGN 7)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tenure.adapters import guards_md, story
from tenure.adapters.errors import TenureError
from tenure.adapters.red import Red, meaning, red
from tenure.adapters.spec_text import Texts
from tenure.adapters.tlavalue import fields
from tenure.adapters.verify.manifest import TYPE_OK, ModuleEntry, load, spec_directory
from tenure.models.explore import Label

ENVIRONMENT: Final = "environment"
"""The lifeline of what no participant does."""


def module(spec: Path, name: str) -> ModuleEntry:
    """The manifest's entry. Raises `TenureError` with near names when there is none, or no twin to tell stories."""
    entries = load(spec)
    if name not in entries:
        raise TenureError(no_module(spec, name, entries))
    entry = entries[name]
    if entry.twin is None:
        raise TenureError(f"{name}: its twin {entry.twin_name} cannot be imported")
    return entry


def overview(entry: ModuleEntry) -> list[str]:
    """What the module asks, its properties, its guards and its configurations, as lines."""
    texts = Texts(entry.spec, entry.root)
    lines = [entry.name, f"  {texts.asks(entry.name)}", "", "properties"]
    names = dict.fromkeys(n for c in entry.configs.values() for n in c.cfg.names if n != TYPE_OK)
    for name in names:
        lines += [f"  {name}", *([f"      {said}"] if (said := texts.says(name)) else [])]
    lines += ["", "guards and permits (law; what breaks without it; states in the story)"]
    rows = guards_md.rows(entry, guards_md.known_lengths(entry.spec))
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        with_ = f" together with {', '.join(row.covered_by)}" if row.covered_by else ""
        lines.append(f"  {row.name:<{width}}  {row.law}; {row.property}{with_}; {row.length}")
        if row.meaning:
            lines.append(f"  {'':<{width}}  {row.meaning}")
    lines += ["", "configurations"]
    lines += [f"  {c.name}: {c.states:,} states, {c.transitions:,} transitions" for c in entry.configs.values()]
    lines += ["", f"tenure explain {entry.name} --without GUARD tells what happens without one of them."]
    return lines


def no_module(spec: Path, name: str, known: Collection[str]) -> str:
    """That the manifest of `spec` has no such module, and what may have been meant. The installed one goes unnamed."""
    where = "" if spec == spec_directory() else f" in {spec / 'manifest.toml'}"
    return f"no module {name}{where}{_near(name, known)}"


def without(entry: ModuleEntry, guard: str) -> tuple[Red, list[str]]:
    """The story of what happens without the guard, as lines. Raises `TenureError` for a guard that is not there."""
    if guard not in entry.guards:
        raise TenureError(f"{entry.name} has no guard or permit {guard}{_near(guard, entry.guards)}")
    found = red(entry, guard)
    given = found.guard
    texts = Texts(entry.spec, entry.root)
    covered = f" and {', '.join(given.covered_by)}, which cover{'s' if len(given.covered_by) == 1 else ''} it"
    lines = [f"{entry.name} without {given.kind.value} {guard}{covered if given.covered_by else ''}"]
    lines += [f"  law       {given.law.value}"]
    lines += [f"  meaning   {said}"] if (said := meaning(entry, guard)) else []
    if found.violation is None:
        lines += ["", f"{given.property} still holds in configuration {given.config}: the guard or property is idle"]
        return found, lines
    lines += [f"  breaks    {given.property}{f': {said}' if (said := texts.says(given.property)) else ''}"]
    lines += [f"  in        configuration {given.config}, after {found.length} states", ""]
    return found, lines + story.lines(story.of_violation(found.violation)) + _for_ever(found)


def _for_ever(found: Red) -> list[str]:
    """For a broken promise, why the story's end is a violation: what it repeats, or that it stops."""
    violation = found.violation
    if violation is None or violation.loop is None:
        return []
    last = len(violation.story)
    if violation.loop == last - 1:
        return [f"From here it stutters: every fair behaviour may stay in step {last} for ever."]
    return [f"From here it repeats steps {violation.loop + 2}-{last} for ever."]


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    # A part of a name is near as well: `fresh` is meant for `generation_is_fresh`.
    near += [k for k in known if name.lower() in k.lower() and k not in near][:3]
    return f"; near: {', '.join(near)}" if near else f"; there are: {', '.join(known) or 'none'}"


# -- the sequence diagram -----------------------------------------------------


def diagram(found: Red) -> str:
    """The story as a Mermaid sequence diagram: participants as lifelines, what no participant does as `environment`."""
    violation = found.violation
    if violation is None:
        raise TenureError(f"{found.guard.property} still holds without {found.guard.name}: there is no story to draw")
    told = story.of_violation(violation)
    labels = [label for label, _ in violation.story]
    participants = _participants(labels, [state for _, state in violation.story])
    ids = {p: f"p{i}" for i, p in enumerate(participants, start=1)} | {ENVIRONMENT: "env"}
    everybody = ",".join(dict.fromkeys([next(iter(ids.values())), "env"]))
    lines = ["sequenceDiagram", "    autonumber"]
    lines += [f"    participant {ids[p]} as {_text(str(p))}" for p in participants]
    lines += [f"    participant env as {ENVIRONMENT}"]
    if violation.loop is not None and violation.loop == 0 and len(labels) > 1:
        lines.append("    loop for ever")
    for number, label in enumerate(labels):
        if label is None:
            continue
        acting = [ids[p] for p in _acting(label, participants)] or ["env"]
        for source, target in [(acting[0], p) for p in acting[1:]] or [(acting[0], acting[0])]:
            lines.append(f"    {source}->>{target}: {_text(told.steps[number].action)}")
        own: dict[str, list[str]] = {}
        for change in story.changes(told.steps[number - 1].state, told.steps[number].state):
            owner = next((ids[p] for p in participants if _belongs(change, str(p))), "env")
            own.setdefault(owner, []).append(_text(change))
        lines += [f"    Note over {owner}: {'<br/>'.join(changes)}" for owner, changes in own.items()]
        if number == violation.loop and number < len(labels) - 1:
            lines.append("    loop for ever")
    if violation.loop is not None and violation.loop < len(labels) - 1:
        lines.append("    end")
    ending = "is broken" if violation.loop is None else "is never kept"
    lines.append(f"    Note over {everybody}: {_text(f'{found.guard.property} {ending}')}")
    return "\n".join(lines) + "\n"


def _participants(labels: Collection[Label | None], states: Collection[Any]) -> list[Any]:
    """The parameters of the story's actions that index a variable: those are somebody, the others are something."""
    indexes = {
        key
        for state in states
        for name in fields(type(state))
        if isinstance(value := getattr(state, name), Mapping)
        for key in value
    }
    found: dict[Any, None] = {}
    for label in labels:
        for _, argument in _arguments(label):
            if argument in indexes:
                found[argument] = None
    return list(found)


def _acting(label: Label, participants: Collection[Any]) -> list[Any]:
    return list(dict.fromkeys(argument for _, argument in _arguments(label) if argument in participants))


def _arguments(label: Label | None) -> Iterator[tuple[int, Any]]:
    for number, argument in enumerate(label[1] if label is not None else ()):
        members = sorted(argument, key=str) if isinstance(argument, frozenset) else [argument]
        yield from ((number, member) for member in members)


def _belongs(change: str, participant: str) -> bool:
    """Is this a change at the participant's place in a variable: ``node.a.phase: ...`` or ``node[1]: ...``?"""
    return re.match(rf'\w+(?:\.|\["?){re.escape(participant)}(?:"?\])?(?![\w])', change) is not None


def _text(text: str) -> str:
    """Text that Mermaid takes as text."""
    return text.replace("#", "#35;").replace(";", "#59;").replace("#35#59;", "#35;").replace(" -> ", " → ")
