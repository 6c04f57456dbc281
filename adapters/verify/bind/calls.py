"""A port's calls as values: what an adapter asks, what it is answered, and how the world may answer otherwise."""

from __future__ import annotations

import os
from collections.abc import Hashable

import attrs


@attrs.frozen(cache_hash=True)
class Call:
    """One call of a port: its name there, and its arguments."""

    name: str
    args: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(_short, self.args))})"


@attrs.frozen(cache_hash=True)
class Got:
    """It returned."""

    value: Hashable = None

    def __str__(self) -> str:
        return "done" if self.value is None else _short(self.value)


@attrs.frozen(cache_hash=True)
class Raised:
    """It raised OSError(`number`); `done`: it has been done all the same, and nobody can know."""

    number: int
    done: bool = False

    def __str__(self) -> str:
        return f"{os.strerror(self.number)}{', though done' if self.done else ''}"


Answer = Got | Raised


def _short(value: object) -> str:
    """For a person: paths by their last two parts, contents cut."""
    if isinstance(value, str):
        return "/".join(value.split("/")[-2:])
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace").strip()
        return text if len(text) <= 60 else f"{text[:57]}..."
    return str(value)
