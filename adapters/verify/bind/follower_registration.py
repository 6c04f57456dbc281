"""The adapters of `FollowerRegistration` against its twin (bus.md b; I1-I6, I9, I10, I12, L0, L14, L24, L25).

The followers' half is `Follower`, with its client and its endpoint replaced at their ports. Not bound by it: a leader
of the other system that evicts without a word (`Evictions`, which has tests of its own), and what happens to one line
on the way (a client's retries, the request ledger), which are bound or tested by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.follower_half import FollowerBinding
from tenure.models.follower_registration import CONFIGS
from tenure.models.follower_registration_state import Config


def _config(causes: str, budget: int, *instances: str, relation: str = "apart", beating: str = "a") -> Config:
    return Config(instances or ("a",), relation, frozenset(causes.split()), budget, frozenset(beating.split()))


def _follower(least: int, config: Config, thorough: bool = False) -> Bound:
    return Bound(lambda: FollowerBinding(config), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "follower-channel": _follower(10_000, CONFIGS["channel"]),
    "follower-ends": _follower(400, _config("leave session late goodbye", 1)),
    "follower-asks": _follower(4_000, CONFIGS["asks"]),
    "follower-claim": _follower(250, CONFIGS["claim"]),
    "follower-strangers": _follower(100, CONFIGS["strangers"]),
    "follower-foreign": _follower(50, CONFIGS["foreign"]),
    "follower-shell": _follower(3_500, CONFIGS["shell"]),
    "follower-reload": _follower(1_000, CONFIGS["reload"]),
    "follower-successor": _follower(1_000, CONFIGS["successor"]),
    "follower-all": _follower(800, CONFIGS["all"]),
    "follower-deposed": _follower(15_000, CONFIGS["deposed"], thorough=True),
    "follower-intents": _follower(30_000, CONFIGS["intents"], thorough=True),
    "follower-given-up": _follower(15_000, _config("goodbye leave session late lose repeat", 2), thorough=True),
    "follower-work": _follower(
        20_000, _config("session late leave ask bare work move astray crash", 1, "a", "b"), thorough=True
    ),
}
"""What the manifest names for the stage `bind`."""
