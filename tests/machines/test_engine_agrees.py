"""The library's own engine runs the charts as `step` runs their tables (DESIGN 4).

Production never starts the engine: it costs some 200 us an event. Here it runs every call that an exploration of any
compared configuration makes, each distinct (phase, data, message) once, and must agree: the same phase, the same data
and outputs, and `TransitionNotAllowed` exactly where `step` refuses.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from statemachine import StateMachine
from statemachine.exceptions import TransitionNotAllowed

from tenure.adapters.machines_found import machine_of, machines
from tenure.adapters.strategies import calls
from tenure.adapters.verify.manifest import ModuleEntry, load, spec_directory
from tenure.machines.chart import Refused, Step, Table, step

Call = tuple[str, str, Any, Any]


class Engine:
    """The library's engine on one chart. To make a machine takes it twenty times as long as an event does, so machines
    stay where an event has left them, and the next call in that phase is theirs."""

    def __init__(self, chart: type[StateMachine]) -> None:
        self._chart = chart
        self._standing: dict[str, StateMachine] = {}

    def step(self, phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
        """What it makes of one message. A machine whose guard raises is not used again."""
        machine = self._standing.pop(phase, None) or self._chart(start_value=phase)
        refused, result = False, None
        try:
            result = machine.send(message.event, data=data, message=message)
        except TransitionNotAllowed:
            refused = True
        (now,) = machine.configuration
        self._standing[now.id] = machine
        if refused:
            assert phase == now.id
            return Refused(message.event, phase, ())
        after, outputs = (data, ()) if result is None else result
        return Step(now.id, after, outputs)


def agrees(engine: Engine, table: Table[Any, Any, Any], phase: str, data: Any, message: Any) -> None:
    """Assert that engine and table give one answer, or raise alike on data that no machine in this phase would have."""
    try:
        ours = step(table, phase, data, message)
    except Exception as error:
        with pytest.raises(type(error)):
            engine.step(phase, data, message)
        return
    theirs = engine.step(phase, data, message)
    if isinstance(ours, Refused):
        assert isinstance(theirs, Refused), f"step refuses {message} in {phase}, the engine takes it"
    else:
        assert ours == theirs


def distinct_calls(entry: ModuleEntry, config: str) -> list[Call]:
    """Every (table, phase, data, message) that exploring this configuration asks a machine, in order of appearance."""
    world = entry.world(config)
    seen: dict[Call, None] = {}

    def recording(table: Table[Any, Any, Any], phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
        seen[table.name, phase, data, message] = None
        return step(table, phase, data, message)

    world.step = recording
    instances = [(action.body, args) for action in world.actions() for args in action.args]
    states = dict.fromkeys(world.initial())
    queue = list(states)
    for state in queue:
        for body, args in instances:
            for after in body(state, *args):
                if after not in states:
                    states[after] = None
                    queue.append(after)
    return list(seen)


@pytest.mark.parametrize("entry", load(spec_directory()).values(), ids=lambda entry: entry.name)
def test_engine_agrees_on_what_is_explored(entry: ModuleEntry) -> None:
    """On each distinct call of each compared configuration, the engine's answer is the table's."""
    assert entry.twin is not None
    tables = {table.name: table for table in entry.twin.tables}
    engines = {name: Engine(machine_of(table).chart) for name, table in tables.items()}
    done: set[Call] = set()
    for config in entry.configs:
        found = distinct_calls(entry, config)
        assert found or not tables, f"{entry.name}_{config} never asks a machine through World.step"
        for call in found:
            if call in done:
                continue
            done.add(call)
            name, phase, data, message = call
            agrees(engines[name], tables[name], phase, data, message)


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_engine_agrees_on_any_message(machine: Any) -> None:
    """Also on calls that no world makes: any phase, any data, any message."""
    engine = Engine(machine.chart)

    @given(calls(machine))
    def run(call: tuple[str, Any, Any]) -> None:
        agrees(engine, machine.table, *call)

    run()
