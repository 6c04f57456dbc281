"""The command ``tenure handoff``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, Literal

import attrs
import typer

from tenure.adapters.commands.deciding import person
from tenure.adapters.commands.journaling import AsJson, Directory, Profile, print_json, require_journal
from tenure.adapters.commands.root import app
from tenure.adapters.errors import TenureError, printable

if TYPE_CHECKING:
    from tenure.adapters.journal.decisions import Decision
    from tenure.adapters.journal.journal import Journal
    from tenure.adapters.journal.moves import Move
    from tenure.adapters.journal.rows import ReceiptRow, ServerRow
    from tenure.adapters.journal.transaction import Transaction
    from tenure.adapters.looking.instances import Known
    from tenure.adapters.looking.journal_place import Place
    from tenure.adapters.ports import Ports

_LOOK_MS: Final = 100
"""How often is looked what has come of it: reading holds nobody up for longer than that takes."""

Ending = Literal["moved", "there", "refused", "executed", "stuck", "late"]
"""moved: it is the other's, or was, and is done there. there: it was before. refused: it stays where it is. executed:
where it was, before it could be moved. stuck: it waits for a person. late: nothing has come of it yet."""


@app.command(short_help="move a queued item to another instance")
def handoff(
    directory: Directory,
    receipt: Annotated[
        str,
        typer.Argument(
            metavar="RECEIPT",
            help="A receipt or delivery id, the first digits of its hash, at least 6, or an update id.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(metavar="INSTANCE", help="Who is to have it: an instance id, a pid, a slot or a thread's name."),
    ],
    profile: Profile = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            max=3_600.0,
            help="How long to wait until it has moved. Who has it gives up after 30 s, and says why.",
        ),
    ] = 40.0,
    as_json: AsJson = False,
) -> None:
    """Move a receipt that has not begun to another instance of the fleet: whoever has it is asked to offer it, and the
    other accepts. Waits until it has moved, was refused, or was executed, and says which and why.

    An owner that is proven dead offers nothing: what it had is made pending first. Whoever serves its binding, or the
    leader, takes it then, and offers it on. Who has begun an item keeps it.

        tenure handoff ~/agent 3f2a9c1b04 --to B

    With --json: receipt, to, outcome (moved, there, refused, executed, stuck, late), why, state, owner.

    Exit status: 0 when it is there; 1 when it is not, or not in time: then it is still asked for, and may move later; 2
    for a RECEIPT or INSTANCE that is not there or not the only one, or a journal that cannot be used.
    """
    from tenure.adapters.files.host import real_ports
    from tenure.adapters.journal.journal import Journal
    from tenure.adapters.journal.liveness import ProcessLiveness
    from tenure.adapters.looking import journal_look, journal_place
    from tenure.adapters.looking.instances import fleet_of, meant, present
    from tenure.adapters.looking.journal_look import patiently

    place, ports = journal_place.place_in(directory, profile), real_ports()
    require_journal(ports, place)
    name, servers = journal_look.look(ports, place.path, _find(receipt, place))
    liveness = ProcessLiveness(ports.processes)
    who = meant(to, present(servers, fleet_of(ports, place.directory, place.key), liveness))
    if who.dead:
        raise TenureError(f"--to {to}: {who} is dead; name one that lives, or let who serves its binding next take it")
    if not who.serves:
        raise TenureError(
            f"--to {to}: {who} does not work out of this journal, so it cannot take what is in it; "
            f"{place.command('journal list')} shows who does"
        )
    with patiently(lambda: Journal.open(ports, place.directory, place.key, create=False)) as opened:
        course = _Course(ports, place, opened, name, who)
        ended = course.begin() or course.wait(round(wait * 1_000))
    if as_json:
        print_json(
            {
                "receipt": name,
                "to": who.instance,
                "outcome": ended.ending,
                "why": ended.why,
                "state": ended.state,
                "owner": ended.owner,
            }
        )
    else:
        typer.echo(printable(ended.why))
    raise typer.Exit(0 if ended.ending in ("moved", "there") else 1)


def _find(receipt: str, place: Place) -> Callable[[Transaction], tuple[str, tuple[ServerRow, ...]]]:
    """The whole id of the one receipt that is meant, and who serves what."""
    from tenure.adapters.journal import looking
    from tenure.adapters.journal.servers import servers
    from tenure.adapters.looking.journal_names import resolve, short

    def work(transaction: Transaction) -> tuple[str, tuple[ServerRow, ...]]:
        whole = resolve(transaction, receipt, place.command("journal list"))
        item = looking.item(transaction, whole)
        rights = [row for row in item.receipts if row.settled_at is None] or list(item.receipts)
        if not rights:
            raise TenureError(
                f"{receipt}: no instance has it yet, so there is nothing to hand over; "
                f"{place.command('why', whole)} tells what it waits for"
            )
        if len(rights) > 1:
            named = ", ".join(short(row.receipt_id) for row in rights)
            raise TenureError(f"{receipt}: it has several receipts: {named}; name one of them")
        return rights[0].receipt_id, servers(transaction)

    return work


@attrs.frozen
class _Ended:
    """What has come of it. `why`: one line for a person."""

    ending: Ending
    why: str
    state: str | None
    owner: str | None


@attrs.frozen
class _Seen:
    """The receipt, the wish, and what was decided, as of one moment."""

    row: ReceiptRow | None
    move: Move | None
    life: tuple[Decision, ...]


@attrs.define
class _Course:
    """One wish, from asking to its end. `since`: the last decision about the receipt before it was asked for."""

    ports: Ports
    place: Place
    journal: Journal
    receipt: str
    to: Known
    since: int | None = None

    def begin(self) -> _Ended | None:
        """Ask for it; an ending where there is nothing to ask for."""
        from tenure.adapters.journal.liveness import ProcessLiveness
        from tenure.adapters.looking.journal_look import patiently

        seen = self._look()
        owner = None if seen.row is None else seen.row.data.owner
        if owner is not None and owner.instance == self.to.instance:
            return self._end("there", f"it is at {self.to} already", seen)
        if owner is not None and ProcessLiveness(self.ports.processes).evidence(owner.process) == "dead":
            self._recover(str(owner.acquisition), f"{owner.instance}, which had it, is dead")
            seen = self._look()
        ended = self._over(seen)
        if ended is not None:
            return ended
        self.since = max((decision.seq for decision in seen.life), default=0)
        # Of what is settled by now, `wait` says so.
        patiently(lambda: self.journal.ask_move(self.receipt, self.to.instance))
        return None

    def wait(self, patience_ms: int) -> _Ended:
        """Until it has moved or cannot any more, or the time is over."""
        until = self.ports.clock.monotonic_ms() + patience_ms
        seen = self._look()
        while True:
            ended = self._over(seen)
            if ended is not None:
                return ended
            left = until - self.ports.clock.monotonic_ms()
            if left <= 0:
                return self._end("late", f"not in time: {self._where(seen)}; it is still asked for", seen)
            self.ports.clock.sleep_ms(min(_LOOK_MS, left))
            seen = self._look()

    def _recover(self, acquisition: str, why: str) -> None:
        from tenure.adapters.journal.liveness import process_name
        from tenure.adapters.looking.journal_look import patiently
        from tenure.machines.chart import Refused
        from tenure.machines.receipt_messages import Party

        me = Party(person(), process_name(self.ports.processes.me()), 0)
        if not isinstance(patiently(lambda: self.journal.recover(self.receipt, acquisition, me)), Refused):
            typer.echo(printable(f"{why}: recovered"), err=True)

    def _look(self) -> _Seen:
        from tenure.adapters.journal import looking, moves, receipts
        from tenure.adapters.looking import journal_look

        def read(transaction: Transaction) -> _Seen:
            row, move = receipts.find(transaction, self.receipt), moves.move_of(transaction, self.receipt)
            told = [one for one in looking.life(transaction, self.receipt) if one.subject == self.receipt]
            return _Seen(row, move, tuple(told))

        return journal_look.look(self.ports, self.place.path, read)

    def _over(self, seen: _Seen) -> _Ended | None:
        """How it has ended, if it has."""
        from tenure.adapters.looking.journal_names import short

        row, since = seen.row, self.since
        if row is None:
            return self._end("refused", "it is settled and forgotten", seen)
        owner, to = row.data.owner, self.to.instance
        new = [] if since is None else [one for one in seen.life if one.seq > since and one.party == to]
        came = any(one.action in ("accept", "take") and not one.detail.startswith("refused") for one in new)
        if owner is not None and owner.instance == to:
            return self._end("moved", f"moved to {self.to}: {row.phase} there", seen)
        if came:
            return self._end("moved", f"moved to {self.to}; by now it is {row.phase}", seen)
        name = short(self.receipt)
        why = self.place.command("why", name)
        match row.phase:
            case "started":
                return self._end("refused", f"{self._where(seen)}: it has begun, and is not moved any more", seen)
            case "done":
                by = next((f" by {one.party}" for one in reversed(seen.life) if one.action == "complete"), "")
                return self._end("executed", f"it was executed{by} before it could be moved; see {why}", seen)
            case "discarded":
                return self._end("refused", f"a person has discarded it; see {why}", seen)
            case "interrupted" | "failed":
                retry = self.place.command("journal retry", name)
                return self._end("stuck", f"it is {row.phase}, and waits for a person: {retry}", seen)
        if since is not None and seen.move is not None and seen.move.outcome is not None:
            return self._end("refused", f"not moved: {seen.move.outcome}", seen)
        return None

    def _where(self, seen: _Seen) -> str:
        from tenure.adapters.looking.journal_look import lives
        from tenure.adapters.looking.journal_wording import owner

        row = seen.row
        if row is None or row.data.owner is None:
            return "nobody has taken it" if row is None else f"it is {row.phase}, and nobody has taken it"
        return f"it is {row.phase} at {owner(row.data.owner, lives(self.ports, [row.data.owner.process]))}"

    def _end(self, ending: Ending, why: str, seen: _Seen) -> _Ended:
        from tenure.adapters.looking.journal_names import short

        row = seen.row
        owner = None if row is None or row.data.owner is None else row.data.owner.instance
        return _Ended(ending, f"{short(self.receipt)}: {why}", None if row is None else row.phase, owner)
