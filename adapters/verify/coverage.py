"""What an exploration takes of the machines' tables: rows and refusals, counted in the answers of `chosen`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from tenure.adapters.verify.probes import probe
from tenure.adapters.verify.spelling import spelled
from tenure.machines.chart import Message, Refused, Row, Step, Table, chosen
from tenure.machines.laws import Kind
from tenure.models.world import World


@attrs.frozen
class Taken:
    """What was taken, as text so that it can be kept."""

    actions: frozenset[str]
    rows: frozenset[str]
    refusals: frozenset[str]
    refusing: frozenset[str]
    """Guards that stopped a row at least once, whether the event was refused then or a later row took it."""
    answers: frozenset[str] = frozenset()
    """What each row answered: row, a hash of (data, message, outputs), and the outputs, as `answer` joins them."""

    def __or__(self, other: Taken) -> Taken:
        return Taken(
            self.actions | other.actions,
            self.rows | other.rows,
            self.refusals | other.refusals,
            self.refusing | other.refusing,
            self.answers | other.answers,
        )


NOTHING = Taken(frozenset(), frozenset(), frozenset(), frozenset())


class Recorder:
    """Takes the place of a world's `step` and remembers each distinct answer."""

    def __init__(self) -> None:
        self.row_of: dict[tuple[str, int], Row[Any, Any, Any]] = {}
        self.refused: set[tuple[str, str, str, tuple[str, ...]]] = set()
        self.passed_over: set[str] = set()
        self.met: dict[tuple[str, str], tuple[Table[Any, Any, Any], dict[Any, None]]] = {}
        self.sample: dict[tuple[str, str], Message] = {}
        self.answered: dict[tuple[str, int], dict[Any, None]] = {}
        self.asked: dict[tuple[str, str], dict[tuple[Any, Any], None]] = {}
        self.known: dict[tuple[str, str, Any, Message], Step[Any, Any] | Refused] = {}

    def step(self, table: Table[Any, Any, Any], phase: str, data: Any, message: Message) -> Step[Any, Any] | Refused:
        """As `tenure.machines.chart.step`; what was asked before is answered as before, since machines only compute."""
        question = (table.name, phase, data, message)
        found = self.known.get(question)
        if found is None:
            found = self.known[question] = self._answer(table, phase, data, message)
        return found

    def _answer(self, table: Table[Any, Any, Any], phase: str, data: Any, message: Message) -> Step[Any, Any] | Refused:
        row = chosen(table, phase, data, message)
        self.met.setdefault((table.name, phase), (table, {}))[1][data] = None
        self.sample.setdefault((table.name, message.event), message)
        if table.rows[phase][message.event]:
            self.asked.setdefault((table.name, message.event), {})[data, message] = None
        if isinstance(row, Refused):
            self.refused.add((table.name, phase, row.event, row.guards))
            return row
        key = (table.name, id(row))
        if key not in self.row_of:
            self.row_of[key] = row
        for earlier in table.rows[phase][message.event]:
            if earlier is row:
                break
            self.passed_over.update(next((g.name,) for g in earlier.guards if not g.holds(data, message)))
        after, outputs = (data, ()) if row.effect is None else row.effect(data, message)
        self.answered.setdefault(key, {})[data, message, after, outputs] = None
        return Step(row.target, after, outputs)

    def sweep(self) -> None:
        """Tell every machine, in every phase and with all data that were met, what its table always refuses there.

        A world has no reason to send an answer that nobody asked for; a late one may arrive all the same.
        """
        for (name, phase), (table, met) in self.met.items():
            for event, rows in table.rows[phase].items():
                message = self.sample.get((name, event))
                if rows or message is None:
                    continue
                for data in met:
                    answer = chosen(table, phase, data, message)
                    if isinstance(answer, Refused):
                        self.refused.add((name, phase, event, answer.guards))

    def attach(self, world: World[Any]) -> None:
        """Record what `world` does from now on."""
        world.step = self.step

    def taken(self, actions: Iterable[str]) -> Taken:
        """What was recorded and swept, with the actions that the graph shows."""
        self.sweep()
        return Taken(
            frozenset(actions),
            frozenset(name_of_row(table, row) for (table, _), row in self.row_of.items()),
            frozenset(name_of_refusal(*refusal) for refusal in self.refused),
            frozenset(guard for *_, guards in self.refused for guard in guards) | self.passed_over,
            frozenset(self._answers()),
        )

    def _answers(self) -> Iterator[str]:
        for key, answered in self.answered.items():
            name = name_of_row(key[0], self.row_of[key])
            for data, message, after, outputs in answered:
                yield answer(name, (data, message), after, outputs)
        for table in {name: table for (name, _), (table, _) in self.met.items()}.values():
            for guard, digest, shown in probe(table, self._questions(table.name)):
                yield f"{table.name}: guard {guard}\t{digest}\t{shown}"

    def _questions(self, table: str) -> Callable[[str], Iterable[tuple[Any, Any]]]:
        return lambda event: self.asked.get((table, event), ())


def answer(row: str, asked: object, after: object, outputs: tuple[object, ...]) -> str:
    """One answer of a row, as text: the same in every process, and different when memory or any output is."""
    shown = ", ".join(map(spelled, outputs)) or "nothing"
    digest = hashlib.sha256(f"{spelled(asked)} {spelled(after)} {shown}".encode()).hexdigest()[:16]
    return f"{row}\t{digest}\t{shown}"


def name_of_row(table: str, row: Row[Any, Any, Any]) -> str:
    """A row of a table, as the golden text has it."""
    does = f" / {row.effect_name}" if row.effect_name else ""
    return f"{table}: {row}{does}"


def name_of_refusal(table: str, phase: str, event: str, guards: tuple[str, ...]) -> str:
    """A refusal, with the guards that refused it; none where the table has no row at all."""
    return f"{table}: {phase} {event} refused [{', '.join(guards)}]"


def missing(world: World[Any], taken: Taken) -> list[tuple[str, str]]:
    """What the configurations of a module never take together: (thing, message)."""
    found: list[tuple[str, str]] = []
    for action in world.actions():
        if action.mutant and action.name in taken.actions:
            found.append((action.name, f"action {action.name} is taken although {action.mutant} is on"))
        elif not action.mutant and action.name not in taken.actions:
            found.append((action.name, f"action {action.name} is never taken in any configuration"))
    for table in world.tables:
        for row in table:
            name = name_of_row(table.name, row)
            if name not in taken.rows:
                found.append((name, f"row {name} is never taken in any configuration"))
        for phase in table.phases:
            for event in table.events:
                name = name_of_refusal(table.name, phase, event, ())
                if not table.rows[phase][event] and name not in taken.refusals:
                    found.append((name, f"{name}: never tried in any configuration"))
        for guard, mark in table.guards.items():
            # A permit need not: it may be a permission without conditions, there to be taken away.
            if mark.kind is Kind.GUARD and guard not in taken.refusing:
                found.append((guard, f"guard {guard} of {table.name} never refuses anything in any configuration"))
    return found
