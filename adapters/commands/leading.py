"""The command ``tenure lead``."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Annotated, Final

import attrs
import typer

from tenure.adapters.commands.root import Lease, Running, app
from tenure.adapters.errors import TenureError

_DELAY_MS: Final = 5.0
"""How long a supervisor waits for a busy guard between two attempts: a takeover should not wait for a long one."""


@app.command(cls=Running, short_help="run COMMAND while this process leads")
def lead(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="What runs while leading; after --.")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Lead under this profile's key.")] = None,
    lease: Lease = 8.0,
    kill_after: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.0, max=86_400.0, help="How long after SIGTERM SIGKILL follows."),
    ] = 2.0,
    trace: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Record into this directory, for tenure trace check.")
    ] = None,
) -> None:
    """Run COMMAND while this process leads DIR, and stand by while another does.

    COMMAND finds its fencing token in TENURE_EPOCH, and DIR and NAME in TENURE_DIR and TENURE_PROFILE. When the lease
    is lost, or this process is killed or stopped, COMMAND's process group is ended, and only then can a successor's
    COMMAND start. SIGINT, SIGTERM and SIGHUP are passed on to COMMAND, which goes on if it ignores them, and end a
    process that stands by.

    Exit status: COMMAND's own, 128 + N when a signal ended it; 126 or 127 when it cannot be executed; 2 usage, a
    COMMAND that is not found, or something that a person has to mend.
    """
    # What is needed to lead is loaded and forked before there is anything to lead.
    from tenure.adapters.files.directory import agent_directory, registry_key
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.files.timings import DEFAULT
    from tenure.adapters.lead.guardian import Work
    from tenure.adapters.lead.supervisor import FORWARDED, Supervisor, to_stderr
    from tenure.machines.lease import DEFAULT_KEY

    for descriptor in range(3):
        open_if_closed(descriptor)
    where, key = agent_directory(directory), registry_key(profile)
    if not command:
        raise TenureError("lead: no COMMAND; say what to run: tenure lead DIR -- COMMAND...")
    if shutil.which(command[0]) is None and not os.path.exists(command[0]):
        raise TenureError(f"{command[0]}: command not found; name one on PATH, or its path")
    lock = where.work_lock(key)
    if os.path.lexists(lock) and not (os.path.isfile(lock) and not os.path.islink(lock)):
        raise TenureError(f"{lock}: not a regular file; move it away, tenure lead locks it")
    if os.path.exists(lock) and not os.access(lock, os.R_OK | os.W_OK):
        raise TenureError(f"{lock}: no permission to write; make it writable for this user")
    environment = {**os.environ, "TENURE_DIR": where.root, "TENURE_PROFILE": key}
    if key == DEFAULT_KEY:
        del environment["TENURE_PROFILE"]
    scaled = DEFAULT.scaled(lease * 1000 / DEFAULT.stale_ms)
    timings = attrs.evolve(
        scaled,
        delay_ms=min(scaled.delay_ms, _DELAY_MS),
        rename_delay_ms=min(scaled.rename_delay_ms, DEFAULT.rename_delay_ms),
    )
    work = Work(
        command=tuple(command),
        environment=environment,
        lock=lock,
        kill_after_ms=round(kill_after * 1000),
        ignored=frozenset(
            number
            for number in (*FORWARDED, signal.SIGQUIT, signal.SIGCHLD)
            if signal.getsignal(number) == signal.SIG_IGN
        ),
        supervisor=os.getpid(),
    )
    recorder = None
    if trace is not None:
        from tenure.adapters.trace.recorder import TraceRecorder

        recorder = TraceRecorder(trace)
    raise typer.Exit(Supervisor(real_ports(recorder=recorder), where, key, timings, work, to_stderr).run())


def open_if_closed(descriptor: int) -> None:
    """A standard stream that somebody closed: else the lock would have its number, and COMMAND would write to it."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
