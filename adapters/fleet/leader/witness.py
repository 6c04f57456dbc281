"""Which process is behind a registration, and whether it is dead: the evidence that routes are decided by (L24, L16).

A follower *claims* a process: a pid and a birth. The kernel says which process *connected*. Where both are one, the
claim is the process's own. Where not, a relay speaks for it (a proxy; the kernel cannot say which, in another pid
namespace), and the claim is kept apart from the process's own word: it is as good as another claim through the same
relay, and as good as the registration that was last heard through that relay, and never better. So a registration is
not refused because somebody passes it on, as the other system's users may, and nobody who merely copies a pid and a
birth takes what a living process holds by itself.

The process itself has the last word on what relays have said of it: who connects itself, and is seen with that birth,
is the process of every registration that was seen as the same one (`same`). So a follower whose relay has died comes
back at once. Nobody is displaced by that who did not claim to be the very process that comes. It does not go further:
a claim through a second relay, while the first one's registration is not silent for long, may be anybody's, and waits
until that has left the routes.

Death is proven only for a process that was seen alive with that very birth when it registered: a birth id has neither
boot nor pid namespace in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import attrs

from tenure.adapters.bus.messages.envelopes import Registration
from tenure.adapters.bus.peer import Peer
from tenure.adapters.fleet.identities import parse_birth_id
from tenure.adapters.ports import Ports, tell
from tenure.machines.identity import RUNNING, Birth, Process, proven_dead


@attrs.frozen
class Claim:
    """Who a registration says it is, and who brought it. `process`: seen alive as claimed."""

    birth: str
    """The birth id; empty where it names none, or one of another pid: then nobody is the same process."""
    through: int | None = None
    """The pid of the relay; None where the process came itself."""
    process: Process | None = None

    @property
    def word(self) -> str:
        """What routes compare: the process's own word, or that of its relay."""
        if not self.birth or self.through is None:
            return self.birth
        return f"{self.birth} through {self.through or '?'}"


@attrs.define
class _Known:
    word: str
    birth: str
    process: Process | None
    heard_through: int


class Witness:
    """What is known of the processes behind live routes, by (instance, generation)."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._known: dict[tuple[str, str], _Known] = {}

    async def claim(self, registration: Registration, peer: Peer) -> Claim:
        """Look at what a registration says of its process. Some of it is asked of the system, in a thread."""
        found = parse_birth_id(registration.process_birth_id)
        pid = registration.pid if registration.pid is not None else (found.pid if found else None)
        through = None if peer.pid and peer.pid == pid else peer.pid
        if through is not None:
            tell(self._ports, "fleet", "relayed", instance=registration.instance_id, peer=str(peer), claims=pid)
        if found is None or found.pid != pid:
            return Claim("", through)
        birth = str(found)
        ticks = found.ticks
        seen = None if ticks is None else await asyncio.to_thread(self._seen, found.pid, ticks)
        return Claim(birth, through, seen)

    def word(self, claim: Claim) -> str:
        """What routes are to compare for `claim`, now: where its relay was the last to speak for a live registration of
        the same process, that one's word."""
        for known in self._known.values():
            if claim.birth and known.birth == claim.birth and known.heard_through == claim.through:
                return known.word
        return claim.word

    def same(self, claim: Claim) -> frozenset[str]:
        """The instances of live routes that are proven to be of the process that came itself with `claim`."""
        if claim.through is not None or claim.process is None:
            return frozenset()
        return frozenset(instance for (instance, _), known in self._known.items() if known.process == claim.process)

    def wrote(self, instance: str, generation: str, claim: Claim, word: str, peer: Peer) -> None:
        """A route was written for it."""
        self._known[instance, generation] = _Known(word, claim.birth, claim.process, peer.pid)

    def heard(self, instance: str, generation: str, peer: Peer) -> None:
        """A request of the current registration came in."""
        known = self._known.get((instance, generation))
        if known is not None:
            known.heard_through = peer.pid

    def forget(self, instance: str, generation: str) -> None:
        """That route is over."""
        self._known.pop((instance, generation), None)

    def process(self, instance: str, generation: str) -> Process | None:
        """Its process, where its death can be proven."""
        known = self._known.get((instance, generation))
        return None if known is None else known.process

    async def dead(self, routes: Iterable[tuple[str, str]]) -> frozenset[str]:
        """The instances of these routes whose processes are dead for certain, now."""
        asked = [
            (instance, process) for instance, generation in routes if (process := self.process(instance, generation))
        ]
        return await asyncio.to_thread(self._dead, asked) if asked else frozenset()

    async def is_dead(self, process: Process | None) -> bool:
        """Whether this one is, for certain, now."""
        return process is not None and bool(await asyncio.to_thread(self._dead, [("", process)]))

    def _dead(self, asked: list[tuple[str, Process]]) -> frozenset[str]:
        processes = self._ports.processes
        me = processes.me()
        return frozenset(
            instance
            for instance, process in asked
            if process != me and proven_dead(process.birth, processes.sighting(process.pid), me)
        )

    def _seen(self, pid: int, ticks: int) -> Process | None:
        processes = self._ports.processes
        me = processes.me()
        if pid == me.pid:
            return me if ticks == me.birth.ticks else None
        seen = processes.sighting(pid)
        if seen.state != RUNNING or seen.ticks != ticks:
            return None
        return Process(pid, Birth(ticks, me.birth.boot_id, me.birth.namespace))
