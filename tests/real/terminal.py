"""A terminal, for tests: it loads everything once, and starts a process at work again whenever it has ended.

    python -m tests.real.terminal DIR SOCKET LOG SCALE [--once] [--orphans]

What it starts is always the child of the same process, so it comes back under the same key, and within milliseconds.
With --orphans it is a child of whoever takes the orphans of this machine: then all are of one parent, and what comes
back may have another key. Standard output has one line for each thing that happens: ``PID starts``, ``PID ROLE thread
CHAT/NUMBER``, ``PID ends with STATUS`` (negative: the signal that ended it; of an orphan ``PID ends``).

SOCKET is that of `update_server`, LOG of `tenure.adapters.testing.history`, SCALE shortens all timings.

The text of a message is what its handler does: ``takes 0.3`` waits so many seconds in the middle, ``awaits NAME`` until
there is a file LOG.NAME, ``fails 2`` raises in its first two attempts. A file LOG.dies.TERMINAL (the terminal's pid)
says where the next process there dies that comes there: ``before Class.method`` or ``after Class.method``, one of
`MORTAL`. LOG.kept has a line for each promise, see `KEPT`. SIGTERM ends a process in order; with --once nothing is
started again.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tenure.adapters.bus.messages.json_values import JsonValue
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.roles import Following, Leading, Role
from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.handoff.recipient import Recipient
from tenure.adapters.handoff.relay import Relay
from tenure.adapters.handoff.way import FleetWay
from tenure.adapters.testing.history import Execution, What, written
from tenure.adapters.work.intake import Intake
from tenure.adapters.work.items import Item
from tenure.adapters.work.journaling import JournalInbox, JournalOutbox, JournalReceipts
from tenure.adapters.work.source import update_id
from tenure.adapters.work.workplace import Workplace
from tests.real.update_server import UpdateClient

MORTAL: Final = (
    (JournalHandoffs, ("offer", "cancel", "accept")),
    (FleetWay, ("send",)),
    (Recipient, ("accept",)),
    (Relay, ("pass_on",)),
    (JournalReceipts, ("take", "start", "complete")),
    (JournalOutbox, ("forward", "keep", "acknowledged")),
    (JournalInbox, ("record",)),
    (Intake, ("deliver",)),
)
"""Where a process may be told to die."""


KEPT: Final[dict[str, Callable[[Any], str]]] = {
    "deliver": lambda request: str(request.delivery.source_update_id),
    "complete": lambda held: str(held.receipt_id),
}
"""What was promised, and to whom: a line of LOG.kept each, once it has been done in the journal."""


def mortal(log: str) -> None:
    """From now on this process, and who it forks, dies where a file says so, and writes down what it has promised."""
    kept = os.open(f"{log}.kept", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def dies(when: str) -> None:
        path = f"{log}.dies.{os.getppid()}"
        with suppress(OSError):
            if Path(path).read_text() == when:
                os.unlink(path)
                os.kill(os.getpid(), signal.SIGKILL)

    def wrap(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        async def replaced(*arguments: Any, **named: Any) -> Any:
            dies(f"before {owner.__name__}.{name}")
            result = await original(*arguments, **named)
            if name in KEPT:
                os.write(kept, f"{name} {KEPT[name](arguments[1])}\n".encode())
            dies(f"after {owner.__name__}.{name}")
            return result

        setattr(owner, name, replaced)

    for owner, names in MORTAL:
        for name in names:
            wrap(owner, name)


def _text(update: JsonValue) -> str:
    message = update.get("message") if isinstance(update, dict) else None
    text = message.get("text") if isinstance(message, dict) else None
    return text if isinstance(text, str) else ""


async def work(directory: str, socket: str, log: str, scale: str) -> None:
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
        if takes := re.search(r"takes ([0-9.]+)", text):
            await asyncio.sleep(float(takes[1]))
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
        source=UpdateClient(socket),
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


def _child(*arguments: str) -> None:
    """Never returns."""
    status = 1
    try:
        print(f"{os.getpid()} starts", flush=True)
        asyncio.run(work(*arguments))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _orphan(*arguments: str) -> None:
    """One whose parent ends before it begins; until it has ended."""
    reading, writing = os.pipe()
    between = os.fork()
    if not between:
        above = os.getpid()
        pid = os.fork()
        if pid:
            os.write(writing, f"{pid}\n".encode())
            os._exit(0)
        while os.getppid() == above:
            time.sleep(0.001)
        os.close(reading)
        os.close(writing)
        _child(*arguments)
    os.waitpid(between, 0)
    os.close(writing)
    pid = int(os.read(reading, 100))
    os.close(reading)
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [])
        os.close(descriptor)
    print(f"{pid} ends", flush=True)


def main(*arguments: str, once: bool, orphans: bool) -> None:
    """Until it is killed."""
    mortal(arguments[2])
    while True:
        if orphans:
            _orphan(*arguments)
        else:
            pid = os.fork()
            if not pid:
                _child(*arguments)
            _, ended = os.waitpid(pid, 0)
            print(f"{pid} ends with {os.waitstatus_to_exitcode(ended)}", flush=True)
        if once:
            return


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(*words, once="--once" in sys.argv, orphans="--orphans" in sys.argv)
