"""The asking side: one line, the first line of the answer, and every way to get none (bus.md a, FRAMING)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from tenure.adapters.bus.client import REGISTRATION, Answer, Client, NoResponse, Retry, Unreachable
from tests.adapters.bus.transport_room import ask, done, run, short_place, turns, until, wait


class Listener:
    """A listening socket that is served by hand."""

    def __init__(self, path: str, backlog: int = 16) -> None:
        self.path = path
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.end.setblocking(False)
        self.end.bind(path)
        self.end.listen(backlog)

    async def accepted(self) -> socket.socket:
        found: list[socket.socket] = []

        def one() -> bool:
            with contextlib.suppress(BlockingIOError):
                found.append(self.end.accept()[0])
            return bool(found)

        await until(one)
        found[0].setblocking(False)
        return found[0]


@contextlib.asynccontextmanager
async def listening(backlog: int = 16) -> AsyncIterator[Listener]:
    with short_place() as place:
        listener = Listener(f"{place}/s", backlog)
        try:
            yield listener
        finally:
            listener.end.close()


async def asked_of(serve: Callable[[socket.socket], object], line: bytes = b"hello", **more: int) -> object:
    """What a client makes of a server that does `serve` with its first connection and closes it."""
    async with listening() as listener:
        request = asyncio.ensure_future(Client(**more).request(listener.path, line, timeout_ms=1_000))
        with await listener.accepted() as end:
            await until(lambda: readable(end))
            serve(end)
        return await done(request)


def readable(end: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        return bool(end.recv(1, socket.MSG_PEEK))
    return False


def test_a_request_is_one_line_and_its_answer_the_first_line() -> None:
    """What comes after the first line is nobody's."""
    seen: list[bytes] = []

    def serve(end: socket.socket) -> None:
        seen.append(end.recv(100))
        end.send(b"first\nsecond\n")

    assert Answer(b"first") == run(asked_of(serve))
    assert [b"hello\n"] == seen


def test_an_answer_may_come_in_pieces() -> None:
    async def main() -> object:
        async with listening() as listener:
            request = asyncio.ensure_future(Client().request(listener.path, b"x", timeout_ms=1_000))
            with await listener.accepted() as end:
                for piece in (b"an", b"sw", b"er\n"):
                    end.send(piece)
                    await turns(5)
                return await done(request)

    assert Answer(b"answer") == run(main())


def test_an_empty_line_is_an_answer() -> None:
    assert Answer(b"") == run(asked_of(lambda end: end.recv(100) and end.send(b"\n")))


@pytest.mark.parametrize("said", [b"", b"half a line"])
def test_the_end_without_a_line_is_no_response(said: bytes) -> None:
    """A value, not an error: the other side may have done what it was asked."""
    assert NoResponse() == run(asked_of(lambda end: (end.recv(100), end.send(said))))


def test_a_close_before_the_request_was_read_is_a_reset() -> None:
    assert Unreachable("ECONNRESET", retryable=True, sent=True) == run(asked_of(lambda end: None))


def test_a_close_while_sending_is_a_broken_pipe() -> None:
    found = run(asked_of(lambda end: None, b"x" * 2**20))
    assert isinstance(found, Unreachable)
    assert found.reason in ("EPIPE", "ECONNRESET")
    assert (True, True) == (found.retryable, found.sent)


def test_a_close_in_the_middle_of_a_request_is_no_missing_answer() -> None:
    """All that was sent was read, and then nobody read on: a broken pipe, and the same bytes may be sent again."""

    def serve(end: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while end.recv(2**20):
                pass

    assert Unreachable("EPIPE", retryable=True, sent=True) == run(asked_of(serve, b"x" * 2**20))


def test_a_refusal_is_read_although_the_line_was_not() -> None:
    """Who refuses an over-long line may say so and close before all of it was sent."""
    assert Answer(b"no") == run(asked_of(lambda end: end.send(b"no\n"), b"x" * 2**20))


def test_nobody_there() -> None:
    """ENOENT without a path, ECONNREFUSED where a socket is left of somebody, or a file; all may be tried again."""

    async def main() -> None:
        with short_place() as place:
            path = f"{place}/s"
            assert Unreachable("ENOENT", retryable=True, sent=False) == await ask(path, b"x")
            Listener(path).end.close()
            assert Unreachable("ECONNREFUSED", retryable=True, sent=False) == await ask(path, b"x")
            os.symlink("nowhere", f"{place}/link")
            assert Unreachable("ENOENT", retryable=True, sent=False) == await ask(f"{place}/link", b"x")
            os.symlink("loop", f"{place}/loop")
            assert Unreachable("ELOOP", retryable=False, sent=False) == await ask(f"{place}/loop", b"x")

    run(main())


@pytest.mark.parametrize("path", ["", "relative", "/nul\0", "\0abstract", "/half\ud800"])
def test_what_is_no_path_is_unreachable(path: str) -> None:
    """A path may come from another process, in its registration."""
    assert Unreachable("EINVAL", retryable=False, sent=False) == run(ask(path, b"x"))


def test_a_long_path_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as where its owner listens: nobody there is ENOENT, not a name that is too long."""
    assert Unreachable("ENOENT", retryable=True, sent=False) == run(ask("/tmp/" + "x" * 200, b"x"))
    monkeypatch.setenv("TMPDIR", "/tmp/" + "y" * 90)
    assert Unreachable("ENAMETOOLONG", retryable=False, sent=False) == run(ask("/tmp/" + "x" * 200, b"x"))


@pytest.mark.parametrize(("line", "why"), [(b"two\nlines", "newline"), (b"\n\n", "newline"), (b"x" * 11, "at most")])
def test_what_is_no_line_is_refused_before_anything_is_sent(line: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run(Client(line_bytes=10).request("/nowhere", line, timeout_ms=1))


def test_a_longer_answer_than_borne_is_not_received() -> None:
    found = run(asked_of(lambda end: end.send(b"x" * 11), line_bytes=10))
    assert Unreachable("answer-too-long", retryable=False, sent=True) == found
    found = run(asked_of(lambda end: end.send(b"x" * 11 + b"\n"), line_bytes=10))
    assert Unreachable("answer-too-long", retryable=False, sent=True) == found
    assert Answer(b"x" * 10) == run(asked_of(lambda end: (end.recv(99), end.send(b"x" * 10 + b"\n")), line_bytes=10))


def test_silence_is_a_timeout() -> None:
    """Nothing is known of the request then."""

    async def main() -> None:
        async with listening() as listener:
            request = asyncio.ensure_future(Client().request(listener.path, b"x", timeout_ms=1_000))
            with await listener.accepted():
                wait(0.9)
                await turns()
                assert not request.done()
                wait(0.2)
                assert Unreachable("timeout", retryable=True, sent=True) == await done(request)

    run(main())


def test_who_sends_a_byte_now_and_then_has_no_more_time_than_others() -> None:
    async def main() -> None:
        async with listening() as listener:
            request = asyncio.ensure_future(Client().request(listener.path, b"x", timeout_ms=1_000))
            with await listener.accepted() as end:
                for _ in range(11):
                    end.send(b".")
                    await turns(5)
                    wait(0.1)
                assert Unreachable("timeout", retryable=True, sent=True) == await done(request)

    run(main())


def test_a_full_backlog_is_waited_for() -> None:
    """Whoever listens lives: that its backlog is full says that it is busy, not that it is gone."""

    async def main() -> None:
        async with listening(backlog=0) as listener:
            waiting = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(8)]
            with contextlib.ExitStack() as stack:
                for each in waiting:
                    stack.enter_context(each)
                    each.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        each.connect(listener.path)
                pauses: list[float] = []

                async def pause(seconds: float) -> None:
                    pauses.append(seconds)
                    await asyncio.sleep(0)

                client = Client(pause=pause)
                request = asyncio.ensure_future(client.request(listener.path, b"x", timeout_ms=1_000))
                await until(lambda: len(pauses) > 2)
                (await listener.accepted()).close()
                with await listener.accepted() as end:
                    await until(lambda: readable(end))
                    end.recv(100)
                    end.send(b"here\n")
                    assert Answer(b"here") == await done(request)
                for each in waiting:
                    with contextlib.suppress(OSError):
                        each.connect(listener.path)
                pauses.clear()
                request = asyncio.ensure_future(client.request(listener.path, b"x", timeout_ms=1_000))
                await until(lambda: pauses)
                wait(2)
                assert Unreachable("timeout", retryable=True, sent=False) == await done(request)

    run(main())


def test_the_same_bytes_are_sent_again() -> None:
    """Ten times, 150 ms apart, as a registration is: its id stays the same, so it is one request to the ledger."""
    pauses: list[float] = []
    seen: list[bytes] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def main() -> None:
        async with listening() as listener:
            client = Client(pause=pause)
            request = asyncio.ensure_future(
                client.request(listener.path, b"register", timeout_ms=30_000, retry=REGISTRATION)
            )
            for _ in range(10):
                with await listener.accepted() as end:
                    await until(lambda end=end: readable(end))  # type: ignore[misc]
                    seen.append(end.recv(100, socket.MSG_PEEK))
            assert Unreachable("ECONNRESET", retryable=True, sent=True, attempts=10) == await done(request)

    run(main())
    assert [0.15] * 9 == pauses
    assert [b"register\n"] * 10 == seen


def test_an_endpoint_may_appear_between_two_attempts() -> None:
    """A62: a registration that is earlier than the leader's endpoint."""

    async def main() -> None:
        with short_place() as place:
            found: list[Listener] = []

            async def pause(seconds: float) -> None:
                if not found:
                    found.append(Listener(f"{place}/s"))

            client = Client(pause=pause)
            request = asyncio.ensure_future(client.request(f"{place}/s", b"x", timeout_ms=1_000, retry=Retry(3, 1)))
            await until(lambda: found)
            with found[0].end, await found[0].accepted() as end:
                await until(lambda: readable(end))
                end.recv(10)
                end.send(b"y\n")
                assert Answer(b"y") == await done(request)

    run(main())


def test_neither_an_answer_nor_none_nor_a_final_error_is_tried_again() -> None:
    async def never(seconds: float) -> None:
        raise AssertionError("there is nothing to wait for")

    async def main() -> None:
        async with listening() as listener:
            client = Client(pause=never)
            request = asyncio.ensure_future(client.request(listener.path, b"x", timeout_ms=9, retry=Retry(5, 1)))
            with await listener.accepted() as end:
                await until(lambda: readable(end))
                end.recv(10)
            assert NoResponse() == await done(request)
            os.symlink("s.loop", f"{listener.path}.loop")
            found = await client.request(f"{listener.path}.loop", b"x", timeout_ms=9, retry=Retry(5, 1))
            assert Unreachable("ELOOP", retryable=False, sent=False) == found

    run(main())


def test_nothing_is_sent_to_a_foreign_listener() -> None:
    """Every line carries the secret."""

    async def main() -> None:
        async with listening() as listener:
            peers = []
            client = Client(may_answer=lambda peer: bool(peers.append(peer)))
            found = await client.request(listener.path, b"secret", timeout_ms=1_000, retry=REGISTRATION)
            assert Unreachable("foreign-listener", retryable=False, sent=False) == found
            with await listener.accepted() as end:
                assert b"" == end.recv(100)
            assert [(os.getpid(), os.geteuid())] == [(peer.pid, peer.uid) for peer in peers]

    run(main())


def test_a_cancelled_request_closes_its_connection() -> None:
    async def main() -> None:
        async with listening() as listener:
            request = asyncio.ensure_future(Client().request(listener.path, b"x", timeout_ms=1_000))
            with await listener.accepted() as end:
                await until(lambda: readable(end))
                request.cancel()
                await until(request.done)
                assert b"x\n" == end.recv(10)
                assert b"" == end.recv(10)
            assert request.cancelled()

    run(main())


def test_without_a_descriptor_it_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    async def main() -> object:
        with monkeypatch.context() as patch:
            patch.setattr("tenure.adapters.bus.client.socket.socket", none)
            return await Client().request("/tmp/nowhere", b"x", timeout_ms=1)

    assert Unreachable("EMFILE", retryable=False, sent=False) == run(main())
