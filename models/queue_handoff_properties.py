"""What holds of QueueHandoff, by the names of the module (bus.md g, I17, I21, I22, I25-I31, V6-V10)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Final

from tenure.models.queue_handoff_state import (
    BARE,
    DONORS,
    LIVE,
    NO_OFFER,
    NOTHING,
    OWNED,
    SETTLED,
    Config,
    Msg,
    Owner,
    State,
    at,
    here,
    left,
    mine,
    over,
    process,
    serves,
)
from tenure.models.world import LeadsTo

OFFERS: Final = range(1, 7)


def at_most_once(s: State) -> bool:
    return s.ran <= 1


def one_executor(s: State) -> bool:
    return all(
        (s.row.state == "started" and mine(s, p)) or s.row.state == "done" for p in s.node if at(s, p, "executing")
    )


def one_that_knows(s: State) -> bool:
    if s.row.state not in OWNED:
        return True
    return all(mine(s, p) for p in s.node if at(s, p, "holding") and s.node[p].acq == s.row.owner.acq)


def apart(s: State) -> bool:
    return s.row.offer == NO_OFFER or process(s.row.offer.to) != process(s.row.owner.node)


def work_is_held(s: State) -> bool:
    p = s.row.owner.node
    if s.row.state not in OWNED or not here(s, p):
        return True
    copy = s.node[p]
    if copy.phase == "staged":
        return copy.h == s.row.owner.by
    return copy.phase == "rebuilding" or (copy.phase not in BARE and mine(s, p))


def done_is_executed(s: State) -> bool:
    return s.row.state != "done" or s.ran > 0


def frozen_while_offered(s: State) -> bool:
    return s.row.offer == NO_OFFER or s.row.state == "queued"


def awaited_is_open(s: State) -> bool:
    return all(s.row.offer.h == s.node[p].h for p in s.node if at(s, p, "awaiting") and mine(s, p))


INVARIANTS: Final[Mapping[str, Callable[[State], bool]]] = {
    "AtMostOnce": at_most_once,
    "OneExecutor_I25": one_executor,
    "OneExecutor_I25_knows": one_that_knows,
    "OneExecutor_I25_apart": apart,
    "WorkIsHeld_I26": work_is_held,
    "OwnerSettles_I21_done": done_is_executed,
    "FrozenWhileOffered_I28": frozen_while_offered,
    "FrozenWhileOffered_I28_awaited": awaited_is_open,
}


def _accepted(s: State, t: State) -> Iterator[str]:
    """Who accepts in this step."""
    for r, copy in s.node.items():
        if copy.phase == "staged" and t.node[r].phase == "accepted" and s.row != t.row:
            yield r


def accepts_that_offer(s: State, t: State) -> bool:
    return all(s.row.offer.h == s.node[r].h for r in _accepted(s, t))


def accepts_its_own(s: State, t: State) -> bool:
    return all(s.row.offer.to == r for r in _accepted(s, t))


def accepts_from_the_owner(s: State, t: State) -> bool:
    return all(s.row.owner == Owner(s.node[r].to, s.node[r].acq, s.node[r].by) for r in _accepted(s, t))


def no_other_offer(s: State, t: State) -> bool:
    return s.row.offer == NO_OFFER or t.row.offer in (s.row.offer, NO_OFFER)


def _said(s: State, t: State, gone: frozenset[Msg]) -> Iterator[Msg]:
    """Refusals that are sent in this step, but for those of the leader, who only passes on."""
    if all(q.kind != "ask" for q in gone):
        yield from (m for m in t.net - s.net if m.kind == "ack" and m.by == 0)


def never_unsays(s: State, t: State) -> bool:
    return not any(t.node[m.sender].phase in LIVE and t.node[m.sender].by == m.h for m in _said(s, t, s.net - t.net))


def exact_ack(s: State, t: State) -> bool:
    return not any(
        p in t.up and copy.phase == "awaiting" and at(s, p, "awaiting") and t.node[p].phase == "none"
        and t.row.owner.node == p and t.row.owner.acq == copy.acq
        for p, copy in s.node.items()
    )  # fmt: skip


def live_generations(s: State, t: State, unable: Collection[str]) -> bool:
    if any(q.kind != "ask" for q in s.net - t.net):
        return True
    return all(m.d and m.r and not {m.sender, m.to} & set(unable) for m in t.net - s.net if m.kind == "offer")


def generation_is_mine(s: State, t: State) -> bool:
    gone = s.net - t.net
    return all(
        any(m.kind == "offer" and m.to == r and m.r for m in gone)
        for r, copy in s.node.items()
        if copy.phase in BARE and t.node[r].phase == "staged"
    )


def recovery_needs_proof(s: State, t: State) -> bool:
    p = s.row.owner.node
    taken = s.row.state in OWNED and here(s, p) and t.row.state in ("pending", "interrupted")
    return not taken or t.node[p] != s.node[p]


def owner_settles(s: State, t: State) -> bool:
    if s.row.state != "started" or t.row.state not in ("done", "pending", "failed"):
        return True
    owner = s.row.owner
    if any((m.kind, m.sender, m.acq) == ("complete", owner.node, owner.acq) for m in s.net - t.net):
        return True
    return mine(s, owner.node) and (t.node[owner.node] == NOTHING or t.budget != s.budget)


def own_binding(s: State, t: State) -> bool:
    if s.row.state != "pending" or t.row.state != "queued":
        return True
    p = t.row.owner.node
    return serves(s, p) or left(s) or s.row.fallen == p


def moves_on(s: State, t: State) -> bool:
    return not any(
        at(s, r, "staged") and t.node[r].phase == "none" and r in t.up and s.row.state == "queued"
        and (s.row.offer.h, s.row.offer.to) == (copy.h, r) and s.row.owner.acq == copy.acq
        for r, copy in s.node.items()
    )  # fmt: skip


STEPS: Final[Mapping[str, Callable[[State, State], bool]]] = {
    "AcceptIsExact_I27": accepts_that_offer,
    "AcceptIsExact_I27_recipient": accepts_its_own,
    "AcceptIsExact_I27_donor": accepts_from_the_owner,
    "FrozenWhileOffered_I28_other": no_other_offer,
    "AcceptIdempotent_I29": never_unsays,
    "ExactAck_I30": exact_ack,
    "LiveGenerations_I31_mine": generation_is_mine,
    "RecoveryNeedsProof_I22": recovery_needs_proof,
    "OwnerSettles_I21": owner_settles,
    "OwnBinding_I17": own_binding,
    "MovesOn_L6": moves_on,
}


def eventually(config: Config) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
    """The properties of liveness."""

    def alone(s: State) -> bool:
        return s.up <= config.idle

    def stale(p: str, s: State) -> bool:
        return s.node[p].phase in DONORS and here(s, p) and not mine(s, p)

    def of_dead(s: State) -> bool:
        return s.row.state in OWNED and s.row.owner.node not in s.up

    def of_past(s: State) -> bool:
        return s.row.state in OWNED and over(s, s.row.owner.node)

    def ends(premise: Callable[[State], bool], excused: bool = True) -> LeadsTo[State]:
        return LeadsTo(premise, lambda s: not premise(s) or (excused and alone(s)))

    return {
        "OfferResolves_V8": tuple(ends(partial(_offered, h)) for h in OFFERS),
        "DonorDrops_V9": tuple(ends(partial(stale, p), excused=False) for p in config.nodes),
        "EventuallyExecutedOrInterrupted_V10": LeadsTo(lambda s: True, lambda s: s.row.state in SETTLED or alone(s)),
        "DeadIsRecovered_V6": ends(of_dead),
        "ReloadIsRecovered_V7": ends(of_past, excused=False),
    }


def _offered(h: int, s: State) -> bool:
    return s.row.offer.h == h


__all__ = ["INVARIANTS", "STEPS", "eventually", "live_generations"]
