"""Hundreds of updates into three instances, with items that move, while processes are killed all the time.

    TENURE_CAMPAIGN=20 TENURE_CAMPAIGN_UPDATES=3000 python -m pytest tests/real/test_campaign.py -s

does it with twenty other seeds, and as many updates.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real.campaigns import campaign_in

UPDATES = int(os.environ.get("TENURE_CAMPAIGN_UPDATES", "500"))
SEEDS = range(1, 1 + int(os.environ.get("TENURE_CAMPAIGN", "1")))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_of_hundreds_is_executed_once_or_interrupted_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    with campaign_in(tmp_path, seed) as campaign:
        campaign.open(3)
        campaign.rage(UPDATES)
        result = campaign.result()
        print(f"\nseed {seed}: {result}")
        assert result.faults == ()
        assert result.executed + result.interrupted == UPDATES
        assert result.interrupted <= campaign.harm.ends
        assert len(campaign.harm.killed) >= UPDATES / 50
        assert result.moved > 0
