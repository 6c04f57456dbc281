"""What a run with a fleet does to the leader's endpoint: it is taken away, or an answer through it is lost."""

from __future__ import annotations

import os
import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from tenure.adapters.bus.endpoints.paths import endpoint_path, leader_path
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.verify.real.healing import fork
from tenure.adapters.verify.real.worker import Room

KEY: Final = "default"
PATIENCE_S: Final = 0.5
"""How long a proxy waits for somebody whose answer it may lose."""


def endpoint_of(room: Room) -> Path:
    """Where the leader of the run listens."""
    return Path(endpoint_path(leader_path(AgentDirectory(str(room.agent)), KEY)))


class Thieves:
    """Those who do it in one run, each a process of its own, forked from this one; one at a time."""

    def __init__(self, room: Room, chance: random.Random) -> None:
        self._room, self._chance = room, chance
        self._pid = 0

    def disturb(self) -> None:
        """Take the endpoint away, or an answer, unless somebody is at it."""
        if self._pid:
            done, _ = os.waitpid(self._pid, os.WNOHANG)
            if not done:
                return
        body = unlink if self._chance.random() < 0.5 else lose_an_answer
        self._pid = fork(lambda: body(self._room))

    def end(self) -> None:
        """Wait for the last one."""
        if self._pid:
            os.waitpid(self._pid, 0)
            self._pid = 0


def unlink(room: Room) -> None:
    """The endpoint is gone; the leader publishes another."""
    endpoint_of(room).unlink(missing_ok=True)


def lose_an_answer(room: Room) -> None:
    """A proxy takes the endpoint's place, passes one request on, and loses its answer."""
    endpoint = endpoint_of(room)
    here = endpoint.with_name(f"{endpoint.name}.proxy")
    with suppress(OSError), socket.socket(socket.AF_UNIX) as listener:
        behind = os.readlink(endpoint)
        listener.bind(str(here))
        try:
            listener.listen(8)
            listener.settimeout(PATIENCE_S)
            _point(endpoint, here.name)
            client, _ = listener.accept()
            if os.readlink(endpoint) == here.name:
                _point(endpoint, behind)
            with client:
                _pass_on(client, str(endpoint.with_name(behind)))
        finally:
            here.unlink()


def _point(endpoint: Path, target: str) -> None:
    link = endpoint.with_name(f"{endpoint.name}.proxied")
    link.symlink_to(target)
    link.rename(endpoint)


def _pass_on(client: socket.socket, path: str) -> None:
    client.settimeout(PATIENCE_S)
    request = client.makefile("rb").readline()
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(PATIENCE_S)
        server.connect(path)
        server.sendall(request)
        server.makefile("rb").readline()
