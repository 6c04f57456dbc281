"""Every call of an endpoint fails, or is the last thing its process does; and who cleans up after the dead."""

from __future__ import annotations

import errno
import gc
import os
import re
import socket
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.client import Answer
from tenure.adapters.bus.endpoints.calls import Node, PosixCalls
from tenure.adapters.bus.endpoints.debris import NAMELESS_MS, OLD_MS, sweep
from tenure.adapters.bus.endpoints.endpoint import Endpoint, EndpointError
from tenure.adapters.bus.serving.server import BusServer
from tenure.adapters.ports import Killed
from tests.adapters.bus.transport_room import SMALL, Handler, ask, done, listing, parsed, run, short_place

NAMES = (
    "make_directory",
    "change_mode",
    "node",
    "leads_to_socket",
    "bind",
    "listen",
    "link",
    "target",
    "rename",
    "unlink",
    "entries",
    "gone",
    "probe",
)


class Faulty:
    """`PosixCalls` whose call number `fails` does not happen, or happens and is the last; every file is `older`."""

    def __init__(self, fails: int = -1, error: BaseException | None = None, older_ms: int = 0) -> None:
        self.made: list[str] = []
        self.ends: list[socket.socket] = []
        self._real = PosixCalls()
        self._fails, self._error, self._older = fails, error, older_ms

    def __getattr__(self, name: str) -> Callable[..., Any]:
        assert name in NAMES

        def call(*arguments: Any) -> Any:
            self.made.append(name)
            if self._error is not None and len(self.made) == self._fails + 1:
                raise self._error
            found = getattr(self._real, name)(*arguments)
            if isinstance(found, Node):
                found = attrs.evolve(found, age_ms=found.age_ms + self._older)
            if isinstance(found, socket.socket):
                self.ends.append(found)
            return found

        return call


def new(path: str, calls: Faulty) -> Endpoint:
    return Endpoint(path, BusServer(parsed, Handler(), limits=SMALL), calls=calls)


@pytest.fixture
def path() -> Iterator[str]:
    with short_place() as place:
        yield f"{place}/telegram/bus.sock"


def calls_of_a_start(again: bool) -> list[str]:
    """What a start does, in a fresh directory or beside a former endpoint."""
    calls = Faulty()

    async def main() -> None:
        with short_place() as place:
            path = f"{place}/telegram/bus.sock"
            former = new(path, Faulty())
            if again:
                await done(former.start())
            endpoint = new(path, calls)
            await done(endpoint.start())
            calls.made, started = [], calls.made
            await done(endpoint.stop())
            await done(former.stop())
            calls.made = started

    run(main())
    return calls.made


START, AGAIN = calls_of_a_start(False), calls_of_a_start(True)
SWALLOWED = range(AGAIN.index("entries"), AGAIN.index("bind"))
"""The sweep: a start does not depend on it."""


def test_the_order_of_a_publication() -> None:
    """bus.md a: listen on the private socket, chmod, link, rename; nobody finds it before."""
    assert ["bind", "change_mode", "listen", "link", "rename"] == START[START.index("bind") :]


@pytest.mark.parametrize("number", range(len(AGAIN)), ids=lambda number: f"{number}-{AGAIN[number]}")
def test_a_call_that_fails_leaves_nothing_of_a_start(path: str, number: int) -> None:
    """One clear error, the former endpoint as it was, no socket, no link; and the next start works."""

    async def main() -> None:
        former = new(path, Faulty())
        await done(former.start())
        before = listing(path)
        calls = Faulty(number, OSError(errno.EIO, "Input/output error"))
        endpoint = new(path, calls)
        if number in SWALLOWED:
            await done(endpoint.start())
        else:
            with pytest.raises(EndpointError, match=re.escape(path)):
                await done(endpoint.start())
            assert before == listing(path)
            assert not endpoint.serving
            assert all(end.fileno() < 0 for end in calls.ends)
            assert Answer(b"x") == await ask(path, b"x")
            await done(endpoint.start())
        assert Answer(b"x") == await ask(path, b"x")
        await done(endpoint.stop())
        await done(former.stop())

    run(main())


@pytest.mark.parametrize("number", range(len(START)), ids=lambda number: f"{number}-{START[number]}")
def test_a_killed_process_leaves_what_the_next_one_sweeps(path: str, number: int) -> None:
    """Nothing runs after a kill, above all no clean-up; a minute later the next start removes what was left."""

    async def main() -> None:
        calls = Faulty(number, Killed())
        with pytest.raises(Killed):
            await done(new(path, calls).start())
        assert len(calls.made) == number + 1
        for end in calls.ends:  # as the kernel does
            end.close()
        left = set(listing(path)) if os.path.isdir(os.path.dirname(path)) else set()
        young = new(path, Faulty())
        await done(young.start())
        assert left <= set(listing(path))
        await done(young.stop())
        later = new(path, Faulty(older_ms=OLD_MS))
        await done(later.start())
        assert {"bus.sock", os.readlink(path)} == set(listing(path))
        assert Answer(b"x") == await ask(path, b"x")
        await done(later.stop())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a killed process had open, its kernel closes without a word
        run(main())
        gc.collect()


# -- sweeping ----------------------------------------------------------------------------------------------------------


def bound(path: str, listens: bool) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.bind(path)
    if listens:
        end.listen(0)
    return end


@pytest.fixture
def place() -> Iterator[str]:
    with short_place() as place:
        yield place


def private(digit: str) -> str:
    return f".pt-{digit * 16}.sock"


def test_the_living_are_never_swept(place: str) -> None:
    """Whoever listens, however old, however full its backlog; nor a link that leads to them."""
    with bound(f"{place}/{private('a')}", True), bound(f"{place}/{private('b')}", True):
        os.symlink(private("a"), f"{place}/bus.sock.link.1")
        full = []
        for _ in range(8):
            full.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            full[-1].setblocking(False)
            full[-1].connect_ex(f"{place}/{private('b')}")
        assert () == sweep(Faulty(older_ms=OLD_MS), place)
        assert 3 == len(os.listdir(place))
        for each in full:
            each.close()


def test_the_old_dead_are_swept(place: str) -> None:
    """Sockets nobody listens at, and links to them, or to nothing; once they are old."""
    bound(f"{place}/{private('a')}", True).close()
    bound(f"{place}/{private('b')}", False).close()
    os.symlink(private("a"), f"{place}/bus.sock.link.1")
    os.symlink(private("c"), f"{place}/4711_1.sock.link.2")
    assert () == sweep(Faulty(older_ms=OLD_MS - 20_000), place)
    assert 4 == len(sweep(Faulty(older_ms=OLD_MS), place))
    assert [] == os.listdir(place)


def test_endpoints_of_followers_that_are_gone_are_swept(place: str) -> None:
    """Not while their process is there: it may be about to publish again; nor while anybody listens."""
    gone = 2**22 + 1
    bound(f"{place}/{private('a')}", True).close()
    with bound(f"{place}/{private('b')}", True):
        for name, target in (
            (f"{gone}_1.sock", private("a")),
            (f"{gone}_2.sock", private("c")),
            (f"{gone}_3.sock", private("b")),
            (f"{gone}_4.sock", "/etc/passwd"),
            (f"{os.getpid()}_1.sock", private("c")),
        ):
            os.symlink(target, f"{place}/{name}")
        assert () == sweep(Faulty(older_ms=OLD_MS - 20_000), place)
        swept = sweep(Faulty(older_ms=OLD_MS), place)
    assert {private("a"), f"{gone}_1.sock", f"{gone}_2.sock"} == {os.path.basename(path) for path in swept}


def test_links_of_the_short_directory_are_swept_in_the_end(place: str) -> None:
    """Each follower of a long path leaves one there; who published it, its name does not say."""
    with bound(f"{place}/{private('b')}", True):
        os.symlink(private("b"), f"{place}/{'0' * 16}.sock")
        os.symlink(private("c"), f"{place}/{'1' * 16}.sock")
        os.symlink("/etc/passwd", f"{place}/{'2' * 16}.sock")
        assert () == sweep(Faulty(older_ms=NAMELESS_MS - 20_000), place)
        assert (f"{place}/{'1' * 16}.sock",) == sweep(Faulty(older_ms=NAMELESS_MS), place)


def test_what_is_not_ours_by_name_stays(place: str) -> None:
    """Endpoints that lead nowhere belong to whoever owns their path; files, directories and odd names to whoever."""
    os.symlink(private("c"), f"{place}/bus.sock")
    os.symlink("/etc/passwd", f"{place}/bus.sock.link.1")
    os.symlink(f"../{private('c')}", f"{place}/bus.sock.link.2")
    bound(f"{place}/legacy.sock", True).close()
    bound(f"{place}/.pt-short.sock", True).close()
    os.mkdir(f"{place}/{private('d')}")
    open(f"{place}/{private('e')}", "w").close()
    before = sorted(os.listdir(place))
    assert () == sweep(Faulty(older_ms=OLD_MS), place)
    assert before == sorted(os.listdir(place))


def test_who_may_not_be_asked_is_not_dead(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's socket refuses nobody: it cannot be connected."""
    bound(f"{place}/{private('a')}", True).close()
    monkeypatch.setattr(PosixCalls, "probe", lambda self, path: "barred")
    assert () == sweep(Faulty(older_ms=OLD_MS), place)


def test_what_is_another_user_s_stays(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(f"{place}/{private('a')}", True).close()
    monkeypatch.setattr("tenure.adapters.bus.endpoints.debris.os.geteuid", lambda: 4711)
    assert () == sweep(Faulty(older_ms=OLD_MS), place)


def test_a_name_that_changes_hands_during_the_look_is_not_swept(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe was of the dead one, the path is a living one's by now."""
    path = f"{place}/{private('a')}"
    bound(path, True).close()

    def probe(self: PosixCalls, probed: str) -> str:
        os.rename(path, f"{path}.old")
        bound(path, False).close()
        return "dead"

    monkeypatch.setattr(PosixCalls, "probe", probe)
    assert () == sweep(Faulty(older_ms=OLD_MS), place)
    assert os.path.exists(path)


def test_what_cannot_be_removed_stays(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for digit in "ab":
        bound(f"{place}/{private(digit)}", True).close()

    def unlink(self: PosixCalls, path: str) -> None:
        if path.endswith(private("a")):
            raise PermissionError(errno.EACCES, "Permission denied")
        os.unlink(path)

    monkeypatch.setattr(PosixCalls, "unlink", unlink)
    assert (f"{place}/{private('b')}",) == sweep(Faulty(older_ms=OLD_MS), place)
