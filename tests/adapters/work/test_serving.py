"""Which bindings are a process's as its role changes, over a real journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.adapters.work.serving import BEATS, Serving
from tenure.machines.receipt_messages import Party
from tests.adapters.journal.journal_room import EPOCH, ME, YOU, Room

T = TypeVar("T")


class Desk:
    """One process: `ME`. The journal is the one of `Room.started`, in which it serves B."""

    def __init__(self, root: Path) -> None:
        self.room = Room(root)
        self.journal = self.room.started()
        self.serving = Serving(cast(ThreadedJournal, self), ME)
        self.beats = 0
        self.broken = False

    async def call(self, work: Callable[[Journal], T]) -> T:
        if self.broken:
            raise TenureError("the disk is full")
        return work(self.journal)

    def follows(self, binding: str) -> None:
        self.serving.follows(binding, EPOCH, lambda: self.beats)

    def tells(self) -> None:
        asyncio.run(self.serving.tell())

    def served(self) -> dict[str, Party]:
        return {row.binding: row.party for row in self.journal.servers() if row.left_at is None}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_who_follows_serves_what_it_is_registered_for_and_who_leads_the_leaders(desk: Desk) -> None:
    desk.follows("C")
    desk.tells()
    assert desk.served() == {"B": ME, "C": ME}
    desk.serving.leads("L", EPOCH, ("C", "D"))
    desk.tells()
    assert desk.served() == {"B": ME, "C": ME, "L": ME}
    assert {row.binding for row in desk.journal.servers()} == {"B", "C", "D", "L"}  # what is left of D is its own
    assert desk.serving.served == ["L", "C"]
    assert desk.serving.untold == []


def test_what_could_not_be_told_is_told_later(desk: Desk) -> None:
    desk.broken = True
    desk.follows("C")
    with pytest.raises(TenureError):
        desk.tells()
    assert "C" not in desk.served()
    desk.broken = False
    desk.tells()
    assert desk.served()["C"] == ME


def test_what_could_not_be_told_while_the_role_lasted_is_dropped_with_it(desk: Desk) -> None:
    for begins in (lambda: desk.follows("C"), lambda: desk.serving.leads("L", EPOCH)):
        begins()
        desk.serving.ends()
        desk.tells()
    assert desk.served() == {"B": ME}


def test_a_late_leader_takes_nothing_back(desk: Desk) -> None:
    """It believes that it leads; the fence says that another does."""
    desk.serving.leads("L", EPOCH)
    desk.journal.raise_fence(EPOCH + 1, "i2")
    desk.journal.serve_leading("L", YOU, EPOCH + 1)
    desk.tells()
    assert desk.served()["L"] == YOU
    desk.serving.leads("L", EPOCH + 1)
    desk.tells()
    assert desk.served()["L"] == ME


def test_who_is_late_takes_nothing_back_from_who_was_registered_since(desk: Desk) -> None:
    """Its leader does not hear its heartbeats under that registration any more."""
    desk.follows("C")
    desk.journal.serve("C", YOU)
    for _ in range(5):
        desk.tells()
    assert desk.served()["C"] == YOU


def test_whose_registration_is_confirmed_replaces_who_stood_there(desk: Desk) -> None:
    desk.journal.serve("C", YOU)
    desk.follows("C")
    desk.tells()
    desk.beats += BEATS - 1  # that one may have been on its way when the row was read
    desk.tells()
    assert desk.served()["C"] == YOU
    desk.beats += 1
    desk.tells()
    assert desk.served()["C"] == ME


def test_what_has_changed_meanwhile_is_confirmed_anew(desk: Desk) -> None:
    desk.journal.serve("C", YOU)
    desk.follows("C")
    desk.tells()
    desk.beats += BEATS
    (row,) = (row for row in desk.journal.servers() if row.binding == "C")
    desk.journal.serve("C", Party("i3", "p3"), over=row)
    desk.tells()
    assert desk.served()["C"] == Party("i3", "p3")
    desk.beats += BEATS
    desk.tells()
    assert desk.served()["C"] == ME


def test_who_is_registered_under_another_key_leaves_the_one_before(desk: Desk) -> None:
    """Another process has it: the leader said so. What is pending there is that one's, or soon the leader's."""
    desk.follows("C")
    desk.tells()
    desk.follows("C")
    desk.tells()
    assert desk.served()["C"] == ME
    desk.follows("D")
    desk.tells()
    assert desk.served() == {"B": ME, "D": ME}
    assert desk.serving.served == ["D"]


def test_what_others_are_registered_for_a_leader_leaves(desk: Desk) -> None:
    desk.follows("C")
    desk.tells()
    desk.serving.leads("L", EPOCH)
    desk.serving.gone(["C", "X"])
    desk.tells()
    assert desk.served() == {"B": ME, "L": ME}
    assert desk.journal.serve("C", YOU) is None
    desk.serving.gone(["C"])
    desk.tells()
    assert desk.served()["C"] == YOU


def test_what_is_served_again_before_it_was_left_stays(desk: Desk) -> None:
    desk.follows("C")
    desk.tells()
    desk.broken = True
    desk.serving.gone(["C"])
    with pytest.raises(TenureError):
        desk.tells()
    desk.follows("C")
    desk.broken = False
    desk.tells()
    assert desk.served()["C"] == ME


def test_who_leaves_serves_nothing_and_leaves_the_others_theirs(desk: Desk) -> None:
    desk.journal.serve("D", YOU)
    desk.follows("C")
    asyncio.run(desk.serving.leave())
    desk.tells()
    assert desk.served() == {"D": YOU}
