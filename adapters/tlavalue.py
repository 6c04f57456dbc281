"""TLA+ values in Python: what TLC prints, parsed, and what a twin's state stands for, rendered (DESIGN 6).

Both sides come down to one canonical form, in which equal means equal in TLA+:

* ``int`` and ``str`` are themselves;
* ``("bool", b)`` is a boolean, because ``True == 1`` in Python and not in TLA+;
* ``("set", frozenset)`` is a set;
* ``("seq", tuple)`` is a sequence, which is what a function on ``1..n`` is; ``("seq", ())`` is the empty function;
* ``("fun", frozenset of (key, value))`` is any other function, and so a record, whatever order its fields print in;
* ``("model", name)`` is a model value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from tenure.adapters.errors import TenureError

Value = Any
"""A canonical value. mypy cannot say the recursive type without a cost at every use."""

EMPTY: Final = ("seq", ())
"""The empty sequence, which is the empty function."""


class NotAValue(TenureError):
    """A text is not a value that TLC prints, or a Python object stands for none. The message shows the place."""


_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<number>-?\d+)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark>\|->|:>|@@|<<|>>|\.\.|[\[\](){},])
    )""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_UNESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
_VARIABLE: Final = re.compile(r"(?:^|\n)/\\ (\w+) = ")


def boolean(value: bool) -> Value:
    """The canonical TRUE or FALSE."""
    return ("bool", value)


def function(pairs: Iterable[tuple[Value, Value]]) -> Value:
    """The canonical function of these pairs: a sequence if its domain is 1..n, else a function."""
    items = list(pairs)
    size = len(items)
    keys = {key for key, _ in items}
    if len(keys) != size:
        raise NotAValue("a function gives two values to one argument")
    if all(type(key) is int and 1 <= key <= size for key in keys):
        return ("seq", tuple(value for _, value in sorted(items, key=_first)))
    return ("fun", frozenset(items))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


# -- text to value ----------------------------------------------------------------------------------------------------


def parse(text: str) -> Value:
    """The value that TLC printed as `text`. Raises `NotAValue` for anything else."""
    parser = _Parser(text)
    value = parser.value()
    parser.end()
    return value


def parse_state(text: str) -> dict[str, Value]:
    """The variables of a state that TLC printed, one ``/\\ name = value`` after the other (or ``name = value``)."""
    return {name: parse(body) for name, body in split_state(text).items()}


def split_state(text: str) -> dict[str, str]:
    """The text of each variable of a printed state."""
    stripped = text.strip()
    if not stripped.startswith("/\\ "):
        stripped = "/\\ " + stripped  # a module with one variable prints no bullet
    parts = _VARIABLE.split(stripped)
    if parts[0]:
        raise NotAValue(f"not a state: {text[:80]!r}")
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind: str | None = None
        self.token = ""
        self.move()

    def move(self) -> None:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            if self.text[self.at :].strip():
                raise self.error()
            self.kind, self.token = None, ""
            return
        self.kind = found.lastgroup
        assert self.kind is not None
        self.token = found[self.kind]
        self.at = found.end()

    def error(self) -> NotAValue:
        return NotAValue(f"not a value that TLC prints, near {self.text[max(0, self.at - 20) : self.at + 20]!r}")

    def expect(self, mark: str) -> None:
        if self.token != mark:
            raise self.error()
        self.move()

    def end(self) -> None:
        if self.kind is not None:
            raise self.error()

    def value(self) -> Value:
        kind, token = self.kind, self.token
        if kind == "string":
            self.move()
            return unescaped(token)
        if kind == "number":
            self.move()
            number = int(token)
            if self.token == "..":  # an interval that TLC did not enumerate
                self.move()
                if self.kind != "number":
                    raise self.error()
                last = int(self.token)
                self.move()
                return ("set", frozenset(range(number, last + 1)))
            return number
        if kind == "word":
            self.move()
            if token in ("TRUE", "FALSE"):
                return ("bool", token == "TRUE")
            return ("model", token)
        if token == "[":
            self.move()
            return self.record()
        if token == "<<":
            self.move()
            return ("seq", tuple(self.items(">>")))
        if token == "{":
            self.move()
            return ("set", frozenset(self.items("}")))
        if token == "(":
            self.move()
            return self.pairs()
        raise self.error()

    def items(self, close: str) -> list[Value]:
        found: list[Value] = []
        if self.token == close:
            self.move()
            return found
        while True:
            found.append(self.value())
            if self.token == close:
                self.move()
                return found
            self.expect(",")

    def record(self) -> Value:
        pairs: list[tuple[Value, Value]] = []
        while True:
            name = self.token
            if self.kind != "word":
                raise self.error()
            self.move()
            self.expect("|->")
            pairs.append((name, self.value()))
            if self.token == "]":
                self.move()
                return function(pairs)
            self.expect(",")

    def pairs(self) -> Value:
        pairs: list[tuple[Value, Value]] = []
        while True:
            key = self.value()
            self.expect(":>")
            pairs.append((key, self.value()))
            if self.token == ")":
                self.move()
                return function(pairs)
            self.expect("@@")


def unescaped(token: str) -> str:
    """A printed string literal, quotes included, as the string it is; in one pass, so that ``\\\\n`` is no newline."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), body)


# -- value to text ----------------------------------------------------------------------------------------------------


def text(value: Value) -> str:
    """The value as TLA+ text, on one line, in an order that does not depend on the run."""
    if isinstance(value, bool):
        raise NotAValue("a canonical boolean is tagged")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    tag, body = value
    if tag == "bool":
        return "TRUE" if body else "FALSE"
    if tag == "model":
        return str(body)
    if tag == "seq":
        return "<<" + ", ".join(map(text, body)) + ">>"
    if tag == "set":
        return "{" + ", ".join(map(text, ordered(body))) + "}"
    pairs = sorted(body, key=lambda pair: order(pair[0]))
    if all(isinstance(key, str) and key.isidentifier() for key, _ in pairs):
        return "[" + ", ".join(f"{key} |-> {text(item)}" for key, item in pairs) + "]"
    return "(" + " @@ ".join(f"{text(key)} :> {text(item)}" for key, item in pairs) + ")"


def quoted(string: str) -> str:
    """The string as a TLA+ literal."""
    return '"' + "".join(_UNESCAPES.get(c, c) for c in string) + '"'


def ordered(values: Iterable[Value]) -> list[Value]:
    """The values in a fixed order: numbers by size, strings by letter, the rest by kind and text."""
    return sorted(values, key=order)


def order(value: Value) -> tuple[int, int, str]:
    """A sort key over all canonical values."""
    if isinstance(value, int):
        return (0, value, "")
    if isinstance(value, str):
        return (1, 0, value)
    return (2, 0, text(value))


# -- a twin's state to value ------------------------------------------------------------------------------------------


def canonical(thing: object) -> Value:
    """The TLA+ value that a Python value stands for: attrs record, Mapping function, tuple sequence, frozenset set.

    Raises `NotAValue` for a type that stands for none (None and float among them).
    """
    if (plain := _plain(thing)) is not None:
        return plain
    if isinstance(thing, tuple):
        return ("seq", tuple(map(canonical, thing)))
    if isinstance(thing, (frozenset, set)):
        return ("set", frozenset(map(canonical, thing)))
    if isinstance(thing, Mapping):
        return function([(canonical(key), canonical(item)) for key, item in thing.items()])
    if attrs.has(type(thing)):
        return function([(name, canonical(getattr(thing, name))) for name in fields(type(thing))])
    raise NotAValue(f"{type(thing).__name__} {thing!r} stands for no TLA+ value")


def _plain(thing: object) -> Value | None:
    """A boolean, number or string as its canonical value; an enumeration's member or other subclass loses its class,
    so that no `__eq__` but TLA+'s decides."""
    if isinstance(thing, bool):
        return ("bool", thing)
    if isinstance(thing, int):
        return int(thing)
    if isinstance(thing, str):
        return str.__str__(thing)
    return None


_FIELDS: dict[type, tuple[str, ...]] = {}


def fields(cls: type) -> tuple[str, ...]:
    """The names of the attrs fields of `cls`."""
    found = _FIELDS.get(cls)
    if found is None:
        found = _FIELDS[cls] = tuple(field.name for field in attrs.fields(cls))
    return found


class Renderer:
    """`canonical` over many states that share parts. Parts are remembered by identity, never by equality, because
    ``True == 1`` would let one hide the other; so the states must stay alive as long as the renderer does."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Value]] = {}

    def __call__(self, thing: object) -> Value:
        kind = type(thing)
        if kind is str or kind is int:
            return thing
        key = id(thing)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        value = self._fresh(thing)
        self._known[key] = (thing, value)
        return value

    def _fresh(self, thing: object) -> Value:
        if (plain := _plain(thing)) is not None:
            return plain
        if isinstance(thing, tuple):
            return ("seq", tuple(map(self, thing)))
        if isinstance(thing, (frozenset, set)):
            return ("set", frozenset(map(self, thing)))
        if isinstance(thing, Mapping):
            return function([(self(key), self(item)) for key, item in thing.items()])
        if attrs.has(type(thing)):
            return function([(name, self(getattr(thing, name))) for name in fields(type(thing))])
        raise NotAValue(f"{type(thing).__name__} {thing!r} stands for no TLA+ value")
