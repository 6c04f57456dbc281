"""The registry's text: read strictly, and of what belongs to others not a byte is changed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.files.registry import Registry, parse_registry
from tenure.machines.entry import Entry, parse_entry, render_entry
from tenure.machines.identity import Birth

MINE = Entry(
    pid=7,
    cwd="/über uns/\udcff",
    instance_id="7:1",
    heartbeat_ms=1_700_000_000_000,
    leader_epoch=3,
    runtime_generation=1_700_000_000_000,
    birth=Birth(5, "boot", 1),
    stamp_ms=12,
)

# -- reading -------------------------------------------------------------------


def test_no_file_is_nobody() -> None:
    """A registry that is not there has no members, and nothing is wrong with it."""
    assert Registry() == parse_registry(None)
    assert parse_registry(None).entry("default") is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b" \n", "bad JSON: Expecting value (line 2, column 1)"),
        (b'{"a": 1', "bad JSON: ',' is expected (line 1, column 8)"),
        (b'{\n  "a": 1,\n}', "bad JSON: a name in double quotes is expected (line 3, column 1)"),
        (b'{\n  "a": nul}', "bad JSON: Expecting value (line 2, column 8)"),
        (b'{"a" 1}', "bad JSON: ':' is expected (line 1, column 6)"),
        (b'{"a": 1} x', "bad JSON: something follows the object (line 1, column 10)"),
        (b'{"a": "\t"}', "bad JSON: Invalid control character at (line 1, column 8)"),
        (b'{"a": 01}', "bad JSON: ',' is expected (line 1, column 8)"),
        (b'{"a": NaN}', "bad JSON: NaN is no JSON (line 1, column 7)"),
        (b'{"a": [-Infinity]}', "bad JSON: -Infinity is no JSON (line 1, column 7)"),
        (b"\xef\xbb\xbf{}", "bad JSON: it begins with a byte order mark (line 1, column 1)"),
        (b'{\n"a": "\xff"}', "not UTF-8 (line 2, byte 9 of the file)"),
        (b"[]", "an array instead of a JSON object (line 1, column 1)"),
        (b"\nnull\n", "null instead of a JSON object (line 2, column 1)"),
        (b'"x"', "a string instead of a JSON object (line 1, column 1)"),
        (b"true", "true or false instead of a JSON object (line 1, column 1)"),
        (b"5 {}", "bad JSON: something follows the first value (line 1, column 1)"),
        (b"{'a': 1}", "bad JSON: a name in double quotes is expected (line 1, column 2)"),
        (b'{"a": ' + b"[" * 100_000, "nested too deep (line 1, column 7)"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data: bytes, problem: str) -> None:
    """Whatever is no JSON object is a problem that says what and where, and nobody's entry."""
    found = parse_registry(data)

    assert problem == found.problem
    assert found.entry("a") is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("null", ""),
        ("{}", ""),
        ('{"pid": null, "cwd": 5}', ""),
        ('{"pid": 7, "cwd": 5, "heartbeatMs": "now"}', ""),
        ("5", "a is a number instead of an object"),
        ('"x"', "a is a string instead of an object"),
        ("[1]", "a is an array instead of an object"),
        ("true", "a is true or false instead of an object"),
        ('{"pid": "7"}', "a.pid is not a number"),
        ('{"pid": true}', "a.pid is not a number"),
    ],
)
def test_a_wrong_type_of_an_own_member_is_named(value: str, problem: str) -> None:
    """What is no object, or has a pid that is no number, is neither an owner nor nobody; optional fields may be
    wrong."""
    assert problem == parse_registry(f'{{"a": {value}}}'.encode()).implausible("a")


def test_of_several_members_the_last_counts() -> None:
    """As in JavaScript, and whichever way the name is spelled."""
    found = parse_registry(rb'{"a": {"pid": 1}, "b": {"pid": 3}, "\u0061": {"pid": 2}}')

    assert Entry(2) == found.entry("a")


def test_a_number_too_long_for_anybody_is_read_as_javascript_does() -> None:
    """Five thousand digits are infinity, not an error of the interpreter."""
    found = parse_registry(b'{"a": {"pid": ' + b"9" * 5000 + b"}}")

    assert found.problem == ""
    value = found.value("a")
    assert isinstance(value, dict)
    assert math.isinf(value["pid"])


# -- writing -------------------------------------------------------------------


def test_a_first_entry_is_two_spaces_deep() -> None:
    """An absent registry is written as the other system writes it."""
    written = parse_registry(None).with_entry("default", MINE)

    assert json.dumps({"default": render_entry(MINE)}, indent=2) + "\n" == written.decode()


def test_a_pretty_registry_stays_pretty() -> None:
    """An entry put into a registry that is 2-space indented leaves it 2-space indented, in place or at the end."""
    others = {"a": {"pid": 1}, "b": {"pid": 2}, "c": {}}
    text = (json.dumps(others, indent=2) + "\n").encode()
    for key in ("b", "new"):
        expected = json.dumps(others | {key: render_entry(MINE)}, indent=2) + "\n"
        assert expected == parse_registry(text).with_entry(key, MINE).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a":1,"k":2,"c":3}', '{"a":1,"c":3}'),
        ('{"k":2 , "c":3}', '{"c":3}'),
        ('{"a":1 , "k":2}', '{"a":1}'),
        ('{\n  "k": 2\n}\n', "{}\n"),
        ('{"k":1,"a":1,"k":2,"b":[ 1.0 ],"k":3}', '{"a":1,"b":[ 1.0 ]}'),
        ('{"a":1}', '{"a":1}'),
        (" { } \n", " { } \n"),
    ],
)
def test_a_member_goes_with_its_comma(before: str, after: str) -> None:
    """First, middle, last, only, several, none."""
    assert after.encode() == parse_registry(before.encode()).without("k")


def test_several_own_members_become_one() -> None:
    """A registry with our key twice is written with it once."""
    written = parse_registry(b'{"k":{"pid":1}, "a": 1e3 ,"k":{"pid":2}}').with_entry("k", MINE)

    assert 1 == written.count(b'"k"')
    assert b'"a": 1e3 ' in written
    assert MINE == parse_registry(written).entry("k")


# -- properties ------------------------------------------------------------------

_blank = st.text(" \t\n\r", max_size=3)
_text = st.one_of(
    st.text(max_size=5).map(lambda s: json.dumps(s, ensure_ascii=True)),
    st.text(st.characters(blacklist_categories=("Cs",)), max_size=5).map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.sampled_from([r'"\u0041"', r'"\/"', r'"\ud83d\ude00"', r'"\ud800"', '"\u2028"']),
)
_scalar = st.one_of(
    st.sampled_from(["1.0", "1e3", "1E+2", "-0", "0.10", "1e999", "null", "true", "false", "9007199254740993"]),
    st.integers().map(str),
    _text,
)


@st.composite
def _array(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    parts = draw(st.lists(st.tuples(_blank, inner, _blank).map("".join), max_size=3))
    return "[" + ",".join(parts) + (draw(_blank) if not parts else "") + "]"


@st.composite
def _braced(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    parts = draw(
        st.lists(st.tuples(_blank, _text, _blank, st.just(":"), _blank, inner, _blank).map("".join), max_size=3)
    )
    return "{" + ",".join(parts) + (draw(_blank) if not parts else "") + "}"


_value = st.recursive(_scalar, lambda inner: st.one_of(_array(inner), _braced(inner)), max_leaves=5)
_name = st.one_of(st.sampled_from(['"k"', r'"\u006b"', '"other"', '"K"', '""']), _text)


@st.composite
def registries(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """A registry's text, and its members: the text of each name, and of all from name to value."""
    members, parts = [], []
    for name in draw(st.lists(_name, max_size=5)):
        spelled = f"{name}{draw(_blank)}:{draw(_blank)}{draw(_value)}"
        members.append((name, spelled))
        parts.append(f"{draw(_blank)}{spelled}{draw(_blank)}")
    body = ",".join(parts) if parts else draw(_blank)
    return f"{draw(_blank)}{{{body}}}{draw(_blank)}", members


def _foreign(members: list[tuple[str, str]]) -> list[str]:
    return [spelled for name, spelled in members if json.loads(name) != "k"]


def _spelled(registry: Registry, key: str) -> list[str]:
    return [registry.text[m.start : m.end] for m in registry.members if m.key != key]


@given(registries())
def test_every_member_is_found_as_it_is_spelled(made: tuple[str, list[tuple[str, str]]]) -> None:
    """Positions are exact, values are those of the standard library, the last of equal names counts."""
    text, members = made
    found = parse_registry(text.encode())

    assert found.problem == ""
    assert [spelled for _, spelled in members] == [text[m.start : m.end] for m in found.members]
    assert repr(json.loads(text)) == repr({m.key: m.value for m in found.members})
    assert parse_entry(json.loads(text).get("k")) == found.entry("k")


@given(registries())
def test_a_write_leaves_other_members_byte_for_byte(made: tuple[str, list[tuple[str, str]]]) -> None:
    """Setting our key changes nothing that is others', and reads back as exactly the entry."""
    text, members = made
    again = parse_registry(parse_registry(text.encode()).with_entry("k", MINE))

    assert again.problem == ""
    assert _foreign(members) == _spelled(again, "k")
    assert MINE == again.entry("k")
    assert 1 == sum(m.key == "k" for m in again.members)
    assert again.text.encode() == again.with_entry("k", MINE)


@given(registries())
def test_a_deletion_leaves_other_members_byte_for_byte(made: tuple[str, list[tuple[str, str]]]) -> None:
    """Deleting our key changes nothing that is others', wherever it stood; what is around the object stays as well."""
    text, members = made
    again = parse_registry(parse_registry(text.encode()).without("k"))

    assert again.problem == ""
    assert _foreign(members) == _spelled(again, "k")
    assert again.entry("k") is None
    assert text[: text.index("{")] == again.text[: again.opens]
    assert text[text.rindex("}") + 1 :] == again.text[again.closes + 1 :]


@given(registries())
def test_set_and_delete_is_as_if_nothing_had_been(made: tuple[str, list[tuple[str, str]]]) -> None:
    """A registry without our key is the same text after we came and went, unless it was empty."""
    text, members = made
    before = parse_registry(text.encode())
    if not members or len(_foreign(members)) < len(members):
        return

    assert text.encode() == parse_registry(before.with_entry("k", MINE)).without("k")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_registry_or_a_problem(data: bytes) -> None:
    """Nothing raises; what Python's own strict reader takes for an object is one, and nothing else."""
    found = parse_registry(data)
    try:
        expected = isinstance(json.loads(data.decode("utf-8")), dict)
    except ValueError:
        expected = False

    assert expected == (found.problem == "")
