"""The commands ``tenure journal list``, ``show`` and ``backup``: looking at a journal, and copying it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tenure.adapters.commands.root import app
from tenure.adapters.errors import TenureError, printable

if TYPE_CHECKING:
    from tenure.adapters.looking.journal_place import Place
    from tenure.adapters.ports import Ports

journal = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What was polled, what waits, what runs, and what a person has to decide.",
)
app.add_typer(journal, name="journal", short_help="what was polled, what waits, what runs")

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The agent directory.")]
Source = Annotated[str, typer.Argument(metavar="DIR", help="The agent directory, or the file of a backup.")]
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An update id, a delivery or receipt id, or the first digits of its hash, at least 6 of them.",
    ),
]
Profile = Annotated[
    str | None, typer.Option(metavar="NAME", help="The journal of this profile; the default's if not given.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_SHOWN: Final = 2_000
"""Characters of a body that are shown; --json has all of them."""


@journal.callback()
def root() -> None:
    """What was polled, what waits, what runs, and what a person has to decide.

    The journal is DIR/tmp/telegram/journal.db, or journal.NAME.db for a profile. Looking changes nothing, whether
    anybody runs or not.
    """


@journal.command(name="list", short_help="what is unsettled, and who has it")
def list_(
    directory: Source,
    profile: Profile = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is settled, as long as that is remembered.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=10_000,
            help="So many updates, and as many receipts, at most; of what is settled so many more.",
        ),
    ] = 1_000,
    as_json: AsJson = False,
) -> None:
    """List the updates and receipts of DIR that are unsettled: state, binding, who owns them and since when, offers,
    attempts, when they are tried next; who serves which binding; and what waits for a person, with the commands that
    settle it.

    DIR may be the file of a backup, or the journal of a directory that was copied while everything ran: what a dead
    process had begun in it is undone first.

        tenure journal list ~/agent --all

    With --json: profile, path, exists, atMs, bot, fence, passed, opened, totals, servers, updates, receipts,
    waitsForPerson, more.

    Exit status: 0, also where there is no journal (it says so); 2 when it cannot be read.
    """
    from tenure.adapters.commands.saying import say
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.looking import journal_look, journal_place, journal_wording
    from tenure.adapters.looking.journal_json import list_json
    from tenure.adapters.looking.line import Line

    place, ports = journal_place.place_to_read(directory, profile), real_ports()
    found, lives = None, {}
    if journal_look.there(ports, place.path):
        found = journal_look.look(ports, place.path, journal_look.listing(place.path, limit, everything))
        lives = dict(journal_look.lives(ports, found.processes))
    if as_json:
        print_json(list_json(found, place, lives))
        return
    if found is None:
        lines: tuple[Line, ...] = (Line("journal", f"there is none yet at {place.path}"),)
    else:
        lines = journal_wording.lines(found, place, lives)
    if not place.backup:
        lines += journal_wording.others(journal_look.journals_in(ports, place.directory), place)
    say(place.path, lines)


@journal.command(short_help="one update, delivery or receipt, whole")
def show(directory: Source, name: Id, profile: Profile = None, as_json: AsJson = False) -> None:
    """Show one update, delivery or receipt, and what belongs to it: every field, and the first 2,000 characters of what
    it carries; all of that with --json. What is settled has no body any more.

        tenure journal show ~/agent 3f2a9c1b04

    With --json: id, update, deliveries, receipts, each with its body as the text that stands in the journal.

    Exit status: 0; 2 for an ID that is not there or not the only one, or a journal that cannot be read.
    """
    from tenure.adapters.commands.saying import say
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.looking import journal_look, journal_place
    from tenure.adapters.looking.journal_json import item_json
    from tenure.adapters.looking.journal_names import find
    from tenure.adapters.looking.journal_whole import item_lines, processes_of

    place, ports = journal_place.place_to_read(directory, profile), real_ports()
    require_journal(ports, place)
    whole, item = journal_look.look(ports, place.path, find(name, place.command("journal list")))
    lives = journal_look.lives(ports, processes_of(item))
    if as_json:
        print_json(item_json(whole, item, lives))
        return
    say(f"{place.path}: {whole}", item_lines(item, lives, ports.clock.wall_ms(), _SHOWN))


@journal.command(short_help="copy the journal while others use it")
def backup(
    directory: Directory,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where the copy is to be; nothing may stand there.")],
    profile: Profile = None,
    as_json: AsJson = False,
) -> None:
    """Copy the journal of DIR to FILE, as of one moment, while others go on with it. FILE is there as a whole, on the
    disk, or not at all.

    FILE opens like a journal: tenure journal list FILE. To go back to it, put it in the place of journal.db while
    nobody runs; what was executed since then is executed again.

        tenure journal backup ~/agent /backups/monday.db

    With --json: path, bytes, updates, receipts, tombstones, decisions.

    Exit status: 0; 2 when something stands at FILE, when it cannot be written, or when there is no journal.
    """
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.journal.journal import Journal
    from tenure.adapters.looking import journal_glance, journal_look, journal_place, journal_wording
    from tenure.adapters.looking.journal_look import patiently

    place, ports = journal_place.place_in(directory, profile), real_ports()
    require_journal(ports, place)
    if not file:
        raise TenureError("FILE is empty; name where the copy is to be")
    target = os.path.abspath(file)
    if not os.path.isdir(os.path.dirname(target)):
        raise TenureError(f"{printable(file)}: there is no such directory to put it into; make it first")
    with patiently(lambda: Journal.open(ports, place.directory, place.key, create=False)) as opened:
        patiently(lambda: opened.backup(target))
    counted = journal_look.look(ports, target, lambda t: (journal_look.counts(t), t.meta))
    counts, meta = counted
    size = os.stat(target).st_size
    if as_json:
        print_json(
            {
                "path": target,
                "bytes": size,
                "updates": sum(counts.updates.values()),
                "receipts": sum(counts.receipts.values()),
                "tombstones": meta.tombstones,
                "decisions": meta.decisions,
            }
        )
        return
    said = journal_glance.tally(counts) or "nothing is unsettled"
    typer.echo(
        printable(
            f"{target}: {journal_wording.amount(size)}; {said}; {meta.tombstones} settled rows, "
            f"{meta.decisions} decisions"
        )
    )


# -- what the other commands about a journal need ---------------------------------------------------------------------


def require_journal(ports: Ports, place: Place) -> None:
    """Raises `TenureError` where there is none. Nothing is made."""
    from tenure.adapters.looking.journal_look import there

    if not there(ports, place.path):
        raise TenureError(f"{place.path}: there is no journal yet; it is made where somebody leads with one")


def print_json(value: dict[str, object]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()
