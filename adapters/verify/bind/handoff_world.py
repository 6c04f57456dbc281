"""What nodes share in the binding of `QueueHandoff`, what comes of a step, and what that is to the twin."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import ClassVar

import attrs

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.verify.bind.binding import World
from tenure.adapters.verify.bind.disk import Disks, identity
from tenure.adapters.verify.bind.handoff_desk import Desk
from tenure.adapters.verify.bind.handoff_seen import PIDS, Known, Letter, Names, Told
from tenure.adapters.verify.bind.handoff_twin import CAUSES, Setting, Twin
from tenure.adapters.verify.bind.journal_ports import Journals
from tenure.adapters.verify.bind.whole import WholeBinding
from tenure.models.queue_handoff import QueueHandoff
from tenure.models.queue_handoff_state import (
    BARE,
    NO_OFFER,
    NOBODY,
    NONE,
    NOTHING,
    Config,
    Copy,
    Msg,
    Open,
    Owner,
    Row,
    State,
    call,
)
from tenure.models.world import FrozenMap


@attrs.frozen(cache_hash=True)
class Around:
    """What nodes share, and what is known of each. `letters`: what is really on the wire of what is on its way to the
    twin; `calls`: the last offer of each node; `was`: as it was before a step of which is not told yet what has come
    of it."""

    content: int
    known: tuple[tuple[str, Known], ...]
    generations: tuple[tuple[str, int], ...]
    dead: frozenset[str] = frozenset()
    net: frozenset[Msg] = frozenset()
    letters: frozenset[tuple[Msg, Letter]] = frozenset()
    calls: tuple[tuple[str, tuple[Msg, Letter]], ...] = ()
    ran: int = 0
    late: int = 0
    moved: int = 0
    told: Msg | None = None
    """The answer that is heard now."""
    keeps: bool = False
    """An offer that is given up stays on its way."""
    was: Around | None = None

    def of(self, p: str) -> Known:
        """What is known of a node."""
        return dict(self.known)[p]

    def knows(self, p: str, known: Known) -> Around:
        """The same, with this known."""
        return attrs.evolve(self, known=tuple((q, known if q == p else k) for q, k in self.known))

    def generation(self, p: str) -> str:
        """Of a node's registration."""
        return f"{p}{dict(self.generations)[p]}"

    def carrying(self, net: frozenset[Msg], *more: tuple[Msg, Letter]) -> Around:
        """The same, with this on its way."""
        letters = frozenset((m, letter) for m, letter in (*self.letters, *more) if m in net)
        return attrs.evolve(self, net=net, letters=letters)


class HandoffWorld(WholeBinding[State]):
    """The world of one configuration."""

    module: ClassVar[str] = "QueueHandoff"

    constants: ClassVar[tuple[type, ...]] = (Desk, Setting, QueueHandoff)

    def __init__(self, setting: Setting, off: Collection[str] = ()) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.model = Twin(Config(setting.nodes, CAUSES, 1, setting.limit), off)
        self.twin = self.model
        self.journals = Journals(Limits(attempts=setting.limit, grace_ms=0))
        self.handoffs: Names = {}
        self.names = {PIDS[p]: p for p in setting.nodes}
        self.images: dict[Around, State] = {}
        self.states: dict[State, State] = {}

    def _settle(self, around: Around, p: str, told: Told) -> Around:
        """What has come of a step."""
        was = around.was or around
        row, past = self._row(around), self._row(was)
        before, now = self._copy(past, p, around.of(p)), self._copy(row, p, told.known)
        net = around.net
        more: list[tuple[Msg, Letter]] = []
        if told.took is not None:
            net -= {told.took}
        if before.phase == "awaiting" and now.phase != "awaiting":
            gone = call(self._image(was), p)
            net -= {m for m in gone if not (around.keeps and m.kind == "offer")}
        if now.phase == "awaiting" and before.phase != "awaiting":
            net |= {Msg("ask", p, now.to, now.h, now.acq, now.by)}
        calls = around.calls
        if told.sent is not None:
            m = self._marked(around, told.sent[0])
            more.append((m, told.sent[1]))
            net |= {m}
            calls = (*(c for c in calls if c[0] != p), (p, (m, told.sent[1])))
        denies = told.known.denies
        if denies is not None and before.phase == "accepted" and now.phase in BARE and self._waits(around, denies):
            net |= {denies}
        if told.owes is not None and self._waits(around, told.owes):
            net |= {told.owes}
        if told.reply is not None and self._waits(around, told.reply[0]):
            net |= {told.reply[0]}
            more.append(told.reply)
        ran = around.ran
        if now.phase == "executing" and before.phase != "executing":
            ran = min(2, ran + 1)
        if before.phase == "executing" and now.phase != "executing" and row.state in ("pending", "failed"):
            ran -= int(past.state == "started")
        late = around.late
        if past.owner != NOBODY and past.owner.node in around.dead and row.owner == NOBODY:
            late = past.owner.acq
        after = attrs.evolve(around, calls=calls, ran=ran, late=late, told=None, keeps=False, was=None)
        known = told.known
        if told.runs and now.phase != "executing":
            known = attrs.evolve(known, copy=attrs.evolve(told.known.copy, phase="executing"))  # which it may not
        if around.told is not None and around.told.by != 0 and now.phase == "cancelling":
            known = attrs.evolve(known, copy=attrs.evolve(now, phase="deaf"))  # to the twin no answer came
        return after.carrying(net, *more).knows(p, known)

    def _waits(self, around: Around, m: Msg) -> bool:
        """Whether somebody waits for that answer."""
        copy = around.of(m.to).copy
        return m.to not in around.dead and (copy.phase, copy.h) == ("awaiting", m.h)

    @staticmethod
    def _marked(around: Around, m: Msg) -> Msg:
        """The request, as it stands to the registrations of now."""
        known = next((k for k in around.net if attrs.evolve(k, d=True, r=True) == m), m)
        return known

    def shared_in(self, state: State) -> Hashable:
        return state

    def shared(self, disks: Disks, world: World) -> Hashable:
        around = world.extra
        assert isinstance(around, Around)
        return self._image(around.was or around)

    def _row(self, around: Around) -> Row:
        """The receipt's row, in the twin's words."""
        (r,) = self.journals.rows(around.content, "receipts")
        owner, offer = NOBODY, NO_OFFER
        if r["owner_acquisition"] is not None:
            owner = Owner(r["owner_instance"], identity(r["owner_acquisition"]), self._number(r["owner_handoff"]))
        if r["offer_handoff"] is not None:
            offer = Open(self._number(r["offer_handoff"]), r["offer_instance"])
        attempts = min(r["attempts"], self.setting.limit)
        return Row(r["phase"], owner, offer, r["fallen_instance"] or NONE, attempts)

    def _number(self, handoff: str | None) -> int:
        return 0 if handoff is None else self.handoffs[handoff]

    def _image(self, around: Around) -> State:
        """What is there, in the twin's words."""
        found = self.images.get(around)
        if found is None:
            row = self._row(around)
            node = {p: NOTHING if p in around.dead else self._copy(row, p, k) for p, k in around.known}
            up = frozenset(self.setting.nodes) - around.dead
            found = State(row, FrozenMap(node), up, around.net, around.ran, around.late, 1)
            self.images[around] = found
        return found

    @staticmethod
    def _copy(row: Row, p: str, known: Known) -> Copy:
        """Who has nothing, and owns it, does not know that yet; nor does who has given it up, and asks for that
        again."""
        copy = known.copy
        mine = (row.owner.node, row.owner.acq) == (p, copy.acq)
        if known.gives_up and not mine:
            copy = NOTHING
        lost = copy == NOTHING and row.owner.node == p and row.state in ("queued", "started")
        return Copy("rebuilding") if lost else copy
