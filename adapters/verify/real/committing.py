"""The committer of a run: it commits under the current epoch, and under old ones on purpose, until it is killed.

Its command is a shell that says when it begins and ends, as the leaders' effects do, and looks for itself whether its
epoch is the one in the registry. Some commands leave something behind, some do not end and ignore SIGTERM.
"""

from __future__ import annotations

import os
import random
import time
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.registry import parse_registry
from tenure.adapters.files.timings import Timings
from tenure.adapters.lead.commit import Bounds, Committer
from tenure.adapters.lead.errand import ProcessErrand
from tenure.adapters.verify.real.worker import Faults, Room, ports_of
from tenure.machines.identity import Epoch

KEY: Final = "default"
BOUNDS: Final = Bounds(100, 20)
"""Longer than a shell takes, and shorter than a lease."""
SCRIPT: Final = r"""
{more}
printf '+%s %s\n' "$TENURE_EPOCH" $$ >> "$EFFECTS"
grep -Eq "\"leaderEpoch\": \"?$TENURE_EPOCH\"?(,|\$)" "$REGISTRY"
[ $? -eq 1 ] && printf '!%s %s\n' "$TENURE_EPOCH" $$ >> "$EFFECTS"
{then}
printf -- '-%s %s\n' "$TENURE_EPOCH" $$ >> "$EFFECTS"
"""
USUAL: Final = SCRIPT.format(more="", then="")
UNUSUAL: Final = (
    SCRIPT.format(more="sleep 9 &", then=""),
    SCRIPT.format(more="(trap '' TERM; sleep 9) &", then=""),
    SCRIPT.format(more="trap '' TERM", then="sleep 9"),
    SCRIPT.format(more="", then="sleep 9"),
)


def commits(room: Room, faults: Faults, slot: int, seed: int, timings: Timings) -> None:
    """Live until killed."""
    ports = ports_of(room, faults, slot, seed, timings)
    chance = random.Random(seed + 3)
    directory = AgentDirectory(str(room.agent))
    environment = {**os.environ, "EFFECTS": str(room.effects), "REGISTRY": directory.registry}
    old: list[Epoch] = [1]
    while True:
        epoch = current(directory)
        if epoch is None or chance.random() < 0.2:
            epoch = chance.choice(old)
        elif epoch != old[-1]:
            old.append(epoch)
        script = USUAL if chance.random() < 0.9 else chance.choice(UNUSUAL)
        errand = ProcessErrand(["sh", "-c", script], environment, directory.commit_lock(KEY))
        try:
            Committer(ports, directory, KEY, timings, BOUNDS, errand.open_lock, errand).run(epoch)
        except TenureError:
            pass  # a failing disk, or no directory yet; another commit comes
        finally:
            errand.close()
        time.sleep(chance.uniform(0.02, 0.4) * timings.stale_ms / 1000)


def current(directory: AgentDirectory) -> Epoch | None:
    """The epoch in the registry now."""
    try:
        entry = parse_registry(PosixFiles().read(directory.registry)).entry(KEY)
    except OSError:
        return None
    return None if entry is None else entry.leader_epoch
