"""What processes share in the binding of `DurableAdmission`, what comes of a step, and what that is to the twin."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.journal.bodies import body_digest
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.verify.bind.admission_desk import Desk
from tenure.adapters.verify.bind.admission_seen import Known, Told, party, update
from tenure.adapters.verify.bind.admission_twin import Setting, Twin
from tenure.adapters.verify.bind.binding import World
from tenure.adapters.verify.bind.disk import Disks
from tenure.adapters.verify.bind.journal_ports import Journals
from tenure.adapters.verify.bind.whole import WholeBinding
from tenure.models.durable_admission import DurableAdmission
from tenure.models.durable_admission_state import (
    LIMIT,
    NO,
    Msg,
    Node,
    Row,
    State,
    Work,
    id_of,
)
from tenure.models.world import FrozenMap

PIDS: Final = {"a": 100, "b": 101, "c": 102}


@attrs.frozen(cache_hash=True)
class Around:
    """What processes share, and what is known of each. `was`: as it was before a step of which is not told yet what
    has come of it."""

    content: int
    up: tuple[tuple[str, str], ...]
    known: tuple[tuple[str, Known], ...]
    reg: frozenset[str] = frozenset()
    net: frozenset[Msg] = frozenset()
    sent: int = 0
    confirmed: int = 0
    effects: tuple[int, ...] = ()
    given: frozenset[tuple[str, int]] = frozenset()
    """What was given up: to the twin an answer to it may still come."""
    skips: frozenset[str] = frozenset()
    """Who began to lead in the first start."""
    ended: frozenset[str] = frozenset()
    """Who has ended it, and may not know."""
    moved: bool = False
    """A and B have each other's threads."""
    again: bool = False
    """What is heard now stays on its way: it comes twice."""
    was: Around | None = None

    def of(self, p: str) -> Known:
        """What is known of a process."""
        return dict(self.known)[p]

    def knows(self, p: str, known: Known) -> Around:
        """The same, with this known."""
        return attrs.evolve(self, known=tuple((q, known if q == p else k) for q, k in self.known))

    def is_up(self, p: str) -> str:
        """yes, no, dead."""
        return dict(self.up)[p]


class AdmissionWorld(WholeBinding[State]):
    """The world of one configuration."""

    module: ClassVar[str] = "DurableAdmission"

    constants: ClassVar[tuple[type, ...]] = (Desk, Setting, DurableAdmission)

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.model = Twin(setting, off)
        self.twin = self.model
        self.journals = Journals(Limits(attempts=LIMIT))
        self.names = {PIDS[p]: p for p in setting.processes}
        self.images: dict[Around, State] = {}
        self.states: dict[State, State] = {}

    def _fence(self, around: Around) -> int:
        fence: int = self.journals.rows(around.content, "meta")[0]["fence"]
        return fence

    def _routes(self, around: Around, p: str) -> tuple[str, ...]:
        """Who is registered with `p`, as far as it knows: one that was displaced has its routes still."""
        epoch = around.of(p).epoch
        if not epoch:
            return ()
        now = epoch == self._fence(around)
        return tuple(q for q, up in around.up if q != p and up == "yes" and (q in around.reg or not now))

    def _settle(self, around: Around, p: str, told: Told) -> Around:
        """What has come of a step."""
        before = around.of(p)
        net, given = around.net, around.given
        phases = self._phases(around)
        was = phases if around.was is None else self._phases(around.was)
        for i, m in told.settled:
            if i in told.given_up and phases.get(i) == "forwarding":
                continue
            gone = {m} if m is not None else self._acks(net, before, (i,))
            net -= gone
        over = {i for q, i in given if q == p and (told.resumed or was.get(i) != phases.get(i))}
        net -= self._acks(net, before, over)
        given -= {(p, i) for i in over}
        given |= {(p, i) for i in told.given_up if phases.get(i) == "forwarding"}
        if told.answer is not None:
            m, answer = told.answer
            listens = self._listens(attrs.evolve(around, given=given), m)
            net = (net if around.again and answer.ok else net - {m}) | frozenset({answer} if listens else ())
        again = around.again and told.known.hears is not None
        net |= set(told.sent)
        effects = tuple(n + told.effects.count(i + 1) for i, n in enumerate(around.effects))
        reg = around.reg
        after = attrs.evolve(around, net=net, given=given, effects=effects, reg=reg, again=again, was=None)
        if self._leads_now(around, p, told.known) and not self._leads_now(around.was or around, p, before):
            skips = around.skips - {p} | frozenset(() if self._opened(around) else {p})
            after = attrs.evolve(after, reg=frozenset(), skips=skips)
        if around.was is not None and self._opened(around) and not self._opened(around.was):
            after = attrs.evolve(after, ended=around.ended | {p})
        if before.epoch and not told.known.epoch:  # nobody waits for the answers any more
            after = attrs.evolve(after, net=frozenset(m for m in net if m.kind == "forward" or m.epoch != before.epoch))
        return after.knows(p, told.known)

    def _opened(self, around: Around) -> bool:
        return bool(self.journals.rows(around.content, "meta")[0]["opened"])

    def _phases(self, around: Around) -> dict[int, str]:
        return {row["update_id"]: row["phase"] for row in self.journals.rows(around.content, "updates")}

    def _leads_now(self, around: Around, p: str, known: Known) -> bool:
        return self._epoch(around, known) == self._fence(around)

    def _epoch(self, around: Around, known: Known) -> int:
        """Under which it leads, as the fence tells: it may not know yet."""
        return known.tries if known.tries and known.tries == self._fence(around) else known.epoch

    @staticmethod
    def _acks(net: frozenset[Msg], known: Known, ids: Collection[int]) -> set[Msg]:
        return {m for m in net if m.kind == "ack" and m.epoch == known.epoch and m.i in ids}

    def _listens(self, around: Around, m: Msg) -> bool:
        return any(
            k.epoch == m.epoch and around.is_up(q) == "yes" and (m.i in k.sending or (q, m.i) in around.given)
            for q, k in around.known
        )

    @staticmethod
    def _hearing(around: Around) -> set[Msg]:
        """What has arrived, and is on its way only to the twin."""
        return {m for _, k in around.known for m in (*k.heard, *((k.hears,) if k.hears else ()))}

    def shared_in(self, state: State) -> Hashable:
        """All but what nobody here can see: what is only counted, and what a refusal says besides."""
        found = self.states.get(state)
        if found is None:
            net = frozenset(m if m.kind == "forward" or m.ok else attrs.evolve(m, b=NO, g=0) for m in state.net)
            found = attrs.evolve(state, net=net, unwanted=frozenset(), harm=frozenset(), budget=0)
            self.states[state] = found
        return found

    def shared(self, disks: Disks, world: World) -> Hashable:
        around = world.extra
        assert isinstance(around, Around)
        around = around.was or around
        found = self.images.get(around)
        if found is None:
            found = self.images[around] = self._image(around)
        return found

    def _image(self, around: Around) -> State:
        """What is there, in the twin's words."""
        rows = self.journals.rows
        (meta,) = rows(around.content, "meta")
        receipts = {r["receipt_id"]: r for r in rows(around.content, "receipts")}
        known = dict(around.known)
        updates = dict.fromkeys(self.model.config.updates, Row("absent", NO))
        for r in rows(around.content, "updates"):
            updates[r["update_id"]] = Row(r["phase"], r["binding"] or NO)
        work = set()
        for d in rows(around.content, "deliveries"):
            work.add(self._work(d, receipts.get(d["receipt_id"]), known))
        node = {}
        for p, k in known.items():
            up = around.is_up(p)
            epoch = self._epoch(around, k) if up == "yes" else 0
            sending = k.sending | {i for q, i in around.given if q == p}
            node[p] = Node(up, epoch, p in around.reg, k.poll, k.got, self._skips(around, p, k), sending)
        return State(
            sent=around.sent,
            confirmed=around.confirmed,
            node=FrozenMap(node),
            net=around.net,
            target=FrozenMap(dict.fromkeys(updates, self._target(around))),
            fence=meta["fence"],
            opened=bool(meta["opened"]),
            offset=max(meta["passed"], 0),
            update=FrozenMap(updates),
            work=frozenset(work),
            effects=FrozenMap(dict(zip(updates, around.effects, strict=True))),
            unwanted=frozenset(),
            harm=frozenset(),
            budget=0,
        )

    def _target(self, around: Around) -> str:
        here = self.setting.target
        return {"A": "B", "B": "A"}[here] if around.moved else here

    def _skips(self, around: Around, p: str, known: Known) -> bool:
        if p in around.ended or not self._epoch(around, known):
            return False
        return known.skips if known.loaded else p in around.skips

    def _work(self, d: dict[str, Any], receipt: dict[str, Any] | None, known: Mapping[str, Known]) -> Work:
        i, b = d["update_id"], d["binding"]
        g = int(d["delivery_id"] != id_of(b, i, 0))
        body = 1 if d["digest"] == body_digest(update(i, self.setting.target).text, d["kind"]) else 2
        if receipt is None:
            return Work(i, b, g, b, body, d["phase"], "absent")
        owner = next((p for p in PIDS if party(p).process == receipt["owner_process"]), NO)
        did = owner != NO and receipt["phase"] == "started" and i in known[owner].did
        tries = receipt["attempts"] if self.setting.poison and receipt["phase"] not in ("discarded",) else 0
        return Work(i, b, g, b, body, d["phase"], receipt["phase"], owner, did, tries)
