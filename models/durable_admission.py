"""The twin of `spec/DurableAdmission.tla`: leaders in turn, instances and their workers, and one journal for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from tenure.machines import delivery as there
from tenure.machines import forwarding_messages as here
from tenure.machines import receipt_messages as right
from tenure.machines.forwarding import FORWARDING
from tenure.models.durable_admission_state import (
    HOME,
    IDLE,
    LIVE,
    NO,
    SHOWN,
    Config,
    Node,
    Row,
    State,
    admitted,
    at_most_once,
    current,
    exact_receipt,
    leads,
    nothing_lost,
    of,
    own_binding,
    resolved,
    same,
    stable_delivery,
    stale_leader_inert,
    under_way,
    unheard,
    with_node,
    with_work,
)
from tenure.models.durable_admission_steps import Steps
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength


def _config(
    processes: str,
    leaders: str,
    causes: str,
    budget: int,
    *,
    last: int = 1,
    first: bool = False,
    target: str = "B",
    poison: tuple[int, ...] = (),
    room: int = 1,
) -> Config:
    who, lead, what = processes.split(), frozenset(leaders.split()), frozenset(causes.split())
    return Config(tuple(who), lead, last, first, target, frozenset(poison), room, what, budget)


CONFIGS: Mapping[str, Config] = {
    "room": _config("a", "a", "", 0, last=2, target="A"),
    "alone": _config("a", "a", "old trim", 3, target="A"),
    "once": _config("a b", "a", "late odd astray babble full", 1),
    "poison": _config("a", "a", "person", 1, last=2, target="A", poison=(1,), room=2),
    "mute": _config("a b", "a", "mute", 0, last=2, room=2),
    "anew": _config("a", "a", "anew old trim", 2, target="A"),
    "move": _config("a b", "a", "move late foreign", 3),
    "again": _config("a b", "a", "dup trim", 2),
    "left": _config("a b", "a", "move crash", 2),
    "channel": _config("a b", "a", "lose late dup odd astray forged moved babble full trim silent person", 2),
    "crash": _config("a b c", "a b", "crash replace lose silent", 1),
    "leaders": _config("a b", "a b", "depose late person", 1, first=True),
    "all": _config("a b", "a b", "depose crash lose person move", 2),
}
"""The configurations of the manifest by name; each equals `spec/DurableAdmission_<name>.cfg`."""

POLLS: Final = ("Poll", "Serve", "Journal", "Renumber", "JournalRefused", "Open")
MOVES: Final = ("Forward", "Keep", "HearAck", "Unanswered", "Resume")
WORKS: Final = ("Take", "Start", "Effect", "Complete", "Fail")


class DurableAdmission(Steps):
    """Updates, from Telegram to their effect."""

    def initial(self) -> Iterable[State]:
        c = self.config
        node = dict.fromkeys(c.processes, IDLE) | {"a": Node(epoch=1, skips=c.first)}
        if "c" in node:
            node["c"] = Node(up="no")
        yield State(
            sent=0,
            confirmed=0,
            node=FrozenMap(node),
            net=frozenset(),
            target=FrozenMap(dict.fromkeys(c.updates, c.target)),
            fence=1,
            opened=not c.first,
            offset=c.last + 1 if "anew" in c.causes else 0,
            update=FrozenMap(dict.fromkeys(c.updates, Row(FORWARDING.initial, NO))),
            work=frozenset(),
            effects=FrozenMap(dict.fromkeys(c.updates, 0)),
            unwanted=frozenset(),
            harm=frozenset(),
            budget=c.budget,
        )

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.processes)
        every = tuple((i,) for i in self.config.updates)
        pairs = tuple((p, i) for (p,) in each for (i,) in every)
        return (
            Action("Poll", self._poll, each),
            Action("Serve", self._serve, each),
            Action("Conflict", self._conflict, each),
            Action("Journal", self._journal, each),
            Action("Renumber", self._renumber, each),
            Action("JournalRefused", self._journal_refused, each),
            Action("Open", self._open, each),
            Action("Forward", self._forward, pairs),
            Action("Unserved", self._unserved, pairs),
            Action("Drop", self._drop, pairs, mutant="waits_for_instance"),
            Action("Keep", self._keep, pairs),
            Action("HearForward", self._hear_forward, pairs),
            Action("Unheard", self._unheard, pairs),
            Action("Babble", self._babble, pairs),
            Action("HearAck", self._hear_ack, pairs),
            Action("Unanswered", self._unanswered, pairs),
            Action("Retry", lambda s, i: self._moved(s, i, here.Retry()), every),
            Action("Resume", self._resume, pairs),
            Action("Release", self._release, every),
            Action("Take", self._take, pairs),
            Action("Start", self._start, pairs),
            Action("Effect", self._effect, pairs),
            Action("Complete", self._complete, pairs),
            Action("Fail", self._fail, pairs),
            Action("Recover", self._recover, pairs),
            Action("Lead", self._lead, each),
            Action("Notice", self._notice, each),
            Action("Register", self._register, each),
            Action("Silent", self._silent, each),
            Action("Arrive", self._arrive, each),
            Action("Crash", self._crash, each),
            Action("Lose", self._lose),
            Action("Send", self._send),
            Action("Move", self._move, every),
            Action("Forget", self._forget, every),
            Action("Trim", self._trim, every),
            Action("Discard", self._discard, every),
            Action("Waive", self._waive, every),
            Action("Again", self._again, every),
            Action("Redo", self._redo, every, mutant="a_person_asks"),
        )

    # -- what befalls them --------------------------------------------------------------------------------------------

    def _lead(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        budget = self._spend(state, "depose" if any(current(state, q) for q in state.node) else NO)
        if p not in self.config.leaders or node.up != "yes" or node.epoch == state.fence or budget is None:
            return
        fence = state.fence + 1
        nodes = {q: attrs.evolve(other, reg=False) for q, other in state.node.items()}
        nodes[p] = Node(epoch=fence, skips=not state.opened)
        net = unheard(state, node.epoch)
        yield attrs.evolve(state, fence=fence, node=FrozenMap(nodes), net=net, budget=budget)

    def _notice(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if leads(node) and not current(state, p):
            yield attrs.evolve(state, node=state.node.set(p, IDLE), net=unheard(state, node.epoch))

    def _register(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        if node.up != "yes" or node.reg or node.epoch != 0:
            return
        if not any(current(state, q) and HOME[q] != HOME[p] for q in state.node):
            return
        if p == "b" and "c" in state.node and state.node["c"].up == "yes":
            return
        nodes = {q: attrs.evolve(n, reg=q == p) if HOME[q] == HOME[p] else n for q, n in state.node.items()}
        yield attrs.evolve(state, node=FrozenMap(nodes))

    def _silent(self, state: State, p: str) -> Iterable[State]:
        budget = self._spend(state, "silent")
        node = state.node[p]
        if node.reg and budget is not None:
            yield with_node(attrs.evolve(state, budget=budget), p, attrs.evolve(node, reg=False))

    def _arrive(self, state: State, p: str) -> Iterable[State]:
        beside = any(HOME[q] == HOME[p] and node.up == "yes" for q, node in state.node.items())
        budget = self._spend(state, "replace" if beside else NO)
        if state.node[p].up == "no" and budget is not None:
            yield attrs.evolve(state, node=state.node.set(p, IDLE), budget=budget)

    def _crash(self, state: State, p: str) -> Iterable[State]:
        epoch = state.node[p].epoch
        budget = self._spend(state, "crash")
        if state.node[p].up != "yes" or budget is None:
            return
        work = frozenset(attrs.evolve(d, did=False) if d.owner == p else d for d in state.work)
        after = attrs.evolve(state, node=state.node.set(p, Node(up="dead")), work=work, budget=budget)
        said = frozenset(m for m in state.net if (m.to != p if m.kind == "forward" else m.epoch != epoch))
        unsaid = frozenset(m for m in state.net if m.to != p and m.epoch != epoch)
        for net in {said, unsaid}:
            yield attrs.evolve(after, net=net)

    def _lose(self, state: State) -> Iterable[State]:
        if (budget := self._spend(state, "lose")) is not None:
            for m in state.net:
                yield attrs.evolve(state, net=state.net - {m}, budget=budget)

    def _send(self, state: State) -> Iterable[State]:
        if state.sent < self.config.last:
            yield attrs.evolve(state, sent=state.sent + 1)

    def _move(self, state: State, i: int) -> Iterable[State]:
        budget = self._spend(state, "move")
        if budget is not None:
            target = state.target.set(i, "B" if state.target[i] == "A" else "A")
            yield attrs.evolve(state, target=target, budget=budget)

    def _forget(self, state: State, i: int) -> Iterable[State]:
        budget = self._spend(state, "trim")
        done = self._said(state, i, here.Forget())
        if done is not None and budget is not None:
            update = state.update.set(i, Row(done.phase, NO))
            yield attrs.evolve(state, update=update, budget=budget)

    def _trim(self, state: State, i: int) -> Iterable[State]:
        budget = self._spend(state, "trim")
        message = there.Forget(wanted=state.update[i].phase in LIVE)
        for d in of(state, i):
            if self._told(d, d.at, message) is not None and budget is not None:
                yield attrs.evolve(state, work=state.work - {d}, budget=budget)

    def _discard(self, state: State, i: int) -> Iterable[State]:
        budget = self._spend(state, "person")
        for after in self._moved(state, i, here.Discard(admitted(state, i))):
            if budget is not None:
                yield attrs.evolve(after, unwanted=state.unwanted | {i}, budget=budget)

    def _waive(self, state: State, i: int) -> Iterable[State]:
        if (budget := self._spend(state, "person")) is None:
            return
        for d in of(state, i):
            for after in with_work(state, d, self._decided(d, right.Discard("somebody"))):
                yield attrs.evolve(after, unwanted=state.unwanted | {i}, budget=budget)

    def _again(self, state: State, i: int) -> Iterable[State]:
        if (budget := self._spend(state, "person")) is None:
            return
        for d in of(state, i):
            for after in with_work(state, d, self._decided(d, right.Retry("somebody"))):
                yield attrs.evolve(after, effects=state.effects.set(i, 0), budget=budget)

    def _redo(self, state: State, i: int) -> Iterable[State]:
        for d in of(state, i):
            if d.receipt in SHOWN:
                yield from with_work(state, d, self._decided(d, right.Retry("")))

    # -- properties ---------------------------------------------------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {
            "JournalBeforeConfirm_I18": lambda s: s.confirmed <= s.offset,
            "NothingLost": nothing_lost,
            "StableDelivery_I14": stable_delivery,
            "AtMostOnce_I15": at_most_once,
            "Admittable_I16": lambda s: "refused" not in s.harm,
            "OwnBinding_I17": own_binding,
            "Bounded_I23": lambda s: under_way(s) <= self.config.room,
        }

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "ExactReceipt_I13": exact_receipt,
            "StaleLeaderInert": stale_leader_inert,
            "RecoveryNeedsProof_I22": self._recovery_needs_proof,
        }

    def _recovery_needs_proof(self, before: State, after: State) -> bool:
        return all(
            e.owner == d.owner or e.receipt == "done"
            for d in before.work
            if d.owner != NO and d.i not in self.config.poison and after.node[d.owner].up == "yes"
            for e in after.work
            if same(e, d)
        )

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        every = self.config.updates
        return {
            "EventuallyExecutedOrInterrupted_V4": tuple(self._resolves(i) for i in every),
            "PoisonPasses_V5": tuple(
                self._resolves(i) for i in every if i not in self.config.poison | self.config.mute
            ),
        }

    def _resolves(self, i: int) -> LeadsTo[State]:
        return LeadsTo(lambda s: s.sent >= i, lambda s: resolved(s, self.config, i))

    def fairness(self) -> tuple[Fair, ...]:
        def weak(names: Iterable[str], *args: object) -> Fair:
            return Fair(Strength.WEAK, frozenset((name, args) for name in names))

        found: list[Fair] = []
        for p in self.config.processes:
            found.append(weak(POLLS, p))
            found += [weak([name], p) for name in ("Lead", "Notice", "Register", "Arrive")]
            for i in self.config.updates:
                found += [weak(names, p, i) for names in (MOVES, WORKS, ["HearForward", "Unheard"], ["Recover"])]
        found += [weak([name], i) for i in self.config.updates for name in ("Retry", "Release")]
        return tuple(found)
