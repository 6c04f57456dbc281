"""Awaiting what goes on by itself, so that neither it nor what it raises is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(running: asyncio.Future[T]) -> T:
    """What `running` comes to. Cancelled, however often, this still waits until it has ended, and then the cancellation
    goes on; what it raised by then is nobody's any more."""
    heard(running)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await ended(running)
        raise


async def ended(running: asyncio.Future[T]) -> None:
    """Wait until it has ended, however often this is cancelled: who calls it goes on with a cancellation himself."""
    while not running.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([running])


def heard(running: asyncio.Future[T]) -> None:
    """Whoever awaits `running` hears what it raises; where nobody does any more, that is no fault of the program. Else
    asyncio reports it on standard error as never retrieved."""
    running.add_done_callback(_heard)


def _heard(running: asyncio.Future[T]) -> None:
    if not running.cancelled():
        running.exception()
