"""Its tests: the fixtures and the plain objects of the kit, nothing else of tenure's repository."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from bot import Bot

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime, NotOwner
from tenure.adapters.testing import (
    Fails,
    FakeAgent,
    FakeClock,
    FaultyFiles,
    Kills,
    MemoryFiles,
    TraceRecorder,
    assert_explained,
    at,
    nth,
)

Saved = list[tuple[int, int]]


def test_a_second_bot_waits_and_takes_over(fake_agent: FakeAgent) -> None:
    """Killed in the middle; the successor has a higher epoch. The fixture checks the recording."""
    saved: Saved = []
    first, second = fake_agent.process(), fake_agent.process()
    one = Bot(first.lease(), lambda *value: saved.append(value))
    two = Bot(second.lease(), lambda *value: saved.append(value))
    assert one.start()
    assert not two.start()
    one.tick()

    fake_agent.kill(first)
    assert two.start()
    two.tick()

    assert saved == [(1, 1), (2, 1)]
    assert fake_agent.registry.keys == ("default",)


def test_a_bot_that_slept_past_its_lease_counts_no_more(fake_agent: FakeAgent) -> None:
    """Time passes when told; the displaced one is refused at its next effect."""
    saved: Saved = []
    one = Bot(fake_agent.process().lease(), lambda *value: saved.append(value))
    two = Bot(fake_agent.process().lease(), lambda *value: saved.append(value))
    assert one.start()
    fake_agent.clock.advance(fake_agent.timings.stale_ms + 1)
    assert two.start()

    with pytest.raises(NotOwner):
        one.tick()
    two.tick()
    assert saved == [(2, 1)]


def test_a_full_disk_is_no_leader(fake_agent: FakeAgent) -> None:
    """Every call can fail."""
    process = fake_agent.process(lambda call: Fails(errno.ENOSPC) if call.name == "create" else None)

    assert not Bot(process.lease(), lambda *value: None).start()
    assert fake_agent.registry.text is None


def test_the_plain_objects(fake_clock: FakeClock, memory_files: MemoryFiles, faulty_files: FaultyFiles) -> None:
    """Without an agent."""
    before = fake_clock.monotonic_ms()
    fake_clock.sleep_ms(20)
    assert fake_clock.monotonic_ms() == before + 20
    faulty_files.plan = nth("create", 1, Kills())
    memory_files.make_directories("/room")
    assert faulty_files.kind("/room") == "directory"
    assert at(3, Kills()) is not None


def test_a_real_directory_recorded(tmp_path: Path, trace_recorder: TraceRecorder) -> None:
    """Real ports, a recording in files, and what it says."""
    (tmp_path / "agent").mkdir()
    ports = real_ports(recorder=trace_recorder)
    bot = Bot(LeaseRuntime(ports, agent_directory(tmp_path / "agent"), "default", cwd="/here"), lambda *value: None)
    assert bot.start()
    bot.tick()
    bot.lead.release()
    trace_recorder.close()
    assert_explained(trace_recorder.directory)
