"""A registry entry from JSON and back, field by field (locks.md 2.1 and 18)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.entry import IMPLAUSIBLE_PID, Entry, parse_entry, render_entry
from tenure.machines.identity import Birth

texts = st.none() | st.text(max_size=5)
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: not n.is_integer())
numbers = st.integers() | floats
entries = st.builds(
    Entry,
    st.integers(),
    texts,
    texts,
    st.none() | numbers,
    st.none() | numbers | st.text(max_size=5),
    st.none() | numbers,
    texts,
    texts,
    st.none() | st.builds(Birth, st.integers(), st.text(max_size=5), st.integers()),
    st.none() | st.integers(),
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FULL = {
    "pid": 41,
    "cwd": "/home",
    "instanceId": "41:1000",
    "heartbeatMs": 1000,
    "leaderEpoch": "9f0c",
    "runtimeGeneration": 1000,
    "busSocketPath": "telegram/bus.sock",
    "busSecret": "s",
    "processBirth": {"ticks": 5, "bootId": "b", "pidNamespace": 1},
    "monotonicMs": 77,
}


@given(entries)
def test_an_entry_survives_the_disk(entry: Entry) -> None:
    """What is written is read again, field by field."""
    assert entry == parse_entry(json.loads(json.dumps(render_entry(entry))))


def test_the_names_on_disk() -> None:
    """The JSON names are those of locks.md 2.1, in its order, and ours come last."""
    entry = parse_entry(FULL)

    assert entry is not None
    assert list(FULL.items()) == list(render_entry(entry).items())


@pytest.mark.parametrize("pid", [None, True, False, "41", [41], {}, math.nan, math.inf])
def test_no_numeric_pid_is_no_entry(pid: Any) -> None:
    """Such an entry is absent: inactive, and free to overwrite."""
    assert parse_entry(FULL | {"pid": pid}) is None


@pytest.mark.parametrize("pid", [1.5, -0.5])
def test_an_implausible_pid_is_there(pid: float) -> None:
    """A number that is no integer is an entry all the same: implausible is not absent, and not dead."""
    entry = parse_entry({"pid": pid})

    assert entry is not None
    assert entry.pid == IMPLAUSIBLE_PID


@pytest.mark.parametrize("field", [name for name in FULL if name != "pid"])
@given(value=junk)
def test_a_wrong_field_spoils_only_itself(field: str, value: Any) -> None:
    """Each field is read for itself; a wrong-typed one is dropped."""
    entry, whole = parse_entry(FULL | {field: value}), parse_entry(FULL)
    assert entry is not None
    assert whole is not None
    rendered, expected = render_entry(entry), render_entry(whole)

    for name in FULL:
        if name != field:
            assert rendered[name] == expected[name]
    assert not isinstance(rendered.get(field), bool)


@given(junk)
def test_what_is_no_object_is_no_entry(value: Any) -> None:
    """Anything but an object with a pid parses to nothing, and nothing raises."""
    if not isinstance(value, dict) or "pid" not in value:
        assert parse_entry(value) is None
    else:
        parse_entry(value)


def test_an_integral_float_is_an_integer() -> None:
    """JavaScript has doubles only."""
    entry = parse_entry({"pid": 41.0, "leaderEpoch": 3.0})

    assert entry is not None
    assert ("41", "3") == (str(entry.pid), str(entry.leader_epoch))


@pytest.mark.parametrize("part", ["ticks", "bootId", "pidNamespace"])
def test_half_a_birth_is_none(part: str) -> None:
    """An incomplete birth proves nothing, so it is not read at all."""
    birth = {name: value for name, value in FULL["processBirth"].items() if name != part}  # type: ignore[attr-defined]
    entry = parse_entry(FULL | {"processBirth": birth})

    assert entry is not None
    assert entry.birth is None
