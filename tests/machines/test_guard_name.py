"""Names and payloads of a guard's files: a round trip for what is written, else None (locks.md 2, 18)."""

from __future__ import annotations

import json
import re
import string
import uuid as uuids

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.machines.guard_name import (
    GREATEST_PID,
    Debris,
    MarkerName,
    OwnerName,
    Payload,
    Released,
    Staged,
    Stale,
    agree,
    another_boot,
    another_namespace,
    birth_hash,
    is_uuid,
    marker,
    parse_debris,
    parse_name,
    parse_payload,
    render_debris,
    render_name,
    render_payload,
)
from tenure.machines.identity import Birth

# The patterns of locks.md 2 as the other system has them, `$` being `\Z` there.
OWNER = re.compile(r"owner\.[A-Za-z0-9-]+\.json\Z")
MARKER = re.compile(
    r"owner\.reclaim\.[1-9][0-9]*\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.json\Z"
)

FIELDS = ("pid", "acquiredAtMs", "generation", "processBirth")
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
words = st.text(string.ascii_letters + string.digits + "-", min_size=1)
pids = st.integers(1, GREATEST_PID)
uuid_texts = st.uuids().map(str)
births = st.builds(Birth, st.integers(0, 2**63), st.text(), st.integers(0, 2**32))
names = st.one_of(st.builds(OwnerName, words), st.builds(MarkerName, pids, uuid_texts))
payloads = st.builds(Payload, pids, st.integers(0, 2**53), words, st.none() | births)
debris = st.one_of(
    st.builds(Staged, st.text(string.ascii_letters + string.digits, min_size=6, max_size=6)),
    st.builds(Released, uuid_texts),
    st.builds(Stale, pids, uuid_texts),
)
pieces = st.sampled_from(
    [
        "owner",
        "reclaim",
        "json",
        ".",
        "..",
        "",
        "7",
        "07",
        "0",
        "-1",
        "٣",
        "²",
        "\n",
        "/",
        UUID,
        UUID.upper(),
        UUID[:-1],
        "é",
        "_",
    ]
)
almost_names = st.lists(pieces, max_size=9).map("".join) | st.lists(pieces, max_size=6).map(".".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(names)
def test_a_name_is_read_as_it_was_written(name: OwnerName | MarkerName) -> None:
    """Every name that we write, we read; and so does the other system."""
    written = render_name(name)

    assert parse_name(written) == name
    assert (OWNER if isinstance(name, OwnerName) else MARKER).match(written)


@given(almost_names | st.text() | st.from_regex(OWNER) | st.from_regex(MARKER))
@example("owner.a.json\n")
@example("owner..json")
@example("owner.reclaim.json")
@example(f"owner.reclaim.07.{UUID}.json")
@example(f"owner.reclaim.٣.{UUID}.json")
@example(f"owner.reclaim.7.{UUID.upper()}.json")
@example(f"owner.reclaim.7.{UUID}.json.json")
def test_a_name_is_accepted_when_it_has_the_pattern_and_no_other_time(name: str) -> None:
    """What is accepted is spelled in one way only, so that nothing else can pass for it."""
    parsed = parse_name(name)

    if parsed is None:
        pid = name.split(".")[2] if MARKER.match(name) else ""
        assert not OWNER.match(name)
        assert not MARKER.match(name) or len(pid) > 10
    else:
        assert render_name(parsed) == name


@given(st.text(min_size=1), debris)
def test_debris_is_read_as_it_was_written(guard: str, found: Debris) -> None:
    """A sibling that we leave, we recognise as ours to sweep."""
    assert parse_debris(guard, render_debris(guard, found)) == found


@given(st.sampled_from(["owners.json.transaction", "a"]), almost_names | st.text())
@example("a", "a.staged.abcde")
@example("a", "a.staged.abcde_")
@example("a", "a.stale.0.0f8fad5b-d9cb-469f-a165-70867728950e")
@example("a", "a.recovery")
@example("a", "a.released.")
def test_garbage_is_no_debris(guard: str, name: str) -> None:
    """What is not spelled exactly so is not ours to sweep, the guard itself and its neighbours included."""
    for candidate in (name, f"{guard}{name}", f"{guard}.{name}"):
        found = parse_debris(guard, candidate)
        assert found is None or render_debris(guard, found) == candidate


@given(payloads)
def test_a_payload_is_read_as_it_was_written(payload: Payload) -> None:
    """Also through JSON."""
    assert parse_payload(json.loads(json.dumps(render_payload(payload)))) == payload


@given(payloads, pids.map(float))
def test_an_integral_float_is_an_integer(payload: Payload, pid: float) -> None:
    """JavaScript has one kind of number."""
    read = parse_payload(render_payload(payload) | {"pid": pid, "acquiredAtMs": float(2**40)})

    assert read is not None
    assert (read.pid, type(read.pid)) == (pid, int)
    assert (read.acquired_at_ms, type(read.acquired_at_ms)) == (2**40, int)


@pytest.mark.parametrize("pid", [True, False, 0, -1, 1.5, float("nan"), float("inf"), "7", None, [7], {"pid": 7}])
def test_an_implausible_pid_is_unverifiable(pid: object) -> None:
    """It is not dead: DESIGN 10, "Files"."""
    assert parse_payload({"pid": pid, "acquiredAtMs": 1, "generation": "g"}) is None


@given(
    json_values | st.dictionaries(st.sampled_from(["pid", "acquiredAtMs", "generation", "processBirth"]), json_values)
)
def test_garbage_is_no_payload(value: object) -> None:
    """What is accepted has a positive pid, a time and a generation that a name can carry; nothing raises."""
    read = parse_payload(value)

    if read is not None:
        assert read.pid > 0
        assert parse_name(render_name(OwnerName(read.generation))) == OwnerName(read.generation)


@pytest.mark.parametrize("part", ["ticks", "bootId", "pidNamespace"])
def test_an_incomplete_birth_is_none(part: str) -> None:
    """It proves nothing, and the payload is as good as a foreign one."""
    fields = render_payload(Payload(7, 1, "g", Birth(5, "boot", 9)))
    birth = fields["processBirth"]
    assert isinstance(birth, dict)
    del birth[part]

    assert parse_payload(fields) == Payload(7, 1, "g", None)


@given(words, words)
def test_name_and_payload_belong_together(named: str, paid: str) -> None:
    """S5: an owner's file names its payload's generation; a marker carries the payload of the dead."""
    assert agree(OwnerName(named), paid) is (named == paid)
    assert agree(MarkerName(7, UUID), paid)


@given(pids, births, st.integers(0, 2**60 - 1))
def test_our_marker_carries_the_claimants_birth(pid: int, birth: Birth, random: int) -> None:
    """The other system accepts its name; we read the birth's hash out of it again."""
    ours = marker(pid, birth, random)

    assert MARKER.match(render_name(ours))
    assert parse_name(render_name(ours)) == ours
    assert ours.birth_hash == birth_hash(birth)


@given(st.integers(0, 2**60 - 1), st.integers(0, 2**60 - 1), births)
def test_markers_of_one_claimant_differ(left: int, right: int, birth: Birth) -> None:
    """All 60 random bits are in the name."""
    assert (marker(7, birth, left) == marker(7, birth, right)) is (left == right)


@given(st.uuids(version=4))
def test_a_foreign_marker_carries_none(foreign: uuids.UUID) -> None:
    """A version 4 uuid has no birth in it, whatever its last bits are."""
    assert is_uuid(str(foreign))
    assert MarkerName(7, str(foreign)).birth_hash is None


def test_a_marker_tells_another_boot_and_another_namespace() -> None:
    """A claimant of another boot is dead, one of another namespace cannot be probed; one from here is neither."""
    me = Birth(5, "boot", 1)

    assert not another_boot(birth_hash(Birth(6, "boot", 1)), me)
    assert not another_namespace(birth_hash(Birth(6, "boot", 1)), me)
    assert birth_hash(Birth(6, "boot", 1)) != birth_hash(me)
    assert another_boot(birth_hash(Birth(5, "earlier", 1)), me)
    assert another_namespace(birth_hash(Birth(5, "boot", 2)), me)
