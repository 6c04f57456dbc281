"""Hundreds of updates into three instances, with items that move, while processes are killed all the time.

    TENURE_CAMPAIGN=20 TENURE_CAMPAIGN_UPDATES=3000 python -m pytest tests/real/test_campaign.py -s

does it with twenty seeds, and as many updates.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real.campaigns import Campaign, campaign_in
from tests.real.lives import said

UPDATES = int(os.environ.get("TENURE_CAMPAIGN_UPDATES", "500"))
SEEDS = range(1, 1 + int(os.environ.get("TENURE_CAMPAIGN", "1")))


def withstands(campaign: Campaign, updates: int, *options: str) -> None:
    """So many updates are each executed once, or interrupted by a kill; each life is told; and a person decides what
    becomes of those that were interrupted. All of it is a behaviour of the models."""
    campaign.open(3, *options)
    campaign.rage(updates)
    result = campaign.result()
    print(f"\n{result}")
    assert result.faults == ()
    assert result.executed + result.interrupted == updates
    assert result.interrupted <= campaign.harm.ends
    assert campaign.harm.ends >= updates / 50
    decided = campaign.decided()
    assert decided.faults == ()
    assert decided.executed + decided.discarded == updates
    assert decided.discarded == result.interrupted // 2
    journal = campaign.directory / "tmp" / "telegram" / "journal.db"
    assert "events explained" in said("trace", "check", str(journal))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_of_hundreds_is_executed_once_or_interrupted_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    """Three terminals: what is started again there has the same key."""
    with campaign_in(tmp_path, seed) as campaign:
        withstands(campaign, UPDATES)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_where_all_are_of_one_parent(tmp_path: Path, seed: int) -> None:
    """All but one have keys of their own, which nobody has after them (L24): what was for those is the leader's."""
    with campaign_in(tmp_path, seed) as campaign:
        withstands(campaign, UPDATES // 3, "--orphans")
