"""Who may be offered something, as far as a leader or a donor knows, and what the relay's machine says of it (bus.md e,
LEADER RELAY)."""

from __future__ import annotations

from typing import Final

import attrs

from tenure.adapters.bus.messages.protocol import QUEUE_HANDOFF, QUEUE_HANDOFF_AGAIN, ProtocolIdentity
from tenure.adapters.fleet.leader.requests import Route
from tenure.machines.chart import Refused, step
from tenure.machines.follower_messages import Target
from tenure.machines.relay import RELAY, Bounds, Pass, PassOn

_WHY: Final = {
    "donor_is_live": "stale registration generation: register again",
    "recipient_is_live": "the recipient is not registered here under that generation",
    "both_can": f"a queued item moves only where donor, leader and recipient have {QUEUE_HANDOFF}",
    "second_move_known": f"the recipient lacks {QUEUE_HANDOFF_AGAIN}, and the item came by a handoff: it stays",
}


@attrs.frozen
class Destination:
    """A live instance that may be offered something. `generation`: of its registration, of a leader its epoch as text.
    `target`: its thread, as the machines compare it. `capabilities`: what it advertises, None where only its leader
    knows; `leaders`: what that leader advertises."""

    instance: str
    generation: str
    target: Target | None = None
    capabilities: frozenset[str] | None = None
    leaders: frozenset[str] = frozenset()


def destination(route: Route) -> Destination:
    """A registration, as its leader sees it."""
    live = route.live
    protocol = None if live is None else live.registration.protocol
    return Destination(
        route.entry.instance,
        str(route.entry.generation),
        route.entry.binding.target,
        frozenset(() if protocol is None else protocol.capabilities),
    )


def as_leader(instance: str, epoch: int | str, target: Target | None, protocol: ProtocolIdentity) -> Destination:
    """A leader as one that something is offered to: its epoch is what its generation is to others."""
    return Destination(instance, str(epoch), target, frozenset(protocol.capabilities))


def judged(
    bounds: Bounds,
    donor: Destination,
    leader: ProtocolIdentity,
    to: Destination | None,
    *,
    donor_current: bool,
    came_by_handoff: bool,
    left_ms: float,
) -> Pass | Refused:
    """What the relay's machine says to an offer of `donor` to `to`; None: nobody of that registration is here."""
    able = frozenset() if to is None or to.capabilities is None else to.capabilities
    gives = donor.capabilities or frozenset()
    message = PassOn(
        donor_current=donor_current,
        recipient_current=to is not None,
        both_know=all(QUEUE_HANDOFF in has for has in (able, gives, leader.capabilities)),
        came_by_handoff=came_by_handoff,
        recipient_carries=QUEUE_HANDOFF_AGAIN in able,
        left_ms=int(left_ms),
    )
    taken = step(RELAY, RELAY.initial, bounds, message)
    if isinstance(taken, Refused):
        return taken
    (passed,) = taken.outputs
    return passed


def in_words(refused: Refused) -> str:
    """Why an offer is not passed on, for a person."""
    return "; ".join(_WHY[guard] for guard in refused.guards)
