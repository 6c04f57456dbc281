"""Lines that nothing waits for: readers that are slow, stuck, shared, or gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tenure.adapters.commands import lines as room
from tenure.adapters.commands.lines import KEPT, LONGEST, Lines

Story = Callable[[Lines, int, list[OSError]], Coroutine[Any, Any, None]]


def told(monkeypatch: pytest.MonkeyPatch, story: Story, *, blocking: bool = True) -> None:
    """Do the story with a pipe as standard output."""
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    monkeypatch.setattr(room, "STDOUT", writer)
    errors: list[OSError] = []

    async def limited() -> None:
        async with asyncio.timeout(10):
            await story(Lines(errors.append), reader, errors)

    asyncio.run(limited())
    for descriptor in (reader, writer):
        os.close(descriptor)


def fill(descriptor: int) -> int:
    """Fill a pipe to the last byte; how many there are."""
    was, filled = os.get_blocking(descriptor), 0
    os.set_blocking(descriptor, False)
    for size in (4096, 1):
        try:
            while True:
                filled += os.write(descriptor, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(descriptor, was)
    return filled


def test_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each, whatever is in it, and not too long."""

    async def story(lines: Lines, reader: int, errors: list[OSError]) -> None:
        for text in ("a", "b\nc\x1b", "\udcff", "ü" * LONGEST):
            lines.write(text)
        found = os.read(reader, 1 << 20).decode().split("\n")
        assert found[:3] == ["a", "b\\nc\\x1b", "\\udcff"]
        assert found[3] == "ü" * (LONGEST // 2)
        assert found[4:] == [""]

    told(monkeypatch, story)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_reader_that_is_stuck(monkeypatch: pytest.MonkeyPatch, blocking: bool) -> None:
    """Nothing waits; what was written follows when there is room, the oldest forgotten where it is too much."""

    async def story(lines: Lines, reader: int, errors: list[OSError]) -> None:
        filled = fill(room.STDOUT)
        for number in range(KEPT + 5):
            lines.write(str(number))
        await asyncio.sleep(0.02)
        found = b""
        while found.count(b"\n") < KEPT:
            found += await asyncio.to_thread(os.read, reader, 65536)
        assert found[filled:].decode().split() == [str(number) for number in range(5, KEPT + 5)]
        lines.write("later")
        assert os.read(reader, 100) == b"later\n"

    told(monkeypatch, story, blocking=blocking)


def test_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told once; nothing more is tried."""
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(room, "STDOUT", writer)
    errors: list[OSError] = []

    async def story() -> None:
        lines = Lines(errors.append)
        lines.write("a")
        lines.write("b")

    asyncio.run(story())
    os.close(writer)
    assert [type(error) for error in errors] == [BrokenPipeError]
