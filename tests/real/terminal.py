"""A terminal, for tests: it loads everything once, and starts a process at work again whenever it has ended.

    python -m tests.real.terminal DIR SOCKET LOG SCALE [--once] [--orphans]

What it starts is always the child of the same process, so it comes back under the same key, and within milliseconds.
With --orphans it is a child of whoever takes the orphans of this machine: then all are of one parent, and what comes
back may have another key. Standard output has one line for each thing that happens: ``PID starts``, ``PID ROLE thread
CHAT/NUMBER``, ``PID ends with STATUS`` (negative: the signal that ended it; of an orphan ``PID ends``).

What a process is told and does is said in `tests.real.work_process`. A file LOG.dies.TERMINAL (the terminal's pid) says
where the next process there dies that comes there: ``before Class.method`` or ``after Class.method``, one of `MORTAL`.
LOG.kept has a line for each promise, see `KEPT`. With --once nothing is started again.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tenure.adapters.handoff.journal import JournalHandoffs
from tenure.adapters.handoff.recipient import Recipient
from tenure.adapters.handoff.relay import Relay
from tenure.adapters.handoff.way import FleetWay
from tenure.adapters.work.intake import Intake
from tenure.adapters.work.journaling import JournalInbox, JournalOutbox, JournalReceipts
from tests.real.work_process import work

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
