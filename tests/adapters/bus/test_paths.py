"""Where endpoints are: the names of bus.md (a), SOCKET PATHS, character by character."""

from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.endpoints.paths import (
    endpoint_path,
    follower_path,
    followers_directory,
    leader_path,
    short_directory,
)
from tenure.adapters.files.directory import AgentDirectory

BOT = AgentDirectory("/home/bot")


def test_the_leader_s_path() -> None:
    assert "/home/bot/tmp/telegram/bus.sock" == leader_path(BOT, "default")
    assert "/home/bot/tmp/telegram/bus.work.sock" == leader_path(BOT, "work")


def test_a_follower_s_path() -> None:
    """The colon of an instance id becomes an underscore."""
    assert "/home/bot/tmp/telegram/followers/4711_1790.sock" == follower_path(BOT, "default", "4711:1790")
    assert "/home/bot/tmp/telegram/followers/work/4711_1790.sock" == follower_path(BOT, "work", "4711:1790")
    assert "/home/bot/tmp/telegram/followers/work" == followers_directory(BOT, "work")


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        ("aZ09_.-", "aZ09_.-"),
        ("a b/c\nd", "a_b_c_d"),
        ("../../x", ".._.._x"),
        ("ä€", "__"),
        ("\U0001f600", "__"),
        ("x" * 100, "x" * 80),
        (":" * 100, "_" * 80),
    ],
)
def test_what_a_name_may_hold(instance: str, name: str) -> None:
    """80 units at most; beyond U+FFFF a character is two of them, as in the strings of the other system."""
    assert f"/home/bot/tmp/telegram/followers/{name}.sock" == follower_path(BOT, "default", instance)


def test_80_bytes_are_short_and_81_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, not characters."""
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    for path in ("/" + "x" * 79, "/" + "ä" * 39 + "x"):
        assert path == endpoint_path(path)
    for path in ("/" + "x" * 80, "/" + "ä" * 40):
        digest = hashlib.sha256(path.encode()).hexdigest()[:16]
        assert f"/var/tmp/pi-telegram-{os.getuid()}/{digest}.sock" == endpoint_path(path)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200), st.integers(1, 120))
def test_the_mapping_is_idempotent(name: str, length: int) -> None:
    """Also where the short directory is not short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", "/" + "t" * length)
        once = endpoint_path(f"/{name}")
        assert once == endpoint_path(once)


def test_what_only_looks_mapped_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in the short directory that is no hash, and a hash elsewhere."""
    monkeypatch.setenv("TMPDIR", "/" + "t" * 90)
    for path in (f"{short_directory()}/{'g' * 16}.sock", "/" + "x" * 80 + f"/{'a' * 16}.sock"):
        assert path != endpoint_path(path)


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, "/tmp"),
        ({"TMPDIR": "/a/"}, "/a"),
        ({"TMPDIR": "/a//b/"}, "/a/b"),
        ({"TMP": "/b", "TEMP": "/c"}, "/b"),
        ({"TEMP": "/c"}, "/c"),
        ({"TMPDIR": "", "TMP": "/b"}, "/b"),
        ({"TMPDIR": "/"}, ""),
    ],
)
def test_the_temporary_directory_is_the_other_system_s(
    environment: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TMPDIR, TMP, TEMP, /tmp, whether anything can be written there or not."""
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert f"{place}/pi-telegram-{os.getuid()}" == short_directory()
