"""`tenure lead` whose supervisor or guardian is killed or stopped: never two COMMANDs, and always one in the end."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenure.adapters.lead.lock import holders

if TYPE_CHECKING:
    from tests.real.conftest import Leads

# -- the supervisor is killed, or stopped ------------------------------------------------------------------------------


def test_the_successor_of_a_killed_leader(leads: Leads) -> None:
    """A proven death is enough: no lease is waited for, and the old COMMAND is gone before the next starts."""
    leader, second = leads.pair(lease=60)
    leader.kill()
    leads.ran(2)
    second.says("leading with epoch 2")
    assert leads.gone(leads.runs[0][1])
    assert not leads.two


def test_a_command_that_forks_and_ignores_sigterm(leads: Leads) -> None:
    """SIGKILL ends the whole group after the bound; only then does the successor's COMMAND start."""
    leader, second = leads.pair(leads.STUBBORN, kill_after=0.5)
    began = time.monotonic()
    leader.kill()
    leads.ran(2)
    assert time.monotonic() - began >= 0.5
    second.says("waiting for the lock")
    second.says("has the lock")
    assert leads.gone(leads.runs[0][1])
    assert not leads.two


def test_a_supervisor_that_is_stopped_past_its_lease(leads: Leads) -> None:
    """Its COMMAND is gone before the successor's starts; when it goes on it stands by."""
    leader, second = leads.pair()
    leads.stop(leader)
    leads.ran(2)
    assert leads.gone(leads.runs[0][1])
    assert not leads.two
    leader.kill(signal.SIGCONT)
    leader.says("lost epoch 1")
    leader.says(f"standing by behind pid {second.pid}")
    assert leader.status is None


def test_a_supervisor_that_is_stopped_with_nobody_else(leads: Leads) -> None:
    """Its COMMAND is ended all the same, and the next one has an epoch of its own."""
    leader = leads.shell()
    _, pid = leads.ran(1)
    leads.stop(leader)
    leads.until(lambda: leads.gone(pid))
    leader.kill(signal.SIGCONT)
    assert leads.ran(2)[0] == 2


def test_a_stop_within_the_lease_changes_nothing(leads: Leads) -> None:
    """Whoever is back in time goes on."""
    leader = leads.shell(lease=5)
    _, pid = leads.ran(1)
    leader.kill(signal.SIGSTOP)
    leads.until(lambda: leads.stopped(leader.pid))
    leader.kill(signal.SIGCONT)
    leads.never(lambda: leads.gone(pid), 0.3)
    assert len(leads.runs) == 1


# -- the guardian is killed, or stopped --------------------------------------------------------------------------------


def test_a_killed_guardian(leads: Leads) -> None:
    """COMMAND keeps the lock and runs on under its supervisor, which keeps the lease and exits with its status."""
    leader, _ = leads.pair("while [ ! -e $TENURE_DIR/end ]; do sleep 0.02; done; exit 6")
    os.kill(leader.guardian, signal.SIGKILL)
    leader.says("looks after pid")
    pid = leads.runs[0][1]
    leads.never(lambda: leads.gone(pid) or len(leads.runs) > 1, 0.7)  # more than two leases
    assert pid in [holder.pid for holder in holders(str(leads.lock))]
    (leads.directory / "end").touch()
    assert leader.ends() == 6
    leads.ran(2)


def test_the_group_of_a_killed_guardian_is_ended(leads: Leads) -> None:
    """What COMMAND leaves in its group is ended by the supervisor then."""
    leader = leads.shell(
        'sh -c "trap : TERM; while :; do sleep 0.02; done" &\n'
        "while [ ! -e $TENURE_DIR/end ]; do sleep 0.02; done; exit 7",
        kill_after=0.2,
    )
    leads.ran(1)
    os.kill(leader.guardian, signal.SIGKILL)
    leader.says("looks after pid")
    (leads.directory / "end").touch()
    assert leader.ends() == 7
    leads.until(lambda: not leads.processes())


def test_signals_reach_a_command_without_guardian(leads: Leads) -> None:
    """The supervisor passes them on itself."""
    leader = leads.shell("while :; do sleep 0.02; done", first='trap "exit 9" TERM')
    leads.ran(1)
    os.kill(leader.guardian, signal.SIGKILL)
    leader.says("looks after pid")
    leader.kill(signal.SIGTERM)
    assert leader.ends() == 9


def test_guardian_and_supervisor_killed(leads: Leads) -> None:
    """COMMAND runs on with the lock, so nobody starts another; when it is gone the successor's starts."""
    leader, second = leads.pair()
    pid = leads.runs[0][1]
    guardian = leader.guardian
    leader.kill(signal.SIGSTOP)  # so that it cannot notice
    os.kill(guardian, signal.SIGKILL)
    leader.kill()
    second.says(f"waiting for the lock {leads.lock} held by pid {pid} (sleep 1000)")
    leads.never(lambda: leads.gone(pid) or len(leads.runs) > 1, 0.7)
    os.kill(pid, signal.SIGKILL)
    leads.ran(2)


def test_a_loss_without_guardian(leads: Leads) -> None:
    """The supervisor ends COMMAND itself, stands by, and has a new guardian for the next time."""
    leader = leads.shell(leads.STUBBORN, kill_after=0.3)
    _, pid = leads.ran(1)
    os.kill(leader.guardian, signal.SIGKILL)
    leader.says("looks after pid")
    leads.usurp(os.getpid())
    leads.until(lambda: leads.gone(pid))
    leader.says(f"standing by behind pid {os.getpid()}")
    leads.write({})
    assert leads.ran(2)[0] == 2
    assert leader.guardian


def test_a_stopped_guardian(leads: Leads) -> None:
    """Nobody else starts a COMMAND, and it can be seen why; when it goes on it does its duty."""
    leader, second = leads.pair()
    guardian = leader.guardian
    os.kill(guardian, signal.SIGSTOP)
    leader.says(f"the guardian, pid {guardian}, is stopped")
    leader.kill()
    second.says("waiting for the lock")
    assert f"pid {guardian} " in second.said
    leads.never(lambda: len(leads.runs) > 1, 0.6)
    assert ("stopped", guardian) in [(holder.state, holder.pid) for holder in holders(str(leads.lock))]
    os.kill(guardian, signal.SIGCONT)
    leads.ran(2)
    assert not leads.two


def test_a_loss_with_a_stopped_guardian(leads: Leads) -> None:
    """The supervisor ends COMMAND itself, and replaces the guardian."""
    leader = leads.shell(leads.STUBBORN, kill_after=0.3)
    _, pid = leads.ran(1)
    guardian = leader.guardian
    os.kill(guardian, signal.SIGSTOP)
    leader.says("is stopped")
    leads.usurp(os.getpid())
    leads.until(lambda: leads.gone(pid) and leads.gone(guardian))
    leads.write({})
    leads.ran(2)
    assert not leads.two


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_standby_whose_guardian_is_gone(leads: Leads, number: int) -> None:
    """It has a new one, before it needs it."""
    leader, second = leads.pair()
    guardian = second.guardian
    os.kill(guardian, number)
    leads.until(lambda: leads.gone(guardian))
    assert second.guardian != guardian
    leader.kill()
    leads.ran(2)


def test_a_guardian_killed_while_it_waits_for_the_lock(leads: Leads) -> None:
    """The next guardian waits, and starts COMMAND when the lock is free."""
    leader, second = leads.pair()
    pid, guardian = leads.runs[0][1], leader.guardian
    os.kill(guardian, signal.SIGSTOP)
    leader.kill()
    second.says("waiting for the lock")
    os.kill(second.guardian, signal.SIGKILL)
    leads.never(lambda: len(leads.runs) > 1, 0.3)
    os.kill(guardian, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    leads.ran(2)


# -- what leaves the group ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closes", [False, True])
def test_what_leaves_the_group_keeps_the_lock(leads: Leads, closes: bool) -> None:
    """A descendant in a session of its own is not ended, and nobody starts a COMMAND beside it, also when it has closed
    the descriptor; the supervisor need not wait for it."""
    program = leads.root / "away.py"
    closing = "os.closerange(3, 1000)\n" if closes else ""
    program.write_text(f"import os\n{closing}os.execvp('sleep', ['sleep', '999'])\n")
    away = f"echo away $$ >> $TENURE_DIR/log; exec {sys.executable} {program}"
    script = f"setsid sh -c '{away}' >/dev/null 2>&1 &\n"
    leader = leads.shell(script + "while [ ! -e $TENURE_DIR/end ]; do sleep 0.02; done; exit 0")
    leads.until(lambda: any(line.startswith("away") for line in leads.log))
    (pid,) = [int(line.split()[1]) for line in leads.log if line.startswith("away")]
    leads.until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    (leads.directory / "end").touch()
    assert leader.ends() == 0
    held = [str(leads.lock) == os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    assert any(held) is not closes
    second = leads.shell()
    second.says("waiting for the lock")
    leads.never(lambda: len(leads.runs) > 1, 0.3)
    os.kill(pid, signal.SIGKILL)
    leads.ran(2)


def test_a_loss_with_something_that_left_the_group(leads: Leads) -> None:
    """The next COMMAND of the same supervisor waits for it as well."""
    leader = leads.shell("setsid sh -c 'echo away $$ >> $TENURE_DIR/log; exec sleep 999' & exec sleep 1000")
    _, pid = leads.ran(1)
    leads.until(lambda: any(line.startswith("away") for line in leads.log))
    (away,) = [int(line.split()[1]) for line in leads.log if line.startswith("away")]
    leads.usurp(os.getpid())
    leads.until(lambda: leads.gone(pid))
    leads.write({})
    leader.says("waiting for the lock")
    leads.never(lambda: len(leads.runs) > 1, 0.3)
    os.kill(away, signal.SIGKILL)
    leads.ran(2)
