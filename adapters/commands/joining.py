"""The command ``tenure join``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tenure.adapters.commands.root import app
from tenure.adapters.errors import TenureError, printable

if TYPE_CHECKING:
    from tenure.adapters.fleet.member import Member
    from tenure.adapters.fleet.roles import Role

_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@app.command()
def join(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")],
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Join this profile's fleet.")] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="What to call this process.")] = None,
    lease: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, max=86_400.0, help="How long a lease lasts; the same for all of DIR."),
    ] = 8.0,
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

    Exit status: 128 + N when signal N ended it (SIGINT, SIGTERM, SIGHUP: it leaves in order); 2 usage, or something
    that a person has to mend.
    """
    from tenure.adapters.files.directory import agent_directory, registry_key
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.files.timings import DEFAULT
    from tenure.adapters.fleet.member import Member
    from tenure.machines.thread_names import valid_name

    where = agent_directory(directory)
    registry_key(profile)
    if name is not None and not valid_name(name):
        raise TenureError(f"--name {printable(name)}: give one word of the letters A-Z and a-z, the first a capital")
    recorder = None
    if trace is not None:
        from tenure.adapters.trace.recorder import TraceRecorder

        recorder = TraceRecorder(trace)
    ports = real_ports(recorder=recorder)
    timings = DEFAULT.scaled(lease * 1000 / DEFAULT.stale_ms)

    async def run() -> int:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        member = Member(
            where, profile=profile, name=name, ports=ports, timings=timings, on_role=lambda role: _print(role, ended)
        )
        return await _until_ended(member, ended, goodbye)

    raise typer.Exit(asyncio.run(run()))


async def _until_ended(member: Member, ended: asyncio.Future[int], goodbye: bool) -> int:
    """Be a member until a signal comes; the exit status."""
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, _end, ended, 128 + number)
    async with member:
        joining = asyncio.ensure_future(member.join())
        waiting: tuple[asyncio.Future[Role], asyncio.Future[int]] = (joining, ended)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if joining.done():
            joining.result()
        status = await ended
        joining.cancel()
        why = await member.leave(goodbye=goodbye)
        if why:
            sys.stderr.write(f"tenure: the goodbye was not confirmed: {printable(why)}\n")
    return status


def _end(ended: asyncio.Future[int], status: int) -> None:
    if not ended.done():
        ended.set_result(status)


def _print(role: Role, ended: asyncio.Future[int]) -> None:
    try:
        sys.stdout.write(f"{printable(str(role))}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more. What Python still has is not to be written at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _end(ended, 128 + signal.SIGPIPE)
    except OSError as error:
        sys.stderr.write(f"tenure: standard output: {error.strerror}\n")
        _end(ended, 2)
