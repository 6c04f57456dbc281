"""How much of a line is structure."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.serving.structure import outside_strings

MiB = 2**20
TEXTS = st.text('"\\\n,{a€') | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


def counted(line: bytes) -> int:
    """The plain way."""
    count, inside, escaped = 0, False, False
    for byte in line:
        if escaped:
            escaped = False
        elif inside and byte == 0x5C:
            escaped = True
        elif byte == 0x22:
            inside = not inside
            count += 1
        elif not inside:
            count += 1
    return count


@given(VALUES, st.integers(1, 30), st.booleans())
def test_it_counts_what_stands_outside_of_strings(value: object, size: int, ascii_only: bool) -> None:
    """Wherever a slice ends: between a backslash and what it escapes, inside a string, in the middle of a character."""
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tenure.adapters.bus.serving.structure._SLICE", size)
        assert counted(line) == outside_strings(line, len(line))


@given(st.binary(max_size=200), st.integers(1, 30))
def test_it_counts_anything(line: bytes, size: int) -> None:
    """A line that is no JSON is refused by its parser; here it only has to end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tenure.adapters.bus.serving.structure._SLICE", size)
        assert 0 <= outside_strings(line, len(line)) <= len(line)


def test_it_ends_beyond_what_is_enough() -> None:
    assert MiB < outside_strings(b"[" + b"{}," * 5 * MiB, MiB) < MiB + 200_000


@pytest.mark.parametrize("unit", [b"x", b"\\\\", b'\\"', b"\\n", b'"', b"{},", b"\\u0041", "€".encode(), b'"\\'])
def test_the_longest_line_is_counted_while_nobody_waits(unit: bytes) -> None:
    """Of the order of reading it: a second would be a scan that is quadratic somewhere."""
    line = b'"' + unit * (16 * MiB // len(unit))
    started = time.process_time()
    outside_strings(line, MiB)
    assert time.process_time() - started < 1
