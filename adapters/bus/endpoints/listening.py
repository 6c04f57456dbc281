"""One private socket and the link to it, on its way to the path of an endpoint (bus.md a, ENDPOINT PUBLICATION)."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from typing import Final

import attrs

from tenure.adapters.bus.endpoints.calls import EndpointCalls
from tenure.adapters.bus.endpoints.debris import sweep
from tenure.adapters.bus.endpoints.paths import short_directory
from tenure.adapters.errors import TenureError

ADDRESS_BYTES: Final = 103
"""The longest address of a Unix socket that macOS takes; Linux takes 107."""


class EndpointError(TenureError):
    """An endpoint cannot be published: which path, why, and what to do."""


@attrs.define(eq=False)
class Listening:
    """One private socket and the link to it, on its way to the path."""

    _calls: EndpointCalls
    path: str
    end: socket.socket | None = None
    _name: str = attrs.field(factory=lambda: secrets.token_hex(8))
    _bound: bool = False
    _linked: bool = False

    @property
    def private(self) -> str:
        """Where the socket is."""
        return f"{os.path.dirname(self.path)}/.pt-{self._name}.sock"

    @property
    def link(self) -> str:
        """Where the link waits to be renamed."""
        return f"{self.path}.link.{self._name}"

    def open(self, backlog: int) -> None:
        """Make the directory, sweep it, make the socket and the link."""
        if len(os.fsencode(self.private)) > ADDRESS_BYTES:
            raise EndpointError(
                f"{self.private}: more than the {ADDRESS_BYTES} bytes of a socket's address; set TMPDIR to a short path"
            )
        calls, room = self._calls, os.path.dirname(self.path)
        if room == short_directory():
            _own_short_directory(calls, room)
        else:
            _make_directories(calls, room)
            if calls.node(room).mode & 0o077:
                calls.change_mode(room, 0o700)
        with suppress(OSError):
            sweep(calls, room)
        self.end = calls.bind(self.private)
        self._bound = True
        calls.change_mode(self.private, 0o600)
        calls.listen(self.end, backlog)
        calls.link(os.path.basename(self.private), self.link)
        self._linked = True

    def publish(self) -> None:
        """From now on this is who is found."""
        self._calls.rename(self.link, self.path)
        self._linked = False

    def close(self) -> None:
        """Listen no more. What is at the path stays."""
        if self._linked:
            self._linked = False
            with suppress(OSError):
                self._calls.unlink(self.link)
        if self._bound:
            self._bound = False
            with suppress(OSError):
                self._calls.unlink(self.private)
        if self.end is not None:
            self.end.close()


def _make_directories(calls: EndpointCalls, path: str) -> None:
    missing = []
    while calls.node(path).standing == "absent":
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        with suppress(FileExistsError):
            calls.make_directory(each)


def _own_short_directory(calls: EndpointCalls, path: str) -> None:
    """It lies where others may write: what they put there first is not used."""
    with suppress(FileExistsError):
        calls.make_directory(path)
    node = calls.node(path)
    if node.standing != "directory" or node.uid != os.getuid() or node.mode & 0o077:
        raise EndpointError(
            f"{path}: must be a directory of this user that nobody else may enter (0700); remove it, or set TMPDIR"
        )
