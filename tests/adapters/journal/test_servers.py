"""Who serves a binding, and who takes what was left there."""

from __future__ import annotations

import attrs
import pytest

from tenure.adapters.journal import servers
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.ownership import About
from tenure.adapters.journal.rows import ServerRow
from tenure.machines.chart import Refused
from tenure.machines.receipt_messages import Party, Taken
from tests.adapters.journal.journal_room import EPOCH, ME, THIRD, YOU, Room, incoming, kept, taken

FENCED = ("epoch_current",)


def parties(journal: Journal) -> dict[str, Party]:
    """Who serves what now."""
    return {row.binding: row.party for row in journal.servers() if row.left_at is None}


def server(journal: Journal, binding: str) -> ServerRow:
    """Who serves it, or did last."""
    (found,) = (row for row in journal.servers() if row.binding == binding)
    return found


def journaled(journal: Journal, update: int, binding: str) -> str:
    """The receipt of an update of a binding."""
    journal.append([incoming(update)], EPOCH, "i1")
    answer = journal.keep(update, EPOCH, binding, "i1")
    assert not isinstance(answer, Refused)
    return answer.admitted.receipt


# -- serving ----------------------------------------------------------------------------------------------------------


def test_only_who_serves_a_binding_leaves_it(room: Room) -> None:
    journal = room.started()
    assert journal.serve("C", YOU) is None
    assert {"B": ME, "C": YOU} == parties(journal)
    assert not journal.unserve("C", ME)
    assert journal.unserve("C", YOU)
    assert not journal.unserve("C", YOU)
    assert not journal.unserve("D", YOU)
    assert {"B": None, "C": room.clock.wall} == {row.binding: row.left_at for row in journal.servers()}


@pytest.mark.parametrize("leads", [False, True])
def test_to_serve_again_changes_nothing(room: Room, leads: bool) -> None:
    """No write for what stands there."""
    journal = room.started()
    before = room.bytes()
    answer = journal.serve_leading("B", ME, EPOCH) if leads else journal.serve("B", ME)
    assert answer is None
    assert before == room.bytes()


@pytest.mark.parametrize("leads", [False, True])
def test_who_has_left_serves_again_when_it_comes_back(room: Room, leads: bool) -> None:
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.unserve("B", ME)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, ME)  # not while it is away
    if leads:
        journal.serve_leading("B", ME, EPOCH)
    else:
        journal.serve("B", ME)
    assert server(journal, "B").left_at is None
    assert isinstance(journal.take(receipt, ME), Taken)


def test_who_is_alive_and_has_not_left_is_in_the_way(room: Room) -> None:
    """A late call of one whose registration is over takes nothing back from his successor (law Late is nothing)."""
    journal = room.started(5)
    receipt = kept(journal, 5)
    assert server(journal, "B") == journal.serve("B", YOU)
    room.lives.unknown.add("p1")
    assert server(journal, "B") == journal.serve("B", YOU)  # silence proves nothing
    assert {"B": ME} == parties(journal)
    assert isinstance(journal.take(receipt, ME), Taken)


@pytest.mark.parametrize("how", ["dead", "left", "the same process"])
def test_who_is_gone_is_in_nobodys_way(room: Room, how: str) -> None:
    journal = room.started()
    if how == "dead":
        room.lives.dead.add("p1")
    elif how == "left":
        journal.unserve("B", ME)
    by = attrs.evolve(ME, instance="i1b") if how == "the same process" else YOU
    assert journal.serve("B", by) is None
    assert {"B": by} == parties(journal)


def test_who_was_registered_since_replaces_who_stood_there(room: Room) -> None:
    """Exactly that row: of two who have read the same one, the second is told of the first."""
    journal = room.started()
    before = server(journal, "B")
    assert journal.serve("B", YOU, over=before) is None
    assert {"B": YOU} == parties(journal)
    yours = server(journal, "B")
    assert yours == journal.serve("B", THIRD, over=before)
    assert journal.serve("B", ME, over=yours) is None
    assert before.party == server(journal, "B").party
    assert before != server(journal, "B")  # also within one millisecond, and when the clock went back
    assert server(journal, "B") == journal.serve("B", YOU, over=before)


def test_under_a_leader_that_is_over_nobody_serves(room: Room) -> None:
    journal = room.started()
    journal.raise_fence(EPOCH + 1, "i2")
    room.lives.dead.add("p1")
    refused = journal.serve("B", YOU, under=EPOCH)
    assert isinstance(refused, Refused)
    assert refused.guards == FENCED
    assert {"B": ME} == parties(journal)
    for under in (EPOCH + 1, EPOCH + 9, None):  # a leader of the other system raises no fence
        assert journal.serve(f"of {under}", YOU, under=under) is None


def test_who_leads_serves_the_leaders_binding_under_its_fence(room: Room) -> None:
    """Whoever stands there does not lead any more, alive or not; and its late call is refused."""
    journal = room.started()
    assert journal.serve_leading("L", ME, EPOCH) is None
    journal.raise_fence(EPOCH + 1, "i2")
    assert journal.serve_leading("L", YOU, EPOCH + 1) is None
    before = room.bytes()
    refused = journal.serve_leading("L", ME, EPOCH)
    assert isinstance(refused, Refused)
    assert refused.guards == FENCED
    assert before == room.bytes()
    assert {"B": ME, "L": YOU} == parties(journal)
    assert not isinstance(journal.serve_leading("L", THIRD, EPOCH + 2), type(None))  # nor one that has not raised it


def test_a_leader_takes_what_is_left_of_a_binding_that_nobody_has_served(room: Room) -> None:
    """It waits for the grace: whoever is registered for it meanwhile serves it at once."""
    journal = room.started()
    receipts = {name: journaled(journal, update, name) for update, name in ((5, "C"), (6, "D"), (7, "E"))}
    assert journal.serve_leading("L", ME, EPOCH, ("B", "C", "D")) is None
    assert {"B": ME, "L": ME} == parties(journal)  # B is served, and stays so
    assert journal.serve("D", YOU) is None
    assert () == journal.take_some(ME, 9, epoch=EPOCH)
    room.clock.advance(room.limits.grace_ms)
    assert [receipts["C"]] == [row.receipt_id for row in journal.take_some(ME, 9, epoch=EPOCH)]
    assert isinstance(journal.take(receipts["D"], YOU), Taken)


# -- what was left ----------------------------------------------------------------------------------------------------


def test_a_vacancy_needs_a_release_or_a_death_and_time(room: Room) -> None:
    """Silence proves nothing (I22); the grace begins when it was left, or when the death is found."""
    journal = room.started()
    for binding, update in (("C", 5), ("D", 6)):
        journal.serve(binding, YOU)
        journaled(journal, update, binding)
    assert () == journal.vacancies()
    room.lives.unknown.add("p2")
    room.clock.advance(1_000)
    assert () == journal.vacancies()
    journal.unserve("D", YOU)
    room.clock.advance(room.limits.grace_ms - 1)
    assert () == journal.vacancies()
    room.clock.advance(1)
    assert ("D",) == journal.vacancies()  # its process may live for ever
    room.lives.dead.add("p2")
    assert ("D",) == journal.vacancies()  # the death is found
    room.clock.advance(room.limits.grace_ms)
    assert ("C", "D") == journal.vacancies()


def test_a_clock_that_went_back_lets_nobody_wait_for_longer_than_the_grace(room: Room) -> None:
    journal = room.started(5)
    kept(journal, 5)
    journal.unserve("B", ME)
    room.clock.step(-3_600_000)
    assert () == journal.vacancies()  # from now on
    room.clock.advance(room.limits.grace_ms)
    assert ("B",) == journal.vacancies()


def test_what_was_left_in_order_is_the_leaders_after_the_grace_though_that_process_lives(room: Room) -> None:
    journal = room.started(5)
    receipt = kept(journal, 5)
    journal.unserve("B", ME)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, YOU, epoch=EPOCH)
    room.clock.advance(room.limits.grace_ms)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, YOU)
    assert Refused("take", "pending", ("may_take",)) == journal.take(receipt, YOU, epoch=EPOCH - 1)
    answer = journal.take(receipt, YOU, epoch=EPOCH)
    assert isinstance(answer, Taken)
    assert journal.life(receipt)[-1].detail.endswith("right: left")


def test_a_binding_is_abandoned_when_the_only_process_that_can_have_it_is_dead(room: Room) -> None:
    """Another binding may be served again, whoever has died there, unless its terminal is closed; and whoever has not
    served it yet is expected."""
    journal = room.started(5)
    mine, theirs = "8:start:2@b/1", "9:start:3@b/1"
    journal.serve("manual:7:start:1", Party("8:1", mine, 1))
    journal.serve("manual:7:start:1:8:start:2", Party("8:1", mine, 1))
    about = About(thread=(1, 2))
    journal.remember(about, "manual:7:start:1:9:start:3", Party("9:1", theirs))
    journal.remember(about, "manual:7:start:1:8:start:2", Party("8:2", theirs))  # it is served, and stays so
    journal.serve("manual:7:start:1:4:start:4", Party("9:1", theirs, 1))  # a key of somebody else proves nothing
    assert () == journal.abandoned()
    room.lives.dead.add(theirs)
    assert ("manual:7:start:1:9:start:3",) == journal.abandoned()
    room.lives.dead.add(mine)
    room.lives.unknown.add(theirs)
    room.lives.dead.remove(theirs)
    assert ("manual:7:start:1:8:start:2",) == journal.abandoned()
    assert journal.unserve("manual:7:start:1:8:start:2", Party("8:1", mine, 1))
    assert ("manual:7:start:1:8:start:2",) == journal.abandoned()
    room.lives.dead.add("7:start:1@b/1")
    assert ("manual:7:start:1", "manual:7:start:1:8:start:2") == journal.abandoned()
    room.lives.dead.remove(mine)  # nobody's terminal is needed by who is there
    assert () == journal.abandoned()


def test_who_served_long_ago_is_forgotten(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binding is often one terminal: of many, nothing of the oldest is kept without work, with work it is."""
    monkeypatch.setattr(servers, "KEPT", 1)
    journal = room.started(5)
    receipt = kept(journal, 5)
    holder = taken(journal, receipt)
    journal.serve("C", YOU)
    journal.serve("D", YOU)
    for binding, party in (("B", ME), ("C", YOU)):
        journal.unserve(binding, party)
    room.clock.advance(1)
    journal.unserve("D", YOU)
    room.clock.advance(room.limits.tombstone_ms)
    room.lives.asked.clear()
    assert () == journal.vacancies()  # D was not left for so long, and is the last one
    assert ["B", "D"] == [row.binding for row in journal.servers()]
    assert [] == room.lives.asked  # nobody's death matters where nothing waits
    journal.start(receipt, holder)
    journal.complete(receipt, holder)
    room.clock.advance(2)
    assert () == journal.vacancies()
    assert ["D"] == [row.binding for row in journal.servers()]


def test_that_nobody_can_come_back_stays_known(room: Room) -> None:
    """Weeks after a terminal was closed somebody writes into its thread: that is still known to be nobody's."""
    journal = room.started(5)
    key, process = "manual:7:start:1:8:start:2", "8:start:2@b/1"
    journal.serve(key, Party("8:1", process, 1))
    journal.remember(About(thread=(1, 2)), key)
    room.lives.dead.add(process)
    assert () == journal.vacancies()  # the death is found
    room.clock.advance(3 * room.limits.tombstone_ms)
    assert () == journal.vacancies()
    assert key == journal.remembered(About(thread=(1, 2)))
    assert (key,) == journal.abandoned()
