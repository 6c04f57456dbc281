"""The journal does what a few dictionaries do, whatever is asked in whatever order, and whoever is killed meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.errors import JournalError, OutcomeUnknown
from tenure.adapters.journal.forwards import Kept
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.rows import ServerRow
from tenure.adapters.journal.updates import Appended, Conflict
from tenure.adapters.ports import Killed
from tenure.adapters.testing.databases import CallFails, CallKills, FaultyDatabases
from tenure.machines import forwarding_messages as fm
from tenure.machines import receipt_messages as rm
from tenure.machines.admission_identity import delivery_id, receipt_id
from tenure.machines.chart import Refused
from tenure.machines.compact_json import compact
from tests.adapters.journal.journal_model import LIVE, Answer, Model
from tests.adapters.journal.journal_room import BOT, KIND, ME, THIRD, YOU, Room, arrival, incoming, miscounted, table

UPDATES = st.integers(1, 6)
BINDINGS = st.sampled_from(["B", "C"])
PARTIES = st.sampled_from([ME, YOU, THIRD, rm.Party("i1b", "p1", 2)])
BODIES = st.sampled_from(["", "", "", "other"])
LAG = st.sampled_from([0] * 9 + [-1])
"""How far an epoch is behind the fence."""
RARELY = st.sampled_from([False] * 9 + [True])
PLANS = st.sampled_from(
    [None] * 240
    + [(n, fault) for n in range(12) for fault in (CallKills("before"), CallKills("after"))]
    + [(n, CallFails(code)) for n in range(12) for code in ("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_BUSY")]
)
"""Which call of the operation, and what becomes of it."""

Plan = tuple[int, CallFails | CallKills] | None


def raw(update: int, body: str) -> str:
    """A body, one of two."""
    return incoming(update).raw if not body else f'{{"update_id":{update},"other":true}}'


def name_of(delivery: str) -> str:
    """The receipt of a delivery."""
    bot = {"botId": BOT.bot_id or 0}
    scope = compact({"version": 1, "profile": "default", "bot": bot, "delivery": delivery}).decode()
    return receipt_id("prompt", scope, (UPDATE_OF[delivery],))


UPDATE_OF = {delivery_id(KIND, binding, update): update for update in range(10) for binding in ("B", "C")}


class Journals(RuleBasedStateMachine):
    """Random operations on a file and on the model; after each of them both hold the same."""

    @initialize(work=st.sampled_from([True, True, True, False]))
    def begin(self, work: bool) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.room = Room(Path(self.place.name))
        self.room.limits = Limits(attempts=2, grace_ms=100)
        self.model = Model(attempts=2, grace_ms=100, now=self.room.clock.wall)
        self._open()
        self._do(None, lambda j: j.raise_fence(3, "i"), lambda m: m.raise_fence(3))
        if work:
            self._append_some()

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.databases.die()
            self.place.cleanup()

    def _append_some(self) -> None:
        batch = [(update, raw(update, "")) for update in (1, 2, 3, 4)]
        polled = [incoming(update, text) for update, text in batch]
        self._do(None, lambda j: j.end_first_start(3, "i"), lambda m: m.end_first_start(3))
        self._do(None, lambda j: j.append(polled, 3, "i"), lambda m: m.append(batch, KIND, 3, False))
        for binding, party, update in (("B", ME, 1), ("C", YOU, 2)):
            self._serve(binding, party)
            self._keep(update, binding)

    def _serve(self, binding: str, by: rm.Party) -> None:
        self._do(None, lambda j: j.serve(binding, by), lambda m: m.serve(binding, by, None, False))

    def _keep(self, update: int, binding: str) -> None:
        self._do(
            None,
            lambda j: j.keep(update, self.model.fence, binding, "i"),
            lambda m: m.keep(update, m.fence, binding, name_of),
        )

    def _open(self) -> None:
        self.databases: FaultyDatabases = self.room.faulty()
        self.journal = self.room.open(databases=self.databases)

    def _do(
        self, plan: Plan, ours: Callable[[Journal], Answer], theirs: Callable[[Model], Answer], *, repeat: bool = True
    ) -> None:
        """One operation on both. Killed, or unknown: the file holds what was before, or what is after."""
        self.model.now, self.model.dead = self.room.clock.wall, set(self.room.lives.dead)
        after, expected = self.model.does(theirs)
        if plan is not None:
            first, fault = len(self.databases.calls), plan[1]
            self.databases.plan = lambda call: fault if call.number == first + plan[0] else None
        try:
            answer = ours(self.journal)
        except Killed:
            self._open()
            self.model = after if view_of(after) == view(self.room) else self.model
        except OutcomeUnknown:
            self.databases.plan = None
            self.model = after if view_of(after) == view(self.room) else self.model
        except JournalError:
            assert view_of(self.model) == view(self.room)
        else:
            assert expected == plain(answer)
            self.model = after
        finally:
            self.databases.plan = None

    # -- operations ---------------------------------------------------------------------------------------------------

    @rule(plan=PLANS, up=st.sampled_from([0, 0, 0, 0, -1, 1]))
    def raise_fence(self, plan: Plan, up: int) -> None:
        epoch = self.model.fence + up
        self._do(plan, lambda j: j.raise_fence(epoch, "i"), lambda m: m.raise_fence(epoch))

    @rule(plan=PLANS, lag=LAG)
    def end_first_start(self, plan: Plan, lag: int) -> None:
        epoch = self.model.fence + lag
        self._do(plan, lambda j: j.end_first_start(epoch, "i"), lambda m: m.end_first_start(epoch))

    @rule(plan=PLANS, lag=LAG, updates=st.sets(UPDATES, max_size=3), body=BODIES, skipped=RARELY)
    def append(self, plan: Plan, lag: int, updates: set[int], body: str, skipped: bool) -> None:
        epoch = self.model.fence + lag
        batch = [(update, raw(update, body)) for update in sorted(updates)]
        self._do(
            plan,
            lambda j: j.append([incoming(u, text) for u, text in batch], epoch, "i", skipped=skipped),
            lambda m: m.append(batch, KIND, epoch, skipped),
        )

    def _update(self, data: st.DataObject, *phases: str) -> int:
        """One, mostly in one of those phases."""
        wanted = [update for update, row in self.model.updates.items() if row.phase in phases and update < 7]
        return data.draw(st.sampled_from(9 * sorted(wanted) + list(range(1, 7))))

    @rule(plan=PLANS, lag=LAG, data=st.data(), binding=BINDINGS)
    def forward(self, plan: Plan, lag: int, data: st.DataObject, binding: str) -> None:
        update = self._update(data, "journaled", "waiting")
        epoch = self.model.fence + lag
        self._do(
            plan,
            lambda j: j.forward(update, epoch, binding, "i"),
            lambda m: m.attempt(update, fm.Forward(epoch, m.fence, binding)).outputs[0],
        )

    @rule(plan=PLANS, lag=LAG, data=st.data(), binding=BINDINGS)
    def keep(self, plan: Plan, lag: int, data: st.DataObject, binding: str) -> None:
        update = self._update(data, "journaled", "waiting")
        epoch = self.model.fence + lag
        self._do(
            plan,
            lambda j: j.keep(update, epoch, binding, "i"),
            lambda m: m.keep(update, epoch, binding, name_of),
        )

    @rule(plan=PLANS, data=st.data(), how=st.sampled_from(["unserved", "failed", "no", "ok", "wrong"]))
    def settle(self, plan: Plan, data: st.DataObject, how: str) -> None:
        update = self._update(data, *(LIVE if how == "unserved" else ("forwarding",)))
        row = self.model.updates.get(update)
        binding = "B" if row is None or row.data.binding is None else row.data.binding
        delivery = delivery_id(KIND, binding, update + (how == "wrong"))
        epoch = self.model.fence
        if how == "unserved":
            self._do(
                plan,
                lambda j: j.unserved(update, epoch, "i"),
                lambda m: m.attempt(update, fm.Unserved(epoch, m.fence)).outputs[0],
            )
        elif how == "failed":
            self._do(
                plan,
                lambda j: j.failed(update, epoch, "transport-failed", "i"),
                lambda m: m.tell_update(update, fm.Failed(epoch, m.fence, "transport-failed")).outputs[0],
            )
        else:
            ok = how != "no"
            self._do(
                plan,
                lambda j: j.acknowledged(update, epoch, ok, delivery, update, "i"),
                lambda m: next(
                    iter(m.tell_update(update, fm.Acknowledged(epoch, m.fence, ok, delivery, update)).outputs), None
                ),
            )

    @rule(plan=PLANS, data=st.data(), how=st.sampled_from(["retry", "release", "discard"]))
    def by_a_person(self, plan: Plan, data: st.DataObject, how: str) -> None:
        update = self._update(data, "waiting")
        if how == "retry":
            self._do(plan, lambda j: j.retry_update(update, "i"), lambda m: _none(m.tell_update(update, fm.Retry())))
        elif how == "release":
            self._do(
                plan,
                lambda j: j.release_update(update, "i", gone=True),
                lambda m: _none(m.tell_update(update, fm.Release(True, m.admitted(update)))),
            )
        else:
            self._do(
                plan,
                lambda j: j.discard_update(update, "ann"),
                lambda m: _none(m.tell_update(update, fm.Discard(m.admitted(update)))),
            )

    @rule(plan=PLANS, data=st.data(), binding=BINDINGS, mine=BINDINGS, body=BODIES)
    def admit(self, plan: Plan, data: st.DataObject, binding: str, mine: str, body: str) -> None:
        update = self._update(data, "forwarding")
        given = arrival(update, binding, raw=raw(update, body))
        row = self.model.updates.get(update)
        if row is not None and row.phase == "forwarding" and row.data.binding in ("B", "C"):
            mine = row.data.binding
            given = arrival(update, mine, raw=row.raw)
        self._do(
            plan,
            lambda j: j.admit(given, mine, "i"),
            lambda m: m.admit(given.delivery, KIND, given.binding, update, given.raw, mine, name_of),
        )

    @rule(plan=PLANS, data=st.data(), by=PARTIES, lag=st.sampled_from([None, -1, 0]))
    def take(self, plan: Plan, data: st.DataObject, by: rm.Party, lag: int | None) -> None:
        receipt = self._receipt(data, "pending")
        server = self.model.servers.get(self.model.receipts[receipt].binding) if receipt != "none" else None
        if server is not None and data.draw(st.booleans()):
            by = server.party
        epoch = None if lag is None else self.model.fence + lag
        minted = self._minted()
        self._do(
            plan,
            lambda j: j.take(receipt, by, epoch=epoch),
            lambda m: m.tell_receipt(receipt, rm.Take(by, minted, m.right(receipt, by, epoch))),
        )

    @rule(plan=PLANS, data=st.data(), to=PARTIES, handoff=st.sampled_from(["h1", "h2"]), wrong=RARELY)
    def handoff(self, plan: Plan, data: st.DataObject, to: rm.Party, handoff: str, wrong: bool) -> None:
        self._queued()
        receipt = self._receipt(data, "queued")
        owner = self._owner(receipt, wrong)
        offer = None if receipt == "none" else self.model.receipts[receipt].data.offer
        if offer is not None and data.draw(st.booleans()):
            to, handoff = rm.Party(offer.instance, offer.process, 1), str(offer.handoff)
        how = data.draw(st.sampled_from(["offer", "accept", "accept", "cancel"] if offer else ["offer", "accept"]))
        if how == "offer":
            self._do(
                plan,
                lambda j: j.offer(receipt, owner, handoff, to),
                lambda m: m.tell_receipt(receipt, rm.OfferTo(owner, handoff, to)),
            )
        elif how == "accept":
            minted = self._minted()
            self._do(
                plan,
                lambda j: j.accept(receipt, to, handoff, owner),
                lambda m: m.tell_receipt(receipt, rm.Accept(to, handoff, owner, minted)),
            )
        else:
            self._do(
                plan,
                lambda j: j.cancel(receipt, owner, handoff),
                lambda m: m.tell_receipt(receipt, rm.Cancel(owner, handoff)),
            )

    @rule(plan=PLANS, data=st.data(), wrong=RARELY)
    def execute(self, plan: Plan, data: st.DataObject, wrong: bool) -> None:
        how = data.draw(st.sampled_from(["start", "start", "complete", "fail", "fail", "release"]))
        if how in ("start", "release"):
            self._queued()
        receipt = self._receipt(data, "queued" if how in ("start", "release") else "started")
        by = self._owner(receipt, wrong)
        if how == "start":
            self._do(plan, lambda j: j.start(receipt, by), lambda m: m.tell_receipt(receipt, rm.Start(by)))
        elif how == "complete":
            self._do(plan, lambda j: j.complete(receipt, by), lambda m: m.tell_receipt(receipt, rm.Complete(by)))
        elif how == "fail":
            self._do(
                plan,
                lambda j: j.fail(receipt, by, 50),
                lambda m: m.tell_receipt(receipt, rm.Fail(by), m.now + 50),
            )
        else:
            self._do(plan, lambda j: j.release(receipt, by), lambda m: m.tell_receipt(receipt, rm.Release(by)))

    @rule(plan=PLANS, data=st.data(), wrong=RARELY, person=st.sampled_from(["ann", ""]))
    def later(self, plan: Plan, data: st.DataObject, wrong: bool, person: str) -> None:
        how = data.draw(st.sampled_from(["recover", "recover", "retry", "discard"]))
        if how == "recover":
            self._queued()
        phases = ("queued", "started") if how == "recover" else ("interrupted", "failed")
        receipt = self._receipt(data, *phases)
        if how == "recover":
            expected = str(self._owner(receipt, wrong).acquisition)
            self._do(plan, lambda j: j.recover(receipt, expected, ME), lambda m: m.recover(receipt, expected))
        elif how == "retry":
            self._do(plan, lambda j: j.retry(receipt, person), lambda m: m.tell_receipt(receipt, rm.Retry(person), 0))
        else:
            self._do(plan, lambda j: j.discard(receipt, person), lambda m: m.tell_receipt(receipt, rm.Discard(person)))

    @rule(
        plan=PLANS,
        binding=BINDINGS,
        by=PARTIES,
        how=st.sampled_from(["serve", "since", "since", "leads", "unserve", "vacancies"]),
        lag=LAG,
    )
    def servers(self, plan: Plan, binding: str, by: rm.Party, how: str, lag: int) -> None:
        epoch = self.model.fence + lag
        if how in ("serve", "since"):
            since = how == "since"

            def serve(journal: Journal) -> object:
                found = [row for row in journal.servers() if since and row.binding == binding]
                return journal.serve(binding, by, under=epoch, over=found[0] if found else None)

            self._do(plan, serve, lambda m: m.serve(binding, by, epoch, since))
        elif how == "leads":
            self._do(
                plan,
                lambda j: j.serve_leading(binding, by, epoch, ("D",)),
                lambda m: m.serve_leading(binding, by, epoch, "D"),
            )
        elif how == "unserve":
            self._do(plan, lambda j: j.unserve(binding, by), lambda m: m.unserve(binding, by))
        else:
            self._do(plan, lambda j: j.vacancies(), lambda m: m.vacancies())

    @rule(plan=PLANS, by=PARTIES, limit=st.integers(0, 3), how=st.sampled_from(["take", "take", "recover", "reclaim"]))
    def many(self, plan: Plan, by: rm.Party, limit: int, how: str) -> None:
        first = self.room.identities.next
        if how == "take":
            self._do(
                plan,
                lambda j: tuple(row.receipt_id for row in j.take_some(by, limit)),
                lambda m: m.take_some(by, limit, lambda count: f"00000000-0000-4000-8000-{first + count:012x}"),
            )
        elif how == "recover":
            self._queued()
            self._do(plan, lambda j: len(j.recover_all(by)), lambda m: m.recover_all())
        else:
            self._queued()
            self._do(plan, lambda j: len(j.reclaim(by)), lambda m: m.reclaim(by))

    @rule(who=st.sampled_from(["p1", "p2", "p3"]))
    def dies(self, who: str) -> None:
        self.room.lives.dead.add(who)

    @rule(who=st.sampled_from(["p1", "p2", "p3"]))
    def lives(self, who: str) -> None:
        # Another process of that name: this world has three.
        self.room.lives.dead.discard(who)

    @rule(ms=st.sampled_from([10, 100, 5_000]))
    def time_goes_by(self, ms: int) -> None:
        self.room.clock.advance(ms)

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self._open()

    # -- both hold the same -------------------------------------------------------------------------------------------

    @invariant()
    def same(self) -> None:
        if hasattr(self, "room"):
            assert view_of(self.model) == view(self.room)
            assert [] == miscounted(self.room)

    def _receipt(self, data: st.DataObject, *phases: str) -> str:
        """One, mostly in one of those phases."""
        known = sorted(self.model.receipts)
        wanted = [receipt for receipt in known if self.model.receipts[receipt].phase in phases]
        return data.draw(st.sampled_from(9 * wanted + known + ["none"]))

    def _queued(self) -> None:
        """There is a receipt that is queued, if only ME may take one."""
        if any(row.phase == "queued" for row in self.model.receipts.values()):
            return
        update = max(self.model.passed, 6) + 1
        batch = [(update, raw(update, ""))]
        epoch = self.model.fence
        UPDATE_OF.update({delivery_id(KIND, binding, update): update for binding in ("B", "C")})
        polled = [incoming(update, batch[0][1])]
        self._do(None, lambda j: j.append(polled, epoch, "i"), lambda m: m.append(batch, KIND, epoch, False))
        self._serve("B", ME)
        self._keep(update, "B")
        receipt = name_of(delivery_id(KIND, "B", update))
        minted = self._minted()
        self._do(
            None,
            lambda j: j.take(receipt, ME),
            lambda m: m.tell_receipt(receipt, rm.Take(ME, minted, m.right(receipt, ME, None))),
        )

    def _owner(self, receipt: str, wrong: bool) -> rm.Holder:
        row = self.model.receipts.get(receipt)
        owner = None if row is None else row.data.owner
        return rm.Holder("i9", "p1", 1, "none") if wrong or owner is None else owner

    def _minted(self) -> str:
        return f"00000000-0000-4000-8000-{self.room.identities.next:012x}"


def plain(answer: object) -> Answer:
    """An answer as the model says it."""
    match answer:
        case Appended(new, known, passed):
            return (new, known, passed)
        case Conflict(update):
            return ("conflict", update)
        case Kept(admitted):
            return (admitted.receipt, admitted.again)
        case Refused():
            return answer
        case ServerRow():
            return answer.party
    receipt = getattr(answer, "receipt", None)
    return answer if receipt is None else (receipt, getattr(answer, "again", None))


def _none(answer: object) -> None:
    return None


def view(room: Room) -> list[object]:
    """What stands in the file."""
    return [
        *table(room, "SELECT fence, passed, opened FROM meta"),
        *table(
            room,
            "SELECT update_id, phase, raw, binding, attempts, failure, next_at, settled_at IS NULL FROM updates"
            " ORDER BY 1",
        ),
        *table(room, "SELECT delivery_id, phase, binding, digest, receipt_id, update_id FROM deliveries ORDER BY 1"),
        *table(
            room,
            "SELECT receipt_id, phase, binding, first_update, not_before, attempts, owner_instance, owner_process,"
            " owner_acquisition, owner_handoff, offer_handoff, offer_instance, fallen_handoff, fallen_instance"
            " FROM receipts ORDER BY 1",
        ),
        *table(room, "SELECT binding, instance, process, session, left_at FROM servers ORDER BY 1"),
    ]


def view_of(model: Model) -> list[object]:
    """What should stand there."""
    found: list[object] = [(model.fence, model.passed, int(model.opened))]
    for update, u in sorted(model.updates.items()):
        live = int(u.phase in LIVE)
        found.append((update, u.phase, u.raw, u.data.binding, u.data.attempts, u.data.failure, u.next_at, live))
    for delivery, d in sorted(model.deliveries.items()):
        found.append((delivery, d.phase, d.binding, d.digest, d.receipt, d.update))
    for receipt, r in sorted(model.receipts.items()):
        owner, offer, fallen = r.data.owner, r.data.offer, r.data.fallen
        held = (None,) * 4 if owner is None else (owner.instance, owner.process, owner.acquisition, owner.handoff)
        offers = [(None, None) if each is None else (each.handoff, each.instance) for each in (offer, fallen)]
        row = (receipt, r.phase, r.binding, r.update, r.not_before, r.data.attempts)
        found.append((*row, *held, *offers[0], *offers[1]))
    for binding, s in sorted(model.servers.items()):
        found.append((binding, s.party.instance, s.party.process, s.party.session, s.left_at))
    return found


TestJournals = Journals.TestCase
TestJournals.settings = settings(
    max_examples=settings().max_examples // 2 or 1,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
