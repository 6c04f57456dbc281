"""The command ``tenure why``."""

from __future__ import annotations

from tenure.adapters.commands.journaling import AsJson, Id, Profile, Source, print_json, require_journal
from tenure.adapters.commands.root import app


@app.command(short_help="the life of an update or receipt")
def why(directory: Source, name: Id, profile: Profile = None, as_json: AsJson = False) -> None:
    """Tell the life of an update, delivery or receipt over all processes: each decision in its order, when and by whom,
    what has come of it, and the guards that let it pass or refused it, with their laws; then what it waits for now, and
    what would move it.

    What a guard says is told where it is met first, and of every refusal. Where decisions are not kept any more, it
    says how many.

        tenure why ~/agent 123456789

    With --json: id, path, atMs, decisions, missing, untold, waits, servers, update, deliveries, receipts.

    Exit status: 0; 2 for an ID that is not there or not the only one, or a journal that cannot be read.
    """
    from tenure.adapters.commands.saying import say
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.journal.transaction import Transaction
    from tenure.adapters.looking import journal_look, journal_place
    from tenure.adapters.looking.journal_names import resolve
    from tenure.adapters.looking.journal_story import Story, story
    from tenure.adapters.looking.journal_telling import story_json, story_lines

    place, ports = journal_place.place_to_read(directory, profile), real_ports()
    require_journal(ports, place)

    def read(transaction: Transaction) -> Story:
        return story(resolve(transaction, name, place.command("journal list")))(transaction)

    found = journal_look.look(ports, place.path, read)
    lives = journal_look.lives(ports, found.processes)
    if as_json:
        print_json(story_json(found, place, lives))
        return
    say(f"{place.path}: {found.name}", story_lines(found, place, lives))
