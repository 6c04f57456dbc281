"""Real `tenure join` processes on a real directory."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenure.adapters.bus.endpoints.paths import endpoint_path
from tests.real.conftest import PATIENCE, Zygote, alive, until


class Join:
    """One `tenure join`."""

    def __init__(self, zygote: Zygote, pid: int, output: Path, errors: Path) -> None:
        self._zygote = zygote
        self.pid = pid
        self._output = output
        self._errors = errors

    @property
    def roles(self) -> list[str]:
        """What it said that it is, one line for each change."""
        return self._output.read_text().splitlines() if self._output.exists() else []

    @property
    def role(self) -> str:
        """What it is now."""
        return self.roles[-1] if self.roles else ""

    @property
    def said(self) -> str:
        """What it wrote on standard error."""
        return self._errors.read_text() if self._errors.exists() else ""

    def becomes(self, text: str, patience: float = PATIENCE) -> str:
        """Wait until its role begins with `text`, and answer it."""
        until(lambda: self.role.startswith(text), patience)
        return self.role

    @property
    def slot(self) -> str:
        """The slot that it said last."""
        found = [line for role in self.roles for line in re.findall(r"slot ([A-Z])\b", role)]
        return found[-1] if found else ""

    @property
    def name(self) -> str:
        """The name that it said last."""
        found = [line for role in self.roles for line in re.findall(r"slot [A-Z] \((\w+)\)", role)]
        return found[-1] if found else ""

    @property
    def generation(self) -> str:
        """The generation of the registration that it said last."""
        found = [line for role in self.roles for line in re.findall(r"generation (\S+)", role)]
        return found[-1] if found else ""

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal it."""
        os.kill(self.pid, number)

    @property
    def status(self) -> int | None:
        """Its exit status; None as long as it runs."""
        self._zygote.look()
        return self._zygote.ended.get(self.pid)

    def ends(self) -> int:
        """Wait for its exit status."""
        until(lambda: self.status is not None)
        return self._zygote.ended[self.pid]


class Joins:
    """An agent directory, and the fleet of one test in it."""

    until: Callable[..., Any] = staticmethod(until)

    def __init__(self, zygote: Zygote, root: Path) -> None:
        self._zygote = zygote
        self.root = root
        self.directory = root / "agent"
        self.directory.mkdir(parents=True)
        self.all: list[Join] = []

    def start(
        self, *options: str, lease: float = 2.0, directory: str | None = None, output: Path | None = None
    ) -> Join:
        """`tenure join DIR --lease ... > OUTPUT`."""
        number = len(self.all) + 1
        output, errors = output or self.root / f"out{number}", self.root / f"err{number}"
        pid = self._zygote.start(
            arguments=[
                "join",
                str(self.directory) if directory is None else directory,
                "--lease",
                str(lease),
                *options,
            ],
            environment=dict(os.environ),
            directory=str(self.root),
            stdout=str(output),
            stderr=str(errors),
            ignored=[],
        )
        join = Join(self._zygote, pid, output, errors)
        self.all.append(join)
        return join

    def fleet(self, count: int, **options: Any) -> list[Join]:
        """A leader and its followers, one after the other."""
        leader = self.start(**options)
        leader.becomes("leading")
        followers = []
        for _ in range(count - 1):
            followers.append(self.start(**options))
            followers[-1].becomes(f"following pid {leader.pid}")
        return [leader, *followers]

    @property
    def registry(self) -> Path:
        """The owner registry."""
        return self.directory / "tmp" / "telegram" / "owners.json"

    @property
    def endpoint(self) -> Path:
        """The leader's endpoint."""
        return Path(endpoint_path(str(self.directory / "tmp" / "telegram" / "bus.sock")))

    def leading(self) -> list[Join]:
        """Who says that it leads, and runs."""
        return [join for join in self.all if join.role.startswith("leading") and alive(join.pid)]

    def close(self) -> None:
        """End whatever is left."""
        for join in self.all:
            for number in (signal.SIGCONT, signal.SIGKILL):
                if join.status is None:
                    os.kill(join.pid, number)
        for join in self.all:
            join.ends()
