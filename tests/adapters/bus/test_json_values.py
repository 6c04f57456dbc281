"""JSON within bounds, and spelled as JavaScript does (bus.md a)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.adapters.bus.messages.json_values import (
    DEPTH_LIMIT,
    LINE_LIMIT,
    SAFE,
    VALUES_LIMIT,
    BadJson,
    Json,
    JsonValue,
    dump,
    dump_bytes,
    load,
    plain,
    within,
)


def problem(line: bytes) -> str:
    """What is wrong with it."""
    with pytest.raises(BadJson) as raised:
        load(line)
    return str(raised.value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (SAFE, "9007199254740991"),
        (2**53 + 1, "9007199254740992"),
        (2**60, "1152921504606847000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345680000.0, "123456789012345680000"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (10**400, "null"),
        (float("inf"), "null"),
        (float("nan"), "null"),
        (0.1, "0.1"),
        (123.456, "123.456"),
        (0.000001, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (-1.5e300, "-1.5e+300"),
        (1.25e-7, "1.25e-7"),
        (-5e-324, "-5e-324"),
    ],
)
def test_numbers_are_printed_as_javascript_prints_them(number: float, text: str) -> None:
    """Checked against Node once, for 100,000 doubles."""
    assert text == dump(number)


def test_strings_are_escaped_as_javascript_escapes_them() -> None:
    """What has a short escape gets it; U+2028 and DEL stay; half a character is escaped, a whole one is not."""
    text = '"\\/\b\f\n\r\t\x00\x1f\x7f\u2028é🌲\ud83c\udfff'
    assert '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\u2028é🌲\\ud83c\\udfff"' == dump(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"b": [1, None, True, False], "a": {"": ()}}, '{"b":[1,null,true,false],"a":{"":[]}}'),
        ([Json([1]), Json(None)], "[[1],null]"),
    ],
)
def test_the_spelling_is_compact(value: JsonValue, text: str) -> None:
    """In the order that is given."""
    assert text == dump(value)
    assert load(text.encode()) == plain(value)


def test_what_is_no_json_value_is_not_spelled() -> None:
    """An error of the one who asked for it."""
    with pytest.raises(TypeError):
        dump({"a": b"bytes"})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        plain({1})


def test_values_that_python_calls_equal_are_not() -> None:
    """True is not 1, and an order is an order; 1.0 is 1."""
    assert Json(True) != Json(1)
    assert Json({"a": 1, "b": 2}) != Json({"b": 2, "a": 1})
    assert Json([1.0]) == Json([1])
    assert 1 == len({Json([1]), Json([1.0])})
    assert Json(None) != None  # noqa: E711
    assert "Json([1])" == repr(Json([1]))
    assert 90 > len(repr(Json("x" * 1000)))


@pytest.mark.parametrize("opening", [b"[", b'{"":', b'[{"x":'])
def test_the_depth_is_bounded(opening: bytes) -> None:
    """Whatever is nested in whatever, and however often: no depth exhausts the stack."""
    closing = opening.replace(b"[", b"]").replace(b'{"":', b"}").replace(b'{"x":', b"}")[::-1]
    many = DEPTH_LIMIT // (opening.count(b"[") + opening.count(b"{"))
    assert load(opening * many + b"1" + closing * many) is not None
    assert f"is nested deeper than {DEPTH_LIMIT}" == problem(opening * (many + 1) + b"1" + closing * (many + 1))
    assert f"is nested deeper than {DEPTH_LIMIT}" == problem(opening * 20_000)


def test_signs_inside_of_strings_are_no_structure() -> None:
    """Nor is a quote that is escaped, behind however many backslashes."""
    for text in ("[" * 1000, '"' + "[" * 1000, '\\"' + "[" * 1000, '\\\\"[' * 500, "," * (VALUES_LIMIT + 1)):
        assert [text] == load(dump([text]).encode())


def test_the_values_are_bounded() -> None:
    """A line of so many small ones is none of the protocol's."""
    assert VALUES_LIMIT - 1 == len(load(b"[" + b"1," * (VALUES_LIMIT - 2) + b"1]"))  # type: ignore[arg-type]
    more = f"holds more than {VALUES_LIMIT} values"
    assert more == problem(b"[" + b"1," * (VALUES_LIMIT - 1) + b"1]")
    assert more == problem(b"[" + b"1," * VALUES_LIMIT + b"1]")
    assert more == problem(b"[" + b"[]," * VALUES_LIMIT + b"1]")
    assert more == problem(b'["",' + b'"",' * (4 * VALUES_LIMIT) + b'""]')


def test_the_length_is_bounded() -> None:
    """16 MiB; a line of exactly the limit is read."""
    assert 16 * 1024 * 1024 == LINE_LIMIT
    line = b'"' + b"x" * (LINE_LIMIT - 2) + b'"'
    assert "x" * (LINE_LIMIT - 2) == load(line)
    assert f"is longer than {LINE_LIMIT} bytes" == problem(line + b" ")


def test_a_huge_integer_costs_nothing() -> None:
    """However many digits: it is a double, or none."""
    assert 10**300 == load(b"1" + b"0" * 300) or isinstance(load(b"1" + b"0" * 300), int)
    assert load(b"1" * 1_000_000) is None
    assert load(b"-" + b"1" * 1_000_000) is None
    assert 0 == load(b"0." + b"0" * 1_000_000)
    assert 1e-5 == load(b"0.00001" + b"0" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"\\ud83c\\udf32"', "🌲"),
        (b'"\\ud83c"', "\ud83c"),
        (b"-0", 0),
        (b"1e2", 100),
        (b"1.0", 1),
        (b"9007199254740993", 2**53),
        (b"1e400", None),
        (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        (b'{"__proto__":1}', {"__proto__": 1}),
        (b" \t\r\n1\r\n", 1),
    ],
)
def test_what_is_read(text: bytes, value: JsonValue) -> None:
    """As JavaScript does; but what is infinite to it is none here."""
    found = load(text)
    assert value == found
    assert type(value) is type(found)


def nested(depth: int) -> JsonValue:
    """So many lists in each other."""
    found: JsonValue = []
    for _ in range(depth - 1):
        found = [found]
    return found


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": value}, lambda value: Json([value])])
def test_no_walk_over_a_value_uses_up_the_stack(wrap: Callable[[JsonValue], JsonValue | Json]) -> None:
    """However deep it is nested: the caller is told so, as of any value that no line can hold."""
    for depth in (300, 900, 50_000):
        value = wrap(nested(depth))
        with pytest.raises(BadJson, match="nested deeper"):
            dump_bytes({"x": value})
        if not isinstance(value, Json):
            with pytest.raises(BadJson, match="nested deeper"):
                plain(value)


@pytest.mark.parametrize("value", [nested(DEPTH_LIMIT), [0] * (VALUES_LIMIT - 1), "x" * (LINE_LIMIT - 2), {"[": "]["}])
def test_what_is_within_the_bounds_is_what_is_read(value: JsonValue) -> None:
    line = dump_bytes(value)
    assert within(line) == line
    assert dump(load(line)).encode() == line


@pytest.mark.parametrize("value", [nested(DEPTH_LIMIT + 1), [0] * VALUES_LIMIT, "x" * (LINE_LIMIT - 1)])
def test_what_is_not_is_read_by_nobody(value: JsonValue) -> None:
    line = dump_bytes(value)
    with pytest.raises(BadJson) as raised:
        within(line)
    assert str(raised.value) == problem(line)


@pytest.mark.parametrize("value", [[0] * VALUES_LIMIT, "x" * LINE_LIMIT, ['"'] * VALUES_LIMIT])
def test_a_text_of_ours_may_be_longer_and_not_deeper(value: JsonValue) -> None:
    line = dump_bytes(value)
    assert load(within(line, long=True), long=True) == value
    with pytest.raises(BadJson, match="nested deeper"):
        load(dump_bytes(nested(DEPTH_LIMIT + 1)), long=True)
