"""Processes that are rude to a server, each in its own way, until they are ended: ``python rude.py WAY PATH``.

They are blocking and simple, so that they do it as fast as one process can.
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import sys
import threading
from collections.abc import Callable

STRUCTURE = b'{"a":[' + b'{"a":1},' * 500 + b"1]}"
"""As much as the loop itself parses, and as slow as that is: 4 KiB."""
REQUEST = b'{"kind":"follower.heartbeat","requestId":"1:1:1","instanceId":"1:1","sentAtMs":1}'


def connected(path: str) -> socket.socket | None:
    """A connection, if there is a place in the backlog."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(OSError):
        end.connect(path)
        return end
    end.close()
    return None


def connects(path: str) -> None:
    """Connect and go, as fast as it can."""
    while True:
        end = connected(path)
        if end is not None:
            end.close()


def occupies(path: str) -> None:
    """Hold as many connections as it is given, with half a line on each, and come back when it is thrown out."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    ends: list[socket.socket] = []
    while True:
        ends = [end for end in ends if not select.select([end], [], [], 0)[0] or end.close()]
        while len(ends) < 900:
            end = connected(path)
            if end is None:
                break
            with contextlib.suppress(OSError):
                end.send(b"x" * 60_000)
            ends.append(end)


def sends(line: bytes, connections: int, reads: bool) -> Callable[[str], None]:
    """Send the line again and again on so many connections."""

    def one(path: str) -> None:
        data = (line + b"\n") * max(1, 100_000 // (len(line) + 1))
        while True:
            end = connected(path)
            if end is None:
                continue
            with contextlib.suppress(OSError), end:
                if reads:
                    threading.Thread(target=drained, args=(end,), daemon=True).start()
                while True:
                    end.sendall(data)

    def run(path: str) -> None:
        threads = [threading.Thread(target=one, args=(path,), daemon=True) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def drained(end: socket.socket) -> None:
    """Read and forget."""
    with contextlib.suppress(OSError):
        while end.recv(2**16):
            pass


WAYS: dict[str, Callable[[str], None]] = {
    "connects and goes": connects,
    "occupies connections": occupies,
    "sends empty lines": sends(b"", 4, True),
    "sends requests": sends(REQUEST, 16, True),
    "sends structure": sends(STRUCTURE, 16, True),
    "never reads": sends(REQUEST, 16, False),
    "sends 16 MiB": sends(b'{"a":"' + b"x" * (16 * 2**20 - 8) + b'"}', 4, True),
    "sends 17 MiB": sends(b"x" * (17 * 2**20), 4, True),
}

if __name__ == "__main__":
    WAYS[sys.argv[1]](sys.argv[2])
