"""Publishing an endpoint: private socket, relative link, a rename that proves ownership (bus.md a; I11, A59, A61)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tenure.adapters.bus.client import Answer, Unreachable
from tenure.adapters.bus.endpoints.calls import PosixCalls
from tenure.adapters.bus.endpoints.endpoint import Endpoint, EndpointError, unconditionally
from tenure.adapters.bus.endpoints.paths import endpoint_path, short_directory
from tenure.adapters.bus.serving.server import BusServer
from tests.adapters.bus.transport_room import (
    PATIENCE_S,
    SMALL,
    Handler,
    Rude,
    ask,
    done,
    listing,
    parsed,
    run,
    short_place,
    turns,
    until,
)


class Lost(Exception):
    """The owner is somebody else."""


async def lost(rename: Callable[[], None]) -> None:
    """A `publish` of one who is owner no more."""
    raise Lost


def new(path: str, answer: bytes = b"", **more: object) -> Endpoint:
    """An endpoint whose server answers everything with `answer`, or with what it was asked."""
    handler = Handler()
    if answer:
        handler.answers = {b"who": answer}
    return Endpoint(path, BusServer(parsed, handler, limits=SMALL), **more)  # type: ignore[arg-type]


@pytest.fixture
def path() -> Iterator[str]:
    with short_place() as place:
        yield f"{place}/telegram/bus.sock"


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# -- what is there -----------------------------------------------------------------------------------------------------


def test_what_is_published(path: str) -> None:
    """Directory 0700, socket 0600 with a private name, a relative link at the path, and nothing else."""

    async def main() -> None:
        os.makedirs(os.path.dirname(path), mode=0o755)
        endpoint = new(path, b"me")
        assert not endpoint.serving
        await done(endpoint.start())
        target = os.readlink(path)
        assert re.fullmatch(r"\.pt-[0-9a-f]{16}\.sock", target)
        assert [target, "bus.sock"] == listing(path)
        assert (0o700, 0o600) == (mode(os.path.dirname(path)), mode(path))
        assert stat.S_ISSOCK(os.stat(path).st_mode)
        assert endpoint.serving
        assert Answer(b"me") == await ask(path, b"who")
        await done(endpoint.stop())

    run(main())


def test_directories_are_made(path: str) -> None:
    """All of those that are missing, with the same mode."""

    async def main() -> None:
        deep = f"{os.path.dirname(path)}/followers/work/1_2.sock"
        endpoint = new(deep, b"me")
        await done(endpoint.start())
        assert Answer(b"me") == await ask(deep, b"who")
        assert 0o700 == mode(os.path.dirname(path))
        await done(endpoint.stop())

    run(main())


def test_a_stop_leaves_the_link_and_nothing_else(path: str) -> None:
    """It leads nowhere then, and counts as missing."""

    async def main() -> None:
        endpoint = new(path)
        await done(endpoint.start())
        await done(endpoint.stop())
        assert ["bus.sock"] == listing(path)
        assert os.path.islink(path)
        assert not endpoint.serving
        assert not endpoint.missing()
        assert Unreachable("ENOENT", retryable=True, sent=False) == await ask(path, b"x")

    run(main())


def test_the_newest_is_found_and_an_old_stop_takes_nothing_away(path: str) -> None:
    """A59, I11: the old leader's server closes late, when the new one has published."""

    async def main() -> None:
        old, young = new(path, b"old"), new(path, b"young")
        await done(old.start())
        await done(young.start())
        assert Answer(b"young") == await ask(path, b"who")
        await done(old.stop())
        assert Answer(b"young") == await ask(path, b"who")
        assert not young.missing()
        assert [os.readlink(path), "bus.sock"] == listing(path)
        await done(young.stop())

    run(main())


def test_an_endpoint_is_started_once(path: str) -> None:
    async def main() -> None:
        endpoint = new(path)
        starting = asyncio.ensure_future(endpoint.start())
        await asyncio.sleep(0)
        with pytest.raises(EndpointError, match="serves already"):
            await endpoint.start()
        await done(starting)
        with pytest.raises(EndpointError, match="serves already"):
            await endpoint.start()
        await done(endpoint.stop())
        await done(endpoint.stop())
        await done(endpoint.start())
        assert Answer(b"x") == await ask(path, b"x")
        await done(endpoint.stop())

    run(main())


def test_a_long_path_is_mapped_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with short_place() as place:
            monkeypatch.setenv("TMPDIR", place)
            path = f"{place}/{'d' * 70}/bus.sock"
            endpoint = new(path, b"me")
            await done(endpoint.start())
            assert not os.path.exists(os.path.dirname(path))
            assert (endpoint.path, 0o700) == (endpoint_path(path), mode(short_directory()))
            assert Answer(b"me") == await ask(path, b"who")
            assert Answer(b"me") == await ask(endpoint_path(path), b"who")
            await done(endpoint.stop())

    run(main())


@pytest.mark.parametrize("length", range(72, 84))
def test_every_length_around_the_bound_can_be_served(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 80 bytes the private name beside the path still fits into a socket's address."""

    async def main() -> None:
        with short_place() as place:
            monkeypatch.setenv("TMPDIR", place)
            path = f"{place}/{'d' * (length - len(place) - len('//bus.sock'))}/bus.sock"
            assert length == len(path)
            endpoint = new(path, b"me")
            await done(endpoint.start())
            assert Answer(b"me") == await ask(path, b"who")
            await done(endpoint.stop())

    run(main())


# -- who owns ----------------------------------------------------------------------------------------------------------


def test_the_rename_is_inside_the_transaction(path: str) -> None:
    """Before it nobody is found, or whoever was; it may run in another thread."""

    async def main() -> None:
        async def publish(rename: Callable[[], None]) -> None:
            assert not os.path.lexists(path)
            assert 2 == len(listing(path))
            await asyncio.get_running_loop().run_in_executor(None, rename)
            assert os.path.exists(path)

        endpoint = new(path, b"me", publish=publish)
        await done(endpoint.start())
        assert Answer(b"me") == await ask(path, b"who")
        await done(endpoint.stop())

    run(main())


def test_lost_ownership_leaves_nothing(path: str) -> None:
    """Neither link nor socket, and whoever is found at the path still is."""

    async def main() -> None:
        other, me = new(path, b"other"), new(path, b"me", publish=lost)
        await done(other.start())
        before = listing(path)
        with pytest.raises(Lost):
            await done(me.start())
        assert before == listing(path)
        assert not me.serving
        assert Answer(b"other") == await ask(path, b"who")
        await done(me.stop())
        await done(other.stop())

    run(main())


def test_a_start_that_is_cancelled_leaves_nothing(path: str) -> None:
    """Wherever it is: before, inside and after the transaction."""

    async def main() -> None:
        for steps in range(60):
            endpoint = new(path, publish=slow)
            starting = asyncio.ensure_future(endpoint.start())
            await turns(steps)
            starting.cancel()
            await until(starting.done)
            if starting.cancelled():
                assert [] == [name for name in listing(path) if name != "bus.sock"]
                assert not os.path.exists(path)
            await done(endpoint.stop())

    async def slow(rename: Callable[[], None]) -> None:
        await turns(5)
        rename()
        await turns(5)

    os.makedirs(os.path.dirname(path))
    run(main())


def test_a_stop_abandons_a_start(path: str) -> None:
    async def main() -> None:
        go = asyncio.Event()

        entered = False

        async def publish(rename: Callable[[], None]) -> None:
            nonlocal entered
            entered = True
            await go.wait()
            rename()

        endpoint = new(path, publish=publish)
        starting = asyncio.ensure_future(endpoint.start())
        await until(lambda: entered)
        await done(endpoint.stop())
        go.set()
        with pytest.raises(EndpointError, match="stopped while"):
            await done(starting)
        assert [] == listing(path)
        assert not endpoint.serving

    run(main())


def test_a_stop_before_anything_is_published(path: str) -> None:
    """The file work of a start is under way: it is waited for, and nothing is served."""

    async def main() -> None:
        began, go = threading.Event(), threading.Event()

        class Slow(PosixCalls):
            def bind(self, path: str) -> socket.socket:
                began.set()
                go.wait(PATIENCE_S)
                return super().bind(path)

        published = []

        async def publish(rename: Callable[[], None]) -> None:
            published.append(rename)

        endpoint = new(path, publish=publish, calls=Slow())
        starting = asyncio.ensure_future(endpoint.start())
        await until(began.is_set)
        await done(endpoint.stop())
        go.set()
        with pytest.raises(EndpointError, match="stopped while"):
            await done(starting)
        assert [] == listing(path)
        assert [] == published

    run(main())


def test_a_stop_between_the_rename_and_the_end_of_the_transaction(path: str) -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def publish(rename: Callable[[], None]) -> None:
            rename()
            await go.wait()

        endpoint = new(path, publish=publish)
        starting = asyncio.ensure_future(endpoint.start())
        await until(lambda: os.path.lexists(path))
        await done(endpoint.stop())
        go.set()
        with pytest.raises(EndpointError, match="stopped while"):
            await done(starting)
        assert ["bus.sock"] == listing(path)
        assert not endpoint.serving

    run(main())


# -- what stands at the path -------------------------------------------------------------------------------------------


def legacy(path: str) -> socket.socket:
    """A socket at the path itself, as older releases have it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.bind(path)
    end.listen(200)
    return end


def test_a_dead_legacy_socket_is_replaced(path: str) -> None:
    async def main() -> None:
        legacy(path).close()
        endpoint = new(path, b"me")
        await done(endpoint.start())
        assert Answer(b"me") == await ask(path, b"who")
        await done(endpoint.stop())

    run(main())


def test_a_living_legacy_socket_is_waited_for(path: str) -> None:
    """2 s in steps of 25 ms; then it is an error, and nothing was changed."""
    pauses: list[float] = []

    async def main() -> None:
        with legacy(path) as end:

            async def pause(seconds: float) -> None:
                pauses.append(seconds)
                if len(pauses) == 100:
                    end.close()

            endpoint = new(path, b"me", pause=pause)
            with pytest.raises(EndpointError, match="an older process serves there"):
                await done(endpoint.start())
            assert [0.025] * 80 == pauses
            assert ["bus.sock"] == listing(path)
            await done(endpoint.start())
            assert 100 == len(pauses)
            assert Answer(b"me") == await ask(path, b"who")
            await done(endpoint.stop())

    run(main())


@pytest.mark.parametrize("kind", ["file", "directory", "pipe"])
def test_what_is_no_socket_is_left_alone(path: str, kind: str) -> None:
    async def main() -> None:
        os.makedirs(os.path.dirname(path))
        if kind == "file":
            Path(path).write_text("mine")
        else:
            (os.mkdir if kind == "directory" else os.mkfifo)(path)
        with pytest.raises(EndpointError, match=re.escape(path)):
            await done(new(path).start())
        assert ["bus.sock"] == listing(path)
        assert not os.path.islink(path)

    run(main())


@pytest.mark.parametrize("target", ["nowhere", "bus.sock", "/etc/passwd", "../secret"])
def test_a_link_at_the_path_is_replaced_and_never_followed(path: str, target: str) -> None:
    """Wherever it leads: to nothing, to itself, to a file, to a file of ours."""

    async def main() -> None:
        os.makedirs(os.path.dirname(path))
        secret = Path(os.path.dirname(path)).parent / "secret"
        secret.write_text("mine")
        os.symlink(target, path)
        endpoint = new(path, b"me")
        await done(endpoint.start())
        assert Answer(b"me") == await ask(path, b"who")
        assert "mine" == secret.read_text()
        await done(endpoint.stop())

    run(main())


# -- the short directory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trick", ["link", "file", "open", "others"])
def test_a_short_directory_that_is_not_ours_alone_is_not_used(trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everybody may write somebody may have been first."""

    async def main() -> None:
        with short_place() as place:
            monkeypatch.setenv("TMPDIR", place)
            short = short_directory()
            if trick == "link":
                os.mkdir(f"{place}/elsewhere", 0o700)
                os.symlink("elsewhere", short)
            elif trick == "file":
                Path(short).write_text("mine")
            else:
                os.mkdir(short)
                os.chmod(short, 0o700 if trick == "others" else 0o701)
            with monkeypatch.context() as patch:
                if trick == "others":
                    patch.setattr("tenure.adapters.bus.endpoints.listening.os.getuid", lambda: 4711)
                    os.rename(short, short_directory())
                with pytest.raises(EndpointError, match=r"pi-telegram-.*nobody else may enter"):
                    await done(new(f"{place}/{'d' * 80}/bus.sock").start())
                assert not os.path.isdir(short_directory()) or [] == os.listdir(short_directory())

    run(main())


def test_a_temporary_directory_may_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with short_place() as place:
            monkeypatch.setenv("TMPDIR", f"{place}/{'t' * 90}")
            with pytest.raises(EndpointError, match="set TMPDIR to a short path"):
                await done(new(f"{place}/{'d' * 80}/bus.sock").start())

    run(main())


# -- a path that goes away ---------------------------------------------------------------------------------------------


def unlink_path(path: str) -> None:
    os.unlink(path)


def unlink_private(path: str) -> None:
    os.unlink(f"{os.path.dirname(path)}/{os.readlink(path)}")


def remove_directory(path: str) -> None:
    shutil.rmtree(os.path.dirname(path))


def lead_astray(path: str) -> None:
    os.unlink(path)
    os.symlink("/dev/null", path)


@pytest.mark.parametrize("go_away", [unlink_path, unlink_private, remove_directory, lead_astray])
def test_a_missing_endpoint_is_published_again(path: str, go_away: Callable[[str], None]) -> None:
    """A61: somebody cleans up. Connections and requests go on as if nothing had been."""

    async def main() -> None:
        handler = Handler()
        handler.hold(b"slow")
        endpoint = Endpoint(path, BusServer(parsed, handler, limits=SMALL))
        await done(endpoint.start())
        with Rude(path) as peer:
            peer.send(b"slow\n")
            await until(lambda: handler.asked)
            assert not endpoint.missing()
            assert not await done(endpoint.heal())
            go_away(path)
            assert endpoint.missing()
            assert await done(endpoint.heal())
            assert not endpoint.missing()
            assert [os.readlink(path), "bus.sock"] == listing(path)
            assert Answer(b"x") == await ask(path, b"x")
            handler.let(b"slow")
            await until(lambda: [b"slow"] == peer.lines())
        await done(endpoint.stop())
        assert ["bus.sock"] == listing(path)

    run(main())


@pytest.mark.parametrize("what", ["a directory", "a file that is no socket"])
def test_what_took_the_place_of_an_endpoint_is_left(path: str, what: str) -> None:
    """Healing says so each time, and heals when a person has moved it away."""

    async def main() -> None:
        endpoint = new(path, b"me")
        await done(endpoint.start())
        os.unlink(path)
        os.mkdir(path) if what == "a directory" else Path(path).write_text("somebody's")
        for _ in range(2):
            assert endpoint.missing()
            with pytest.raises(EndpointError, match=f"{what} stands there; move it away"):
                await done(endpoint.heal())
        assert os.path.isdir(path) if what == "a directory" else Path(path).read_text() == "somebody's"
        os.rmdir(path) if what == "a directory" else os.unlink(path)
        assert await done(endpoint.heal())
        assert Answer(b"me") == await ask(path, b"who")
        await done(endpoint.stop())

    run(main())


def test_several_callers_heal_once(path: str) -> None:
    async def main() -> None:
        published = 0

        async def publish(rename: Callable[[], None]) -> None:
            nonlocal published
            published += 1
            await turns(5)
            rename()

        endpoint = new(path, publish=publish)
        await done(endpoint.start())
        os.unlink(path)
        healing = [asyncio.ensure_future(endpoint.heal()) for _ in range(3)]
        await turns(2)
        healing[0].cancel()  # whoever goes takes nothing from the others
        await until(lambda: all(each.done() for each in healing))
        assert healing[0].cancelled()
        assert [True, True] == [each.result() for each in healing[1:]]
        assert 2 == published
        await done(endpoint.stop())

    run(main())


def test_a_stop_abandons_healing(path: str) -> None:
    """Whenever it comes: nothing serves afterwards, and nothing but the link may be left."""

    async def main() -> None:
        async def publish(rename: Callable[[], None]) -> None:
            await turns(5)
            rename()
            await turns(5)

        for steps in range(40):
            endpoint = new(path, publish=publish)
            await done(endpoint.start())
            os.unlink(path)
            healing = asyncio.ensure_future(endpoint.heal())
            await turns(steps)
            await done(endpoint.stop())
            assert healing.done() or steps == 0  # then it has not even begun
            assert isinstance(await done(healing), bool)
            assert [] == [name for name in listing(path) if name != "bus.sock"]
            assert not os.path.exists(path)
            assert not endpoint.serving

    run(main())


def test_a_transaction_that_is_not_cancelled_heals_nothing_after_a_stop(path: str) -> None:
    """A thread runs to its end; what it would rename is not renamed any more."""

    async def main() -> None:
        entered, go = 0, asyncio.Event()
        go.set()

        async def publish(rename: Callable[[], None]) -> None:
            nonlocal entered
            entered += 1
            while not go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await go.wait()
            rename()

        limits = attrs.evolve(SMALL, stop_ms=0)
        endpoint = Endpoint(path, BusServer(parsed, Handler(), limits=limits), publish=publish)
        await done(endpoint.start())
        os.unlink(path)
        go.clear()
        healing = asyncio.ensure_future(endpoint.heal())
        await until(lambda: 2 == entered)
        await endpoint.stop()
        go.set()
        assert not await done(healing)
        assert [] == listing(path)

    run(main())


def test_a_deposed_leader_does_not_heal(path: str) -> None:
    """The path is empty since the new leader has not published yet; the old one must not come first."""

    async def main() -> None:
        owner = True

        async def publish(rename: Callable[[], None]) -> None:
            if not owner:
                raise Lost
            rename()

        endpoint = new(path, publish=publish)
        await done(endpoint.start())
        os.unlink(path)
        owner = False
        with pytest.raises(Lost):
            await done(endpoint.heal())
        assert 1 == len(listing(path))
        owner = True
        assert await done(endpoint.heal())
        await done(endpoint.stop())

    run(main())


def test_a_directory_that_cannot_be_made_is_one_clear_error(path: str) -> None:
    async def main() -> None:
        Path(os.path.dirname(path)).write_text("a file")
        with pytest.raises(EndpointError) as found:
            await done(new(path).start())
        assert path in str(found.value)
        assert "\n" not in str(found.value)

    run(main())


def test_an_endpoint_is_a_context(path: str) -> None:
    async def main() -> None:
        endpoint = new(path, publish=unconditionally)
        started = asyncio.ensure_future(endpoint.__aenter__())
        await until(started.done)
        assert endpoint.serving
        with contextlib.suppress(Lost):
            await done(endpoint.__aexit__(None, None, None))
        assert not endpoint.serving

    run(main())
