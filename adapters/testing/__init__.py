"""The test kit for those who build on tenure: a world in which every call can fail, and time passes when told.

    from tenure.adapters.testing import FakeAgent

    agent = FakeAgent()                       # an agent directory, clocks and processes, all in memory
    a, b = agent.process(), agent.process()
    assert a.leadership().acquire()           # the real adapters, over fake ports
    agent.kill(a)
    assert isinstance(b.leadership().acquire(), Elected)
    agent.assert_explained()                  # everything that happened is a behaviour of the specification

With pytest, ``pytest_plugins = ["tenure.adapters.testing.plugin"]`` gives the same as fixtures.

| file | what is in it |
|---|---|
| `agent` | an agent directory in memory, and the processes around it |
| `memory`, `registry` | ports without a world; the registry of a test |
| `faulty`, `databases` | files, and databases, that fail on demand |
| `history` | what became of work, from what all processes say and from the journal |
| `plugin` | the kit as pytest fixtures |
| `updates` | a queue of updates in a process of its own |
"""

from __future__ import annotations

from tenure.adapters.testing.agent import FakeAgent, FakeProcess
from tenure.adapters.testing.faulty import ERRORS, Call, Fails, Fault, FaultyFiles, Kills, Plan, at, nth, script
from tenure.adapters.testing.history import Execution, judge, read_executions, written
from tenure.adapters.testing.memory import (
    CountedIdentities,
    FakeClock,
    FakeProcesses,
    MemoryFiles,
    Notes,
    memory_ports,
)
from tenure.adapters.testing.registry import MemoryRegistry
from tenure.adapters.trace.api import MemoryRecorder, TraceRecorder, Verdict, assert_explained, explained

__all__ = [
    "ERRORS",
    "Call",
    "CountedIdentities",
    "Execution",
    "Fails",
    "FakeAgent",
    "FakeClock",
    "FakeProcess",
    "FakeProcesses",
    "Fault",
    "FaultyFiles",
    "Kills",
    "MemoryFiles",
    "MemoryRecorder",
    "MemoryRegistry",
    "Notes",
    "Plan",
    "TraceRecorder",
    "Verdict",
    "assert_explained",
    "at",
    "explained",
    "judge",
    "memory_ports",
    "nth",
    "read_executions",
    "script",
    "written",
]
