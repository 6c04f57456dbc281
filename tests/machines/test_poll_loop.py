"""One poll loop, event by event (locks.md 10; A64, A65, A68, K18)."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Step, step
from tenure.machines.poll_loop import (
    GREATEST,
    NONE,
    POLL_LOOP,
    Answered,
    AnsweredEmpty,
    Conflicted,
    Fail,
    Happening,
    Load,
    Loaded,
    Memory,
    Order,
    Persist,
    PersistEnded,
    Poll,
    Record,
    RecordEnded,
    Sleep,
    Start,
    Stop,
    TimedOut,
    Woke,
)

RUNNING = (Start(), Loaded(offset=4, opened=True))
WRITTEN, FAILED = PersistEnded(written=True), PersistEnded(written=False)
COMMITTED = RecordEnded(committed=True, opened=True)
SKIPPED = RecordEnded(committed=True, opened=False)


def told(*messages: Happening) -> Step[Memory, Order]:
    """What a stopped loop answers to the last of the messages; all must be taken."""

    def one(before: Step[Memory, Order], message: Happening) -> Step[Memory, Order]:
        after = step(POLL_LOOP, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(POLL_LOOP.initial, Memory(), ()))


def test_a_batch_is_journaled_then_persisted_then_passed() -> None:
    """Each step is asked for only after the one before it is durable."""
    assert told(*RUNNING).outputs == (Poll(cursor=4, timeout_s=30, budget_ms=40_000),)
    assert told(*RUNNING, Answered((5, 7))).outputs == (Record((5, 7), skipped=False),)
    assert told(*RUNNING, Answered((5, 7)), COMMITTED).outputs == (Persist(7),)
    assert told(*RUNNING, Answered((5, 7)), COMMITTED, WRITTEN).outputs == (Poll(7, 30, 40_000),)


@pytest.mark.parametrize("failure", [(RecordEnded(committed=False, opened=True),), (COMMITTED, FAILED)])
def test_what_was_not_made_durable_is_polled_again(failure: tuple[Happening, ...]) -> None:
    """K18: the loop's cursor stays where the disk's is, and the retry begins with what the disk says."""
    failed = (*RUNNING, Answered((5,)), *failure)

    assert told(*failed) == Step("retrying", Memory(cursor=4), (Sleep(3_000),))
    assert told(*failed, Woke()).outputs == (Load(),)
    assert told(*failed, Woke(), Loaded(4, opened=True)).outputs == (Poll(4, 30, 40_000),)


def test_a_retry_goes_on_from_the_greater_cursor() -> None:
    """Another process may have moved the offset, or have lost it."""
    for offset, cursor in ((9, 9), (2, 4), (NONE, 4)):
        assert told(*RUNNING, TimedOut(), Woke(), Loaded(offset, opened=True)).data.cursor == cursor


def test_history_is_journaled_as_skipped_until_an_answer_is_empty() -> None:
    """The first start sends no negative offset, does not wait, and ends with the offset and the journal's mark."""
    first = (Start(), Loaded(NONE, opened=False))
    drained = (*first, Answered((3,)), SKIPPED, WRITTEN, AnsweredEmpty())

    assert told(*first).outputs == (Poll(NONE, timeout_s=0, budget_ms=10_000),)
    assert told(*first, Answered((3,))).outputs == (Record((3,), skipped=True),)
    assert told(*drained).outputs == (Persist(3),)
    assert told(*drained, WRITTEN).outputs == (Record((), skipped=True),)
    assert told(*drained, WRITTEN, SKIPPED) == Step("long_poll", Memory(cursor=3), (Poll(3, 30, 40_000),))


def test_the_first_start_of_a_quiet_bot_leaves_an_offset() -> None:
    """An empty history is history as well: 0 is persisted before the mark, so that the next start knows a cursor."""
    assert told(Start(), Loaded(NONE, opened=False), AnsweredEmpty()).outputs == (Persist(0),)


def test_a_journal_in_use_is_never_bootstrapped() -> None:
    """A68: the offset is gone, the journal is not: waiting work is not taken for history, a person decides."""
    assert told(Start(), Loaded(NONE, opened=True)) == Step("stopped", Memory(), (Fail(),))


def test_a_slow_second_first_start_skips_nothing_that_is_work() -> None:
    """The transaction that would skip finds the mark set: nothing is appended, and the loop looks again."""
    late = (Start(), Loaded(NONE, opened=False), Answered((3,)), RecordEnded(committed=True, opened=True))

    assert told(*late).phase == "retrying"
    assert told(*late, Woke(), Loaded(2, opened=True)) == Step("long_poll", Memory(cursor=2), (Poll(2, 30, 40_000),))


@pytest.mark.parametrize("ids", [(), (4,), (3, 5), (6, 5), (5, 5), (5, GREATEST + 1)])
def test_an_answer_out_of_order_is_refused_whole(ids: tuple[int, ...]) -> None:
    """A68: nothing of it reaches the journal, and the cursor stays."""
    assert told(*RUNNING, Answered(ids)) == Step("retrying", Memory(cursor=4), (Sleep(3_000),))


@given(st.lists(st.integers(5, GREATEST), min_size=1, max_size=10, unique=True).map(sorted))
def test_an_answer_in_order_is_taken_whole(ids: list[int]) -> None:
    """Gaps are Telegram's business."""
    assert told(*RUNNING, Answered(tuple(ids))).outputs == (Record(tuple(ids), skipped=False),)


def test_conflicts_in_a_row_wait_longer() -> None:
    """A65: 1 s, 1 s, 3 s, 3 s; an answer, also an empty one, begins anew."""
    again = (Woke(), Loaded(4, opened=True))
    storm = [(*RUNNING, *((Conflicted(), *again) * n), Conflicted()) for n in range(4)]

    assert [told(*each).outputs for each in storm] == [(Sleep(ms),) for ms in (1_000, 1_000, 3_000, 3_000)]
    assert told(*storm[3], *again, AnsweredEmpty(), Conflicted()).outputs == (Sleep(1_000),)
    assert told(*storm[3], *again, Answered((5,))).data.conflicts == 0


def test_a_poll_that_never_answers_ends() -> None:
    """A64: the budget of the request ends it; nothing is known, so nothing moves."""
    assert told(*RUNNING, TimedOut()) == Step("retrying", Memory(cursor=4), (Sleep(3_000),))


def test_a_stop_waits_for_what_is_being_written() -> None:
    """An abort ends a poll or a sleep; a journal or an offset is written first."""
    assert told(*RUNNING, Stop()).phase == "stopped"
    assert told(*RUNNING, TimedOut(), Stop()).phase == "stopped"
    for phase in ("persisting_journal", "persisting_offset", "stopped"):
        assert not isinstance(step(POLL_LOOP, phase, Memory(), Stop()), Step)
