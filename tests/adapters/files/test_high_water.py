"""The mark of epochs: read strictly, raised durably, never lowered."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from tenure.adapters.files.high_water import MarkDamaged, raise_mark, read_mark
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.replacing import WriteFailed
from tenure.adapters.files.timings import Timings
from tenure.adapters.testing.faulty import ERRORS, Fails, FaultyFiles, Plan, at, nth
from tenure.adapters.testing.memory import FakeClock, FakeProcesses, MemoryFiles, memory_ports
from tenure.machines.leader_messages import Outcome
from tenure.machines.lease import MAX_EPOCH

MARK = "/agent/epochs.json"
TIMINGS = Timings(rename_attempts=3)


def test_no_mark_is_zero() -> None:
    """Where no epoch was ever minted the first is 1."""
    assert 0 == read_mark(memory_ports(MemoryFiles("/agent")), MARK)


def test_raised_and_read_again() -> None:
    """The file is one line of JSON; file and directory are synced, in this order around the rename."""
    inner = MemoryFiles("/agent")
    files = FaultyFiles(inner)
    ports = memory_ports(inner, processes=FakeProcesses(7), clock=FakeClock(wall_ms=5))
    ports = type(ports)(files, ports.processes, ports.clock, ports.identities, ports.diagnostics)
    raise_mark(ports, MARK, 3, 0, TIMINGS)

    assert b'{"highWater": 3}\n' == inner.data[MARK]
    assert 3 == read_mark(ports, MARK)
    temporary = f"{MARK}.7.5.1.tmp"
    assert [
        ("create", (temporary,)),
        ("sync", (temporary,)),
        ("rename", (temporary, MARK)),
        ("sync", ("/agent",)),
    ] == [(call.name, call.paths) for call in files.calls[:4]]


def test_never_lowered() -> None:
    """A caller that would lower it is wrong."""
    ports = memory_ports(MemoryFiles("/agent"))
    with pytest.raises(ValueError, match="not above"):
        raise_mark(ports, MARK, 3, 3, TIMINGS)
    assert 0 == read_mark(ports, MARK)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"{", "bad JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "bad JSON"),
        (b"{}", "highWater is not an integer"),
        (b'{"highWater": "3"}', "highWater is not an integer"),
        (b'{"highWater": true}', "highWater is not an integer"),
        (b'{"highWater": -1}', "highWater is not an integer"),
        (b'{"highWater": 1.5}', "highWater is not an integer"),
        (f'{{"highWater": {MAX_EPOCH + 1}}}'.encode(), "highWater is not an integer"),
    ],
)
def test_a_damaged_mark_is_an_error_and_not_zero(data: bytes, said: str) -> None:
    """The message is one line that names the file, what is wrong and what to do."""
    files = MemoryFiles("/agent")
    files.create(MARK, data)
    with pytest.raises(MarkDamaged) as caught:
        read_mark(memory_ports(files), MARK)

    assert MARK in str(caught.value)
    assert said in str(caught.value)
    assert '{"highWater": N}' in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_mark_that_cannot_be_read_is_an_error_and_not_zero(number: int) -> None:
    """Silence proves nothing."""
    ports = memory_ports()
    ports = type(ports)(
        FaultyFiles(MemoryFiles("/agent"), nth("read", 1, Fails(number))),
        ports.processes,
        ports.clock,
        ports.identities,
        ports.diagnostics,
    )
    with pytest.raises(MarkDamaged, match=MARK):
        read_mark(ports, MARK)


def _raised(plan: Plan) -> tuple[MemoryFiles, WriteFailed | None]:
    """The mark was 2 and is raised to 3 while `plan` goes on."""
    inner = MemoryFiles("/agent")
    inner.create(MARK, b'{"highWater": 2}\n')
    base = memory_ports()
    ports = type(base)(FaultyFiles(inner, plan), base.processes, base.clock, base.identities, base.diagnostics)
    try:
        raise_mark(ports, MARK, 3, 2, TIMINGS)
    except WriteFailed as failed:
        return inner, failed
    return inner, None


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("call", range(4))
def test_any_call_fails(call: int, number: int, when: str) -> None:
    """Whatever fails: the mark is 2 or 3, never anything else; not an error means 3; nothing is left lying about."""
    inner, failed = _raised(at(call, Fails(number, "before" if when == "before" else "after")))
    mark = json.loads(inner.data[MARK])["highWater"]

    assert mark in (2, 3)
    if failed is None:
        assert 3 == mark
        assert number in (errno.EPERM, errno.EBUSY), "only what may pass is tried again"
    elif failed.outcome is Outcome.FAILED:
        assert 2 == mark
    assert ["epochs.json"] == list(inner.entries("/agent"))


def test_what_may_pass_is_tried_again_with_longer_sleeps() -> None:
    """EBUSY twice: two sleeps, 25 and 50 ms, and a new temporary name each time."""
    inner, clock = MemoryFiles("/agent"), FakeClock()
    slept: list[float] = []
    clock.on_sleep = slept.append
    base = memory_ports(clock=clock)
    files = FaultyFiles(inner, lambda call: Fails(errno.EBUSY) if call.name == "rename" else None)
    ports = type(base)(files, base.processes, clock, base.identities, base.diagnostics)
    with pytest.raises(WriteFailed) as caught:
        raise_mark(ports, MARK, 3, 0, TIMINGS)

    assert Outcome.FAILED is caught.value.outcome
    assert [25.0, 50.0] == slept
    assert 3 == len({call.paths[0] for call in files.calls if call.name == "rename"})


def test_in_a_real_directory(tmp_path: Path) -> None:
    """Mode 0600, and nothing beside it."""
    mark = tmp_path / "epochs.json"
    ports = real_ports()
    raise_mark(ports, str(mark), 1, 0, TIMINGS)
    raise_mark(ports, str(mark), 9, 1, TIMINGS)

    assert 9 == read_mark(ports, str(mark))
    assert 0o600 == mark.stat().st_mode & 0o777
    assert [mark] == list(tmp_path.iterdir())
