"""What CPython keeps on a frame's value stack, where nobody can look: known by the answers that it was made of.

In ``Sight(seen=probe(pid), now=clock())`` the probe's answer is in no variable while the clock is asked. Which answers
a frame may hold like this follows from where it stands: those that calls of the *same statement* have been given (or of
the head of a ``for`` or ``with`` around it), except by the very call that it is in. They are part of the fingerprint.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

Place = tuple[int, frozenset[int]]
"""A statement, by its first line, with those around it and itself."""

_NOWHERE: Final[Place] = (0, frozenset({0}))


class Temporaries:
    """Kept for one run, told of every answer."""

    def __init__(self) -> None:
        self.frames: list[types.FrameType] = []
        self.records: list[list[tuple[int, int, Hashable]]] = []
        """Of each frame, the outermost first: statement, instruction, answer."""

    def at(self, frames: Sequence[types.FrameType]) -> Hashable:
        """What these frames (the innermost first) may hold now."""
        return tuple(
            tuple(answer for _, instruction, answer in records if instruction != frame.f_lasti)
            for frame, records in zip(reversed(frames), self._stack(frames), strict=True)
        )

    def told(self, frames: Sequence[types.FrameType], answer: Hashable) -> None:
        """A call that these frames have made is answered."""
        for frame, records in zip(reversed(frames), self._stack(frames), strict=True):
            statement, _ = place(frame.f_code, frame.f_lasti)
            records.append((statement, frame.f_lasti, answer))

    def _stack(self, frames: Sequence[types.FrameType]) -> list[list[tuple[int, int, Hashable]]]:
        """The records of these frames, without those that nothing can depend on any more."""
        outermost = list(reversed(frames))
        same = 0
        for known, frame in zip(self.frames, outermost, strict=False):
            if known is not frame:
                break
            same += 1
        self.frames[same:] = outermost[same:]
        self.records[same:] = [[] for _ in outermost[same:]]
        for frame, records in zip(outermost, self.records, strict=True):
            if records:
                statement, around = place(frame.f_code, frame.f_lasti)
                here = frame.f_lasti
                records[:] = [r for r in records if r[0] in around and (r[0] != statement or r[1] <= here)]
        return self.records


_places: Final[dict[tuple[int, int], Place]] = {}
_codes: Final[dict[int, types.CodeType]] = {}
"""Those whose identities `_places` has, kept so that nothing else gets them: to hash one costs more than to look."""


def place(code: types.CodeType, instruction: int) -> Place:
    """The statement of an instruction."""
    key = (id(code), instruction)
    found = _places.get(key)
    if found is None:
        _codes[id(code)] = code
        found = _places[key] = _place(code, instruction)
    return found


def _place(code: types.CodeType, instruction: int) -> Place:
    position = next((p for i, p in enumerate(code.co_positions()) if i == instruction // 2), None)
    line = position[0] if position is not None else None
    return _statements(code.co_filename).get(line or 0, _NOWHERE)


@cache
def _statements(file: str) -> dict[int, Place]:
    found: dict[int, Place] = {}

    def visit(node: ast.AST, around: frozenset[int]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                inside = around | {child.lineno}
                for line in range(child.lineno, (child.end_lineno or child.lineno) + 1):
                    found[line] = (child.lineno, inside)
                visit(child, inside)
            else:
                visit(child, around)

    visit(ast.parse(Path(file).read_text(encoding="utf-8")), frozenset())
    return found
