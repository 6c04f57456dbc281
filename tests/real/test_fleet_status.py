"""``tenure status`` against a real endpoint: one that answers, one that listens and hangs, one that is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.adapters.fleet.threads.projection import Mark, Snapshot
from tenure.adapters.fleet.threads.writing import encode, render

# A leader of few words: it owns the default key, listens, and answers so many questions.
LEADER = """
import socket, sys
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages import wire
from tenure.adapters.bus.messages.fleet_view import FleetView, LeaderView
from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime

path = sys.argv[1] + "/tmp/telegram/bus.sock"
lease = LeaseRuntime(
    real_ports(), agent_directory(sys.argv[1]), "default", cwd="/", bus_socket_path=path, bus_secret="secret"
)
epoch = lease.acquire("plain").epoch
end = socket.socket(socket.AF_UNIX)
end.bind(path)
end.listen()
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    peer, _ = end.accept()
    asked = wire.parse(peer.makefile("rb").readline())
    assert asked.auth == "secret"
    view = FleetView(leader=LeaderView(pid=7, instance_id=lease.instance_id, epoch=epoch, slot="Q"))
    peer.sendall(wire.encode(acks.fleet(asked, view)))
    peer.close()
sys.stdin.read()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: that of a longer endpoint is mapped."""
    with tempfile.TemporaryDirectory(prefix="fleet") as found:
        yield Path(found)


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for child in found:
        child.kill()
        child.communicate()


def leader(children: list[subprocess.Popen[str]], directory: Path, answers: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", LEADER, str(directory), str(answers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    children.append(child)
    assert child.stdout is not None
    assert "ready\n" == child.stdout.readline()
    return child


def status(directory: Path, *options: str) -> tuple[dict[str, object], float]:
    """The only fleet, and how long the command took, in seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tenure.adapters.cli", "status", str(directory), "--lease", "600", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=20)
    took = time.monotonic() - began
    assert (0, "") == (done.returncode, done.stderr)
    fleets = json.loads(done.stdout)["fleets"]
    assert 1 == len(fleets)
    assert isinstance(fleets[0], dict)
    return fleets[0], took


def test_a_leader_that_answers_tells_its_fleet(directory: Path, children: list[subprocess.Popen[str]]) -> None:
    leader(children, directory, 1)
    found, _ = status(directory)
    assert "leader" == found["source"]
    assert isinstance(found["leader"], dict)
    assert "Q" == found["leader"]["slot"]


@pytest.mark.parametrize("stopped", [False, True], ids=["hangs", "stopped"])
def test_one_that_hangs_is_not_waited_for_longer_than_a_second(
    directory: Path, children: list[subprocess.Popen[str]], stopped: bool
) -> None:
    """The command without anybody to ask is the measure of how long it takes to start here and now."""
    child = leader(children, directory, 0)
    (directory / "tmp/telegram/state.json").write_bytes(encode(render(Snapshot(), Mark(1, "x:1"), 0)))
    if stopped:
        os.kill(child.pid, signal.SIGSTOP)
    found, took = status(directory)
    child.kill()
    child.wait()
    _, alone = status(directory)
    assert ("projection", "its leader did not answer within 1 s") == (found["source"], found["why"])
    assert 0.9 < took
    assert took < alone + 2.5  # one second, and a machine that is busy with other things
