"""Ends that come in bounded time, whatever hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from tenure.adapters.ports import Ports, tell


async def ended_within(ports: Ports, seconds: float, ending: Coroutine[object, object, None]) -> None:
    """Wait for `ending`, so long at most. A cancellation of who waits does not keep it from ending, and neither does an
    error of its own, which is noted."""
    task = asyncio.ensure_future(ending)
    task.add_done_callback(lambda task: _note(ports, task))
    await asyncio.wait([task], timeout=seconds)


def _note(ports: Ports, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        tell(ports, "fleet", "end", error=f"{type(error).__name__}: {error}")
