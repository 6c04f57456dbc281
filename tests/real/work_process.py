"""A process at work, for tests: what it executes it appends to a file, what it becomes it prints.

    python -m tests.real.work_process DIR SOCKET LOG SCALE [SECONDS]

SOCKET is that of `tenure.adapters.testing.updates`, SCALE shortens all timings. LOG is of
`tenure.adapters.testing.history`: a line when an execution begins, and one when it has ended or failed. Each role is
one line on standard output, with the pid before it and the own thread at its end. SIGTERM ends it in order.

The text of a message is what its handler does: ``takes 0.3`` waits so many seconds in the middle (else SECONDS),
``awaits NAME`` until there is a file LOG.NAME, ``fails 2`` raises in its first two attempts.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from tenure.adapters.bus.messages.json_values import JsonValue
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.roles import Following, Leading, Role
from tenure.adapters.testing.history import Execution, What, written
from tenure.adapters.testing.updates import Updates
from tenure.adapters.work.items import Item
from tenure.adapters.work.source import update_id
from tenure.adapters.work.workplace import Workplace


def _text(update: JsonValue) -> str:
    message = update.get("message") if isinstance(update, dict) else None
    text = message.get("text") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""


async def work(directory: str, socket: str, log: str, scale: str, seconds: str = "0") -> None:
    """One process, until it is told to leave."""
    executions = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def writes(item: Item, what: What) -> None:
        for update in item.updates:
            number = update_id(update)
            assert number is not None
            line = Execution(number, item.receipt_id, what, item.tenure, str(os.getpid()))
            os.write(executions, written(line))

    async def handler(item: Item) -> None:
        writes(item, "began")
        text = " ".join(_text(update.value) for update in item.updates)
        takes = re.search(r"takes ([0-9.]+)", text)
        await asyncio.sleep(float(takes[1] if takes else seconds))
        if awaits := re.search(r"awaits (\w+)", text):
            while not Path(f"{log}.{awaits[1]}").exists():
                await asyncio.sleep(0.02)
        if (fails := re.search(r"fails (\d+)", text)) and item.attempt <= int(fails[1]):
            writes(item, "failed")
            raise ValueError(text)
        writes(item, "ended")

    def said(role: Role) -> None:
        thread = ""
        if isinstance(role, Leading | Following):
            member = place.member
            bound = member.leader.binding if isinstance(role, Leading) else member.follower.binding
            thread = "" if bound is None else f" thread {bound.target}"
        print(f"{os.getpid()} {role}{thread}", flush=True)

    place = Workplace(
        agent_directory(directory),
        source=Updates(socket),
        handler=handler,
        on_role=said,
        timings=DEFAULT.scaled(float(scale)),
    )
    async with place:
        leaving: list[asyncio.Future[str]] = []
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: leaving.append(asyncio.ensure_future(place.leave())))
        await place.join()
        await place.until_left()
    os.close(executions)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
