"""All processes are stopped at any moment and the directory is copied: the copy opens, and `tenure journal list` agrees
with all that was promised until then.

    TENURE_COPIES=100 python -m pytest tests/real/test_copies.py

copies a hundred times, and lets others go on with ten.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.testing.history import Execution
from tests.real.campaigns import Campaign, campaign_in
from tests.real.lives import said

COPIES = int(os.environ.get("TENURE_COPIES", "10"))
WORDS = ("--all", "--json", "--limit", "10000")


@attrs.frozen
class Promised:
    """What was said to somebody until everybody stood still. `confirmed`: the server of the updates has forgotten all
    up to this one; `receipts`: updates whose delivery was acknowledged, or was about to be; `completed`: receipts."""

    confirmed: int
    receipts: frozenset[int]
    completed: frozenset[str]
    executions: tuple[Execution, ...]

    @classmethod
    def by(cls, campaign: Campaign) -> Promised:
        """By everybody, so far."""
        lines = [line.split() for line in Path(f"{campaign.log}.kept").read_text().splitlines()]
        return cls(
            campaign.queue()["confirmed"],
            frozenset(int(name) for what, name in lines if what == "deliver"),
            frozenset(name for what, name in lines if what == "complete"),
            campaign.executions(),
        )

    def faults(self, listed: dict[str, Any]) -> list[str]:
        """What `tenure journal list --all --json` says otherwise."""
        updates = {row["update"]: row["state"] for row in listed["updates"]}
        receipts = {row["receipt"]: row["state"] for row in listed["receipts"]}
        of = {update: row["state"] for row in listed["receipts"] for update in row["updates"]}
        found = [f"{n} is confirmed, and not there" for n in range(1, self.confirmed + 1) if n not in updates]
        found += [f"a receipt for {n} was given, and it has none" for n in self.receipts - of.keys()]
        found += [
            f"{n} is delivered, and has no receipt" for n, s in updates.items() if s == "delivered" and n not in of
        ]
        found += [f"{r} was completed, and is {receipts.get(r)}" for r in self.completed if receipts.get(r) != "done"]
        failed = {line.update for line in self.executions if line.what == "failed"}  # they begin again
        for line in self.executions:
            if line.update not in failed and of.get(line.update) not in ("done", "started", "interrupted"):
                found.append(f"{line.update} has {line.what}, and is {of.get(line.update)}")
        return found


def listing(directory: Path) -> dict[str, Any]:
    """What the command prints."""
    return dict(json.loads(said("journal", "list", str(directory), *WORDS)))


def no_sockets(place: str, names: list[str]) -> list[str]:
    """What cannot be copied."""
    return [name for name in names if stat.S_ISSOCK((Path(place) / name).lstat().st_mode)]


def test_a_copy_of_any_moment_agrees_with_what_was_promised(tmp_path: Path) -> None:
    hot = 0
    with campaign_in(tmp_path, 7) as campaign:
        campaign.open(3)
        for number in range(COPIES):
            campaign.say(*campaign.some(12))
            campaign.move(4)
            over = time.monotonic() + campaign.chance.uniform(0.0, 0.4)
            while time.monotonic() < over:  # a moment of chance, and no wait for anything
                time.sleep(0.001)
            for terminal in campaign.terminals:
                terminal.stop()
            promised = Promised.by(campaign)
            copy = tmp_path / f"copy{number}"
            shutil.copytree(campaign.directory, copy, symlinks=True, ignore=no_sockets)
            hot += (copy / "tmp" / "telegram" / "journal.db-journal").stat().st_size > 0
            for terminal in campaign.terminals:
                terminal.go_on()
            if number % 3 == 2:
                campaign.hurt()
            assert promised.faults(listing(copy)) == []
            if not number:
                seen = subprocess.run(
                    [sys.executable, "-m", "tenure.adapters.cli", "journal", "list", str(copy), *WORDS],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert json.loads(seen.stdout)["updates"] == listing(copy)["updates"]
            shutil.rmtree(copy)
            campaign.wake(everybody=True)
        result = campaign.result()
        print(f"\n{COPIES} copies, {hot} in the middle of a transaction; {result}")
        assert result.faults == ()
        assert result.executed + result.interrupted == campaign.pushed
        assert result.interrupted <= campaign.harm.ends


@pytest.mark.parametrize("seed", range(1, 1 + max(1, COPIES // 10)))
def test_others_go_on_with_a_copy(tmp_path: Path, seed: int) -> None:
    """All are killed while they stand still, and the copy is put in the place of the directory: for others, in other
    terminals. What had begun is interrupted, and everything else is executed, once, by those or by these."""
    with campaign_in(tmp_path, seed) as campaign:
        campaign.open(3)
        for _ in range(4):
            campaign.say(*campaign.some(15))
            campaign.move(6)
            over = time.monotonic() + campaign.chance.uniform(0.0, 0.4)
            while time.monotonic() < over:
                time.sleep(0.001)
        for terminal in campaign.terminals:
            terminal.stop()
        copy = tmp_path / "copy"
        shutil.copytree(campaign.directory, copy, symlinks=True, ignore=no_sockets)
        for terminal in campaign.terminals:
            terminal.close()
        shutil.rmtree(campaign.directory)
        copy.rename(campaign.directory)
        campaign.terminals.clear()
        campaign.open(3)
        result = campaign.result()
        print(f"\n{result}")
        assert result.faults == ()
        assert result.executed + result.interrupted == 60
        assert result.interrupted <= 3
