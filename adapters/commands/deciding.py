"""The commands ``tenure journal retry``, ``discard`` and ``release``: what a person decides."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import attrs
import typer

from tenure.adapters.commands.journaling import AsJson, Directory, Id, Profile, journal, print_json, require_journal
from tenure.adapters.errors import TenureError, printable

if TYPE_CHECKING:
    from tenure.adapters.journal.journal import Journal
    from tenure.adapters.journal.looking import Item
    from tenure.adapters.looking.journal_place import Place
    from tenure.machines.chart import Refused

REFUSED: Final = 1

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether that is meant.")]


@journal.command(short_help="have it done again, or tried now")
def retry(directory: Directory, name: Id, profile: Profile = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Have a receipt executed again that was interrupted or has failed, or an update tried now that waits for its time.

    Nobody knows what came of an interrupted one: done again, it may be done twice. That is for a person to decide; who
    has decided it stands in tenure why.

        tenure journal retry ~/agent 3f2a9c1b04 --yes

    With --json: id, action, by, done, state, refused {state, guards [{guard, law, says}]}.

    Exit status: 0; 1 when the machine refuses, as for what runs or is done, or at a no; 2 for an ID that is not there
    or not the only one, or a journal that cannot be used.
    """

    def asks(found: Target) -> str:
        if found.phase == "interrupted":
            return f"{found.said} was interrupted: if its effect happened, it happens twice. Do it again?"
        return f"{found.said} is {found.phase}. Try it again?"

    def acts(opened: Journal, found: Target, by: str) -> object:
        if found.update is not None:
            return opened.retry_update(found.update, by)
        return opened.retry(found.name, by)

    _decide("retry", directory, profile, name, yes, as_json, asks, acts)


@journal.command(short_help="give it up: it is never executed")
def discard(directory: Directory, name: Id, profile: Profile = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Give up an update that no instance has yet, or a receipt that is pending, interrupted or failed: it is never
    executed.

    Who has decided that stands in tenure why.

        tenure journal discard ~/agent 123456789 --yes

    With --json and exit status: as of retry.
    """

    def asks(found: Target) -> str:
        return f"{found.said} is {found.phase}. Give it up, so that it is never executed?"

    def acts(opened: Journal, found: Target, by: str) -> object:
        if found.update is not None:
            return opened.discard_update(found.update, by)
        return opened.discard(found.name, by)

    _decide("discard", directory, profile, name, yes, as_json, asks, acts)


@journal.command(short_help="let an update go to another binding")
def release(directory: Directory, name: Id, profile: Profile = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let an update go elsewhere that is bound to a binding which is gone for ever.

    An update that was sent to an instance once is sent to nobody else, since that instance may have it though its
    answer was lost. Only a person knows that it never comes back.

        tenure journal release ~/agent 123456789 --yes

    With --json and exit status: as of retry.
    """

    def asks(found: Target) -> str:
        return f"{found.said} is {found.phase}{found.bound}. Is that binding gone for ever?"

    def acts(opened: Journal, found: Target, by: str) -> object:
        assert found.update is not None, "nothing else is found"
        return opened.release_update(found.update, by, gone=True)

    _decide("release", directory, profile, name, yes, as_json, asks, acts)


# -- one decision -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Target:
    """What a decision is about: an update that is not delivered yet (`update` is its id), or a receipt. `said`: how a
    person calls it; `bound`: to whom an update is."""

    name: str
    phase: str
    said: str
    update: int | None = None
    bound: str = ""


def _decide(
    action: str,
    directory: str,
    profile: str | None,
    name: str,
    yes: bool,
    as_json: bool,
    asks: Callable[[Target], str],
    acts: Callable[[Journal, Target, str], object],
) -> None:
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.journal.journal import Journal
    from tenure.adapters.looking import journal_look, journal_place
    from tenure.adapters.looking.journal_look import patiently
    from tenure.adapters.looking.journal_names import find
    from tenure.machines.chart import Refused

    place, ports, by = journal_place.place_in(directory, profile), real_ports(), person()
    require_journal(ports, place)
    whole, item = journal_look.look(ports, place.path, find(name, place.command("journal list")))
    found = target(whole, item, place, action)
    if not yes:
        _confirm(asks(found))
    with patiently(lambda: Journal.open(ports, place.directory, place.key, create=False)) as opened:
        answer = patiently(lambda: acts(opened, found, by))
        state = patiently(lambda: _state(opened, found))
    refused = answer if isinstance(answer, Refused) else None
    if as_json:
        print_json(_as_json(action, found, by, state, refused))
    elif refused is None:
        typer.echo(printable(f"{found.said}: {found.phase} -> {state}, by {by}"))
    else:
        for line in refusal(action, found, refused):
            typer.echo(printable(line), err=True)
    raise typer.Exit(0 if refused is None else REFUSED)


def target(whole: str, item: Item, place: Place, action: str) -> Target:
    """What a whole id means to a decision: an update as long as no instance has it, then its receipt. Raises
    `TenureError` where nothing of it is kept, and where it has several receipts that a decision could be about."""
    from tenure.adapters.looking.journal_look import LIVE_UPDATES
    from tenure.adapters.looking.journal_names import short

    row = item.update
    if row is not None and whole.isdecimal() and (row.phase in LIVE_UPDATES or not item.receipts):
        bound = ", bound to nobody" if row.data.binding is None else f", bound to {row.data.binding}"
        return Target(whole, row.phase, f"update {whole}", row.data.update, bound)
    rights = [right for right in item.receipts if right.settled_at is None] or list(item.receipts)
    if not rights:
        raise TenureError(
            f"{whole}: nothing of it is left to {action}; {place.command('why', whole)} tells what is known"
        )
    if action == "release":
        has = f"an instance has it, and its receipt {short(rights[0].receipt_id)} is {rights[0].phase}"
        raise TenureError(f"{whole}: {has}; only an update that no instance has is released")
    if len(rights) > 1:
        named = ", ".join(short(right.receipt_id) for right in rights)
        raise TenureError(f"{whole}: it has several receipts: {named}; name one of them")
    right = rights[0]
    return Target(right.receipt_id, right.phase, f"receipt {short(right.receipt_id)}")


def _state(opened: Journal, found: Target) -> str | None:
    row = opened.receipt(found.name) if found.update is None else opened.update(found.update)
    return None if row is None else row.phase


def refusal(action: str, found: Target, refused: Refused) -> list[str]:
    """Why a machine refuses, in words: each guard with its law and what it says."""
    from tenure.adapters.looking.journal_story import meanings

    known = meanings(found.name if found.update is None else str(found.update))
    said = [f"tenure: {found.said} is {refused.phase}: {action} is refused; nothing was changed"]
    for guard in refused.guards:
        law, says = known.get(guard, ("", ""))
        said.append(f"  {law or 'no law'}, {guard}: {says}")
    if not refused.guards:
        said.append(f"  what is {refused.phase} cannot be {_DONE[action]}")
    return said


_DONE: Final = {"retry": "retried", "discard": "discarded", "release": "released"}


def _as_json(action: str, found: Target, by: str, state: str | None, refused: Refused | None) -> dict[str, object]:
    from tenure.adapters.looking.journal_story import meanings

    known = meanings(found.name if found.update is None else str(found.update))
    why: dict[str, object] | None = None
    if refused is not None:
        guards = [(guard, *known.get(guard, ("", ""))) for guard in refused.guards]
        why = {
            "state": refused.phase,
            "guards": [{"guard": guard, "law": law or None, "says": says or None} for guard, law, says in guards],
        }
    return {"id": found.name, "action": action, "by": by, "done": refused is None, "state": state, "refused": why}


def _confirm(question: str) -> None:
    """Ask a person. Raises `TenureError` where nobody can be asked; ends with status 1 at a no."""
    if not sys.stdin.isatty():
        raise TenureError(f"{question} Nobody can be asked here: say --yes if that is meant; nothing was changed")
    if not typer.confirm(printable(question), err=True):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(REFUSED)


def person() -> str:
    """Who runs this command, as it stands in the decisions: the user's name and uid."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = "a user without a name"
    return f"{name} (uid {uid})"
