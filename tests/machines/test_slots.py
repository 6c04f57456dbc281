"""Slots, targets and names: the ring rule, what is kept, and that nothing is ever held by two.

bus.md f; I37, L16-L19, L26.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.identity import Birth, Process
from tenure.machines.slot_board import (
    Board,
    Denied,
    Identity,
    Pending,
    Record,
    Reservation,
    Target,
    Wish,
    free_slot,
    identity_of,
    occupied,
    record_of,
)
from tenure.machines.slots import (
    RESERVATION_MS,
    abandon,
    abandon_before,
    begin,
    cleaned,
    cleaning,
    kept,
    retire,
    settle,
    tidy,
    void,
)
from tenure.machines.thread_names import LETTERS, PALETTE, fnv1a, palette_names, slot_of, valid_name

NOW = 1_700_000_000_000


def process(pid: int, ticks: int = 1) -> Process:
    return Process(pid, Birth(ticks, "boot", 1))


def wish(key: str, **fields: object) -> Wish:
    return attrs.evolve(Wish(key, "manual-follower", f"{key}:1", f"{key}:1:1"), **fields)


def begun(
    board: Board, asked: Wish, *, epoch: int = 1, dead: Sequence[Process] = (), now: int = NOW
) -> tuple[Board, Pending]:
    found = begin(board, asked, epoch, now, dead)
    assert not isinstance(found, Denied)
    return found


def give(
    board: Board, asked: Wish, *, epoch: int = 1, dead: Sequence[Process] = (), now: int = NOW
) -> tuple[Board, Record]:
    """Provisioned without a moment in between."""
    board, pending = begun(board, asked, epoch=epoch, dead=dead, now=now)
    found = settle(board, pending, now)
    assert found is not None
    return found


def full(count: int = 26) -> Board:
    board = Board()
    for n in range(count):
        board, _ = give(board, wish(f"k{n}", process=process(100 + n)))
    return board


# -- names ------------------------------------------------------------


def test_the_palette_has_five_different_valid_words_for_each_letter_and_each_begins_with_it() -> None:
    assert tuple(LETTERS) == tuple(PALETTE)
    words = [word for five in PALETTE.values() for word in five]
    assert 130 == len(words) == len(set(words))
    for slot, five in PALETTE.items():
        assert 5 == len(five)
        assert all(valid_name(word) == word and word[0] == slot for word in five)


def test_the_word_is_chosen_by_the_hash_of_the_time_and_a_tests_clock_takes_the_first() -> None:
    assert 0xE40C292C == fnv1a("a")  # the published value
    assert PALETTE["C"][fnv1a(str(NOW)) % 5] == palette_names("C", NOW)[0]
    assert PALETTE["C"] == palette_names("C", 999_999_999_999)


@pytest.mark.parametrize("name", ["Falke", "MyBot", "Ab"])
def test_a_word_with_a_capital_is_a_name(name: str) -> None:
    assert name == valid_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "A", "falke", "Two Words", "Bot1", "Leader", "LEADER", "Telegram", "Follower", "Élan", "A" * 97, 7, None],
)
def test_anything_else_is_none(name: object) -> None:
    assert valid_name(name) is None


@pytest.mark.parametrize("value", ["", "AB", "a", "Ä", 1, None, "1"])
def test_a_slot_is_one_letter(value: object) -> None:
    assert slot_of(value) is None
    assert "Q" == slot_of("Q")


def test_a_name_that_another_thread_has_is_not_given_twice() -> None:
    board, first = give(Board(), wish("a", name="Falke"))
    board, second = give(board, wish("b", name="Falke"))
    assert ("Falke", True) == (first.name, second.name in PALETTE["B"])


def test_the_remembered_name_comes_before_the_one_that_is_carried() -> None:
    board = Board(identities=(Identity("a", None, "Otter", NOW),))
    assert "Otter" == give(board, wish("a", name="Falke"))[1].name
    board = Board(identities=(Identity("a", None, "not valid", NOW),))
    assert "Falke" == give(board, wish("a", name="Falke"))[1].name


# -- the ring ------------------------------------------------------------


def test_slots_are_given_in_turn_and_targets_are_numbered() -> None:
    board = full(3)
    assert ["A", "B", "C"] == [r.slot for r in board.records]
    assert [Target(0, 1), Target(0, 2), Target(0, 3)] == [r.target for r in board.records]
    assert ("C", 4) == (board.last_slot, board.next_thread)


def test_the_ring_goes_on_after_the_last_one_and_comes_round() -> None:
    board = cleaned(full(3), Target(0, 1), "k0:1", "k0:1:1", NOW)
    assert "D" == give(board, wish("new"))[1].slot
    board = attrs.evolve(board, last_slot="Z")
    assert "A" == give(board, wish("new"))[1].slot


def test_without_a_last_slot_the_ring_begins_after_the_highest_that_is_held() -> None:
    reserved = Reservation("M", Target(0, 9), "x", NOW, NOW + 1)
    board = Board(reservations=(reserved,))
    assert ("N", "A") == (free_slot(board, NOW), free_slot(board, NOW + 1))
    board, _ = begun(Board(), wish("a", slot="Q"))
    assert "R" == free_slot(board, NOW)


def test_a_free_wish_is_granted_and_a_held_one_is_not() -> None:
    board, first = give(Board(), wish("a", slot="K", target=Target(0, 40)))
    board, second = give(board, wish("b", slot="K", target=Target(0, 40)))
    assert ("K", Target(0, 40)) == (first.slot, first.target)
    assert ("L", Target(0, 41)) == (second.slot, second.target)


@pytest.mark.parametrize("target", [Target(7, 1), Target(0, 0), Target(0, -1), Target(0, 2**31)])
def test_a_target_that_is_none_of_ours_is_ignored(target: Target) -> None:
    assert Target(0, 1) == give(Board(), wish("a", target=target))[1].target


def test_a_profiles_own_thread_is_kept_whatever_it_wishes() -> None:
    board, old = give(Board(), wish("a", process=process(5)))
    asked = wish("a", instance="6:2", generation="g2", slot="Q", target=Target(0, 9), name="Falke")
    board, new = give(board, asked, dead=[process(5)], now=NOW + 5)
    assert (old.slot, old.target, old.name, old.created_ms) == (new.slot, new.target, new.name, new.created_ms)
    assert ("6:2", "g2", None) == (new.instance, new.generation, new.process)
    assert (1, "A") == (len(board.records), board.last_slot)


@pytest.mark.parametrize("claimed", [None, process(5, ticks=2), process(6)])
def test_a_profile_of_a_process_that_is_not_proven_dead_is_held(claimed: Process | None) -> None:
    """L24: stopped for longer than the routes bear it, and another of the same shell comes."""
    board, _ = give(Board(), wish("a", process=process(5)))

    found = begin(board, wish("a", instance="6:1", process=claimed), 1, NOW)
    assert isinstance(found, Denied)
    assert found.held
    assert "A" == give(board, wish("a", instance="5:2", process=process(5)))[1].slot


@pytest.mark.parametrize(
    ("instance", "carries", "promoted"), [("x:1", True, True), ("x:1", False, False), ("y:1", True, False)]
)
def test_a_leader_that_nobody_could_see_keeps_what_it_carries(instance: str, carries: bool, promoted: bool) -> None:
    """A55: as a follower it was in another pid namespace than its leader, which could not verify its process. What it
    leads with is its own thread, and not that of the leader before; another's is not taken for it."""
    board, before = give(Board(), wish("cwd:/here", kind="leader", instance="9:1", process=process(9)))
    board, record = give(board, wish("manual:x", instance="x:1"))
    target = record.target if carries else None
    asked = Wish("cwd:/here", "leader", instance, target=target, process=process(5))
    found = give(board, asked)[1]
    assert (found.target, found.slot, found.name) == (
        (record.target, record.slot, record.name) if promoted else (before.target, before.slot, before.name)
    )


def test_the_profile_of_a_leader_goes_with_the_lease() -> None:
    """Its thread is not lost to who led before and hangs."""
    board, old = give(Board(), wish("cwd:x", kind="leader", process=process(5)))

    assert old.target == give(board, wish("cwd:x", kind="leader", instance="6:1", process=process(6)))[1].target


def test_a_thread_that_must_be_probed_holds_its_letter() -> None:
    """L17."""
    board, record = give(Board(), wish("a"))
    board = attrs.evolve(board, records=(attrs.evolve(record, probe=True),))
    assert {"A"} == occupied(board, NOW)
    assert "B" == give(board, wish("b", slot="A"))[1].slot


def test_a_remembered_letter_is_looked_at_before_it_is_used_again() -> None:
    """L18."""
    board = cleaned(full(1), Target(0, 1), "k0:1", "k0:1:1", NOW)
    identity = identity_of(board, "k0")
    assert identity is not None
    assert "A" == identity.slot
    assert "A" == give(board, wish("k0"))[1].slot
    board, other = give(board, wish("other", slot="A"))
    board, back = give(board, wish("k0"))
    assert ("A", "B") == (other.slot, back.slot)
    assert identity.name == back.name
    assert identity_of(board, "k0") is None


def test_the_twenty_seventh_has_a_thread_but_no_slot_and_gets_the_first_that_is_free() -> None:
    """L19: nothing is named by a template."""
    board, late = give(full(), wish("late", name="no name"))
    assert (None, None, Target(0, 27)) == (late.slot, late.name, late.target)
    assert None is give(board, wish("late"))[1].slot
    board = cleaned(board, Target(0, 5), "k4:1", "k4:1:1", NOW)
    board, late = give(board, wish("late"))
    assert ("E", Target(0, 27), "E") == (late.slot, late.target, board.last_slot)


def test_the_letter_of_one_proven_dead_is_given_out_when_no_other_is_free() -> None:
    dead = [process(103)]
    assert "H" == give(full(7), wish("new"), dead=dead)[1].slot
    board, record = give(full(), wish("new"), dead=dead)
    assert "D" == record.slot
    assert record_of(board, "k3") is None
    assert identity_of(board, "k3") is not None


def test_a_dead_ones_letter_that_is_being_taken_by_its_thread_is_not_given_out_as_well() -> None:
    dead = [process(103), process(105)]
    board, _ = begun(full(), wish("heir", target=Target(0, 4)), dead=dead)
    board, record = give(board, wish("new"), dead=dead)
    assert "F" == record.slot
    assert record_of(board, "k3") is not None


def test_a_letter_that_is_reserved_is_given_to_nobody_whoever_had_it() -> None:
    """What is remembered was written by others: a letter is looked at before it is used."""
    board, record = give(Board(), wish("a"))
    board = attrs.evolve(board, reservations=(Reservation("A", Target(0, 9), "x", NOW),))
    assert ("B", record.target) == ((got := give(board, wish("a"))[1]).slot, got.target)


# -- what gives way ------------------------------------------------------------


def test_naming_somebody_elses_thread_takes_nothing() -> None:
    """L16: also where the rival claims another process, or none."""
    board, record = give(Board(), wish("a", process=process(5)))
    for rival in (None, process(6), process(5, ticks=2)):
        after, got = give(board, wish("b", target=record.target, slot="A", process=rival))
        assert record == record_of(after, "a")
        assert (Target(0, 2), "B") == (got.target, got.slot)


def test_a_thread_goes_with_its_process_into_another_profile() -> None:
    """A promotion: the follower's thread becomes the leader's own, with slot and name."""
    board, record = give(full(1), wish("manual:x", process=process(5)))
    board, own = give(
        board,
        Wish("cwd:/here", "leader", record.instance, process=process(5)),
        epoch=2,
    )
    assert (record.target, record.slot, record.name) == (own.target, own.slot, own.name)
    assert ("leader", None, None) == (own.kind, own.generation, record_of(board, "manual:x"))


def test_a_new_instance_of_the_same_process_takes_the_thread_that_it_names() -> None:
    board, record = give(Board(), wish("a", process=process(5)))
    board, got = give(board, wish("b", instance="5:2", target=record.target, process=process(5)))
    assert (record.target, record.slot, 1) == (got.target, got.slot, len(board.records))


def test_the_thread_of_one_proven_dead_is_taken_by_whoever_names_it() -> None:
    board, record = give(Board(), wish("a", process=process(5)))
    board, got = give(board, wish("b", target=record.target), dead=[process(5)])
    assert (record.target, record.slot, 1) == (got.target, got.slot, len(board.records))


@pytest.mark.parametrize("borrower", [None, process(6)])
def test_whether_one_is_dead_is_no_matter_of_who_borrowed_its_name(borrower: Process | None) -> None:
    """L16, L24: the profile of the dead is free, the borrower's thread is not; nobody without a process ever dies."""
    board, lent = give(Board(), wish("b", instance="a:1", process=borrower))
    board, left = give(board, wish("a", process=process(5)))
    heir = wish("a", instance="7:1", process=process(7))
    assert isinstance(begin(board, heir, 1, NOW, [process(6)]), Denied)
    assert left.target == give(board, heir, dead=[process(5)])[1].target
    assert lent.target != give(board, wish("c", target=lent.target), dead=[process(5)])[1].target


def test_an_instance_of_the_same_name_in_another_process_takes_nothing() -> None:
    board, record = give(Board(), wish("a", process=process(5)))
    for rival in (None, process(6)):
        _, got = give(board, wish("b", instance=record.instance, process=rival))
        assert record.target != got.target


def test_a_process_that_has_two_instances_has_two_threads() -> None:
    board, first = give(Board(), wish("a", instance="5:1", process=process(5)))
    board, second = give(board, wish("b", instance="5:2", process=process(5)))
    assert (first, 2) == (record_of(board, "a"), len(board.records))
    assert first.target != second.target


# -- under way ------------------------------------------------------------


def test_what_is_under_way_holds_its_slot_and_its_target() -> None:
    """L26: two profiles picked from one snapshot."""
    board, first = begun(Board(), wish("a", slot="K", target=Target(0, 7)))
    board, second = begun(board, wish("b", slot="K", target=Target(0, 7)))
    assert (("K", Target(0, 7)), ("L", Target(0, 8))) == ((first.slot, first.target), (second.slot, second.target))


def test_one_provisioning_of_a_profile_at_a_time() -> None:
    board, pending = begun(Board(), wish("a"))
    assert isinstance(begin(board, wish("a"), 1, NOW), Denied)
    assert not isinstance(begin(abandon(board, pending), wish("a"), 1, NOW), Denied)


def test_what_an_earlier_epoch_began_is_given_up_and_comes_too_late() -> None:
    board, old = begun(Board(), wish("a"))
    board, new = begun(board, wish("a"), epoch=2)
    assert settle(board, old, NOW) is None
    assert settle(board, new, NOW) is not None
    assert () == abandon_before(board, 3).pendings


def test_abandoned_provisioning_leaves_what_was_there() -> None:
    board, record = give(Board(), wish("a"))
    after, pending = begun(board, wish("a", instance="2:2"))
    assert attrs.evolve(board, next_thread=after.next_thread) == abandon(after, pending)
    assert record == record_of(abandon(after, pending), "a")


def test_a_thread_that_is_being_given_to_another_is_not_used_meanwhile() -> None:
    """The dead one's profile comes back just when its thread goes to somebody else."""
    board, record = give(Board(), wish("a", process=process(5)))
    board, pending = begun(board, wish("b", target=record.target), dead=[process(5)])
    board, back = give(board, wish("a", instance="6:1"), dead=[process(5)])
    found = settle(board, pending, NOW)
    assert found is not None
    assert (Target(0, 2), Target(0, 1)) == (back.target, found[1].target)
    assert_held_once(found[0], NOW)


# -- the end ------------------------------------------------------------


def test_a_clean_up_of_another_registration_is_void_and_changes_nothing() -> None:
    """L0: also one of the same instance, of an earlier generation."""
    board, record = give(Board(), wish("a", generation="g2"))
    assert void(board, record.target, record.instance, "g1")
    assert void(board, record.target, "b:1", "g2")
    assert not void(board, record.target, record.instance, "g2")
    assert not void(board, Target(0, 99), "b:1", "g1")
    assert board == cleaned(board, record.target, record.instance, "g1", NOW)
    assert () == cleaned(board, record.target, record.instance, "g2", NOW).records


def test_a_clean_up_is_void_while_somebody_is_being_provisioned_with_the_target() -> None:
    board, record = give(Board(), wish("a", generation="g1"))
    board, _ = begun(board, wish("a", generation="g2"))
    assert void(board, record.target, record.instance, "g1")


def test_threads_of_dead_leaders_are_given_up_and_their_slots_kept_for_a_while() -> None:
    board, _ = give(Board(), Wish("cwd:/old", "leader", "5:1", process=process(5)))
    board, living = give(board, Wish("cwd:/alive", "leader", "6:1", process=process(6)))
    after = retire(board, "cwd:/new", [process(5)], NOW)
    assert (living,) == after.records
    assert {"A", "B"} == occupied(after, NOW + RESERVATION_MS - 1)
    assert {"B"} == occupied(after, NOW + RESERVATION_MS)
    assert board == retire(board, "cwd:/old", [process(5)], NOW)
    assert () == tidy(after, (), NOW + RESERVATION_MS).reservations


def test_the_ring_stands_at_the_newest_thread_if_it_stood_at_none() -> None:
    board = attrs.evolve(full(3), last_slot="Q")
    assert "C" == tidy(board, (), NOW).last_slot
    assert "B" == tidy(attrs.evolve(board, last_slot="B"), (), NOW).last_slot
    assert None is tidy(Board(last_slot="Q"), (), NOW).last_slot


def test_threads_of_the_dead_without_a_letter_are_forgotten() -> None:
    board, late = give(full(), wish("late", process=process(5)))
    assert late in tidy(board, (), NOW).records
    assert late not in tidy(board, [process(5)], NOW).records


# -- whatever happens ------------------------------------------------------------


def assert_held_once(board: Board, now: int) -> None:
    """No two hold one letter or one target. A pending may stand where the record is that it replaces."""
    replaced = {p.wish.key for p in board.pendings}
    moved = {p.target for p in board.pendings}
    records = [r for r in board.records if not (r.key in replaced and r.target in moved) and r.target not in moved]
    slots = [r.slot for r in records] + [p.slot for p in board.pendings]
    slots += [r.slot for r in board.reservations if r.lasts(now)]
    held = [slot for slot in slots if slot is not None]
    assert len(held) == len(set(held)), held
    targets = [r.target for r in records] + [p.target for p in board.pendings]
    targets += [r.target for r in board.reservations if r.lasts(now)]
    assert len(targets) == len(set(targets)), targets
    keys = [r.key for r in board.records]
    assert len(keys) == len(set(keys))
    for record in board.records:
        for other in board.records:
            assert record is other or (
                record.target != other.target and (record.slot is None or record.slot != other.slot)
            )


PEOPLE = st.integers(1, 5)
SLOTS = st.sampled_from([None, "A", "B", "Y", "Z"])
TARGETS = st.sampled_from([None, *(Target(0, n) for n in range(1, 7)), Target(9, 1)])
DEAD = st.frozensets(st.sampled_from([process(n) for n in range(1, 6)]), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("begin"), PEOPLE, st.integers(1, 2), SLOTS, TARGETS, st.integers(1, 5), DEAD, st.booleans()),
    st.tuples(st.just("settle"), st.integers(0, 4)),
    st.tuples(st.just("abandon"), st.integers(0, 4)),
    st.tuples(st.just("cleaning"), st.integers(0, 4)),
    st.tuples(st.just("kept"), st.integers(0, 2)),
    st.tuples(st.just("clean"), st.integers(0, 2)),
    st.tuples(st.just("retire"), PEOPLE, DEAD),
    st.tuples(st.just("lead"), st.integers(0, 1)),
    st.tuples(st.just("time"), st.integers(0, RESERVATION_MS)),
    st.tuples(st.just("fill"), st.integers(0, 25)),
)


@given(st.lists(STEPS, max_size=40))
def test_nothing_is_ever_held_by_two(steps: list[tuple[object, ...]]) -> None:
    """I37 and L26, whatever is asked in whatever order, while anything is under way; and every target is new unless it
    was somebody's own, or wished for."""
    board, epoch, now = Board(), 1, NOW
    under_way: list[Pending] = []
    deleted: list[Record] = []
    for step in steps:
        match step:
            case ("begin", int(person), int(instance), slot, target, int(pid), dead, bool(leads)):
                assert isinstance(dead, frozenset)
                asked = Wish(
                    f"k{person}",
                    "leader" if leads else "manual-follower",
                    f"{person}:{instance}",
                    f"g{instance}",
                    slot=slot if isinstance(slot, str) else None,
                    target=target if isinstance(target, Target) else None,
                    process=process(pid),
                )
                found = begin(board, asked, epoch, now, dead)
                if not isinstance(found, Denied):
                    board, pending = found
                    under_way.append(pending)
            case ("settle", int(n)) if n < len(under_way):
                settled = settle(board, under_way.pop(n), now)
                board = board if settled is None else settled[0]
            case ("abandon", int(n)) if n < len(under_way):
                board = abandon(board, under_way.pop(n))
            case ("cleaning", int(n)) if n < len(board.records) and board.records[n].target not in board.cleaning:
                record = board.records[n]
                if not void(board, record.target, record.instance, record.generation):
                    board = cleaning(board, record.target)
                    deleted.append(record)
            case ("kept", int(n)) if n < len(deleted):
                board = kept(board, deleted.pop(n).target)
            case ("clean", int(n)) if n < len(deleted):
                record = deleted.pop(n)
                held = [r for r in board.records if r.target == record.target]
                assert held in ([], [record])  # what is deleted is nobody else's
                board = cleaned(board, record.target, record.instance, record.generation, now)
            case ("retire", int(person), dead):
                assert isinstance(dead, frozenset)
                board = retire(board, f"k{person}", dead, now)
            case ("lead", int(more)):
                epoch += more
                board = tidy(abandon_before(board, epoch), (), now)
            case ("time", int(by)):
                now += by
            case ("fill", int(n)) if not board.records and not board.pendings and not board.reservations:
                board = full(n)
        assert_held_once(board, now)
        assert board.next_thread > max((r.target.thread_id for r in board.records), default=0)
