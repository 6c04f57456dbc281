"""The command ``tenure commit``."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Annotated, Final

import attrs
import typer

from tenure.adapters.commands.root import Lease, Running, app
from tenure.adapters.errors import TenureError, printable

STALE: Final = 5
"""The exit status when the epoch is not that of a live lease."""
TIMED_OUT: Final = 124
USAGE: Final = 2
_DELAY_MS: Final = 5.0
"""How often a busy lock or guard is tried: a commit is short, and so is the wait for one."""


@app.command(cls=Running, short_help="run CMD under a live epoch")
def commit(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")],
    epoch: Annotated[
        str, typer.Option(metavar="N", help="The epoch under which this was decided: TENURE_EPOCH of tenure lead.")
    ],
    command: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="What runs; after --.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="The profile whose key it is about.")] = None,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.01, max=3_600.0, help="When CMD is ended. Others wait, the owner's renewal too."
        ),
    ] = 1.0,
    lease: Lease = 8.0,
) -> None:
    """Run CMD inside the ownership transaction of DIR if N is the current epoch of a live lease.

    While CMD runs nobody else can become the owner, and no other commit of this key runs. CMD finds N in TENURE_EPOCH.
    When the time is over, or this process is asked to end, CMD and all that it has started get SIGTERM, soon SIGKILL;
    also what CMD leaves behind when it ends by itself. When this process is killed, the kernel kills CMD.

    Exit status: CMD's own, 128 + N when a signal ended it; 124 when its time was over; 126 or 127 when it cannot be
    executed; 5 when N is not the current epoch (nor any, as a word is not) or its lease is not live, and CMD has not
    run; 2 usage, a CMD that is not found, something that a person has to mend, or a lock or a guard that stayed busy.
    """
    from tenure.adapters.files.directory import agent_directory, registry_key
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.files.timings import DEFAULT
    from tenure.adapters.lead.commit import Bounds, Committer
    from tenure.adapters.lead.errand import ProcessErrand
    from tenure.machines.fenced_commit import COMMIT_GRACE_MS, epoch_named

    where, key = agent_directory(directory), registry_key(profile)
    if not epoch:
        raise TenureError("commit: --epoch is empty; it is TENURE_EPOCH of the COMMAND of tenure lead")
    if not command:
        raise TenureError("commit: no CMD; say what to run: tenure commit DIR --epoch N -- CMD...")
    if shutil.which(command[0]) is None and not os.path.exists(command[0]):
        raise TenureError(f"{command[0]}: command not found; name one on PATH, or its path")
    lock = where.commit_lock(key)
    if os.path.lexists(lock) and not (os.path.isfile(lock) and not os.path.islink(lock)):
        raise TenureError(f"{lock}: not a regular file; move it away, tenure commit locks it")
    patience_ms = DEFAULT.attempts * DEFAULT.delay_ms
    timings = attrs.evolve(
        DEFAULT, stale_ms=round(lease * 1_000), delay_ms=_DELAY_MS, attempts=round(patience_ms / _DELAY_MS)
    )
    bounds = Bounds(round(timeout * 1_000), COMMIT_GRACE_MS)
    errand = ProcessErrand(command, os.environ, lock)
    try:
        committer = Committer(real_ports(), where, key, timings, bounds, errand.open_lock, errand)
        verdict = committer.run(epoch_named(epoch))
    finally:
        errand.close()
    said = verdict.said
    if verdict.answer == "interrupted" and errand.asked is not None:
        said = f"interrupted by {signal.Signals(errand.asked).name}"
    if said:
        typer.echo(f"tenure: {printable(said)}", err=True)
    statuses = {
        "ended": errand.status,
        "timed_out": TIMED_OUT,
        "interrupted": 128 + (errand.asked or 0),
        "stale": STALE,
        "unreadable": USAGE,
        "busy": USAGE,
    }
    raise typer.Exit(statuses[verdict.answer] or 0)
