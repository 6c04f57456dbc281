"""Supervisors, guardians and COMMANDs, killed and stopped at random: never two COMMANDs, and one in the end."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.real.conftest import Leads

SECONDS = 5.0
SUPERVISORS = 4
STUBBORN = """
(echo $(sh -c 'echo $PPID') >> "$TENURE_DIR/pids"; trap "" TERM; while :; do sleep 0.05; done) &
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize("seed", [1])
def test_never_two(leads: Leads, seed: int) -> None:
    """Whatever is killed, stopped, or forks."""
    chance = random.Random(seed)
    options = {"kill_after": 0.1}
    supervisors = [leads.shell(STUBBORN, **options) for _ in range(SUPERVISORS)]
    leads.ran(1)
    asleep: list[tuple[float, int]] = []

    def signalled(pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        time.sleep(chance.uniform(0.02, 0.25))  # the chaos is what is tested, and takes time
        now = time.monotonic()
        for wake in [each for each in asleep if each[0] <= now]:
            asleep.remove(wake)
            signalled(wake[1], signal.SIGCONT)
        lead = chance.choice(supervisors)
        if chance.random() < 0.2:
            # A person ends what runs: it may have lost its keepers, and then nobody else would.
            with suppress(ProcessLookupError):
                os.killpg(leads.runs[-1][1], signal.SIGKILL)
            continue
        victim = chance.choice([lead.pid, *lead.guardians])
        if chance.random() < 0.5:
            signalled(victim, signal.SIGKILL)
        else:
            signalled(victim, signal.SIGSTOP)
            asleep.append((now + chance.uniform(0.05, 0.9), victim))
        supervisors = [each for each in supervisors if each.status is None]
        while len(supervisors) < SUPERVISORS:
            supervisors.append(leads.shell(STUBBORN, **options))
    for _, pid in asleep:
        signalled(pid, signal.SIGCONT)
    ran = leads.runs
    for _, pid in ran:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    assert len(ran) >= 3, "there was no chaos"
    supervisors.append(leads.shell(STUBBORN, **options))
    leads.ran(len(ran) + 1)
    assert not leads.two
    epochs = [epoch for epoch, _ in leads.runs]
    assert epochs == sorted(epochs)
