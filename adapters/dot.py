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

_LINE: Final = re.compile(
    r'^(?P<source>-?\d+)(?: -> (?P<target>-?\d+) \[(?:label="(?P<action>[^"]*)"|(?P<dashed>style="dashed"))'
    r'| \[label="(?P<label>(?:[^"\\]|\\.)*)"(?P<rest>[^\n]*))',
    re.MULTILINE,
)
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
    for found in _LINE.finditer(path.read_text(encoding="utf-8")):
        source, target, action, dashed, label, rest = found.groups()
        if target is None:
            number = int(source)
            labels[number] = label
            if "style = filled" in rest:
                initial.add(number)
        elif action:
            edges.add((int(source), action.partition("(")[0], int(target)))
        elif not dashed:
            raise DotError(f"{path.name}: an edge without an action: {found[0]}")
    missing = {s for s, _, t in edges for s in (s, t)} - labels.keys()
    if missing:
        raise DotError(f"{path.name}: edges lead to {len(missing)} states that are not there")
    return Dump(labels, initial, edges)
