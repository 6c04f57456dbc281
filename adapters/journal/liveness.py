"""Whether the process lives that a row names: the port, and the real one (bus.md d, LIVENESS; I22).

It is asked inside the transaction that acts on the answer; what was known before that says nothing (M22c).
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from tenure.adapters.ports import Processes
from tenure.machines.identity import RUNNING, Birth, Process, proven_dead
from tenure.machines.receipt_messages import Evidence

_NAME: Final = re.compile(r"([1-9][0-9]{0,9}):start:([0-9]{1,20})@([^/]{0,64})/([0-9]{1,20})")


class Liveness(Protocol):
    """What is known of a process at this moment."""

    def evidence(self, process: str) -> Evidence:
        """alive, dead, or unknown where there is no stable proof of either. Never raises."""


def process_name(process: Process) -> str:
    """A process as the journal's rows name it: one text of its pid and its birth, `<pid>:start:<ticks>@<boot>/<pid
    namespace>`, of which the part before the @ is its processBirthId on the bus."""
    birth = process.birth
    return f"{process.pid}:start:{birth.ticks}@{birth.boot_id}/{birth.namespace}"


def process_named(name: str) -> Process | None:
    """The process that a row names; None for what `process_name` did not write, and then it proves nothing."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Process(int(found[1]), Birth(int(found[2]), found[3], int(found[4])))


class ProcessLiveness:
    """The processes of this machine."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def evidence(self, process: str) -> Evidence:
        named = process_named(process)
        if named is None:
            return "unknown"
        me = self._processes.me()
        if named == me:
            return "alive"
        seen = self._processes.sighting(named.pid)
        if proven_dead(named.birth, seen, me):
            return "dead"
        here = (named.birth.boot_id, named.birth.namespace) == (me.birth.boot_id, me.birth.namespace)
        return "alive" if here and seen.state == RUNNING and seen.ticks == named.birth.ticks else "unknown"
