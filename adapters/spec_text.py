"""What a module's text says to people: its question, and the sentence above each definition (STYLE: intent first)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.verify.manifest import modules_of

_DEFINITION: Final = re.compile(r"^(\w+)(?:\([^)\n]*\))?\s*==", re.MULTILINE)
_COMMENT_ABOVE: Final = re.compile(r"((?:^[ \t]*(?:\(\*(?:[^*]|\*(?!\)))*\*\)|\\\*[^\n]*)[ \t]*\n)+)\Z", re.MULTILINE)
_MARKS: Final = re.compile(r"\(\*+|\*+\)|\\\*")
_RULE: Final = re.compile(r"^-{4,}[^\n]*$", re.MULTILINE)


@attrs.frozen
class Definition:
    """A definition, the comment right above it or above the block it is in, and its text up to the next one."""

    name: str
    comment: str
    body: str


def definitions(text: str) -> Iterator[Definition]:
    """The definitions of a module's text, in order."""
    found = list(_DEFINITION.finditer(text))
    ends = [m.start() for m in found][1:] + [len(text)] * bool(found)
    comment = ""
    for match, end in zip(found, ends, strict=True):
        before = text[: match.start()]
        if above := _COMMENT_ABOVE.search(before):
            comment = plain(above[1])
        elif before.endswith("\n\n") or _RULE.search(before.rstrip("\n").rpartition("\n")[2]):
            comment = ""
        yield Definition(match[1], comment, text[match.start() : end])


def question(text: str) -> str:
    """What the module asks: the first comment of its text."""
    match = re.search(r"(?:^[ \t]*\(\*(?:[^*]|\*(?!\)))*\*\)[ \t]*\n)+", text, re.MULTILINE)
    return plain(match[0]) if match else ""


def plain(comment: str) -> str:
    """A comment's words without its marks, on one line."""
    return " ".join(_RULE.sub("", _MARKS.sub(" ", comment)).split())


@attrs.frozen
class Texts:
    """The texts of a module and of what it extends."""

    spec: Path
    root: str

    def all(self) -> Iterator[str]:
        """The root's text first, then what it extends."""
        for name in modules_of(self.spec, self.root, instances=False):
            yield (self.spec / f"{name}.tla").read_text(encoding="utf-8")

    def says(self, name: str) -> str:
        """What is said of the definition of this name; empty if nothing is.

        Of a conjunct ``OneInside_S2`` that is what follows ``S2:`` in the comment above it or, among the properties,
        above another definition; else the comment above it.
        """
        for text in self.all():
            found = list(definitions(text))
            mine = next((d for d in found if d.name == name), None)
            if mine is None:
                continue
            number = re.search(r"_([A-Z]\d+)$", name)
            types = next((i for i, d in enumerate(found) if d.name == "TypeOK"), len(found))
            for definition in [mine, *found[types:]] if number else ():
                part = re.search(rf"\b{number[1]}:\s*(.+?)(?=\s+[A-Z]\d+:|$)" if number else "", definition.comment)
                if part:
                    return part[1]
            if mine.comment:
                return mine.comment
        return ""

    def asks(self, module: str) -> str:
        """The question of one of the modules."""
        return question((self.spec / f"{module}.tla").read_text(encoding="utf-8"))

    def about(self, guard: str) -> str:
        """What is said where this guard is used: behind it on its line, else above the definition that uses it."""
        use = re.compile(rf'\b(?:Guard|Permit)\s*\(\s*"{guard}"')
        for text in self.all():
            for line in text.splitlines():
                if use.search(line) and "\\*" in line:
                    return plain(line.partition("\\*")[2])
            for definition in definitions(text):
                if use.search(definition.body) and definition.comment:
                    return definition.comment
        return ""


def first_sentence(text: str) -> str:
    """The first sentence of a docstring or comment, on one line."""
    words = " ".join(text.split())
    match = re.match(r"(.+?[.?!])(?=\s+[A-Z(]|$)", words)
    return match[1] if match else words
