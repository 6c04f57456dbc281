"""What a process of the other system is, whether it leads or follows. Nothing here comes from tenure."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.real import other_system as system
from tests.real.other_bus import Envelope


def now() -> int:
    """Milliseconds."""
    return time.time_ns() // 10**6


def birth(pid: int) -> str:
    """The birth identity of a process."""
    line = Path(f"/proc/{pid}/stat").read_text()
    return f"{pid}:start:{line[line.rindex(')') + 2 :].split()[19]}"


def say(event: str, **members: Any) -> None:
    """Tell the test."""
    os.write(1, json.dumps({"event": event, "at": now(), **members}).encode() + b"\n")


class Runtime:
    """One runtime, its lock, its places and its names."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        scale = options.lease / 8
        system.STALE_MS = round(options.lease * 1000)
        self.grace, self.beat, self.tick = 2.5 * scale, scale, scale
        self.silent_ms, self.patience = 5000 * scale, 30 * scale
        self.room = Path(options.directory) / "tmp" / "telegram"
        self.secret = secrets.token_urlsafe(32)
        self.lock = system.Owner(
            self.room / "owners.json", options.profile or "default", options.cwd, secret=self.secret
        )
        self.me = f"{os.getpid()}:{self.lock.started}"
        scope = f"profile:{options.profile}:" if options.profile else ""
        self.key = f"{scope}manual:{options.shell or birth(os.getppid())}"
        self.own_key = f"{scope}cwd:{options.cwd}"
        dot = f".{options.profile}" if options.profile else ""
        self.door, self.state_path = str(self.room / f"bus{dot}.sock"), self.room / f"state{dot}.json"
        if options.door:
            self.door = self.lock.door = str(self.room / options.door)
        self.count = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def next_id(self) -> str:
        """A request id."""
        self.count += 1
        return f"{self.me}:{self.count}"

    def spawn(self, work: Any) -> asyncio.Task[None]:
        """Go on with something; what it raises is said, and ends nothing."""

        async def safely() -> None:
            try:
                await work
            except Exception as error:
                say("error", text=f"{type(error).__name__}: {error}")

        task = asyncio.ensure_future(safely())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def state(self) -> Envelope | None:
        """The state file; None for what is none."""
        with suppress(OSError, ValueError):
            found = json.loads(self.state_path.read_text())
            return found if isinstance(found, dict) and found.get("version") == 1 else None
        return None
