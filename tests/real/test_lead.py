"""`tenure lead` with real processes: COMMAND's end, signals, and the lease."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenure.adapters.lead.lock import holders, read_record

if TYPE_CHECKING:
    from tests.real.conftest import Leads

# -- COMMAND ends by itself --------------------------------------------------------------------------------------------


def test_command_finds_its_token_and_its_directory(leads: Leads) -> None:
    """TENURE_EPOCH and TENURE_DIR are set, TENURE_PROFILE is not without a profile; the lease is released."""
    lead = leads.start("sh", "-c", 'echo "$TENURE_EPOCH $TENURE_DIR [$TENURE_PROFILE]"')
    assert lead.ends() == 0
    assert (leads.root / "stdout1").read_text() == f"1 {leads.directory} []\n"
    assert leads.entry() is None
    assert lead.said == "tenure: leading with epoch 1\n"


def test_each_command_has_a_higher_epoch(leads: Leads) -> None:
    """A released lease is no reason to use an epoch again."""
    for _ in range(3):
        assert leads.shell("exit 0").ends() == 0
    assert [epoch for epoch, _ in leads.runs] == [1, 2, 3]


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_exit_with_the_status_of_command(leads: Leads, script: str, status: int) -> None:
    """COMMAND's status is the status, 128 + n where a signal ended it."""
    assert leads.start("sh", "-c", script).ends() == status
    assert leads.entry() is None


def test_what_command_leaves_in_its_group_is_ended(leads: Leads) -> None:
    """COMMAND has ended when its whole group has, and its lease is given up after that."""
    lead = leads.shell("sleep 1000 & echo child $! >> $TENURE_DIR/log; exit 4")
    assert lead.ends() == 4
    (child,) = [int(line.split()[1]) for line in leads.log if line.startswith("child")]
    assert leads.gone(child)
    assert holders(str(leads.lock)) == ()


def test_a_standby_leads_when_the_leader_has_ended(leads: Leads) -> None:
    """Who stands by leads next, also after an ordinary end."""
    leader = leads.shell("while [ ! -e $TENURE_DIR/end ]; do sleep 0.02; done; rm $TENURE_DIR/end; exit 5")
    leads.ran(1)
    second = leads.shell()
    second.says("standing by behind")
    (leads.directory / "end").touch()
    assert leader.ends() == 5
    assert leads.ran(2)[0] == 2
    second.says("leading with epoch 2")


# -- signals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"), (signal.SIGHUP, "HUP")])
def test_a_signal_is_passed_on(leads: Leads, number: int, name: str) -> None:
    """COMMAND decides what comes of it, and its status is the status."""
    leader = leads.shell("while :; do sleep 0.02; done", first=f'trap "exit 7" {name}')
    leads.ran(1)
    leader.kill(number)
    assert leader.ends() == 7
    assert leads.entry() is None


def test_a_command_that_a_passed_signal_ends(leads: Leads) -> None:
    """128 + n, and a status that no standby confuses with its own end."""
    leader, second = leads.pair()
    leader.kill(signal.SIGTERM)
    assert leader.ends() == 143
    leads.ran(2)
    assert second.status is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_standby(leads: Leads, number: int) -> None:
    """It has no COMMAND that it could be for; the leader is not concerned."""
    _, second = leads.pair()
    second.kill(number)
    assert second.ends() == 128 + number
    assert len(leads.runs) == 1


def test_a_signal_ends_one_who_waits_for_the_lock(leads: Leads) -> None:
    """It has no COMMAND either; it gives the lease up."""
    leader, second = leads.pair()
    pid, guardian = leads.runs[0][1], leader.guardian
    os.kill(guardian, signal.SIGKILL)
    leader.kill()
    second.says("waiting for the lock")
    second.kill(signal.SIGTERM)
    assert second.ends() == 143
    assert leads.entry() is None
    assert not leads.gone(pid)


def test_command_starts_with_the_signals_of_its_starter(leads: Leads) -> None:
    """What nohup ignores stays ignored; nothing else is, SIGPIPE included."""
    status = "grep -E 'Sig(Ign|Blk)' /proc/self/status"
    assert leads.start("sh", "-c", status, ignored=[signal.SIGHUP]).ends() == 0
    found = dict(line.split(":\t") for line in (leads.root / "stdout1").read_text().splitlines())
    assert int(found["SigIgn"], 16) == 1 << (signal.SIGHUP - 1)
    assert int(found["SigBlk"], 16) == 0


# -- the lease is lost, or another's -----------------------------------------------------------------------------------


def test_a_displaced_leader_ends_its_command(leads: Leads) -> None:
    """SIGTERM, SIGKILL after the bound, and back to standby; it leads again when the other is gone."""
    leader = leads.shell(leads.STUBBORN, kill_after=0.3)
    _, pid = leads.ran(1)
    leads.usurp(os.getpid())
    leader.says("lost epoch 1: another owns")
    leads.until(lambda: leads.gone(pid))
    leader.says(f"standing by behind pid {os.getpid()}")
    assert leads.entry() == {"pid": os.getpid(), "instanceId": "foreign"}
    leads.write({})
    assert leads.ran(2)[0] == 2


def test_a_foreign_leader_that_falls_silent(leads: Leads) -> None:
    """It has no birth and no stamp: its heartbeat has to be old, and not a moment earlier is it replaced."""
    leads.registry.parent.mkdir(parents=True)
    began = time.time()
    leads.write({"default": {"pid": os.getpid(), "instanceId": "foreign", "heartbeatMs": int(began * 1000)}})
    leads.shell(lease=1.2)
    leads.ran(1)
    assert time.time() - began > 1.2


def test_a_foreign_leader_that_dies(leads: Leads) -> None:
    """Its death is proof, without a birth as well."""
    holder = leads.sleeper()
    leads.registry.parent.mkdir(parents=True)
    leads.write({"default": {"pid": holder, "instanceId": "foreign", "heartbeatMs": int(time.time() * 1000)}})
    leads.shell(lease=60).says(f"standing by behind pid {holder}")
    os.kill(holder, signal.SIGKILL)
    leads.ran(1)


def test_one_lead_in_another(leads: Leads) -> None:
    """The end of the outer COMMAND is the end of the inner one."""
    inner = leads.root / "inner"
    inner.mkdir()
    words = f"{sys.executable} -m tenure.adapters.cli lead {inner} --lease 0.4 -- sleep 998"
    leader = leads.shell(f"exec {words}", options=["--profile", "outer"])
    leads.ran(1)
    lock = inner / "tmp" / "telegram" / "lead.lock"
    leads.until(lambda: [holder for holder in holders(str(lock)) if holder.command == ("sleep", "998")])
    (pid,) = [holder.pid for holder in holders(str(lock)) if holder.command == ("sleep", "998")]
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert f"TENURE_DIR={inner}".encode() in environment
    assert not [each for each in environment if each.startswith(b"TENURE_PROFILE=")]
    leader.kill()
    leads.until(lambda: leads.gone(pid))


def test_keys_of_others_stay_as_they_are(leads: Leads) -> None:
    """A registry is shared: what other programs write under other keys survives."""
    leads.registry.parent.mkdir(parents=True)
    leads.registry.write_text('{"other": {"pid": 1,   "extra": [1.0, null]}}')
    assert leads.start("true").ends() == 0
    assert '"other": {"pid": 1,   "extra": [1.0, null]}' in leads.registry.read_text()


def test_profiles_lead_beside_each_other(leads: Leads) -> None:
    """A key has a lease and a lock of its own, and its COMMAND is told which it is."""
    leads.shell()
    leads.ran(1)
    other = leads.shell("echo $TENURE_PROFILE >> $TENURE_DIR/log; exec sleep 1000", options=["--profile", "work"])
    leads.ran(2)
    leads.until(lambda: "work" in leads.log)
    assert leads.entry("work") is not None
    other.says("leading with epoch 2")


def test_a_lease_is_kept_through_a_busy_guard(leads: Leads) -> None:
    """A guard that another holds for a while is waited for; who stands by waits as well."""
    leader, second = leads.pair(lease=5)
    holder = leads.holder()
    leads.never(lambda: leads.gone(leads.runs[0][1]), 0.8)
    leader.kill()
    second.says("waiting: ")
    assert len(leads.runs) == 1
    os.kill(holder, signal.SIGKILL)
    leads.ran(2)


def test_an_end_while_the_guard_is_held(leads: Leads) -> None:
    """A release that cannot be waits as long as the lease, not longer."""
    leader = leads.shell("while [ ! -e $TENURE_DIR/end ]; do sleep 0.02; done; exit 8", lease=2)
    leads.ran(1)
    holder = leads.holder()
    (leads.directory / "end").touch()
    assert leader.ends() == 8
    assert not leads.gone(holder)


# -- COMMAND that cannot be executed -----------------------------------------------------------------------------------


def test_a_command_that_cannot_be_executed(leads: Leads) -> None:
    """One line, the status that a shell has for it, and the lease is released."""
    text = leads.root / "text"
    text.write_text("no program")
    lead = leads.start(str(text))
    assert lead.ends() == 126
    assert f"tenure: {text}: Permission denied\n" in lead.said
    assert leads.entry() is None
    broken = leads.root / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o700)
    assert leads.start(str(broken)).ends() == 127
    assert leads.entry() is None


# -- the lock ----------------------------------------------------------------------------------------------------------


def test_the_lock_file_says_who_runs(leads: Leads) -> None:
    """For `status`: supervisor, guardian, COMMAND and epoch; and who holds the lock, by asking the kernel."""
    leader = leads.start("sleep", "1000")
    leads.until(lambda: (found := read_record(str(leads.lock))) and not leads.gone(found.pid))
    record = read_record(str(leads.lock))
    assert record is not None
    assert (record.supervisor, record.guardian, record.epoch) == (leader.pid, leader.guardian, 1)
    assert record.command == ("sleep", "1000")
    leads.until(lambda: {holder.pid for holder in holders(str(leads.lock))} == {record.guardian, record.pid})
    assert leader.pid not in {holder.pid for holder in holders(str(leads.lock))}


def test_a_removed_lock_file_is_locked_anew(leads: Leads) -> None:
    """Who waits for a file that somebody removes looks at the path again."""
    leader, second = leads.pair()
    guardian = leader.guardian
    os.kill(guardian, signal.SIGSTOP)
    leader.kill()
    second.says("waiting for the lock")
    leads.lock.rename(leads.lock.with_name("moved"))
    os.kill(guardian, signal.SIGCONT)
    leads.ran(2)
    assert holders(str(leads.lock))
