"""Peers that do what they like: whatever one process does, the others' heartbeats are answered (DESIGN 10, Bus).

Several processes are played by one: who connects is said by the test.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import resource
import socket
import threading
from collections.abc import Iterator

import attrs
import pytest

from tenure.adapters.bus.client import Answer
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.server import INVALID
from tests.adapters.bus.transport_room import PATIENCE_S, SMALL, Rude, ask, done, run, serving, turns, until, wait

ME, OTHER, THIRD = 100, 200, 300
LONG = b'"' + b"x" * 2_998 + b'"'


class Connecting:
    """Who connects next."""

    pid = ME

    def __call__(self, end: socket.socket) -> Peer:
        return Peer(self.pid, 0)


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> Connecting:
    who = Connecting()
    monkeypatch.setattr("tenure.adapters.bus.serving.door.peer_of", who)
    return who


EVERYBODY = {"may_connect": lambda peer: True}


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    """A thousand connections have two thousand ends here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- long lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_over_long_line_is_answered_and_the_connection_over(end: bytes) -> None:
    """At its newline, and long before one."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            with Rude(path) as peer:
                await peer.send_all(b"x" * 4_001 + end)
                await until(lambda: [INVALID] == peer.lines())
                await peer.send_all(b"\nsecond\n")
                peer.half_close()
                await until(peer.over)
            assert not handler.asked
            assert (1, 0) == (server.statistics().too_long, server.statistics().room_used)

    run(main())


def test_the_sender_of_an_over_long_line_may_finish_before_it_reads() -> None:
    """What it still sends is thrown away, not buffered; it would see a broken pipe instead of the answer."""

    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as peer:
                await peer.send_all(b"x" * 3_000_000)
                await until(lambda: [INVALID] == peer.lines())
                assert 0 == server.statistics().room_used
                assert not peer.over()

    run(main())


def test_what_follows_an_over_long_line_is_thrown_away_whatever_else_waits() -> None:
    """Its process is at its bound by other connections: nothing more is read from those, but here nothing is kept."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            for number in range(4):
                handler.hold(b"%d" % number)
            with Rude(path) as long, Rude(path) as one, Rude(path) as two:
                await long.send_all(b"x" * 5_000)
                await until(lambda: [INVALID] == long.lines())
                one.send(b"0\n1\n")
                two.send(b"2\n3\n")
                await until(lambda: 4 == len(handler.asked))
                await long.send_all(b"x" * 2_000_000)
                assert 1 == server.statistics().too_long
                for number in range(4):
                    handler.let(b"%d" % number)

    run(main())


def test_who_goes_on_sending_is_cut() -> None:
    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as peer:
                await peer.send_all(b"x" * 10_000)
                await until(lambda: [INVALID] == peer.lines())
                wait(2.5)
                server.sweep()
                await until(peer.over)

    run(main())


def test_half_lines_take_their_process_s_share_alone(connecting: Connecting) -> None:
    """Two of ME's half lines fill its share of the room, a third waits; OTHER sends a long line all the same."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, _):
            with Rude(path) as one, Rude(path) as two, Rude(path) as three:
                for peer in (one, two, three):
                    peer.send(b"x" * 1_500)
                await until(lambda: 8_000 == server.statistics().room_used)
                await turns()
                assert 8_000 == server.statistics().room_used
                connecting.pid = OTHER
                assert Answer(LONG) == await ask(path, LONG)
                one.send(b"\n")  # and the third has its turn as soon as one of the two has had its
                three.send(b"\n")
                await until(lambda: [b"x" * 1_500] == one.lines() and [b"x" * 1_500] == three.lines())
                await until(lambda: 4_000 == server.statistics().room_used)
            await until(lambda: 0 == server.statistics().room_used)

    run(main())


def test_half_lines_of_everybody_leave_room_for_heartbeats(connecting: Connecting) -> None:
    """All the room is taken, by as many processes as it takes: tiny lines need none of it."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, _):
            peers = []
            for connecting.pid in (ME, ME, OTHER, OTHER):
                peers.append(Rude(path))
                peers[-1].send(b"x" * 1_500)
                await until(lambda: len(peers) * 4_000 == server.statistics().room_used)
            connecting.pid = THIRD
            assert Answer(b"heartbeat") == await ask(path, b"heartbeat")
            waiting = Rude(path)
            waiting.send(b"y" * 400)
            await turns()
            waiting.send(b"y" * 100 + b"\n")
            await turns()
            assert [] == waiting.lines()
            wait(11)
            server.sweep()  # whoever took longer than a line may take is over; its room is free
            await until(lambda: [b"y" * 500] == waiting.lines())
            assert 4 == server.statistics().stalled
            for peer in (*peers, waiting):
                peer.close()

    run(main())


def test_a_line_that_is_answered_keeps_its_room(connecting: Connecting) -> None:
    """What is in memory is counted, received or not."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, handler):
            handler.hold(LONG)
            with Rude(path) as peer:
                peer.send(LONG + b"\n")
                await until(lambda: handler.asked)
                assert 3_000 == server.statistics().room_used
                peer.close()
                await turns()
                assert 3_000 == server.statistics().room_used
                handler.let(LONG)
                await until(lambda: 0 == server.statistics().room_used)

    run(main())


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_line_that_never_ends_is_ended() -> None:
    """A byte now and then does not help: time counts from the first one."""

    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as peer:
                for _ in range(11):
                    peer.send(b"x")
                    await turns(5)
                    server.sweep()
                    wait(1)
                server.sweep()
                await until(peer.over)
                assert [INVALID] == peer.lines()
            assert 1 == server.statistics().stalled

    run(main())


def test_every_line_has_its_own_time() -> None:
    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as peer:
                for count in range(1, 5):
                    peer.send(b"o")
                    await turns(5)
                    wait(9)
                    server.sweep()
                    peer.send(b"ne\n")
                    await until(lambda count=count: count == len(peer.lines()))
                assert [b"one"] * 4 == peer.lines()

    run(main())


def test_who_says_nothing_is_closed_and_who_waits_for_an_answer_is_not() -> None:
    async def main() -> None:
        async with serving() as (server, path, handler):
            handler.hold(b"slow")
            with Rude(path) as silent, Rude(path) as waiting:
                waiting.send(b"slow\n")
                await until(lambda: handler.asked and 2 == server.statistics().connections)
                wait(61)
                server.sweep()
                await until(silent.over)
                await turns()
                assert not waiting.over()
                handler.let(b"slow")
                await until(lambda: [b"slow"] == waiting.lines())
            assert 1 == server.statistics().idle

    run(main())


def test_the_timer_sweeps() -> None:
    """By itself, every `sweep_ms`."""

    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as silent:
                await until(lambda: server.statistics().connections)
                wait(59)
                await turns()
                assert not silent.over()
                wait(2)
                await until(silent.over)

    run(main())


def test_nothing_is_swept_where_nothing_is_served() -> None:
    """A start that fails leaves no timer behind."""

    async def main() -> None:
        async with serving() as (server, path, _):
            sweeps: list[int] = []
            server.sweep = lambda: sweeps.append(1)  # type: ignore[method-assign]
            for each in range(3):
                wait(1.1)
                await until(lambda each=each: len(sweeps) > each)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                listening.setblocking(False)
                listening.bind(f"{path}.second")
                listening.listen()
                await done(server.stop())
                server.accept_from(listening)
                server.leave(listening)
                sweeps.clear()
                for _ in range(4):
                    wait(1.1)
                    await turns()
                assert 1 == len(sweeps)

    run(main())


# -- answers that nobody reads -----------------------------------------------------------------------------------------


def test_who_does_not_read_is_read_no_more_and_then_cut() -> None:
    """Answers stay within what one turn adds; after `write_ms` the connection is over."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            with Rude(path) as peer:
                handler.answers[b"x"] = b"y" * 20_000
                flood = b"x\n" * 500_000
                sent = 0
                for _ in range(50):
                    sent += peer.send(flood[: len(flood) - sent])
                    await turns(5)
                asked = len(handler.asked)
                await turns()
                assert asked == len(handler.asked)
                assert sent < len(flood)
                assert 1 == len(server.owing)
                assert sum(each.owed for each in server.owing) <= 3 * 20_001
                wait(9)
                server.sweep()
                assert 1 == server.statistics().connections
                wait(2)
                server.sweep()
                await until(lambda: not server.statistics().connections)
                assert 1 == server.statistics().cut
                assert not server.owing

    run(main())


def test_nor_is_who_closes_its_half_and_does_not_read() -> None:
    async def main() -> None:
        async with serving(limits=attrs.evolve(SMALL, owed_bytes=2_000_000)) as (server, path, handler):
            handler.answers[b"x"] = b"y" * 1_000_000
            with Rude(path) as peer:
                peer.send(b"x\n")
                peer.half_close()
                await until(lambda: server.owing)
                wait(11)
                server.sweep()
                await until(lambda: not server.statistics().connections)
                assert 1 == server.statistics().cut

    run(main())


def test_who_reads_slowly_is_served_on() -> None:
    async def main() -> None:
        async with serving() as (_, path, handler):
            with Rude(path) as peer:
                handler.answers[b"x"] = b"y" * 30_000
                peer.send(b"x\n" * 40)
                for _ in range(100):
                    await turns(5)
                await until(lambda: 40 == len(peer.lines()))

    run(main())


def test_the_greatest_debtor_is_cut_for_all(connecting: Connecting) -> None:
    """Answers that are ready at once cannot be held back; beyond `owed_bytes` whoever owes most gives way."""

    async def main() -> None:
        limits = attrs.evolve(SMALL, owed_bytes=1_000_000)
        async with serving(limits=limits, **EVERYBODY) as (server, path, handler):
            handler.answers[b"much"] = b"y" * 900_000
            handler.answers[b"more"] = b"y" * 950_000
            with Rude(path) as much, Rude(path) as more:
                much.send(b"much\n")
                await until(lambda: server.owing)
                connecting.pid = OTHER
                more.send(b"more\n")
                await until(lambda: server.statistics().cut)
                await until(lambda: [b"y" * 900_000] == much.lines())
                await until(more.over)
                assert not more.lines()

    run(main())


# -- many --------------------------------------------------------------------------------------------------------------


def test_a_process_has_so_many_connections_and_no_more(connecting: Connecting) -> None:
    """Refused at once, not left waiting; when one goes, there is a place again."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, _):
            peers = [Rude(path) for _ in range(6)]
            await until(lambda: 2 == server.statistics().refused)
            await until(lambda: all(peer.over() for peer in peers[4:]))
            assert not any(peer.over() for peer in peers[:4])
            connecting.pid = OTHER
            assert Answer(b"x") == await ask(path, b"x")
            connecting.pid = ME
            peers[0].close()
            await until(lambda: 3 == server.statistics().connections)
            assert Answer(b"x") == await ask(path, b"x")
            for peer in peers:
                peer.close()

    run(main())


def test_when_all_places_are_taken_who_has_most_gives_one_up(connecting: Connecting) -> None:
    """The one that is silent longest, and never one that waits for an answer while there is another."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, handler):
            handler.hold(b"slow")
            peers = []
            for connecting.pid in (ME, ME, ME, ME, OTHER, OTHER, OTHER, OTHER):
                peers.append(Rude(path))
                await until(lambda: len(peers) == server.statistics().connections)
                wait(0.001)
            peers[0].send(b"slow\n")
            await until(lambda: handler.asked)
            for peer in peers[1:]:
                wait(0.001)
                peer.send(b"quick\n")
                await until(lambda peer=peer: peer.lines())
            connecting.pid = THIRD
            assert Answer(b"heartbeat") == await ask(path, b"heartbeat")
            await until(lambda: 7 == sum(not peer.over() for peer in peers))
            assert not peers[0].over()
            assert 1 == server.statistics().displaced
            for peer in peers:
                peer.close()

    run(main())


def test_who_has_as_many_as_anybody_displaces_nobody(connecting: Connecting) -> None:
    async def main() -> None:
        limits = attrs.evolve(SMALL, connections=4, connections_of_one=4)
        async with serving(limits=limits, **EVERYBODY) as (server, path, handler):
            peers = []
            for connecting.pid in (ME, ME, OTHER, OTHER):
                peers.append(Rude(path))
                await until(lambda: len(peers) == server.statistics().connections)
            with Rude(path) as another:
                await until(another.over)
            assert (0, 1) == (server.statistics().displaced, server.statistics().refused)
            for each in b"0123":  # nor does time help against those whose requests are under way
                handler.hold(b"%c" % each)
                peers[each - ord("0")].send(b"%c\n" % each)
            await until(lambda: 4 == len(handler.asked))
            wait(1)
            with Rude(path) as another:
                await until(another.over)
            assert (0, 2) == (server.statistics().displaced, server.statistics().refused)
            for each in b"0123":
                handler.let(b"%c" % each)
            await until(lambda: all(peer.lines() for peer in peers))
            connecting.pid = THIRD  # but who asks nothing for a second gives way, however few it has
            wait(1)
            assert Answer(b"x") == await ask(path, b"x")
            assert (1, 2) == (server.statistics().displaced, server.statistics().refused)
            for peer in peers:
                peer.close()

    run(main())


def test_a_process_has_so_many_requests_and_no_more(connecting: Connecting) -> None:
    """Over all of its connections, also those it has closed; others are not kept waiting."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (_server, path, handler):
            for number in range(8):
                handler.hold(b"%d" % number)
            peers = [Rude(path) for _ in range(4)]
            for number, peer in enumerate(peers):
                peer.send(b"%d\n%d\n" % (2 * number, 2 * number + 1))
            await until(lambda: 4 == len(handler.asked))
            await turns()
            assert 4 == len(handler.asked)
            connecting.pid = OTHER
            assert Answer(b"x") == await ask(path, b"x")
            for number in range(8):
                handler.let(b"%d" % number)
            await until(lambda: all(2 == len(peer.lines()) for peer in peers))
            for peer in peers:
                peer.close()

    run(main())


def test_a_thousand_connections_at_once() -> None:
    """The ordinary bounds, one process: it has its 128, every other is refused at once, nothing is left behind."""
    limits = Limits()
    many = min(1_500, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 300) // 100 * 100)

    async def main() -> None:
        async with serving(limits=limits) as (server, path, _):
            peers = []
            for count in range(1, many + 1):
                peers.append(Rude(path))
                if not count % 100:  # a backlog holds that many everywhere
                    await until(lambda count=count: count == server.statistics().accepted + server.statistics().refused)
            refused = many - limits.connections_of_one
            assert (limits.connections_of_one, refused) == (server.statistics().accepted, server.statistics().refused)
            await until(lambda: refused == sum(peer.over() for peer in peers))
            for peer in peers:
                peer.close()
            await until(lambda: not server.statistics().connections)
            assert Answer(b"x") == await ask(path, b"x")

    run(main())


def test_a_flood_of_nothing_leaves_everybody_a_turn(connecting: Connecting) -> None:
    """A hundred thousand empty lines, answered eight at a time: somebody else's heartbeat is not behind them."""

    async def main() -> None:
        async with serving(limits=Limits(), **EVERYBODY) as (server, path, _):
            with Rude(path) as peer:
                peer.send(b"\n" * 100_000)
                await until(lambda: server.statistics().invalid)
                connecting.pid = OTHER
                before = server.statistics().invalid
                assert Answer(b"x") == await ask(path, b"x")
                assert server.statistics().invalid - before < 1_000
                await until(lambda: server.owing)

    run(main())


def test_processes_take_turns_on_the_loop(connecting: Connecting) -> None:
    """However many connections and lines one has: somebody else's line is among the first."""

    async def main() -> None:
        async with serving(limits=Limits(), **EVERYBODY) as (server, path, _):
            order: list[bytes] = []
            server.parse = order.append
            peers = [Rude(path) for _ in range(20)]
            await until(lambda: 20 == server.statistics().connections)
            connecting.pid = OTHER
            peers.append(Rude(path))
            await until(lambda: 21 == server.statistics().connections)
            for peer in peers[:-1]:
                peer.send(b"many\n" * 50)
            peers[-1].send(b"one\n")
            await until(lambda: 1_001 == len(order))
            assert order.index(b"one") <= 2 * Limits().lines_of_turn
            for peer in peers:
                peer.close()

    run(main())


def test_processes_take_turns_at_being_parsed(connecting: Connecting) -> None:
    """Long lines are parsed in a thread, of each process one at a time."""

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, _):
            order: list[bytes] = []
            first, go = threading.Event(), threading.Event()

            def parse(line: bytes) -> bytes:
                order.append(line[:4])
                first.set()
                go.wait(PATIENCE_S)
                return line

            server.parse = parse
            peers = []
            for connecting.pid, line in ((ME, b'"me1'), (ME, b'"me2'), (ME, b'"me3'), (OTHER, b'"oth')):
                peers.append(Rude(path))
                peers[-1].send(line + b"x" * 500 + b'"\n')
                await until(lambda: first.is_set() and len(peers) == server.statistics().requests)
            go.set()
            await until(lambda: all(1 == len(peer.lines()) for peer in peers))
            assert [b'"me1', b'"oth', b'"me2', b'"me3'] == order
            for peer in peers:
                peer.close()

    run(main())


def test_who_keeps_the_interpreter_busy_rests_longer_than_it_took(
    connecting: Connecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of the time at most: others' heartbeats go through between."""
    ticks = itertools.count()
    monkeypatch.setattr("tenure.adapters.bus.serving.reading.thread_time", lambda: next(ticks) * 0.5)

    async def main() -> None:
        async with serving(**EVERYBODY) as (server, path, _):
            with Rude(path) as one, Rude(path) as two:
                one.send(LONG + b"\n")
                await until(lambda: [LONG] == one.lines())
                two.send(LONG + b"\n")
                await until(lambda: 1 == server.statistics().requests)
                connecting.pid = OTHER  # whose line would be behind the other one in the thread
                assert Answer(LONG) == await ask(path, LONG, timeout_ms=60_000)
                assert [] == two.lines()
                wait(1.4)
                connecting.pid = THIRD
                assert Answer(LONG) == await ask(path, LONG, timeout_ms=60_000)
                assert [] == two.lines()
                wait(0.2)
                await until(lambda: [LONG] == two.lines())

    run(main())


def test_connections_that_are_reset_leave_nothing(connecting: Connecting) -> None:
    """Closed with unread answers, with half lines, in the middle of a request."""

    async def main() -> None:
        async with serving(limits=Limits(), **EVERYBODY) as (server, path, handler):
            handler.hold(b"slow")
            for data in (b"", b"half", b"quick\n", b"slow\n", b"x" * 200_000, b"no\n" * 50):
                with Rude(path) as peer:
                    peer.send(data)
                    await turns(5)
            await until(lambda: 1 == server.statistics().requests)
            handler.let(b"slow")
            await until(lambda: not server.statistics().connections)
            assert (0, 0) == (server.statistics().requests, server.statistics().room_used)
            assert 0 == server.statistics().processes
            assert Answer(b"x") == await ask(path, b"x")

    run(main())


# -- no descriptor is left ---------------------------------------------------------------------------------------------


class Exhausted(socket.socket):
    """A listening socket of a process without descriptors."""

    failures = 1

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_without_descriptors_whoever_waits_is_refused() -> None:
    """The spare descriptor makes a place for a moment. (That it has to be given up for that, real processes show.)"""

    async def main() -> None:
        async with serving() as (server, path, _):
            with exhausted(f"{path}.exhausted", 1) as listening:
                server.accept_from(listening)
                with Rude(listening.getsockname()) as peer:
                    await until(peer.over)
                server.leave(listening)
            assert (1, 0) == (server.statistics().exhausted, server.statistics().accepted)

    run(main())


def test_without_even_a_spare_descriptor_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that cannot be accepted from stays readable, and would take every turn of the loop."""
    monkeypatch.setattr("tenure.adapters.bus.serving.door._spare", lambda: -1)

    async def main() -> None:
        async with serving() as (server, path, _):
            with exhausted(f"{path}.exhausted", 2) as listening:
                server.accept_from(listening)
                with Rude(listening.getsockname()):
                    await until(lambda: not listening.failures)
                    await turns()
                    assert 0 == server.statistics().accepted
                    wait(0.2)
                    await until(lambda: server.statistics().accepted)
                server.leave(listening)
            with exhausted(f"{path}.left", 2) as listening:
                server.accept_from(listening)
                with Rude(listening.getsockname()):
                    await until(lambda: not listening.failures)
                    server.leave(listening)  # while it rests
                    wait(0.2)
                    await turns()
                    assert 1 == server.statistics().accepted

    run(main())


@contextlib.contextmanager
def exhausted(path: str, failures: int) -> Iterator[Exhausted]:
    """A listening socket from which so many accepts fail."""
    with Exhausted(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.setblocking(False)
        listening.bind(path)
        listening.listen(16)
        listening.failures = failures
        yield listening
