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


def engine(chart: type[StateMachine], phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
    """What the library's engine makes of one message."""
    machine = chart(start_value=phase)
    try:
        result = machine.send(message.event, data=data, message=message)
    except TransitionNotAllowed:
        result = None
        assert [phase] == [s.id for s in machine.configuration]
        return Refused(message.event, phase, ())
    after, outputs = (data, ()) if result is None else result
    (now,) = machine.configuration
    return Step(now.id, after, outputs)


def agrees(chart: type[StateMachine], table: Table[Any, Any, Any], phase: str, data: Any, message: Any) -> None:
    """Assert that engine and table give one answer, or raise alike on data that no machine in this phase would have."""
    try:
        ours = step(table, phase, data, message)
    except Exception as error:
        with pytest.raises(type(error)):
            engine(chart, phase, data, message)
        return
    theirs = engine(chart, phase, data, message)
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
    done: set[Call] = set()
    for config in entry.configs:
        found = distinct_calls(entry, config)
        assert found or not tables, f"{entry.name}_{config} never asks a machine through World.step"
        for call in found:
            if call in done:
                continue
            done.add(call)
            name, phase, data, message = call
            agrees(machine_of(tables[name]).chart, tables[name], phase, data, message)


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_engine_agrees_on_any_message(machine: Any) -> None:
    """Also on calls that no world makes: any phase, any data, any message."""

    @given(calls(machine))
    def run(call: tuple[str, Any, Any]) -> None:
        agrees(machine.chart, machine.table, *call)

    run()
