"""Guards asked about what no world happens to ask: each pinned by its answers to its neighbours' questions.

A graph shows only what the bounded worlds come to. A condition that all of them happen to meet (another boot, a batch
of two, a heartbeat exactly at the threshold) could be deleted from a guard unnoticed. So every guard is also asked
about the neighbourhood of what it was really asked: one field of the data or the message changed at a time, numbers to
the sums and differences of those around them and of the machines' constants. The answers are pinned as one digest a
guard in ``spec/answers.toml``; nothing is drawn at random, so they are the same everywhere.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from tenure.adapters.verify.spelling import spelled
from tenure.machines.chart import Table

BASES: Final = 8
"""Questions of the worlds that each guard is asked to vary, in each configuration."""
NUMBERS: Final = 24
"""Values at most that one number is changed to."""

Path = tuple[str, ...]


def probe(
    table: Table[Any, Any, Any], asked: Callable[[str], Iterable[tuple[Any, Any]]]
) -> Iterator[tuple[str, str, str]]:
    """For each guard of the table: its name, a digest of its answers, and how many of how many were true.

    `asked` answers the distinct (data, message) that worlds asked of an event.
    """
    events: dict[str, dict[str, None]] = {}
    holds: dict[str, Callable[[Any, Any], bool]] = {}
    for row in table:
        for guard in row.guards:
            events.setdefault(guard.name, {})[row.event] = None
            holds[guard.name] = guard.holds
    texts: dict[tuple[Any, Any], str] = {}
    for name, used in events.items():
        bases = _spread([pair for event in used for pair in asked(event)], texts)
        named = names_of(holds[name])
        answers = [_answer(holds[name], *pair) for base in bases for pair in (base, *neighbours(*base, named))]
        digest = hashlib.sha256("".join(answers).encode()).hexdigest()[:16]
        yield name, digest, f"{sum(a == 'T' for a in answers)} of {len(answers)}"


def _answer(holds: Callable[[Any, Any], bool], data: Any, message: Any) -> str:
    try:
        return "T" if holds(data, message) else "F"
    except Exception as error:  # a neighbour may make no sense; how it fails is an answer too
        return f"!{type(error).__name__}"


def _spread(pairs: list[tuple[Any, Any]], texts: dict[tuple[Any, Any], str]) -> list[tuple[Any, Any]]:
    """Some of the pairs, far from each other, and the same ones in every process."""
    for pair in pairs:
        if pair not in texts:
            texts[pair] = spelled(pair)
    known = sorted({texts[pair]: pair for pair in pairs}.items())
    step = max(1, len(known) // BASES)
    return [pair for _, pair in known[::step]][:BASES]


@attrs.frozen
class Named:
    """The numbers and words that a guard's module, and those it calls into, give names to."""

    numbers: tuple[int, ...]
    words: tuple[str, ...]


def names_of(function: Callable[..., object]) -> Named:
    """The constants in sight of the function: its module's, and those of the machines' modules that it imports from."""
    spaces: dict[int, dict[str, Any]] = {}
    queue = [function]
    for known in queue:
        space = getattr(known, "__globals__", {})
        if id(space) in spaces:
            continue
        spaces[id(space)] = space
        queue += [v for v in space.values() if str(getattr(v, "__module__", "")).startswith("tenure.machines.")]
    found = [v for space in spaces.values() for name, v in space.items() if name.isupper()]
    return Named(
        tuple(sorted({v for v in found if type(v) is int}, reverse=True)),
        tuple(sorted({v for v in found if type(v) is str})),
    )


def neighbours(data: Any, message: Any, named: Named) -> Iterator[tuple[Any, Any]]:
    """Every (data, message) that differs from this one in one field."""
    numbers = sorted({n for part in (data, message) for n in _leaves(part, int)})
    words = sorted({w for part in (data, message) for w in _leaves(part, str)})
    around = _Around(numbers, dict.fromkeys(["", "other", *words[:6], *named.words]), named.numbers)
    for other in _changed(data, around, optional=False):
        yield other, message
    for other in _changed(message, around, optional=False):
        yield data, other


@attrs.frozen
class _Around:
    """What a value may be changed to."""

    numbers: list[int]
    words: dict[str, None]
    constants: tuple[int, ...]


def _leaves(value: Any, kind: type) -> Iterator[Any]:
    if attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            yield from _leaves(getattr(value, field.name), kind)
    elif isinstance(value, (tuple, frozenset)):
        for item in value:
            yield from _leaves(item, kind)
    elif type(value) is kind:
        yield value


def _changed(value: Any, around: _Around, *, optional: bool) -> Iterator[Any]:
    """Values beside `value`, of its own kind; None as well where it is optional."""
    if optional and value is not None:
        yield None
    if isinstance(value, enum.Enum):
        yield from (member for member in type(value) if member is not value)
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            inner = getattr(value, field.name)
            for other in _changed(inner, around, optional="None" in str(field.type)):
                try:
                    yield attrs.evolve(value, **{field.alias: other})
                except Exception:  # the class itself refuses it: then nobody can ask
                    continue
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from _beside(value, around)
    elif isinstance(value, str):
        yield from (word for word in around.words if word != value)
    elif value is None:
        yield from ["other", *around.numbers[:3]]
    elif isinstance(value, tuple):
        yield from _tuples(value)
    elif isinstance(value, frozenset):
        yield value | {"other"}
        yield from (value - {item} for item in sorted(value, key=spelled)[:4])


def _beside(value: int, around: _Around) -> list[int]:
    """The next numbers, the others, and sums and differences with constants, so that thresholds are met exactly."""
    numbers = around.numbers
    steps = [*(n for n in numbers if n not in (0, value)), *around.constants]
    exact = [n + sign * s for n in numbers[:6] for s in steps for sign in (1, -1)]
    met = [e + d for e in exact[: NUMBERS // 2] for d in (0, 1)]
    near = [value - 1, value + 1, 0, -1]
    return [n for n in dict.fromkeys([*near, *numbers, *met, 2**53, 2**53 + 1]) if n != value][:NUMBERS]


def _tuples(value: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield ()
    if not value:
        return
    last = value[-1]
    yield (*value, last)
    yield value[:-1]
    yield value[::-1]
    if type(last) is int:
        yield (*value, last + 1)
        yield (*value, last + 1, last)
        yield (*value[:-1], 2**53)
        yield (*value[:-1], -1)
