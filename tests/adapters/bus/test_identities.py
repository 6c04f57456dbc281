"""Who is who on the bus (bus.md 0)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.fleet.identities import (
    BirthId,
    RequestIds,
    fallback_birth_id,
    instance_id,
    leader_profile_key,
    linux_birth_id,
    mac_birth_id,
    manual_profile_key,
    new_secret,
    only_process,
    own_profile_key,
    parent_process,
    parse_birth_id,
    same_secret,
)
from tests.adapters.bus.wires import texts


def test_request_ids_count_from_one() -> None:
    """And never twice the same (law Fresh)."""
    ids = RequestIds(instance_id(4242, 1790000000000))
    assert ["4242:1790000000000:1", "4242:1790000000000:2", "4242:1790000000000:3"] == [ids.next() for _ in range(3)]


@pytest.mark.parametrize(
    ("text", "birth"),
    [
        (linux_birth_id(7, 12345), BirthId(7, "12345", True)),
        (mac_birth_id(7, "Mon Nov 30 14:00:00 2026"), BirthId(7, "691c88462fb4551a", True)),
        (fallback_birth_id(7, "7:1790000000000"), BirthId(7, "7:1790000000000", False)),
        ("7:start:0", BirthId(7, "0", True)),
    ],
)
def test_a_birth_id_is_taken_apart(text: str, birth: BirthId) -> None:
    """Only those that begin with a start prove deaths."""
    assert birth == parse_birth_id(text)
    assert text == str(birth)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "7", "7:start:", "7:start:-1", "7:start:12x", "07:start:1", "0:start:1", "-7:start:1", "7:born:1",
        "7:start:1\n", "7:start:٣", "x7:start:1", "7:start:1:2", "7:generation:", "99999999999:start:1",
        "7:START:1", "7:start:ABCDEF0123456789", "7:start:abcdef012345678",
    ],
)  # fmt: skip
def test_what_is_no_birth_id_proves_nothing(text: str | None) -> None:
    """It is none."""
    assert parse_birth_id(text) is None


@given(texts)
def test_any_text_may_claim_to_be_a_birth_id(text: str) -> None:
    """What is one is spelled as it was."""
    found = parse_birth_id(text)
    assert found is None or text == str(found)


def test_ticks_are_those_of_linux() -> None:
    """A fallback has none."""
    assert 12345 == BirthId(7, "12345", True).ticks
    assert BirthId(7, "12345", False).ticks is None
    assert BirthId(7, "691c88462fb4551a", True).ticks is None


def test_profile_keys() -> None:
    """With a named profile before them, or without; a key of one's own differs from the shared one (L24)."""
    assert "manual:77:start:1" == manual_profile_key("77:start:1")
    assert "profile:work:manual:77:start:1" == manual_profile_key("77:start:1", "work")
    assert "manual:77:start:1:8:start:2" == own_profile_key("77:start:1", "8:start:2")
    for owner in ("77:start:1", "77:generation:77:5"):
        for profile in (None, "work"):
            assert only_process(own_profile_key(owner, "8:start:2", profile)) == "8:start:2"
            assert only_process(manual_profile_key(owner, profile)) is None
    assert parent_process(manual_profile_key("77:start:1", "work")) == "77:start:1"
    assert parent_process(manual_profile_key("77:generation:77:5")) is None
    assert parent_process(own_profile_key("77:start:1", "8:start:2")) is None
    assert only_process(own_profile_key("77:start:1", "8:generation:8:5")) is None  # nothing proves that death
    assert only_process(leader_profile_key("/manual:77:start:1:8:start:2")) is None
    assert "profile:work:cwd:/home/u" == leader_profile_key("/home/u", "work")


class Counted:
    """Identities whose bits are all set."""

    def uuid(self) -> str:
        """Not asked for."""
        raise AssertionError

    def bits(self, count: int) -> int:
        """All of them."""
        return (1 << count) - 1

    def word(self, length: int) -> str:
        """Not asked for."""
        raise AssertionError


def test_a_secret_is_32_bytes_in_base64url() -> None:
    """Without padding: 43 characters."""
    secret = new_secret(Counted())
    assert "_" * 42 + "8" == secret
    assert re.fullmatch("[A-Za-z0-9_-]{43}", secret)


@pytest.mark.parametrize(
    ("expected", "given_", "same"),
    [
        ("s", "s", True),
        ("s", "t", False),
        ("s", "ss", False),
        ("s", "", False),
        ("s", None, False),
        ("", "", False),
        (None, None, False),
        (None, "s", False),
        ("ü", "ü", True),
        ("s", "\ud800", False),
    ],
)
def test_secrets(expected: str | None, given_: str | None, same: bool) -> None:
    """A secret that nobody set is nobody's: an endpoint without one serves nobody."""
    assert same == same_secret(expected, given_)


@given(texts, texts)
def test_equal_secrets_are_equal_texts(one: str, other: str) -> None:
    """And nothing makes it raise."""
    assert same_secret(one, other) == (one == other != "")
    assert same_secret(one, one) == bool(one)


@given(st.text(max_size=3))
def test_lengths_are_no_matter(text: str) -> None:
    """A prefix is not the secret."""
    assert not same_secret("secret", "secret"[: len(text)] if len(text) < 6 else None)
