"""The state graph that TLC writes with ``-dump dot,actionlabels`` (DESIGN 5).

What TLC 2.15 does, found by trying: a node is declared where it is first reached, initial ones with
``style = filled``; an edge carries the action's name without its parameters; an action that leaves the state as it
was is a labelled edge to itself; a dashed edge to itself without a label is the stuttering that liveness checking
adds, and no action. A newer TLC may print the parameters with the name; they are dropped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.errors import TenureError

_LABEL: Final = re.compile(r'(?:[^"\\]|\\.)*')
_MARK: Final = ' [label="'
_PLAIN: Final = '"];\n'
_DIGITS: Final = tuple("-0123456789")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class DotError(TenureError):
    """A dump is not what TLC writes."""


@attrs.define
class Dump:
    """A dumped graph; states are TLC's fingerprints."""

    labels: dict[int, str]
    """The state of each node as printed, still escaped as in the file."""
    initial: set[int]
    edges: set[tuple[int, str, int]]
    """The distinct (state, action, state')."""


def unescaped(label: str) -> str:
    """A node's label as TLC would print the state, in one pass."""
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], label)


_BULLET: Final = "\\n/\\\\ "


def split(label: str) -> list[str]:
    """The variables of an escaped label, each ``name = value`` and still escaped: equal parts are equal values."""
    return label.removeprefix("/\\\\ ").split(_BULLET)


def variable(part: str) -> tuple[str, str]:
    """The name and the printed value of one such part."""
    name, equals, body = unescaped(part).partition(" = ")
    if not equals or not name.isidentifier():
        raise DotError(f"not a variable of a printed state: {part[:80]!r}")
    return name, body


def read(path: Path) -> Dump:
    """Read a dump. Raises `DotError` when an edge has no label or leads to a state that is not there."""
    labels: dict[int, str] = {}
    initial: set[int] = set()
    edges: set[tuple[int, str, int]] = set()
    number: dict[str, int] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            head, mark, rest = line.partition(_MARK)
            if not mark:
                if " -> " in head and head.startswith(_DIGITS) and 'style="dashed"' not in head:
                    raise DotError(f"{path.name}: an edge without an action: {head.strip()}")
                continue
            source, arrow, target = head.partition(" -> ")
            if arrow:
                action = rest.partition('"')[0].partition("(")[0]
                if not action:
                    raise DotError(f"{path.name}: an edge without an action: {line.strip()}")
                for end in (source, target):
                    if end not in number:
                        number[end] = int(end)
                edges.add((number[source], action, number[target]))
                continue
            if rest.endswith(_PLAIN):
                label, filled = rest[: -len(_PLAIN)], False
            else:
                found = _LABEL.match(rest)
                label = found[0] if found else ""
                filled = "style = filled" in rest[len(label) :]
            state = number.setdefault(source, int(source))
            labels[state] = label
            if filled:
                initial.add(state)
    missing = set(number.values()) - labels.keys()
    if missing:
        raise DotError(f"{path.name}: edges lead to {len(missing)} states that are not there")
    return Dump(labels, initial, edges)
