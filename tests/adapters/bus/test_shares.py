"""Room for long lines, shared by processes: nobody has more than its share, and nobody waits for ever."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.serving.shares import Account, Room


class Asking:
    """What a room is asked for, and by whom; connections are numbers."""

    def __init__(self, total: int) -> None:
        self.room: Room[int] = Room(total)
        self.accounts = [Account[int](pid) for pid in range(3)]
        self.held: dict[int, tuple[int, int]] = {}
        """Connection: account and size."""
        self.waiting: list[tuple[int, int, int]] = []
        self.granted: list[int] = []

    def ask(self, connection: int, pid: int, size: int) -> None:
        def later() -> None:
            self.waiting.remove((connection, pid, size))
            self.held[connection] = (pid, size)
            self.granted.append(connection)

        if self.room.ask(connection, self.accounts[pid], size, later):
            self.held[connection] = (pid, size)
        else:
            self.waiting.append((connection, pid, size))

    def give(self, connection: int) -> None:
        pid, size = self.held.pop(connection)
        self.room.give(self.accounts[pid], size)

    def forget(self, connection: int) -> None:
        self.waiting = [each for each in self.waiting if each[0] != connection]
        self.room.forget(connection)

    def check(self) -> None:
        sizes = [sum(size for pid, size in self.held.values() if pid == account.pid) for account in self.accounts]
        assert sizes == [account.room for account in self.accounts]
        assert sum(sizes) == self.room.used <= self.room.total
        assert max(sizes) <= self.room.total // 2
        assert len(self.waiting) == self.room.waiting
        for _, pid, size in self.waiting[:1]:
            shareless = sizes[pid] + size > self.room.total // 2
            assert shareless or self.room.used + size > self.room.total, "the first waits although it fits"


def test_room_is_granted_at_once_or_later() -> None:
    asking = Asking(10)
    asking.ask(1, 0, 5)
    asking.ask(2, 1, 5)
    asking.ask(3, 2, 1)
    assert [(3, 2, 1)] == asking.waiting
    asking.give(1)
    assert [3] == asking.granted


def test_who_has_its_share_keeps_nobody_else_waiting() -> None:
    asking = Asking(10)
    asking.ask(1, 0, 5)
    asking.ask(2, 0, 1)
    asking.ask(3, 1, 5)
    assert {1, 3} == set(asking.held)


def test_nobody_passes_one_who_waits_for_everybody() -> None:
    """Small wishes of others would keep a great one waiting for ever."""
    asking = Asking(10)
    asking.ask(1, 0, 4)
    asking.ask(2, 1, 4)
    asking.ask(3, 2, 5)
    asking.ask(4, 2, 1)
    assert {1, 2} == set(asking.held)
    asking.give(1)
    assert [3] == asking.granted
    asking.give(3)
    assert [3, 4] == asking.granted


def test_nor_when_something_is_given_back() -> None:
    """Too little for the one who waits longest is kept for it."""
    asking = Asking(10)
    asking.ask(1, 0, 3)
    asking.ask(2, 0, 1)
    asking.ask(3, 1, 4)
    asking.ask(4, 2, 5)
    asking.ask(5, 2, 2)
    asking.give(2)
    assert [] == asking.granted
    asking.give(1)
    assert [4] == asking.granted


def test_who_has_its_share_is_passed_when_something_is_given_back() -> None:
    asking = Asking(10)
    asking.ask(1, 0, 5)
    asking.ask(2, 1, 5)
    asking.ask(3, 0, 1)
    asking.ask(4, 2, 1)
    asking.give(2)
    assert [4] == asking.granted


def test_who_is_forgotten_keeps_nobody_waiting() -> None:
    asking = Asking(10)
    asking.ask(1, 0, 4)
    asking.ask(2, 1, 4)
    asking.ask(3, 2, 5)
    asking.ask(4, 2, 1)
    asking.forget(3)
    assert [4] == asking.granted


def test_an_account_is_idle_when_nothing_is_left() -> None:
    account = Account[int](1)
    assert account.idle
    assert not attrs.evolve(account, room=1).idle
    assert not attrs.evolve(account, requests=1).idle
    assert not attrs.evolve(account, connections={1}).idle


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(1, 10)), max_size=60))
def test_shares_hold_whatever_is_asked_given_and_forgotten(steps: list[tuple[int, int, int]]) -> None:
    """And when everything is given back, everybody has had its turn."""
    asking = Asking(20)
    for connection, pid, size in steps:
        if connection in asking.held:
            asking.give(connection)
        elif any(connection == each[0] for each in asking.waiting):
            asking.forget(connection)
        else:
            asking.ask(connection, pid, size)
        asking.check()
    while asking.held:
        asking.give(next(iter(asking.held)))
        asking.check()
    assert not asking.waiting
    assert 0 == asking.room.used
