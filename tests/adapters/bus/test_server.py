"""The serving side: lines in, answers out, in the order in which they are ready (bus.md a, FRAMING)."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource

import attrs
import pytest

from tenure.adapters.bus.client import Answer, NoResponse, Unreachable
from tenure.adapters.bus.endpoints.endpoint import Endpoint
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.server import INVALID, BusServer
from tenure.adapters.ports import Killed
from tests.adapters.bus.transport_room import (
    SMALL,
    Handler,
    Rude,
    ask,
    done,
    parsed,
    run,
    serving,
    turns,
    until,
)


def test_a_line_is_answered_with_a_line() -> None:
    """And the handler is told who asks."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            assert Answer(b"hello") == await ask(path, b"hello")
            assert [(os.getpid(), os.geteuid())] == [(peer.pid, peer.uid) for peer in handler.peers]
            await until(lambda: not server.statistics().connections)

    run(main())


def test_an_answer_may_bring_its_newline() -> None:
    async def main() -> None:
        async with serving() as (_, path, handler):
            handler.answers[b"x"] = b"y\n"
            assert Answer(b"y") == await ask(path, b"x")

    run(main())


def test_answers_come_as_they_are_ready() -> None:
    """Lines of one connection are handled together: what is quick does not wait for what is slow."""

    async def main() -> None:
        async with serving() as (_, path, handler):
            handler.hold(b"slow")
            with Rude(path) as peer:
                peer.send(b"slow\nquick\n")
                await until(lambda: [b"quick"] == peer.lines())
                handler.let(b"slow")
                await until(lambda: [b"quick", b"slow"] == peer.lines())

    run(main())


def test_a_line_may_come_in_pieces_and_several_at_once() -> None:
    async def main() -> None:
        async with serving() as (_, path, _handler):
            with Rude(path) as peer:
                for piece in (b"o", b"ne\ntw", b"o\nthr", b"ee", b"\n"):
                    peer.send(piece)
                    await turns(5)
                await until(lambda: [b"one", b"two", b"three"] == peer.lines())

    run(main())


@pytest.mark.parametrize("line", [b"no envelope", b"", b"\xff\xfe", b"raised \xc0\xaf", b"no\r"])
def test_what_is_no_envelope_is_answered_so_and_the_connection_stays(line: bytes) -> None:
    """bus.md annex A: whatever the parser says of it, or raises."""

    async def main() -> None:
        async with serving() as (server, path, _):
            with Rude(path) as peer:
                peer.send(line + b"\nyes\n")
                await until(lambda: [INVALID, b"yes"] == peer.lines())
                peer.send(b"again\n")
                await until(lambda: [INVALID, b"yes", b"again"] == peer.lines())
                assert 1 == server.statistics().invalid

    run(main())


def test_the_answer_to_what_is_no_envelope_is_that_of_annex_a() -> None:
    found = json.loads(INVALID)
    assert ("bus.ack", "invalid", False) == (found["kind"], found["requestId"], found["ok"])


def test_a_parser_that_fails_takes_nobody_down() -> None:
    def parse(line: bytes) -> bytes:
        raise MemoryError

    async def main() -> None:
        async with serving() as (server, path, _):
            server.parse = parse
            with Rude(path) as peer:
                peer.send(b"x\n" + b"y" * 200 + b"\n" + b"z" * 1_500 + b"\n")
                await until(lambda: [INVALID] * 3 == peer.lines())
            await until(lambda: 0 == server.statistics().room_used)

    run(main())


def test_bytes_without_a_newline_are_nothing() -> None:
    """Also at the end of the stream: half a line may be half of something else."""

    async def main() -> None:
        async with serving() as (_, path, handler):
            with Rude(path) as peer:
                peer.send(b"one\nhalf a line")
                peer.half_close()
                await until(peer.over)
                assert b"one\n" == peer.read()
            assert [b"one"] == handler.asked

    run(main())


def test_who_asks_may_close_its_half() -> None:
    """And reads every answer, however late, before the other half closes."""

    async def main() -> None:
        async with serving() as (_, path, handler):
            handler.hold(b"slow")
            with Rude(path) as peer:
                peer.send(b"slow\nquick\nthird\n")
                peer.half_close()
                await until(lambda: [b"quick", b"third"] == peer.lines())
                await turns()
                assert not peer.over()
                handler.let(b"slow")
                await until(peer.over)
                assert [b"quick", b"third", b"slow"] == peer.lines()

    run(main())


def test_half_a_connection_has_all_of_its_lines_answered() -> None:
    """More than one turn's, none of which is a request; and an answer longer than the kernel takes at once."""

    async def main() -> None:
        async with serving(limits=attrs.evolve(SMALL, owed_bytes=2_000_000)) as (_, path, handler):
            with Rude(path) as peer:
                peer.send(b"no\n" * 50)
                peer.half_close()
                await until(peer.over)
                assert [INVALID] * 50 == peer.lines()
            handler.answers[b"x"] = b"y" * 1_000_000
            with Rude(path) as peer:
                peer.send(b"x\n")
                peer.half_close()
                await until(lambda: handler.asked)
                await turns()
                await until(peer.over)
                assert [b"y" * 1_000_000] == peer.lines()

    run(main())


def test_a_connection_has_so_many_requests_and_no_more() -> None:
    """What follows waits in the kernel."""

    async def main() -> None:
        async with serving() as (_, path, handler):
            for line in (b"1", b"2", b"3"):
                handler.hold(line)
            with Rude(path) as peer:
                peer.send(b"1\n2\n3\n")
                await until(lambda: 2 == len(handler.asked))
                await turns()
                assert 2 == len(handler.asked)
                handler.let(b"2")
                await until(lambda: 3 == len(handler.asked))
                handler.let(b"1")
                handler.let(b"3")
                await until(lambda: 3 == len(peer.lines()))

    run(main())


def test_a_request_goes_on_when_its_asker_leaves() -> None:
    """It may ask again for the same, and is given the same by the ledger."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            handler.hold(b"slow")
            with Rude(path) as peer:
                peer.send(b"slow\n")
                await until(lambda: handler.asked)
            await turns()
            assert 1 == server.statistics().requests
            handler.let(b"slow")
            await until(lambda: not server.statistics().requests)
            await until(lambda: not server.statistics().connections)
            assert not handler.cancelled

    run(main())


def test_a_handler_that_raises_is_answered_for() -> None:
    async def main() -> None:
        async with serving() as (server, path, _):
            assert Answer(b"failed raise") == await ask(path, b"raise")
            assert 1 == server.statistics().failures
            server.failed = None
            assert Answer(INVALID) == await ask(path, b"raise")

    run(main())


def test_what_makes_the_answer_to_a_failure_may_fail() -> None:
    """The asker waits for no answer that never comes, and the loop has nothing to report."""

    def failed(line: bytes, error: BaseException) -> bytes:
        raise ValueError("the next fault")

    async def main() -> None:
        async with serving() as (server, path, _):
            server.failed = failed
            assert Answer(INVALID) == await ask(path, b"raise")
            assert 1 == server.statistics().failures

    run(main())


def test_a_simulated_crash_of_a_handler() -> None:
    """`Killed` is swallowed by nobody; it is this request's end, and the loop has nothing to report."""

    async def handle(line: bytes, peer: object) -> bytes:
        raise Killed

    async def main() -> None:
        async with serving() as (server, path, _):
            server.handle = handle
            with Rude(path) as peer:
                peer.send(b"x\n")
                await until(lambda: server.statistics().lines == 1)
                await until(lambda: not server.statistics().requests)
                assert [] == peer.lines()

    run(main())


def test_a_handler_that_is_cancelled_by_others_is_answered_for() -> None:
    async def handle(line: bytes, peer: object) -> bytes:
        raise asyncio.CancelledError

    async def main() -> None:
        async with serving() as (server, path, _):
            server.handle = handle
            assert Answer(b"failed x") == await ask(path, b"x")

    run(main())


@pytest.mark.parametrize("size", [99, 100, 101, 300, 301, 999, 1_000, 1_001, 3_999, 4_000])
def test_lines_of_every_length_up_to_the_bound(size: int) -> None:
    """Tiny ones, small ones, those that need room and are parsed in a thread."""

    async def main() -> None:
        async with serving() as (server, path, _):
            line = b'"' + b"x" * (size - 2) + b'"'
            assert Answer(line) == await ask(path, line)
            await until(lambda: 0 == server.statistics().room_used)

    run(main())


def test_a_long_line_may_be_no_envelope() -> None:
    async def main() -> None:
        async with serving() as (server, path, _):
            assert Answer(INVALID) == await ask(path, b"no" + b"x" * 3_000)
            assert Answer(INVALID) == await ask(path, b"\xff" * 3_000)
            assert 2 == server.statistics().invalid
            await until(lambda: 0 == server.statistics().room_used)

    run(main())


def test_a_line_of_nothing_but_structure_is_not_parsed() -> None:
    """It would hold the interpreter for a second and take twenty times its memory."""

    async def main() -> None:
        async with serving() as (_, path, handler):
            assert Answer(INVALID) == await ask(path, b"[" + b"{}," * 900 + b"1]")
            text = b'{"text":"' + b"[{},]" * 700 + b'"}'
            assert Answer(text) == await ask(path, text)
            assert [text] == handler.asked

    run(main())


def test_a_stop_ends_everything() -> None:
    """Requests are cancelled, connections closed, and what is asked afterwards finds nobody."""

    async def main() -> None:
        async with serving() as (server, path, handler):
            handler.hold(b"slow")
            handler.hold(b"slow too")
            with Rude(path) as asking, Rude(path) as idle, Rude(path) as halfway:
                asking.send(b"slow\nslow too\n")
                halfway.send(b"half")
                await until(lambda: 2 == len(handler.asked) and 3 == server.statistics().connections)
                await done(server.stop())
                assert [b"slow", b"slow too"] == sorted(handler.cancelled)
                await until(lambda: all(peer.over() for peer in (asking, idle, halfway)))
                assert b"" == asking.read()
            assert 0 == server.statistics().failures
            assert (0, 0) == (server.statistics().connections, server.statistics().requests)

    run(main())


def test_nothing_stays_open() -> None:
    """No descriptor, after everything that opens one."""

    async def main() -> None:
        async with serving() as (_, path, _):
            await ask(path, b"x" * 2_000)
            with Rude(path):
                await turns()

    run(main())
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        run(main())
    gc.collect()
    assert before == len(os.listdir("/dev/fd"))


def test_a_stop_does_not_wait_for_who_does_not_heed_it() -> None:
    """At most `stop_ms`; here the handler ends when the test lets it."""
    stubborn = asyncio.Event()

    async def handle(line: bytes, peer: object) -> bytes:
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue
        return line

    async def main() -> None:
        async with serving(limits=attrs.evolve(SMALL, stop_ms=0)) as (server, path, _):
            server.handle = handle
            with Rude(path) as peer:
                peer.send(b"x\n")
                await until(lambda: server.statistics().requests)
                await turns(5)
                await server.stop()
                assert 1 == server.statistics().requests
                stubborn.set()
                await until(lambda: not server.statistics().requests)
                assert b"" == peer.read()

    run(main())


def test_a_stop_in_the_middle_of_accepting() -> None:
    """Connections that are accepted and not made yet are closed as well."""

    async def main() -> None:
        async with serving() as (server, path, _):
            peers = [Rude(path) for _ in range(4)]
            await until(lambda: server.statistics().accepted)
            await done(server.stop())
            await until(lambda: all(peer.over() for peer in peers[:1]))
            for peer in peers:
                peer.close()
        gc.collect()

    run(main())


def test_a_stop_does_not_wait_for_who_does_not_read() -> None:
    async def main() -> None:
        async with serving(limits=attrs.evolve(SMALL, owed_bytes=2_000_000)) as (server, path, handler):
            handler.answers[b"x"] = b"y" * 1_000_000
            with Rude(path) as peer:
                peer.send(b"x\n")
                await until(lambda: server.owing)
                await done(server.stop())
                await until(peer.over)
                assert len(peer.read()) < 1_000_000

    run(main())


def test_a_cancelled_stop_has_stopped() -> None:
    async def main() -> None:
        async with serving() as (server, path, handler):
            handler.hold(b"slow")
            with Rude(path) as peer:
                peer.send(b"slow\n")
                await until(lambda: handler.asked)
                stopping = asyncio.ensure_future(server.stop())
                await asyncio.sleep(0)
                stopping.cancel()
                await until(stopping.done)
                await until(lambda: not server.statistics().requests)
                await until(peer.over)

    run(main())


def test_a_stopped_server_can_serve_again() -> None:
    """A leader that loses and wins again."""

    async def main() -> None:
        handler = Handler()
        async with serving(handler) as (server, path, _):
            await done(server.stop())
            again = Endpoint(f"{path}.again", server)
            await done(again.start())
            assert Answer(b"x" * 2_000) == await ask(again.path, b"x" * 2_000)
            await done(again.stop())
            assert isinstance(await ask(again.path, b"x"), Unreachable)

    run(main())


def test_bounds_that_contradict_each_other_are_refused() -> None:
    """A line that never fits into its share of the room would never be received."""
    with pytest.raises(ValueError, match="room_bytes"):
        Limits(room_bytes=2**20)
    with pytest.raises(ValueError, match="tiny_bytes"):
        Limits(tiny_bytes=2**20)


def test_connections_leave_descriptors_for_the_lease() -> None:
    """Whoever holds two hundred of them, at a leader that may have 64, would end its leading."""
    few, usual = Limits().within(64), Limits().within(1024)

    assert (few.connections, few.connections_of_one) == (32, 16)
    assert usual == Limits()
    assert (Limits().within(0).connections, Limits().within(0).connections_of_one) == (2, 1)
    server: BusServer[bytes] = BusServer(lambda line: line, _never)
    assert server.limits == Limits().within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


async def _never(line: bytes, peer: Peer) -> bytes:
    raise AssertionError("nobody asks")


def test_others_users_are_refused() -> None:
    """Closed at once, unheard."""

    async def main() -> None:
        async with serving(may_connect=lambda peer: False) as (server, path, handler):
            found = await ask(path, b"x")
            assert isinstance(found, NoResponse | Unreachable)
            assert (1, 0) == (server.statistics().foreign, server.statistics().accepted)
            assert not handler.asked

    run(main())


def test_statistics_before_anything_was_served() -> None:
    server = BusServer(parsed, Handler())
    assert 0 == server.statistics().connections
