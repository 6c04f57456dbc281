"""What is around the followers of `Succession`: processes, the registry's entry, the leader's endpoint and routes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from tenure.machines.succession_messages import Look
from tenure.models.succession_state import NUMBERS, published, stalls


@attrs.frozen(cache_hash=True)
class Around:
    """One moment of it."""

    procs: tuple[tuple[str, str], ...]
    owner: str
    passed: bool
    serving: bool
    readable: bool
    routes: tuple[tuple[str, bool], ...]

    @classmethod
    def at_first(cls, followers: Collection[str], joining: Collection[str]) -> Around:
        """L leads, and everybody follows it who does not join later."""
        procs = tuple(sorted((p, "up") for p in (*followers, "L")))
        return cls(procs, "L", False, True, True, tuple(sorted((p, p not in joining) for p in followers)))

    # -- asked --------------------------------------------------------------------------------------------------------

    def proc(self, x: str) -> str:
        """up, hung or dead."""
        return dict(self.procs)[x]

    @property
    def over(self) -> bool:
        """The lease has passed, or its owner's process is dead."""
        return self.owner != "none" and (self.passed or self.proc(self.owner) == "dead")

    def owns(self, p: str) -> bool:
        """Its lease is live."""
        return self.owner == p and not self.passed

    @property
    def published(self) -> int:
        """What stands at the leader's endpoint."""
        return published(self.serving, self.owner, dict(self.procs))

    @property
    def stalls(self) -> bool:
        """One that does not own the lease hangs."""
        return stalls(self.owner, dict(self.procs))

    def reachable(self, x: str) -> bool:
        """It leads, and answers."""
        return x != "none" and self.owner == x and self.serving and self.proc(x) == "up"

    def healthy(self, p: str, leader: str) -> bool:
        """A heartbeat of `p` at `leader` would be answered with ok."""
        return self.reachable(leader) and dict(self.routes)[p]

    def look(self, p: str) -> Look:
        """What the registry shows to `p`."""
        if not self.readable:
            return Look("unknown")
        if self.owner == "none":
            return Look("inactive", 0, self.published)
        state = "stale" if self.over else "here" if self.owner == p else "elsewhere"
        return Look(state, NUMBERS[self.owner], self.published)  # type: ignore[arg-type]

    # -- changed ------------------------------------------------------------------------------------------------------

    def becomes(self, x: str, state: str) -> Around:
        """The process is that now."""
        return attrs.evolve(self, procs=tuple((y, state if y == x else s) for y, s in self.procs))

    def routed(self, p: str) -> Around:
        """The leader has a route to `p`."""
        return attrs.evolve(self, routes=tuple((q, r or q == p) for q, r in self.routes))

    def unrouted(self) -> Around:
        """The leader is gone, and its routes."""
        return attrs.evolve(self, serving=False, routes=tuple((q, False) for q, _ in self.routes))

    def won_by(self, p: str) -> Around:
        """The lease is that of `p`."""
        return attrs.evolve(self.unrouted(), owner=p, passed=False)

    def let_go(self, p: str, left: bool) -> Around:
        """`p` gives its lease up; `left`: the entry stays."""
        if self.owner != p:
            return self
        found = self.unrouted()
        return found if left else attrs.evolve(found, owner="none", passed=False)

    def gone(self, x: str) -> Around:
        """The process is dead."""
        found = self.becomes(x, "dead")
        if x != "L":
            found = attrs.evolve(found, routes=tuple((q, r and q != x) for q, r in found.routes))
        return found.unrouted() if self.owner == x else found

    def moves(self, causes: Collection[str]) -> Iterable[tuple[str, str, Around, int]]:
        """What befalls it: the twin's action, whom, what is then, and what it costs."""
        for x, state in self.procs:
            if state != "dead" and "die" in causes:
                yield "Die", x, self.gone(x), 1
            if state == "up" and "hang" in causes:
                yield "Hang", x, self.becomes(x, "hung"), 1
        if self.proc("L") == "hung":
            if self.owner == "L":
                yield "Wake", "L", attrs.evolve(self.becomes("L", "up"), passed=False), 0
                if not self.passed:
                    yield "Expire", "", attrs.evolve(self, passed=True), 0
            else:
                yield "Wake", "L", self.becomes("L", "dead"), 0
        if self.owner == "L" and self.proc("L") == "up":
            if "release" in causes:
                yield "Release", "", attrs.evolve(self.unrouted().becomes("L", "dead"), owner="none", passed=False), 1
            if not self.serving:
                yield "Heal", "", attrs.evolve(self, serving=True), 0
        if self.serving and "reload" in causes:
            yield "Reload", "", self.unrouted(), 1
        if self.readable and "tear" in causes:
            yield "Tear", "", attrs.evolve(self, readable=False), 1
        if not self.readable:
            yield "Mend", "", attrs.evolve(self, readable=True), 0
