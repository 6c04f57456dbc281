"""Every machine, told any messages in any order: it always answers, and refuses without leaving a mark.

A rule-based run of each machine that is found, from its initial phase with any data, with messages from the strategies
and not only those that a world would send. The stage `reach` makes the same walk, faster, to see that it gets
everywhere.
"""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tenure.adapters import strategies
from tenure.adapters.machines_found import Machine, machines
from tenure.machines.chart import Refused, Step, chosen, step
from tenure.machines.laws import Kind


def stateful(machine: Machine) -> type[RuleBasedStateMachine]:
    """The rule-based run of one machine."""
    words, table = strategies.Vocabulary.of(machine), machine.table
    prohibitions = [name for name, mark in table.guards.items() if mark.kind is Kind.GUARD]
    permissive = {name: table.without(name) for name in prohibitions}

    class Run(RuleBasedStateMachine):
        phase = table.initial
        memory: Any = None

        @initialize(first=strategies.data(machine, words))
        def start(self, first: Any) -> None:
            self.memory = first

        @rule(message=strategies.messages(machine, words))
        def told(self, message: Any) -> None:
            """The machine answers; what it refuses, it refuses again, and the guards it names are its own."""
            kept = copy.deepcopy(self.memory)
            answer = step(table, self.phase, self.memory, message)

            assert self.memory == kept
            assert answer == step(table, self.phase, self.memory, message)
            row = chosen(table, self.phase, self.memory, message)
            if isinstance(answer, Refused):
                assert answer == row
                assert (answer.phase, answer.event) == (self.phase, message.event)
                assert set(answer.guards) <= table.guards.keys()
                assert bool(answer.guards) == bool(table.rows[self.phase][message.event])
                return
            assert not isinstance(row, Refused)
            assert row.target == answer.phase
            assert isinstance(answer.outputs, tuple)
            self.phase, self.memory = answer.phase, answer.data

        @precondition(lambda self: bool(prohibitions))
        @rule(message=strategies.messages(machine, words))
        def told_without_a_guard(self, message: Any) -> None:
            """Taking a prohibition away never takes an event away."""
            if isinstance(step(table, self.phase, self.memory, message), Step):
                for name, weaker in permissive.items():
                    holds = chosen(weaker, self.phase, self.memory, message)
                    assert not isinstance(holds, Refused), f"{name} off refuses {message} in {self.phase}"

        @invariant()
        def is_a_value(self) -> None:
            """Phase and data are values of their types: they hash, compare and copy."""
            assert self.phase in table.phases
            if self.memory is not None:
                assert isinstance(self.memory, machine.data or object)
                assert hash(self.memory) == hash(copy.deepcopy(self.memory))

    Run.__name__ = Run.__qualname__ = f"{machine.name}Run"
    return Run


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_machine(machine: Machine) -> None:
    """The rules hold in every run of every machine."""
    run_state_machine_as_test(stateful(machine), settings=settings())


@pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.name)
def test_messages_and_data_are_frozen(machine: Machine) -> None:
    """What a machine is told and what it remembers are frozen attrs values."""
    for kind in (*machine.messages, *((machine.data,) if machine.data else ())):
        assert attrs.has(kind), f"{kind.__name__} is no attrs class"
        assert kind.__setattr__ is not object.__setattr__, f"{kind.__name__} is not frozen"
