"""What is seen of a leader: what it is, and what it does."""

from __future__ import annotations

import attrs

from tenure.models.follower_registration_state import Intent, Msg
from tenure.models.follower_registration_state import Route as Registry


@attrs.frozen(cache_hash=True)
class Does:
    """One step. `heard`: the request that it took; `answers`: what it says; `intents`: on the disk then, None where
    this leader writes nothing; `deleted`, `wrote`: what became of the thread of that registration; `acted`: for which
    something was done; `queued`: requests that wait for their turn, said with the last step."""

    routes: Registry
    heard: Msg | None = None
    again: bool = False
    answers: tuple[Msg, ...] = ()
    posts: tuple[Msg, ...] = ()
    intents: frozenset[Intent] | None = None
    deleted: tuple[str, int] | None = None
    wrote: tuple[str, int] | None = None
    acted: tuple[str, int] | None = None
    harm: frozenset[str] = frozenset()
    queued: frozenset[Msg] | None = None
    label: str = ""

    def __str__(self) -> str:
        answers = "".join(f", {'yes' if m.ok else 'no'} to {m.who}'s {m.kind}/{m.gen}" for m in self.answers)
        harm = "".join(f", {h}!" for h in sorted(self.harm))
        return f"{self.label or 'nothing'}{answers}{harm}"


@attrs.frozen(cache_hash=True)
class Looks:
    """A leader, and everything that its next step depends on. `calls`: of the port, by kind, instance, generation,
    profile and thread; `asked`: who waits for what, and where, in the order in which they came; `unsure`: the clean-up
    after which it is not known yet whether this leader leads."""

    routes: Registry
    intents: frozenset[Intent]
    calls: tuple[tuple[str, str, int, str, int], ...]
    unsure: tuple[str, int] | None
    asked: tuple[tuple[Msg | Intent, bool, bool, tuple[tuple[str, int], ...]], ...]
    opened: bool

    def __str__(self) -> str:
        routes = " ".join(f"{e.who}/{e.gen}" for e in sorted(self.routes.entries, key=str))
        calls = " ".join(f"{kind} {who}/{gen}" for kind, who, gen, _, _ in self.calls)
        return f"{self.routes.phase}, routes {routes or 'none'}, calls {calls or 'none'}, {len(self.asked)} wait"
