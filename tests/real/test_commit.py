"""`tenure commit` with real processes: no stale one runs, no two interleave, none outlives its committer, whatever is
killed, stopped, forked or ignored."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.guard import GuardedFile
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import Held, LeaseRuntime, Won
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.lead.lock import holders
from tests.real.conftest import Lead, alive, until
from tests.real.crowd import crowd

if TYPE_CHECKING:
    from tests.real.conftest import Leads, Zygote

LEASE_S = 60
TIMINGS = attrs.evolve(DEFAULT, stale_ms=LEASE_S * 1_000)
DEAF = 'trap "" TERM INT HUP; (trap "" TERM INT HUP; while :; do sleep 0.02; done) & while :; do sleep 0.02; done'


class Commits:
    """An agent directory with an owner, this very process, and commits on it."""

    def __init__(self, leads: Leads, zygote: Zygote) -> None:
        self.leads = leads
        self.root = leads.root
        self.directory = leads.directory
        self.log = leads.root / "log"
        self._zygote = zygote
        self._numbers = itertools.count(1)
        self.owner = LeaseRuntime(real_ports(), agent_directory(leads.directory), "default", cwd=None, timings=TIMINGS)

    def own(self) -> int:
        """A new tenure; its epoch."""
        answer = self.owner.acquire("plain")
        assert isinstance(answer, Won), answer
        return answer.epoch

    def start(
        self,
        epoch: object,
        *command: str,
        timeout: float | None = None,
        options: tuple[str, ...] = (),
        directory: Path | None = None,
    ) -> Lead:
        """`tenure commit DIR --epoch EPOCH -- COMMAND`."""
        number = next(self._numbers)
        words = ["commit", str(directory or self.directory), "--epoch", str(epoch), "--lease", str(LEASE_S), *options]
        words += [] if timeout is None else ["--timeout", str(timeout)]
        errors = self.root / f"commit{number}.err"
        pid = self._zygote.start(
            arguments=[*words, "--", *command],
            environment={**os.environ, "LOG": str(self.log)},
            directory=str(self.root),
            stdout=str(self.root / f"commit{number}.out"),
            stderr=str(errors),
            ignored=[],
        )
        return Lead(self._zygote, pid, errors)

    def shell(self, epoch: object, script: str, **options: float) -> Lead:
        """`start` with a script that finds the log in $LOG."""
        return self.start(epoch, "sh", "-c", script, timeout=options.get("timeout"))

    @property
    def logged(self) -> list[str]:
        """What commands have said."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def pid(self, name: str) -> int:
        """Wait until a command has logged a pid under this name."""
        until(lambda: any(line.startswith(f"{name} ") for line in self.logged))
        return next(int(line.split()[1]) for line in self.logged if line.startswith(f"{name} "))

    @property
    def state(self) -> Path:
        """Where the protocol's files are."""
        return self.directory / "tmp" / "telegram"

    @property
    def free(self) -> bool:
        """Nobody is inside the guard, nor has left anything of one."""
        return {"owners.json", "epochs.json", "commit.lock"} >= {path.name for path in self.state.iterdir()}

    def passable(self) -> bool:
        """Whether somebody gets into the guard."""
        guard = GuardedFile(real_ports(), str(self.state / "owners.json"), attrs.evolve(DEFAULT, delay_ms=2))
        return guard.run(lambda _: True)


@pytest.fixture
def commits(leads: Leads, zygote: Zygote) -> Iterator[Commits]:
    """See `Commits`. Everything that was started is gone afterwards."""
    made = Commits(leads, zygote)
    yield made
    until(lambda: made.passable())


# -- the plain way -----------------------------------------------------------------


def test_the_command_of_the_current_epoch_runs_inside(commits: Commits) -> None:
    """It finds its epoch, has this terminal's files, and the guard is there while it runs."""
    epoch = commits.own()
    done = commits.shell(epoch, f'echo "$TENURE_EPOCH"; ls -d {commits.state}/owners.json.transaction; echo oh >&2')

    assert 0 == done.ends()
    out = (commits.root / "commit1.out").read_text().splitlines()
    assert [str(epoch), f"{commits.state}/owners.json.transaction"] == out
    assert "oh\n" == done.said
    assert commits.free


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
)
def test_exit_with_the_status_of_the_command(commits: Commits, script: str, status: int) -> None:
    """128 + n where a signal ended it."""
    assert status == commits.shell(commits.own(), script).ends()
    assert commits.free


def test_what_cannot_be_executed(commits: Commits) -> None:
    """As in a shell, after one line."""
    (commits.root / "plain").write_text("text")
    done = commits.start(commits.own(), str(commits.root / "plain"))

    assert 126 == done.ends()
    assert "plain" in done.said
    assert commits.free


def test_a_stale_epoch_does_not_run(commits: Commits) -> None:
    """One line says which is current; nothing but the lock of an earlier commit lies in the directory."""
    epoch = commits.own()
    for token in (epoch - 1, epoch + 1, "e-1", "-1"):
        done = commits.start(token, "touch", str(commits.log), options=())
        assert 5 == done.ends()
        assert 1 == len(done.said.splitlines())
        assert f"epoch {epoch} of pid {os.getpid()}" in done.said
    commits.owner.release()
    assert 5 == commits.start(epoch, "touch", str(commits.log)).ends()
    assert {"owners.json", "epochs.json"} == {path.name for path in commits.state.iterdir()}
    assert not commits.log.exists()


def test_bad_input_changes_nothing(commits: Commits) -> None:
    """Exit 2, one line that names it, and the directory as it was."""
    assert 5 == commits.start(1, "touch", str(commits.log)).ends()
    assert [] == list(commits.directory.iterdir())
    epoch = commits.own()
    (commits.state / "owners.json").write_text('{"default": {')
    before = sorted(path.name for path in commits.state.iterdir())
    for done, said in (
        (commits.start(epoch, "touch", str(commits.log)), "owners.json"),
        (commits.start(epoch, "no-such-command"), "no-such-command"),
        (commits.start("", "true"), "--epoch"),
        (commits.start(epoch), "no CMD"),
        (commits.start(epoch, "true", directory=commits.root / "nowhere"), "nowhere: no such directory"),
        (commits.start(epoch, "true", directory=commits.state / "owners.json"), "owners.json: a file, not a directory"),
        (commits.start(epoch, "true", options=("--profile", "Main")), "Main"),
        (commits.start(epoch, "true", options=("--timeout", "0")), "timeout"),
    ):
        assert 2 == done.ends()
        assert said in done.said
    assert before == sorted(path.name for path in commits.state.iterdir())
    assert not commits.log.exists()
    (commits.state / "owners.json").unlink()
    (commits.state / "owners.json").symlink_to("nowhere")
    done = commits.start(epoch, "touch", str(commits.log))
    assert 2 == done.ends()
    assert "owners.json: cannot be read" in done.said
    (commits.state / "owners.json").unlink()
    (commits.state / "commit.lock").mkdir()
    epoch = commits.own()
    done = commits.start(epoch, "touch", str(commits.log))
    assert 2 == done.ends()
    assert "commit.lock" in done.said
    (commits.state / "commit.lock").rmdir()


# -- it ends -----------------------------------------------------------------------


@pytest.mark.parametrize("script", ['echo "it $$" >> $LOG; exec sleep 100', f'echo "it $$" >> $LOG; {DEAF}'])
def test_a_command_ends_at_its_bound(commits: Commits, script: str) -> None:
    """124, one line, nothing of it is left, and others get in."""
    began = time.monotonic()
    done = commits.shell(commits.own(), script, timeout=0.3)

    assert 124 == done.ends()
    assert time.monotonic() - began >= 0.3
    assert "0.3 s" in done.said
    assert commits.free
    assert not alive(commits.pid("it"))
    until(lambda: () == holders(str(commits.state / "commit.lock")))


def test_what_a_command_leaves_behind_ends_with_it(commits: Commits) -> None:
    """In its group, out of its group, out of its session, deaf or not: before the guard is left."""
    script = f"""
        (trap "" TERM; echo "group $(sh -c 'echo $PPID')" >> $LOG; exec sleep 100) &
        setsid sh -c 'trap "" TERM; echo "session $$" >> $LOG; exec sleep 100' &
        setsid sh -c 'echo "twice $$" >> $LOG; setsid sleep 100 & exec sleep 100' &
        while [ $(wc -l < $LOG) -lt 3 ]; do sleep 0.01; done; ls -d {commits.state}/*.transaction; exit 7"""
    commits.log.touch()
    done = commits.shell(commits.own(), script, timeout=20)

    assert 7 == done.ends()
    assert not [name for name in ("group", "session", "twice") if alive(commits.pid(name))]
    until(lambda: () == holders(str(commits.state / "commit.lock")))
    assert commits.free


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_command_and_then_the_commit(commits: Commits, number: signal.Signals) -> None:
    """128 + n."""
    done = commits.shell(commits.own(), f'echo "it $$" >> $LOG; {DEAF}', timeout=60)
    pid = commits.pid("it")
    done.kill(number)

    assert 128 + number == done.ends()
    assert f"tenure: interrupted by {number.name}\n" == done.said
    assert not alive(pid)
    assert commits.free


def test_a_stopped_command_is_ended_as_well(commits: Commits) -> None:
    """SIGSTOP is no way to keep the guard."""
    done = commits.shell(commits.own(), 'echo "it $$" >> $LOG; kill -STOP $$; echo bad >> $LOG', timeout=0.3)

    assert 124 == done.ends()
    assert not alive(commits.pid("it"))
    assert commits.free


# -- the committer is killed, or stopped -------------------------------------------


def test_a_killed_committer_takes_its_command_with_it(commits: Commits) -> None:
    """The command at once, its group a moment later; the guard is taken from the dead."""
    script = '(echo "child $(sh -c \'echo $PPID\')" >> $LOG; exec sleep 100) & echo "it $$" >> $LOG; exec sleep 100'
    epoch = commits.own()
    done = commits.shell(epoch, script, timeout=60)
    pids = commits.pid("it"), commits.pid("child")
    done.kill()

    assert 137 == done.ends()
    until(lambda: not any(map(alive, pids)))
    assert 0 == commits.start(epoch, "true").ends()
    assert commits.free


def test_a_signal_is_passed_on_once(commits: Commits) -> None:
    """To end in an orderly way takes one SIGTERM, in the group and out of it."""
    script = """
        setsid sh -c 'trap "echo far >> $LOG" TERM; echo "far $$" >> $LOG; while :; do sleep 0.01; done' &
        trap "echo near >> $LOG; sleep 0.1; exit 0" TERM; while :; do echo "near $$" >> $LOG; sleep 0.05; done"""
    done = commits.shell(commits.own(), script, timeout=60)
    commits.pid("far"), commits.pid("near")
    done.kill(signal.SIGTERM)

    assert 128 + signal.SIGTERM == done.ends()
    assert 1 == commits.logged.count("near")
    assert 1 >= commits.logged.count("far")


def test_a_committer_does_not_stop_at_the_terminal(commits: Commits) -> None:
    """Ctrl-Z inside the guard would hold everybody up."""
    done = commits.shell(commits.own(), 'echo "it $$" >> $LOG; sleep 0.1', timeout=60)
    commits.pid("it")
    done.kill(signal.SIGTSTP)

    assert 0 == done.ends()


def test_when_the_guard_can_be_taken_the_command_is_dead(commits: Commits) -> None:
    """Not a moment later: who proves the committer's death finds its command dead. Tried again and again."""
    for _ in range(5):
        commits.log.unlink(missing_ok=True)
        epoch = commits.own()
        done = commits.shell(epoch, 'echo "it $$" >> $LOG; while :; do :; done', timeout=60)
        pid = commits.pid("it")
        done.kill()
        commits.owner.release()  # inside the guard, reclaimed from the dead
        assert not alive(pid)


def test_what_outlived_its_committer_keeps_later_commits_out(commits: Commits) -> None:
    """It left the group, so nobody ends it; owners are not held up, commits are, and hear by whom."""
    epoch = commits.own()
    script = """setsid sh -c 'echo "stray $$" >> $LOG; exec sleep 100' & exec sleep 100"""
    done = commits.shell(epoch, script, timeout=60)
    stray = commits.pid("stray")
    done.kill()
    done.ends()

    commits.owner.release()
    epoch = commits.own()
    late = commits.start(epoch, "touch", str(commits.root / "late"))
    waiting = commits.start(epoch, "touch", str(commits.root / "waiting"))
    assert 2 == late.ends()
    assert f"pid {stray} (sleep 100)" in late.said
    assert not (commits.root / "late").exists()
    assert 2 == waiting.ends()

    waiting = commits.start(epoch, "touch", str(commits.root / "waiting"))
    os.kill(stray, signal.SIGKILL)
    assert 0 == waiting.ends()
    assert (commits.root / "waiting").exists()


def test_a_stopped_committer_holds_everybody_up_until_it_runs(commits: Commits) -> None:
    """DESIGN 2, the last paragraph: whoever waits hears its pid; nothing runs beside its command."""
    epoch = commits.own()
    done = commits.shell(epoch, 'echo "it $$" >> $LOG; exec sleep 100', timeout=2)
    commits.pid("it")
    done.kill(signal.SIGSTOP)
    late = commits.start(epoch, "touch", str(commits.root / "late"))
    assert "unknown" == commits.owner.refresh()
    assert 2 == late.ends()
    assert f"pid {done.pid}" in late.said
    done.kill(signal.SIGCONT)

    assert 124 == done.ends()
    assert "mine" == commits.owner.refresh()
    assert not (commits.root / "late").exists()


BARE = """
import sys
from tenure.adapters import cli
from tenure.adapters.lead import errand, group
group.adopt_orphans = lambda: False
errand._LINUX = False
cli.main(sys.argv[1:])
"""
"""`tenure` on a platform that binds no process to its parent's life."""


@pytest.mark.parametrize("ends", ["by itself", "at its bound", "with its committer"])
def test_elsewhere_the_group_and_the_witness_do_it(commits: Commits, ends: str) -> None:
    """What stays in the group ends in time, and a moment after a killed committer."""
    epoch = commits.own()
    last = "exit 3" if ends == "by itself" else DEAF
    script = f"""(trap "" TERM; echo "child $(sh -c 'echo $PPID')" >> $LOG; exec sleep 100) &
        echo "it $$" >> $LOG; while [ $(wc -l < $LOG) -lt 2 ]; do sleep 0.01; done; {last}"""
    options = ["--epoch", str(epoch), "--lease", str(LEASE_S), "--timeout", "0.5" if ends == "at its bound" else "60"]
    with subprocess.Popen(
        [sys.executable, "-c", BARE, "commit", str(commits.directory), *options, "--", "sh", "-c", script],
        env={**os.environ, "LOG": str(commits.log)},
        cwd=commits.root,
        stderr=subprocess.DEVNULL,
    ) as process:
        pids = commits.pid("it"), commits.pid("child")
        if ends == "with its committer":
            process.kill()
        status = process.wait(20)
    if ends == "with its committer":
        until(lambda: not any(map(alive, pids)))
    assert not any(map(alive, pids))
    assert {"by itself": 3, "at its bound": 124, "with its committer": -9}[ends] == status
    assert commits.passable()


# -- races -------------------------------------------------------------------------


def take_over(directory: str, log: str, number: int) -> None:
    """Take over by force whoever owns, and say so; again and again."""
    ports, chance = real_ports(), random.Random(number)
    timings = attrs.evolve(TIMINGS, delay_ms=1.0, attempts=2_000)
    lease = LeaseRuntime(ports, agent_directory(directory), "default", cwd=None, timings=timings)
    with open(log, "a", buffering=1) as file:
        while True:
            view = lease.look()
            answer = lease.acquire("force", None if view.entry is None else view.entry.owner)
            if isinstance(answer, Held):
                continue
            file.write(f"{answer.epoch}\n")
            time.sleep(chance.expovariate(1 / 0.4))


def test_no_stale_command_runs_while_leads_race(commits: Commits) -> None:
    """Three owners take over from each other by force; commits come with every epoch of late. A command looks in the
    registry twice, at its beginning and at its end, and says which epochs it saw: its own, both times."""
    owned, registry = commits.root / "owned", str(commits.state / "owners.json")
    script = """
        look() { sed -n 's/.*"leaderEpoch": \\([0-9]*\\).*/\\1/p' "$0"; }
        one=$(look); sleep 0.01; echo "ran $TENURE_EPOCH $one $(look)" >> $LOG"""
    targets: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (take_over, (str(commits.directory), str(owned), number)) for number in range(3)
    ]
    started: list[Lead] = []

    def few() -> bool:
        return sum(lead.status is None for lead in started) < 3

    with crowd(targets, 1):
        until(lambda: owned.exists() and len(owned.read_text().splitlines()) > 3)
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            newest = max(map(int, owned.read_text().split()))
            started += [commits.start(newest - back, "sh", "-c", script, registry) for back in (0, 0, 1)]
            until(few)
    statuses = [lead.ends() for lead in started]

    ran = [line.split()[1:] for line in commits.logged]
    assert all(len(set(epochs)) == 1 for epochs in ran), ran
    assert statuses.count(0) == len(ran) > 0
    assert statuses.count(5) > 0
    assert {0, 5} >= set(statuses) - {2}, statuses


def test_commits_do_not_interleave(commits: Commits) -> None:
    """Some are killed in the middle. What a command does it does alone: it begins, and ends or is ended, before the
    next one begins. A killed one's end is never written."""
    epoch = commits.own()
    script = """echo "in $1" >> $LOG; sleep 0.03; sleep 0.0$(($1 % 7)); echo "out $1" >> $LOG"""
    started = []
    for n in range(24):
        started.append(commits.start(epoch, "sh", "-c", script, "sh", str(n), timeout=5))
        if n % 6 == 5:
            until(lambda: any(line.startswith("in ") for line in commits.logged))
            started[n - 3].kill()
    statuses = [lead.ends() for lead in started]

    lines = [line.split() for line in commits.logged]
    finished = [b[1] for a, b in itertools.pairwise(lines) if a[0] == "in" and b == ["out", a[1]]]
    assert len(finished) == sum(line[0] == "out" for line in lines)
    assert [str(n) for n, status in enumerate(statuses) if status == 0] == sorted(finished, key=int)
    assert statuses.count(0) >= 12
    assert commits.passable()


def test_a_foreign_owner_commits_by_its_string(commits: Commits) -> None:
    """A process of the other system owns, live by its heartbeat: its epoch is a string, and other programs' keys and
    fields stay as they are."""
    commits.state.mkdir(parents=True)
    entry = {"pid": os.getpid(), "instanceId": "x", "leaderEpoch": "e-1", "heartbeatMs": time.time_ns() // 1_000_000}
    text = json.dumps({"other program": [1], "default": entry}, indent=1)
    (commits.state / "owners.json").write_text(text)

    assert 0 == commits.start("e-1", "true").ends()
    done = commits.start(1, "touch", str(commits.log))
    assert 5 == done.ends()
    assert "'e-1'" in done.said
    assert text == (commits.state / "owners.json").read_text()
