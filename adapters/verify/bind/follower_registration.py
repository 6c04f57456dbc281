"""The adapters of `FollowerRegistration` against its twin (bus.md b; I1-I6, I9, I10, I12, L0, L14, L24, L25).

The followers' half is `Follower`, with its client and its endpoint replaced at their ports; the leaders' is `Requests`
with `Routing`, `Turns` and `Book`, with provisioning, the ownership transaction, evidence, clock and client replaced.
Either half is run against the twin's other half, which is its world.

Not bound: what happens to one line on its way (retries, the request ledger, the secret), which is bound or tested by
itself; a leader of the other system that evicts without a word (`Evictions`) or moves a thread (`Move`, but for the
follower that is told of it); transactions that fail, or whose leading ends between evidence and decision; processes
behind registrations (`Witness`); when `Leading` prunes and reclaims; what becomes of work that was sent (it is taken).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.adapters.verify.bind.bound import Bound
from tenure.adapters.verify.bind.follower_half import FollowerBinding
from tenure.adapters.verify.bind.leader_half import LeaderBinding
from tenure.models.follower_registration import CONFIGS
from tenure.models.follower_registration_state import Config


def _config(
    causes: str, budget: int, *instances: str, relation: str = "apart", beating: str = "a", claims: str = ""
) -> Config:
    sets = (frozenset(words.split()) for words in (beating, "", "", claims))
    return Config(instances or ("a",), relation, frozenset(causes.split()), budget, *sets)


def _follower(least: int, config: Config, thorough: bool = False) -> Bound:
    return Bound(lambda: FollowerBinding(config), least, thorough)


def _leader(least: int, config: Config, thorough: bool = False) -> Bound:
    return Bound(lambda: LeaderBinding(config), least, thorough)


BOUND: Final[Mapping[str, Bound]] = {
    "follower-channel": _follower(6_000, CONFIGS["channel"]),
    "follower-ends": _follower(400, _config("leave session late goodbye", 1)),
    "follower-goodbyes": _follower(3_000, _config("leave session goodbye", 2, beating="")),
    "follower-stops": _follower(1_000, _config("crash goodbye", 2)),
    "follower-host": _follower(100, CONFIGS["host"]),
    "follower-asks": _follower(3_500, CONFIGS["asks"]),
    "follower-claim": _follower(200, CONFIGS["claim"]),
    "follower-strangers": _follower(100, CONFIGS["strangers"]),
    "follower-foreign": _follower(40, CONFIGS["foreign"]),
    "follower-shell": _follower(3_000, CONFIGS["shell"]),
    "follower-reload": _follower(900, CONFIGS["reload"]),
    "follower-successor": _follower(1_000, CONFIGS["successor"]),
    "follower-all": _follower(800, CONFIGS["all"]),
    "follower-deposed": _follower(15_000, CONFIGS["deposed"], thorough=True),
    "follower-intents": _follower(30_000, CONFIGS["intents"], thorough=True),
    "follower-given-up": _follower(12_000, _config("goodbye leave session late lose repeat", 2), thorough=True),
    "follower-work": _follower(
        20_000, _config("session late leave ask bare work move astray crash", 1, "a", "b"), thorough=True
    ),
    "leader-channel": _leader(7_000, CONFIGS["channel"]),
    "leader-asks": _leader(2_000, _config("bare ask leave work silence", 2)),
    "leader-intents": _leader(3_000, CONFIGS["intents"]),
    "leader-deposed": _leader(6_500, CONFIGS["deposed"]),
    "leader-claim": _leader(150, CONFIGS["claim"]),
    "leader-strangers": _leader(30, CONFIGS["strangers"]),
    "leader-shell": _leader(3_000, CONFIGS["shell"]),
    "leader-reload": _leader(1_000, CONFIGS["reload"]),
    "leader-successor": _leader(1_500, CONFIGS["successor"]),
    "leader-all": _leader(700, CONFIGS["all"]),
    "leader-goodbyes": _leader(12_000, _config("goodbye fail leave", 1, "a", "b", relation="shell"), thorough=True),
    "leader-pair": _leader(5_000, CONFIGS["pair"], thorough=True),
    "leader-many": _leader(
        20_000,
        _config("depose goodbye fail work ask lose late repeat", 1, "a", "b", claims="a b"),
        thorough=True,
    ),
    "leader-graves": _leader(
        6_000, _config("goodbye fail leave bury crash lose repeat", 2, "a", "b", relation="successor"), thorough=True
    ),
}
"""What the manifest names for the stage `bind`."""
