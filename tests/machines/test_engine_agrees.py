"""The library's own engine runs the charts as `step` runs their tables (DESIGN 4).

Production never starts the engine: it costs some 200 us an event. Here it runs every call that an exploration of any
compared configuration makes, each distinct (phase, data, message) once, and must agree: the same phase, the same data
and outputs, and `TransitionNotAllowed` exactly where `step` refuses.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statemachine import StateMachine
from statemachine.exceptions import TransitionNotAllowed

from tenure.adapters.machines_found import machine_of, machines
from tenure.adapters.strategies import calls
from tenure.adapters.verify.manifest import ModuleEntry, load, spec_directory
from tenure.machines.chart import Refused, Step, Table, step

MOST = 20_000
"""Distinct calls the engine is given for one configuration; of more, a fixed sample (a smaller one is complete)."""

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
    """Assert that engine and table give one answer."""
    ours, theirs = step(table, phase, data, message), engine(chart, phase, data, message)
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
    done: set[Call] = set()
    complete = False
    for config in entry.configs:
        found = distinct_calls(entry, config)
        assert found or not entry.twin.tables, f"{entry.name}_{config} never asks a machine through World.step"
        complete = complete or len(found) <= MOST
        fresh = [call for call in found if call not in done]
        if len(found) > MOST:
            fresh = random.Random(0).sample(fresh, min(MOST, len(fresh)))
            print(f"{entry.name}_{config}: {len(found)} distinct calls, {len(fresh)} of them given to the engine")
        for name, phase, data, message in fresh:
            table = next(t for t in entry.twin.tables if t.name == name)
            agrees(machine_of(table).chart, table, phase, data, message)
        done.update(fresh)
    assert complete, f"{entry.name}: no configuration has at most {MOST} distinct calls"


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_engine_agrees_on_any_message(machine: Any) -> None:
    """Also on calls that no world makes: any phase, any data, any message."""

    @given(st.data())
    def run(data: st.DataObject) -> None:
        agrees(machine.chart, machine.table, *data.draw(calls(machine)))

    run()
