"""Processes of both systems on one directory."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.real.conftest import PATIENCE, Zygote, until
from tests.real.joins import Join, Joins

SCRIPT = Path(__file__).with_name("other_fleet.py")


class Other:
    """One process of the other system: `other_fleet.py`."""

    def __init__(self, output: Path, directory: Path, lease: float, options: tuple[str, ...]) -> None:
        self._output = output
        self._read = 0
        self._said: list[dict[str, Any]] = []
        words = [sys.executable, str(SCRIPT), str(directory), "--lease", str(lease), *options]
        with output.open("wb") as stdout, output.with_suffix(".errors").open("wb") as stderr:
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, bufsize=0)
        self.pid = self._process.pid
        self.instance = str(self.says("started")["instance"])

    @property
    def said(self) -> list[dict[str, Any]]:
        """All that has happened to it."""
        if self._output.stat().st_size > self._read:
            with self._output.open("rb") as stream:
                stream.seek(self._read)
                whole, newline, _ = stream.read().rpartition(b"\n")
            self._read += len(whole) + len(newline)
            self._said += [json.loads(line) for line in whole.splitlines()]
        return self._said

    def heard(self, event: str, after: int = 0, **members: Any) -> list[dict[str, Any]]:
        """Those of its events that have these members."""
        return [e for e in self.said[after:] if e["event"] == event and members.items() <= e.items()]

    def says(self, event: str, patience: float = PATIENCE, after: int = 0, **members: Any) -> dict[str, Any]:
        """Wait for the first such event."""
        found: list[dict[str, Any]] = until(lambda: self.heard(event, after, **members), patience)
        return found[0]

    def ask(self, do: str, **members: Any) -> Any:
        """A command, and its answer."""
        after = len(self.said)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **members}).encode() + b"\n")
        done = self.says("done", after=after)
        assert "error" not in done, done["error"]
        return done["answer"]

    @property
    def role(self) -> str:
        """What it is now."""
        roles = [e for e in self.said if e["event"] in ("leading", "following", "lost", "heartbeat failed")]
        return roles[-1]["event"] if roles else ""

    @property
    def leader(self) -> int:
        """The pid of the leader that it follows now; 0 for none."""
        roles = [e for e in self.said if e["event"] in ("leading", "following", "lost", "heartbeat failed")]
        return int(roles[-1].get("leader", 0)) if roles else 0

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal it; where that ends it, wait for the end: to its own kind a zombie is alive."""
        os.kill(self.pid, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._process.wait(PATIENCE)

    def close(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait(PATIENCE)
        assert self._process.stdin is not None
        self._process.stdin.close()


class Mixed(Joins):
    """A directory with processes of both systems."""

    def __init__(self, zygote: Zygote, root: Path) -> None:
        super().__init__(zygote, root)
        self.others: list[Other] = []
        self.proxies: list[Proxy] = []
        self._sleepers: list[subprocess.Popen[bytes]] = []

    def other(self, *options: str, lease: float = 2.0, threads: bool = False) -> Other:
        """One of the other system, of a shell of its own. `threads`: as leader it leaves its threads in the state
        file, as the original does; nobody of ours leads over that."""
        number = len(self.others) + 1
        words = options if "--shell" in options else (*options, "--shell", f"{number}:start:{number}")
        words = words if threads else (*words, "--bare")
        other = Other(self.root / f"other{number}", self.directory, lease, words)
        self.others.append(other)
        return other

    def leads(self, one: Join | Other, patience: float = PATIENCE) -> None:
        """Wait until it leads."""
        if isinstance(one, Join):
            one.becomes("leading", patience)
        else:
            until(lambda: one.role == "leading", patience)

    def follows(self, one: Join | Other, leader: Join | Other, patience: float = PATIENCE) -> None:
        """Wait until it follows that one."""
        if isinstance(one, Join):
            one.becomes(f"following pid {leader.pid}", patience)
        else:
            until(lambda: one.leader == leader.pid, patience)

    def entry(self) -> dict[str, Any]:
        """The owner registry's entry."""
        return dict(json.loads(self.registry.read_text())["default"])

    def state(self) -> dict[str, Any]:
        """The state file."""
        return dict(json.loads(self.registry.with_name("state.json").read_text()))

    def change(self, entry: dict[str, Any] | None) -> None:
        """Replace the entry, by rename."""
        temporary = self.registry.with_name("owners.json.test.tmp")
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({} if entry is None else {"default": entry}))
        temporary.rename(self.registry)

    def live(self, leader: Join | Other) -> int:
        """How many routes a leader has."""
        if isinstance(leader, Other):
            return len(leader.ask("registry"))
        return len(self.state()["liveRoster"]["busFollowers"])

    def sleeper(self) -> subprocess.Popen[bytes]:
        """A process that does nothing."""
        process = subprocess.Popen(["sleep", "1000"])
        self._sleepers.append(process)
        return process

    def proxy(self) -> Proxy:
        """Between a leader's endpoint and whoever connects to it from now on."""
        proxy = Proxy(self.endpoint)
        self.proxies.append(proxy)
        return proxy

    def close(self) -> None:
        """End whatever is left."""
        for other in self.others:
            other.close()
        for proxy in self.proxies:
            proxy.close()
        for process in self._sleepers:
            process.kill()
            process.wait(PATIENCE)
        super().close()


def request(path: str, envelope: dict[str, Any]) -> dict[str, Any]:
    """The answer to an envelope, by hand."""
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(PATIENCE)
        end.connect(path)
        end.sendall(json.dumps(envelope).encode() + b"\n")
        return dict(json.loads(end.makefile("rb").readline()))


class Proxy:
    """Takes an endpoint's place, passes everything on, and loses answers."""

    def __init__(self, endpoint: Path) -> None:
        self._behind = str(endpoint.parent / endpoint.readlink())
        self._listener = socket.socket(socket.AF_UNIX)
        here = endpoint.with_name(f".pt-{secrets.token_hex(8)}.sock")
        self._listener.bind(str(here))
        self._listener.listen(64)
        link = endpoint.with_name(f"{endpoint.name}.link.proxy")
        link.symlink_to(here.name)
        link.rename(endpoint)
        self.to_lose: set[str] = set()
        """Kinds whose next answer is lost, and ids of requests."""
        self.lost: list[str] = []
        self.seen: list[dict[str, Any]] = []
        """Requests."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            line = client.makefile("rb").readline()
            if not line:
                return  # nobody asks anything any more
            asked = json.loads(line)
            self.seen.append(asked)
            server.connect(self._behind)
            server.sendall(line)
            answer = server.makefile("rb").readline()
            if which := self.to_lose & {asked["kind"], asked["requestId"]}:
                self.to_lose -= which
                self.lost.append(asked["kind"])
                return
            client.sendall(answer)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()
