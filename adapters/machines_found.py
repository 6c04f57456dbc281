"""Which machines there are: every chart of `tenure.machines` with its table and the classes of its messages and data.

Nobody lists machines by hand. What walks over "every machine" (golden texts, `reach`, `spec/GUARDS.md`) asks here, so
a new machine is covered from its first day.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import attrs
from statemachine import StateMachine

import tenure.machines
from tenure.machines.chart import Table

_PACKAGE: Final = tenure.machines.__name__


@attrs.frozen
class Machine:
    """A chart, its table, and the types that its table is annotated with (`Table[data, messages, output]`)."""

    module: str
    chart: type[StateMachine]
    table: Table[Any, Any, Any]
    data: type | None
    messages: tuple[type, ...]

    @property
    def name(self) -> str:
        """The chart's name, which is the table's."""
        return self.table.name


@cache
def machines() -> tuple[Machine, ...]:
    """Every machine of `tenure.machines`, in the order of module names.

    Raises TypeError for a chart that no table of its module is compiled from: nothing would run it.
    """
    names = [f"{_PACKAGE}.{info.name}" for info in pkgutil.iter_modules(tenure.machines.__path__)]
    return tuple(machine for name in names for machine in _machines_of(importlib.import_module(name)))


def machine_of(table: Table[Any, Any, Any]) -> Machine:
    """The machine that `table` belongs to, also when some of its guards are off.

    Looks in the modules that are imported already: whoever has the table has its module. Raises KeyError for a table
    that is not one of `tenure.machines`.
    """
    for name, module in sorted(sys.modules.items()):
        if name.startswith(f"{_PACKAGE}."):
            for machine in _machines_of(module):
                if machine.name == table.name:
                    return machine
    raise KeyError(f"{table.name} is no machine of {_PACKAGE}")


@cache
def _machines_of(module: types.ModuleType) -> tuple[Machine, ...]:
    tables = {v.name: (k, v) for k, v in vars(module).items() if isinstance(v, Table)}
    found: list[Machine] = []
    for chart in _charts(module):
        if chart.__name__ not in tables:
            raise TypeError(f"{module.__name__}: no table is compiled from {chart.__name__}")
        attribute, table = tables[chart.__name__]
        data, messages = _types(module, attribute, table)
        found.append(Machine(module.__name__.rpartition(".")[2], chart, table, data, messages))
    return tuple(found)


def _charts(module: types.ModuleType) -> Iterator[type[StateMachine]]:
    for value in vars(module).values():
        mine = isinstance(value, type) and value.__module__ == module.__name__
        if mine and issubclass(value, StateMachine) and value.states:
            yield value


def _types(
    module: types.ModuleType, attribute: str, table: Table[Any, Any, Any]
) -> tuple[type | None, tuple[type, ...]]:
    """The arguments of the table's annotation; without one, the module's classes that name one of its events."""
    # Not get_type_hints: it refuses the bare `Final` that constants of a module carry.
    annotation = vars(module).get("__annotations__", {}).get(attribute)
    if isinstance(annotation, str):
        annotation = eval(annotation, vars(module))
    if typing.get_origin(annotation) is Final:
        (annotation,) = typing.get_args(annotation)
    arguments = typing.get_args(annotation)
    if len(arguments) == 3:
        return arguments[0], tuple(_members(arguments[1]))
    named = (v for v in vars(module).values() if isinstance(v, type) and getattr(v, "event", None) in table.events)
    return None, tuple(named)


def _members(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    else:
        for member in typing.get_args(annotation):
            yield from _members(member)
