"""Heartbeats are answered whatever else hangs: requests, connections, the places of everybody (bus.md a; DESIGN 10)."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import attrs
import pytest

from tenure.adapters.bus.client import Answer, NoResponse, Unreachable
from tests.adapters.bus.test_server_hostile import EVERYBODY, ME, OTHER, THIRD, Connecting, connecting
from tests.adapters.bus.transport_room import SMALL, Handler, Rude, ask, run, serving, turns, until, wait

__all__ = ["connecting"]


class Hangs(Handler):
    """Answers heartbeats, and hangs in everything else."""

    async def __call__(self, line: bytes, peer: object) -> bytes:
        if not line.startswith(b"beat"):
            self.hold(line)
        return await super().__call__(line, peer)  # type: ignore[arg-type]


HANGS = {**EVERYBODY, "urgent": lambda line: line.startswith(b"beat")}


async def beats(path: str) -> None:
    assert Answer(b"beat") == await ask(path, b"beat")


def test_a_process_whose_requests_all_hang(connecting: Connecting) -> None:
    """As many as it may have, each on a connection of its own, as a client makes them: its heartbeats are answered."""

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (_, path, handler):
            with contextlib.ExitStack() as stack:
                for number in range(SMALL.requests_of_one):
                    stack.enter_context(Rude(path)).send(b"%d\n" % number)
                await until(lambda: SMALL.requests_of_one == len(handler.asked))
                for _ in range(20):
                    await beats(path)

    run(main())


def test_one_connection_whose_requests_all_hang(connecting: Connecting) -> None:
    """Its next heartbeat is answered, and what it asks besides waits; heartbeats behind that wait with it."""

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (_, path, handler):
            with Rude(path) as peer:
                peer.send(b"1\n2\nbeat\nbeat2\n3\nbeat3\n")
                await until(lambda: [b"beat", b"beat2"] == peer.lines())
                await turns()
                assert [b"1", b"2", b"beat", b"beat2"] == handler.asked
                handler.let(b"1")
                await until(lambda: [b"beat", b"beat2", b"1", b"beat3"] == peer.lines())
                for line in (b"2", b"3"):
                    handler.let(line)
                await until(lambda: 6 == len(peer.lines()))

    run(main())


@pytest.mark.parametrize("half", [b"", b"half a l", b"beat"])
def test_all_places_are_taken(connecting: Connecting, half: bytes) -> None:
    """By processes that each have one, or all they may have; by requests that hang, silence, or half a line."""

    async def main() -> None:
        for each in (1, SMALL.connections_of_one):
            async with serving(Hangs(), **HANGS) as (server, path, handler):
                with contextlib.ExitStack() as stack:
                    peers = []
                    for number in range(SMALL.connections):
                        connecting.pid = 1_000 + number // each
                        peers.append(stack.enter_context(Rude(path)))
                        peers[-1].send(half or b"%d\n" % number)
                        await until(lambda: number + 1 == server.statistics().connections)  # noqa: B023
                    await until(lambda: half or SMALL.connections == len(handler.asked))
                    for connecting.pid in (ME, OTHER, 1_000):
                        for _ in range(20):
                            await beats(path)
                    connecting.pid = 1_001  # which gave none up
                    if not half and each > 1:  # what is no heartbeat finds no place, as before
                        found = await ask(path, b"more")
                        assert isinstance(found, NoResponse | Unreachable), found
                        assert b"more" not in handler.asked

    run(main())


def test_a_crowd_before_the_spare_places(connecting: Connecting) -> None:
    """Whoever is there for longest and asks nothing gives way to the next; and nobody stays there for long."""

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (server, path, handler):
            with contextlib.ExitStack() as stack:
                for number in range(SMALL.connections):
                    connecting.pid = 1_000 + number
                    stack.enter_context(Rude(path)).send(b"%d\n" % number)
                    await until(lambda: number + 1 == len(handler.asked))  # noqa: B023
                crowd = []
                for connecting.pid in (ME, ME, ME, OTHER, OTHER, THIRD, THIRD, 4_711, 4_712):
                    crowd.append(stack.enter_context(Rude(path)))
                    crowd[-1].send(b"bea")
                    await turns(5)
                    kept = server.statistics().connections - SMALL.connections
                    assert kept <= SMALL.spares
                    await beats(path)
                assert sum(not each.over() for each in crowd) <= SMALL.spares
                wait(1.1)
                server.sweep()
                await until(lambda: all(each.over() for each in crowd))
                await beats(path)

    run(main())


def test_requests_that_hang_for_long_are_counted_no_more(connecting: Connecting) -> None:
    """Else a process is shut out for good by handlers that never return. Who still waits for one is not cut off."""

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (server, path, handler):
            with Rude(path) as waits:
                waits.send(b"first\n")
                for number in range(SMALL.requests_of_one - 1):
                    with Rude(path) as gone:
                        gone.send(b"%d\n" % number)
                        await until(lambda number=number: number + 2 == len(handler.asked))
                with Rude(path) as peer:
                    peer.send(b"next\n")
                    await turns()
                    assert b"next" not in handler.asked
                    wait(SMALL.hung_ms / 1000 + 1)
                    peer.send(b"more\n")
                    server.sweep()
                    await until(lambda: b"next" in handler.asked and b"more" in handler.asked)
                    assert SMALL.requests_of_one == server.statistics().hung
                    for line in (b"next", b"more", b"first"):
                        handler.let(line)
                    await until(lambda: 2 == len(peer.lines()))
                    await until(lambda: [b"first"] == waits.lines())
                    for number in range(SMALL.requests_of_one - 1):
                        handler.let(b"%d" % number)
                    await until(lambda: not server.statistics().requests)
                    peer.send(b"again\n")
                    await until(lambda: b"again" in handler.asked)
                    handler.let(b"again")
            await until(lambda: not server.statistics().processes)

    run(main())


def test_who_has_gone_keeps_no_place(connecting: Connecting) -> None:
    """Its request hangs all the same; who has closed its half only waits for the answer, and has it."""

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (server, path, handler):
            with Rude(path) as waits, Rude(path) as goes, Rude(path) as goes_later:
                for peer, line in ((waits, b"w"), (goes, b"g"), (goes_later, b"l")):
                    peer.send(line + b"\n")
                await until(lambda: 3 == len(handler.asked))
                waits.half_close()
                goes_later.half_close()
                goes.close()
                await until(lambda: 2 == server.statistics().connections)
                await turns()
                goes_later.close()
                server.sweep()
                await until(lambda: 1 == server.statistics().connections)
                assert 3 == server.statistics().requests
                for line in (b"w", b"g", b"l"):
                    handler.let(line)
                await until(lambda: [b"w"] == waits.lines())
                assert 2 == server.statistics().unread

    run(main())


def test_who_has_gone_where_the_kernel_does_not_say_so(connecting: Connecting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it keeps its place until what it waits for counts as hanging."""
    monkeypatch.setattr("tenure.adapters.bus.serving.connection.sys", SimpleNamespace(platform="darwin"))

    async def main() -> None:
        async with serving(Hangs(), **HANGS) as (server, path, handler):
            with Rude(path) as goes:
                goes.send(b"g\n")
                await until(lambda: handler.asked)
            await turns()
            server.sweep()
            assert 1 == server.statistics().connections
            wait(SMALL.hung_ms / 1000 + 1)
            server.sweep()
            await until(lambda: not server.statistics().connections)

    run(main())


def test_nobody_has_a_spare_place_where_nothing_is_urgent(connecting: Connecting) -> None:
    async def main() -> None:
        async with serving(limits=attrs.evolve(SMALL, connections_of_one=1), **EVERYBODY) as (server, path, _):
            with Rude(path) as peer, Rude(path) as refused:
                await until(refused.over)
                assert not peer.over()
                assert (1, 1) == (server.statistics().connections, server.statistics().refused)

    run(main())
