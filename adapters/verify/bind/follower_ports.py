"""What a follower asks, replaced: its client, its own endpoint, its request ids; and what is seen of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from tenure.adapters.bus.client import ONCE, Client, Reply, Retry
from tenure.models.follower_registration_state import Call, Msg, Node


@attrs.frozen(cache_hash=True)
class Told:
    """One step. `ended`: calls that are over; `calls`: all that wait then, said with the last step."""

    node: Node
    ended: frozenset[Call] = frozenset()
    posts: tuple[Msg, ...] = ()
    harm: frozenset[str] = frozenset()
    calls: frozenset[Call] | None = None

    def __str__(self) -> str:
        posts = "".join(f", sends {m.kind}/{m.gen} to {m.lead}" for m in self.posts)
        ended = "".join(f", {c.kind}/{c.gen} is over" for c in sorted(self.ended, key=str))
        harm = "".join(f", {h}!" for h in sorted(self.harm))
        return f"{self.node.phase} {self.node.generation or ''}{posts}{ended}{harm}"


@attrs.frozen(cache_hash=True)
class Seen:
    """A follower, and everything that its next step depends on."""

    node: Node
    calls: tuple[tuple[str, int], ...]
    link: str
    ticks: int
    verbs: tuple[tuple[str, bool, tuple[tuple[str, int], ...]], ...]
    held: int
    begun: bool

    def __str__(self) -> str:
        n = self.node
        own_key = ", own key" if n.own_key else ""
        calls = " ".join(f"{kind}/{gen}" for kind, gen in self.calls)
        return f"{n.phase} {n.generation or ''}{own_key}, calls {calls or 'none'}, ticks {self.ticks}"


class Wire(Client):
    """The client: what is sent waits with who is asked by `requested`."""

    def __init__(self, requested: Callable[[str, bytes], Awaitable[Reply]]) -> None:
        super().__init__()
        object.__setattr__(self, "requested", requested)

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        found: Reply = await self.requested(path, line)  # type: ignore[attr-defined]
        return found


class Door:
    """The own endpoint."""

    path = "/own"

    async def start(self) -> None:
        return

    def heal_soon(self) -> None:
        return

    async def stop(self) -> None:
        return


class Numbers:
    """Request ids: a registration's is the one that the twin draws."""

    def __init__(self) -> None:
        self.fresh = 0

    def next(self) -> str:
        drawn, self.fresh = self.fresh, 0
        return str(drawn) if drawn else "x"
