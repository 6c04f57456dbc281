"""TLC's configuration files: read what a committed one says, and write the one of a red run from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.errors import TenureError

_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)
_SECTION: Final = re.compile(
    r"^[ \t]*(SPECIFICATION|CONSTANTS?|INVARIANTS?|PROPERTY|PROPERTIES|INIT|NEXT|SYMMETRY|VIEW|CONSTRAINTS?"
    r"|ACTION_CONSTRAINTS?|CHECK_DEADLOCK|POSTCONDITION|ALIAS)\b",
    re.MULTILINE,
)
_OFF: Final = re.compile(r"\bOff\s*=\s*\{[^}]*\}")
_FORBIDDEN: Final = ("SYMMETRY", "VIEW", "CONSTRAINT", "CONSTRAINTS", "ACTION_CONSTRAINT", "ACTION_CONSTRAINTS")


class CfgError(TenureError):
    """A configuration says something that cannot be compared, or does not say ``Off = {}``."""


@attrs.frozen
class Cfg:
    """A configuration: its properties, and the rest as text."""

    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    rest: str = attrs.field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Everything checked, invariants first."""
        return self.invariants + self.properties

    def text(self, off: Collection[str] = (), names: Iterable[str] | None = None) -> str:
        """The configuration with `off` taken away and only the properties `names` (all for None)."""
        wanted = set(self.names if names is None else names)
        away = ", ".join(f'"{name}"' for name in sorted(off))
        lines = [_OFF.sub(f"Off = {{{away}}}", self.rest).rstrip()]
        for section, listed in (("INVARIANTS", self.invariants), ("PROPERTIES", self.properties)):
            kept = [name for name in listed if name in wanted]
            if kept:
                lines.append(section)
                lines += [f"    {name}" for name in kept]
        return "\n".join(lines) + "\n"


def read(path: Path) -> Cfg:
    """Read a committed configuration. Raises `CfgError`, which names the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CfgError(f"{path.name}: {error.strerror}") from error
    return parse(text, path.name)


def parse(text: str, name: str = "cfg") -> Cfg:
    """The configuration that `text` says; `name` is for the message of a `CfgError`."""
    body = _COMMENT.sub("", text)
    parts = _SECTION.split(body)
    if parts[0].strip():
        raise CfgError(f"{name}: {parts[0].strip().splitlines()[0]!r} stands outside any section")
    invariants: list[str] = []
    properties: list[str] = []
    rest: list[str] = []
    for section, content in zip(parts[1::2], parts[2::2], strict=True):
        if section in _FORBIDDEN:
            raise CfgError(f"{name}: {section} has no place in a graph that is compared")
        if section.startswith("INVARIANT"):
            invariants += content.split()
        elif section.startswith("PROPERT"):
            properties += content.split()
        else:
            rest.append(section + content.rstrip())
    kept = "\n".join(rest)
    found = _OFF.findall(kept)
    if len(found) != 1 or re.sub(r"\s", "", found[0]) != "Off={}":
        raise CfgError(f"{name}: wants exactly one line Off = {{}}, which red runs replace")
    return Cfg(tuple(invariants), tuple(properties), kept)
