"""Ends of tasks: in bounded time, whatever hangs, and with their errors said."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tenure.adapters.ports import Ports, tell


async def ended_within(ports: Ports, seconds: float, ending: Coroutine[object, object, None]) -> None:
    """Wait for `ending`, so long at most. A cancellation of who waits does not keep it from ending, and neither does an
    error of its own, which is noted."""
    task = asyncio.ensure_future(ending)
    task.add_done_callback(lambda task: note_error(ports, task, "end"))
    await asyncio.wait([task], timeout=seconds)


def note_error(ports: Ports, task: asyncio.Task[Any], phase: str = "fault") -> None:
    """Note what a task that is done has raised, if anything. A "fault" is one of this program: nothing was to raise
    there, and everything else goes on."""
    if not task.cancelled() and (error := task.exception()) is not None:
        tell(ports, "fleet", phase, error=f"{type(error).__name__}: {error}")
