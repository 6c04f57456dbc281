"""Real processes of ours and of the other system on one guarded file: never two inside, none locked out, no debris."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from tenure.adapters.files.debris import sweep
from tenure.adapters.files.guard import GuardBusy, GuardedFile
from tenure.adapters.files.host import real_ports
from tests.real import other_system
from tests.real.crowd import crowd


def work(directory: Path, enter: object) -> None:
    """Inside: leave my pid, do something, and see that it is still there. A wrong one is written to `violations`."""
    holder = directory / "holder"
    me = f"{os.getpid()}.{threading.get_ident()}"
    holder.write_text(me)
    counter = directory / "counter"
    value = int(counter.read_text() or 0) if counter.exists() else 0
    temporary = directory / f"counter.{os.getpid()}"
    temporary.write_text(str(value + 1))
    os.rename(temporary, counter)
    if holder.read_text() != me or int(counter.read_text()) != value + 1:
        with open(directory / "violations", "a") as file:
            file.write(f"{enter} {me} {value}\n")


def ours(directory: str) -> None:
    """One process of ours, for ever."""
    place = Path(directory)
    file = GuardedFile(real_ports(), str(place / "thing"))
    while True:
        with contextlib.suppress(GuardBusy):
            file.run(lambda inside: work(place, "ours"))
            with open(place / "done", "a") as done:
                done.write("o")


def theirs(directory: str) -> None:
    """One process of the other system, for ever."""
    place = Path(directory)
    while True:
        with contextlib.suppress(TimeoutError):
            other_system.transaction(place / "thing", lambda: work(place, "theirs"))
            with open(place / "done", "a") as done:
                done.write("t")


def test_never_two_inside_among_killed_processes_of_both_systems(tmp_path: Path) -> None:
    """Four of ours and four of theirs, one killed every 50 ms: alone inside, always somebody gets on, and a minute
    later (here: at once, in the sweep's own time) nothing of the dead is left."""
    targets = [(ours, (str(tmp_path),))] * 4 + [(theirs, (str(tmp_path),))] * 4
    with crowd(targets, seed=1) as everybody:
        everybody.disturb(5)
        assert everybody.kills > 20
    done = (tmp_path / "done").read_text()

    assert not (tmp_path / "violations").exists(), (tmp_path / "violations").read_text()
    assert min(done.count("o"), done.count("t")) > 20
    assert GuardedFile(real_ports(), str(tmp_path / "thing")).run(lambda inside: "in") == "in"
    _sweep(tmp_path)
    assert [name for name in os.listdir(tmp_path) if name.startswith("thing.")] == []


def test_never_two_inside_among_threads_and_stopped_processes(tmp_path: Path) -> None:
    """Ours alone, stopped and continued as well: whoever was stopped inside is waited for."""
    with crowd([(ours, (str(tmp_path),))] * 6, seed=2) as everybody:
        everybody.disturb(4, stop_for=0.3)
        assert everybody.stops > 3

    assert not (tmp_path / "violations").exists(), (tmp_path / "violations").read_text()
    assert len((tmp_path / "done").read_text()) > 50


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    """Eight threads, fifty passages each, counted exactly."""
    file = GuardedFile(real_ports(), str(tmp_path / "thing"))

    def passages() -> None:
        for _ in range(50):
            file.run(lambda inside: work(tmp_path, "thread"))

    threads = [threading.Thread(target=passages) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert (tmp_path / "counter").read_text() == "400"
    assert not (tmp_path / "violations").exists()


def _sweep(place: Path) -> None:
    """As processes that go on do every few seconds, with what names nobody lain there long enough."""
    ports = real_ports()
    suspects: dict[str, int] = {}
    sweep(ports, str(place / "thing"), suspects)
    for path in suspects:
        suspects[path] -= 60_000
    sweep(ports, str(place / "thing"), suspects)
