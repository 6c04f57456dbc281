"""What a suspended participant is, as a value: two with equal fingerprints go on alike (DESIGN 7, `bind`).

A fingerprint is taken of the stack's frames: code, place, locals, and whatever these reach, by structure. Locks,
tables, ports, modules and classes are constants. What CPython keeps on a frame's value stack (the iterator of a `for`)
is out of sight: the learner therefore tries several histories of each local state and compares (`replay`).
"""

from __future__ import annotations

import enum
import types
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import attrs

from tenure.machines.chart import Row, Table

_ATOMS: Final = (int, float, str, bytes, bool, type(None), complex)
_CODE: Final = (types.BuiltinFunctionType, types.ModuleType, type)
_NAMELESS: Final = ("_thread", "threading", "weakref", "typing")


class Fingerprints:
    """Takes them. `constants`: the classes whose instances are the same in every run."""

    def __init__(self, constants: Iterable[type] = ()) -> None:
        self.constants: tuple[type, ...] = (Table, Row, *constants)
        self.fields: dict[type, tuple[str, ...]] = {}
        self.frozen: dict[type, bool] = {}

    def of(self, frames: Iterable[types.FrameType], roots: Iterable[object] = ()) -> tuple[Hashable, frozenset[str]]:
        """The fingerprint, and every text in it (for the identities that it names)."""
        walk = _Walk(self)
        parts: list[Hashable] = []
        for frame in frames:
            parts.append((frame.f_code.co_qualname, frame.f_lasti))
            parts.append(tuple((name, walk.value(v)) for name, v in frame.f_locals.items()))
        parts.extend(walk.value(root) for root in roots)
        return tuple(parts), frozenset(walk.texts)

    def is_frozen(self, kind: type) -> bool:
        """Whether it is an attrs class whose instances do not change."""
        known = self.frozen.get(kind)
        if known is None:
            known = self.frozen[kind] = (
                attrs.has(kind) and getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
            )
        return known

    def names(self, kind: type) -> tuple[str, ...]:
        """The attributes in the slots of a class; those in a `__dict__` are found on the instance."""
        known = self.fields.get(kind)
        if known is None:
            if attrs.has(kind):
                known = tuple(a.name for a in attrs.fields(kind))
            else:
                slots = (getattr(c, "__slots__", ()) for c in kind.__mro__)
                named = (n for s in slots for n in ((s,) if isinstance(s, str) else s))
                known = tuple(n for n in named if n not in ("__dict__", "__weakref__"))
            self.fields[kind] = known
        return known


class _Walk:
    def __init__(self, of: Fingerprints) -> None:
        self.of = of
        self.seen: dict[int, int] = {}
        self.done: dict[int, Hashable] = {}
        self.kept: list[object] = []
        self.texts: set[str] = set()

    def value(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _ATOMS:
            if kind is str:
                self.texts.add(value)
            elif kind is bytes:
                self.texts.add(value.decode("utf-8", "replace"))
            return value if kind is not bool else (bool, value)
        if isinstance(value, enum.Enum):
            return (kind.__qualname__, value.name)
        if isinstance(value, (*self.of.constants, *_CODE)):
            return kind.__qualname__
        if kind is tuple or kind is frozenset or self.of.is_frozen(kind):
            # A value: whether two are one object tells nothing.
            done = self.done.get(id(value))
            if done is None:
                done = self.done[id(value)] = self._structure(kind, value)
                self.kept.append(value)
            return done
        known = self.seen.get(id(value))
        if known is not None:
            return ("seen", known)
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)  # so that no other object gets this id during the walk
        return self._structure(kind, value)

    def _structure(self, kind: type, value: Any) -> Hashable:
        if isinstance(value, (tuple, list, deque)):
            return (kind.__name__, *map(self.value, value))
        if isinstance(value, (dict, types.MappingProxyType)):
            return ("dict", *((self.value(k), self.value(v)) for k, v in value.items()))
        if isinstance(value, (set, frozenset)):
            return ("set", *map(self.value, sorted(value, key=repr)))
        if isinstance(value, types.MethodType):
            return ("method", value.__func__.__qualname__, self.value(value.__self__))
        if isinstance(value, types.FunctionType):
            return ("function", value.__qualname__, *self._cells(value))
        if isinstance(value, partial):
            return ("partial", self.value(value.func), self.value(value.args), self.value(value.keywords))
        if isinstance(value, BaseException):
            return (kind.__qualname__, self.value(value.args), self.value(vars(value)))
        if isinstance(value, (types.GeneratorType, types.CoroutineType)):
            frame = value.gi_frame if isinstance(value, types.GeneratorType) else value.cr_frame
            if frame is None:
                return (kind.__qualname__, "over")
            return (frame.f_code.co_qualname, frame.f_lasti, self.value(dict(frame.f_locals)))
        if kind.__module__ in _NAMELESS:
            locked = getattr(value, "locked", None)
            return (kind.__qualname__, locked() if callable(locked) else None)
        if isinstance(value, Iterator):
            # Ranges and sequences say how far they are by themselves; of others this is all there is.
            return (kind.__qualname__, repr(value.__reduce__()) if hasattr(value, "__reduce__") else None)
        return self._attributes(kind, value)

    def _cells(self, function: types.FunctionType) -> Iterator[Hashable]:
        for cell in function.__closure__ or ():
            try:
                yield self.value(cell.cell_contents)
            except ValueError:
                yield "empty"

    def _attributes(self, kind: type, value: Any) -> Hashable:
        named = {name: getattr(value, name, None) for name in self.of.names(kind)}
        named |= getattr(value, "__dict__", {})
        return (kind.__qualname__, *((name, self.value(v)) for name, v in named.items()))
