"""Counterexamples for people: numbered steps, and in each only what changed (DESIGN 7).

TLC's stories and the explorer's come as the same `Story`, so that `tenure verify` and `tenure explain` print alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import attrs

from tenure.adapters.tlavalue import Value, canonical, fields, order, text
from tenure.adapters.tlc import Run
from tenure.models.explore import Violation


@attrs.frozen
class Step:
    """One state of a story and the action that led to it (empty for an initial state)."""

    action: str
    state: Mapping[str, Value]


@attrs.frozen
class Story:
    """A behaviour. `loop` is the index of the step to which it returns for ever; the last one's means that it stays."""

    steps: tuple[Step, ...]
    loop: int | None = None

    def __len__(self) -> int:
        return len(self.steps)


def of_state(state: object) -> dict[str, Value]:
    """The variables of a twin's state, as TLA+ values."""
    return {name: canonical(getattr(state, name)) for name in fields(type(state))}


def of_label(label: tuple[str, tuple[Hashable, ...]] | None) -> str:
    """An action with its parameters, as the module would write it."""
    if label is None:
        return ""
    name, args = label
    return f"{name}({', '.join(map(_argument, args))})" if args else name


def _argument(value: object) -> str:
    try:
        return text(canonical(value))
    except Exception:  # a parameter need not be a TLA+ value
        return str(value)


def of_run(run: Run) -> Story:
    """TLC's story."""
    return Story(tuple(Step(frame.action, frame.state) for frame in run.story), run.loop)


def of_violation(violation: Violation[Any]) -> Story:
    """The explorer's story."""
    return Story(tuple(Step(of_label(label), of_state(state)) for label, state in violation.story), violation.loop)


def lines(story: Story) -> list[str]:
    """The story as text: the first state whole, then every step with what it changed."""
    found: list[str] = []
    before: Mapping[str, Value] | None = None
    for number, step in enumerate(story.steps, start=1):
        if before is None:
            found.append(f"{number:>3}. initially")
            found += [f"       {name} = {text(value)}" for name, value in step.state.items()]
        else:
            found.append(f"{number:>3}. {step.action}")
            found += [f"       {line}" for line in changes(before, step.state)] or ["       (nothing changes)"]
        before = step.state
    if story.loop is not None:
        last = len(story.steps) - 1
        if story.loop == last:
            found.append("     and nothing more need ever happen")
        elif story.steps[last].state == story.steps[story.loop].state:
            found.append(f"     which is step {story.loop + 1} again, and so on for ever")
        else:
            found.append(f"     and back to step {story.loop + 1}, and so on for ever")
    return found


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """What differs between two states, down to the field, as ``node["a"].phase: "idle" -> "busy"``."""
    found: list[str] = []
    for name in after:
        if name not in before:
            found.append(f"{name}: {text(after[name])}")
        elif before[name] != after[name]:
            found += [f"{path}: {was} -> {now}" for path, was, now in _differences(name, before[name], after[name])]
    found += [f"{name}: gone" for name in before if name not in after]
    return found


def _differences(path: str, before: Value, after: Value) -> Iterator[tuple[str, str, str]]:
    old, new = _entries(before), _entries(after)
    if old is None or new is None or old.keys() != new.keys():
        yield path, text(before), text(after)
        return
    for key in sorted(old, key=order):
        if old[key] != new[key]:
            yield from _differences(path + _place(key), old[key], new[key])


def _place(key: Value) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{text(key)}]"


def _entries(value: Value) -> dict[Value, Value] | None:
    """The arguments and results of a function of any shape, or None."""
    if not isinstance(value, tuple):
        return None
    tag, body = value
    if tag == "seq":
        return {i: item for i, item in enumerate(body, start=1)} if body else None
    return dict(body) if tag == "fun" else None
