"""The commands ``tenure status`` and ``tenure doctor``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import attrs
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tenure.adapters.commands.root import Lease, app, terminal
from tenure.adapters.errors import printable
from tenure.adapters.files.timings import DEFAULT, Timings

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")]
T = TypeVar("T")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_STYLES = {"good": "green", "quiet": "", "warn": "yellow", "bad": "bold red"}
_LABEL = 12
_PERIOD_S = 1.0


@app.command(short_help="who leads, who follows, what is left behind")
def status(
    directory: Directory,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this profile's key; all that are there by default.")
    ] = None,
    lease: Lease = 8.0,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second, until interrupted.")] = False,
) -> None:
    """Say who leads in DIR, under which epoch and how fresh, who follows, with which slot and how fresh, who is inside
    the guards, who keeps COMMAND's lock, what is unsettled in the journals, and what dead processes left. Reads only.

    The leader is asked for its fleet; one that does not answer within a second is said to, and what it published last
    is shown.

    With --json: directory, problem, problems, staleAfterMs, registry, keys, guard, neighbour, recoveryGuard, work,
    commit, highWater, debris, quarantined, fleets, journals; with --watch one object a line.

    Exit status: 0, also when what stands there is damaged (it says so); 2 when DIR cannot be looked at.
    """
    from tenure.adapters.files.directory import agent_directory, registry_key
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.lead.lock import holders, read_record
    from tenure.adapters.looking import status as looking
    from tenure.adapters.looking import status_json, wording
    from tenure.adapters.looking.fleet_look import Asker
    from tenure.adapters.looking.journal_look import at_a_glance

    where = agent_directory(directory)
    key = None if profile is None else registry_key(profile)
    ports, timings = real_ports(), _timings(lease)
    asker = Asker(ports, where, timings)

    def look() -> looking.Status:
        return looking.status(
            ports,
            where,
            key,
            timings,
            lambda path: (read_record(path), holders(path)),
            asker,
            lambda wanted: at_a_glance(ports, where, wanted),
        )

    if as_json:
        for found in _again(look, watch):
            sys.stdout.write(json.dumps(status_json.as_json(found), indent=None if watch else 2) + "\n")
            sys.stdout.flush()
        return
    console = terminal()

    def drawn(found: looking.Status) -> list[Text]:
        lines = wording.lines(found, ports.clock.wall_ms())
        said = [Text(printable(found.directory), style="bold")]
        said += [Text(f"  {line.label:{_LABEL}} {line.text}", style=_STYLES[line.mood]) for line in lines]
        return said

    if watch and console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            for found in _again(look, True):
                live.update(Group(*drawn(found)), refresh=True)
        return
    for number, found in enumerate(_again(look, watch)):
        _print(console, [Text()] * bool(number) + drawn(found))


@app.command(short_help="move what is damaged aside")
def doctor(
    directory: Directory,
    probe: Annotated[
        bool, typer.Option("--probe", help="Heal nothing: measure what this directory and this platform give.")
    ] = False,
    lease: Lease = 8.0,
    as_json: AsJson = False,
) -> None:
    """Move what is damaged in DIR to DIR/tmp/telegram/recovery, if no live owner can be shown, and sweep what dead
    processes left. Deletes nothing that anybody wrote but such debris.

    Exit status: 0 when nothing damaged stays; 1 when something does, since a live process owns it or only a person can
    tell (it says which and what to do); 2 when DIR cannot be read, or what has to be moved cannot be. With --probe: 0
    when tenure can run here, 1 when not.
    """
    from tenure.adapters.files.directory import agent_directory
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.looking import care, probe_report
    from tenure.adapters.looking.probe import probe as measure

    where = agent_directory(directory)
    console = terminal()
    if probe:
        found = measure(where.root)
        if as_json:
            sys.stdout.write(json.dumps(probe_report.as_json(found), indent=2) + "\n")
        else:
            said = [
                Text(f"  {row.name:24} {row.found}{'; ' if row.means else ''}{row.means}", style=_STYLES[row.mood])
                for row in found.rows
            ]
            _print(console, [Text(printable(where.root), style="bold"), *said, Text(probe_report.verdict(found))])
        raise typer.Exit(0 if found.fit else 1)
    report = care.care(real_ports(), where, _timings(lease))
    if as_json:
        sys.stdout.write(json.dumps(care.as_json(report), indent=2) + "\n")
    else:
        _print(console, [Text(line) for line in care.lines(report)])
    raise typer.Exit(0 if report.healthy else 1)


def _timings(lease: float) -> Timings:
    """Those of a directory with leases of so many seconds. The guard is waited for as long as anywhere."""
    return attrs.evolve(DEFAULT, stale_ms=round(lease * 1000))


def _again(look: Callable[[], T], watch: bool) -> Iterator[T]:
    """One look, or one every second."""
    yield look()
    while watch:
        time.sleep(_PERIOD_S)
        yield look()


def _print(console: Console, lines: list[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)
