"""The command ``tenure join``."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tenure.adapters.awaiting import heard
from tenure.adapters.commands.leading import open_if_closed
from tenure.adapters.commands.lines import Lines
from tenure.adapters.commands.root import Lease, app
from tenure.adapters.errors import TenureError, printable

if TYPE_CHECKING:
    from tenure.adapters.fleet.member import Member
    from tenure.adapters.fleet.roles import Role

_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_BAD_INPUT: Final = 2


@app.command(short_help="be a member of the fleet: lead or follow")
def join(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")],
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Join this profile's fleet.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What to call this process; a thread that was kept for this terminal keeps its name."
        ),
    ] = None,
    lease: Lease = 8.0,
    goodbye: Annotated[
        bool, typer.Option("--goodbye", help="When it ends, have the leader take slot and thread away at once.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Record into this directory, for tenure trace check.")
    ] = None,
) -> None:
    """Join the fleet of DIR and print what this process is, one line for each change: it leads, it follows, or it is on
    its way.

    The first to come leads; the others register with it and have slots, A to Z. When the leader dies the smallest slot
    leads next, and the others register with it, each with the slot and the name it had.

    Exit status: 128 + N when signal N ended it (SIGINT, SIGTERM, SIGHUP, or SIGPIPE where nobody reads: it leaves in
    order); 2 usage, or something that a person has to mend before it can be a member for the first time. Later it waits
    until that is mended.
    """
    from tenure.adapters.files.directory import agent_directory, registry_key
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.files.timings import DEFAULT
    from tenure.adapters.fleet.member import Member
    from tenure.machines.thread_names import valid_name

    for descriptor in range(3):
        open_if_closed(descriptor)
    where = agent_directory(directory)
    registry_key(profile)
    if name is not None and not valid_name(name):
        raise TenureError(
            f"--name {name!r}: give one word of two or more of the letters A-Z and a-z, the first a "
            "capital; not Telegram, Leader or Follower"
        )
    recorder = None
    if trace is not None:
        from tenure.adapters.trace.recorder import TraceRecorder

        recorder = TraceRecorder(trace)
    ports = real_ports(recorder=recorder)
    timings = DEFAULT.scaled(lease * 1000 / DEFAULT.stale_ms)

    async def run() -> int:
        console = _Console()
        member = Member(where, profile=profile, name=name, ports=ports, timings=timings, on_role=console.says)
        return await _until_ended(member, console, goodbye)

    try:
        raise typer.Exit(asyncio.run(run()))
    finally:
        if recorder is not None:
            recorder.close()


class _Console:
    """What a person reads, and why it ends."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.error = ""
        self._lines = Lines(self._cannot_write)
        self._member = False
        """It was one once."""
        self._said: set[str] = set()
        """Phases and errors that were said since it was one last."""

    def end(self, status: int, error: str = "") -> None:
        """The first reason counts."""
        if not self.ended.done():
            self.error = error
            self.ended.set_result(status)

    def says(self, role: Role) -> None:
        """One line for each change. What is tried again and again is said once, until something has come of it."""
        from tenure.adapters.fleet.roles import Seeking

        text, parts = str(role), {"", role.phase, role.error} if isinstance(role, Seeking) else set()
        if self.error and not self._member:
            return
        if not isinstance(role, Seeking):
            self._member = True
            self._said.clear()
        elif role.mend and not self._member:
            # It has never got as far as being a member: more likely a mistake than a mishap.
            self.end(_BAD_INPUT, role.error)
            return
        elif parts <= self._said:
            return
        else:
            self._said |= parts
        self._lines.write(text)

    def _cannot_write(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self.end(128 + signal.SIGPIPE)  # nobody reads any more
        else:
            self.end(_BAD_INPUT, f"standard output: {error.strerror}")


async def _until_ended(member: Member, console: _Console, goodbye: bool) -> int:
    """Be a member until a signal comes, or nobody reads; the exit status."""
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, console.end, 128 + number)
    async with member:
        joining = asyncio.ensure_future(member.join())
        heard(joining)
        waiting: tuple[asyncio.Future[Role], asyncio.Future[int]] = (joining, console.ended)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if joining.done():
            joining.result()
        status = await console.ended
        why = await member.leave(goodbye=goodbye)
        await asyncio.wait([joining])
    if why:
        _say(f"the goodbye was not confirmed: {why}")
    if console.error:
        raise TenureError(console.error)
    return status


def _say(text: str) -> None:
    sys.stderr.write(f"tenure: {printable(text)}\n")
