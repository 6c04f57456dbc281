"""The command ``tenure import``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tenure.adapters.commands.deciding import person
from tenure.adapters.commands.journaling import Directory, Profile
from tenure.adapters.commands.root import app
from tenure.adapters.errors import TenureError, printable


class Failed(StrEnum):
    """What to do with updates that have failed for good."""

    RETRY = "retry"
    DISCARD = "discard"


@app.command(name="import", short_help="take over what the other system left")
def import_(
    directory: Directory,
    profile: Profile = None,
    failed: Annotated[
        Failed | None, typer.Option(help="What becomes of updates that have failed there for good.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken over.")] = False,
) -> None:
    """Take over the updates that the other system has left in DIR, in the inboxes of its leader and of its followers:
    nobody of ours leads over them. End all of its processes first.

    They are put into the journal, all of them in one transaction, and are executed as soon as somebody leads; then the
    files are moved to DIR/tmp/telegram/recovery. What cannot be read to its end, is of another bot, or may be worked on
    by a living process is refused, and all the rest with it. If this is killed, run it again. Threads are not taken
    over: it says so where the other system has left some, since nobody of ours leads over them either.

        tenure import ~/agent --dry-run

    Exit status: 0, also where there is nothing; 2 when it is refused: nothing was changed.
    """
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.fleet.threads.projection import refuse_unfit
    from tenure.adapters.journal.foreign import amount, states
    from tenure.adapters.looking import foreign_import, journal_place
    from tenure.adapters.looking.journal_wording import amount as size

    place, ports = journal_place.place_in(directory, profile), real_ports()
    choice: foreign_import.Failed | None = None if failed is None else failed.value
    found = foreign_import.plan(ports, place.directory, place.key, choice)
    if not found.paths:
        typer.echo(printable(f"{place.directory.state}: the other system has left no inbox there"))
        return
    done = None
    if not dry_run:
        done = foreign_import.take_over(ports, place.directory, place.key, choice, person())
    for inbox in found.inboxes:
        held = states(inbox.entries) or "nothing"
        typer.echo(printable(f"{inbox.path}: of {inbox.bot}, revision {inbox.revision}: {held}"))
    for leftover in found.leftovers:
        typer.echo(printable(f"{leftover.path}: only segments of it were there, which are taken over"))
    if done is None:
        typer.echo(f"would take over {amount(len(found.updates))} ({size(foreign_import.bytes_of(found))})")
        return
    again = f", {done.known} were there already" if done.known else ""
    given_up = f", {done.discarded} of them given up" if done.discarded else ""
    typer.echo(f"took over {amount(done.new)}{again}{given_up}")
    for moved in done.moved:
        typer.echo(printable(f"moved {moved.source} to {moved.target}"))
    try:
        refuse_unfit(ports.files, place.directory, place.key)
    except TenureError as error:
        typer.echo(printable(f"note: {error}"))
