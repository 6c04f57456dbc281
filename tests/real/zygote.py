"""Starts `tenure` without the seconds that loading it takes: a process that has loaded everything forks on request.

One JSON object a line on standard input: ``{"arguments": [...], "environment": {...}, "directory": ..., "stdout": ...,
"stderr": ..., "ignored": [signals]}``. One a line on standard output: ``{"pid": N}`` at once, ``{"ended": N,
"status": S}`` later. What it starts is as if started by a shell: a session of its own, default signals.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress

import tenure.adapters.commands
import tenure.adapters.files.host
import tenure.adapters.fleet.member
import tenure.adapters.lead.errand  # noqa: F401
from tenure.adapters import cli
from tenure.adapters.files import lease
from tenure.adapters.lead import employer, group, guardian, lock, supervisor

ROOMS = (lease, lock, group, guardian, employer, supervisor)


def say(**fields: object) -> None:
    """Tell the test."""
    os.write(1, (json.dumps(fields) + "\n").encode())


def die_at(place: str, flag: str) -> None:
    """Be killed at a place, ``before|after:Class.method``, once: the process that makes the file `flag` dies."""
    when, name = place.split(":")
    name, method = name.split(".")
    owner = next(vars(room)[name] for room in ROOMS if name in vars(room))
    original = getattr(owner, method)

    def die() -> None:
        with suppress(FileExistsError):
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)

    def replaced(*arguments: object, **named: object) -> object:
        if when == "before":
            die()
        result = original(*arguments, **named)
        if when == "after":
            die()
        return result

    setattr(owner, method, replaced)


def start(request: dict[str, object]) -> None:
    """Fork and become `tenure`."""
    pid = os.fork()
    if pid:
        say(pid=pid)
        return
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in request["ignored"]:  # type: ignore[attr-defined]
            signal.signal(number, signal.SIG_IGN)
        os.chdir(str(request["directory"]))
        os.environ.clear()
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(str(request[name]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
        os.closerange(3, 64)
        if request.get("die_at"):
            die_at(str(request["die_at"]), str(request["flag"]))
        cli.main(request["arguments"])  # type: ignore[arg-type]
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def main() -> None:
    """Until the test closes standard input."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(write)
    say(ready=True)
    rest = b""
    while True:
        ready, _, _ = select.select([0, read], [], [])
        if read in ready:
            os.read(read, 4096)
            try:
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    code = os.waitstatus_to_exitcode(ended[1])
                    say(ended=ended[0], status=code if code >= 0 else 128 - code)
            except ChildProcessError:
                pass
        if 0 in ready:
            found = os.read(0, 65536)
            if not found:
                return
            *lines, rest = (rest + found).split(b"\n")
            for line in lines:
                start(json.loads(line))


if __name__ == "__main__":
    main()
