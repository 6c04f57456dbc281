"""Who is dead for certain: only that is ever acted on (I22)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.journal.liveness import ProcessLiveness, process_name, process_named
from tenure.machines.identity import GONE, RUNNING, UNKNOWN, ZOMBIE, Birth, Process, Sighting
from tenure.machines.receipt_messages import Evidence

ME = Process(10, Birth(100, "boot", 7))


class Seen:
    """Processes as they are sighted."""

    def __init__(self, sighting: Sighting) -> None:
        self._sighting = sighting

    def me(self) -> Process:
        """This one."""
        return ME

    def sighting(self, pid: int) -> Sighting:
        """The same of everybody."""
        return self._sighting

    def watch(self, pid: int, birth: Birth | None) -> None:
        """Nobody is watched."""


@pytest.mark.parametrize(
    ("process", "sighting", "evidence"),
    [
        (ME, Sighting(UNKNOWN), "alive"),
        (Process(11, Birth(5, "boot", 7)), Sighting(RUNNING, 5), "alive"),
        (Process(11, Birth(5, "boot", 7)), Sighting(RUNNING, 6), "dead"),  # the pid is another's now
        (Process(11, Birth(5, "boot", 7)), Sighting(GONE), "dead"),
        (Process(11, Birth(5, "boot", 7)), Sighting(ZOMBIE, 5), "dead"),
        (Process(11, Birth(5, "boot", 7)), Sighting(RUNNING), "unknown"),
        (Process(11, Birth(5, "boot", 7)), Sighting(UNKNOWN), "unknown"),
        (Process(11, Birth(5, "boot", 7)), Sighting(UNKNOWN, 5), "unknown"),  # whatever else was seen of it
        (Process(11, Birth(5, "other", 7)), Sighting(RUNNING, 5), "dead"),  # before the last boot
        (Process(11, Birth(5, "boot", 8)), Sighting(GONE), "unknown"),  # another pid namespace
        (Process(11, Birth(5, "boot", 8)), Sighting(RUNNING, 5), "unknown"),
    ],
)
def test_evidence(process: Process, sighting: Sighting, evidence: Evidence) -> None:
    """Three-valued: what cannot be proven is unknown."""
    assert evidence == ProcessLiveness(Seen(sighting)).evidence(process_name(process))


@pytest.mark.parametrize(
    "name", ["", "p1", "11:start:5", "11:generation:x@boot/7", "0:start:5@boot/7", "11:start:5@b/o/7"]
)
def test_a_name_that_proves_nothing(name: str) -> None:
    """What somebody else wrote is unknown, though the pid be gone."""
    assert process_named(name) is None
    assert "unknown" == ProcessLiveness(Seen(Sighting(GONE))).evidence(name)


@given(
    pid=st.integers(1, 2**22),
    ticks=st.integers(0, 2**53),
    boot=st.from_regex(r"[0-9a-f-]{0,36}", fullmatch=True),
    namespace=st.integers(0, 2**32),
)
def test_names_are_read_back(pid: int, ticks: int, boot: str, namespace: int) -> None:
    """One name for one process."""
    process = Process(pid, Birth(ticks, boot, namespace))
    assert process == process_named(process_name(process))
