"""A process of the other system: `python other_fleet.py DIR [options]`. It leads or follows, with every hole.

What happens is said on standard output, one JSON object a line; commands come on standard input, one a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is a part of no package

from tests.real import other_bus as bus
from tests.real.other_bus import Envelope
from tests.real.other_follower import Follower
from tests.real.other_runtime import birth, now, say


class Process(Follower):
    """It does what a test tells it, and misbehaves when it is told to."""

    async def command(self, asked: Envelope) -> object:
        """One of the test's."""
        match asked.pop("do"):
            case "fault":
                self.faults[asked["kind"]] = (asked["how"], asked.get("times", -1))
                return True
            case "forward":
                entry = self.registry[asked["instance"]]
                kind = asked.get("kind", "leader.forwardMessage")
                delivery = {"deliveryId": f"telegram-follower-v1-{secrets.token_hex(32)}", "sourceUpdateId": 5}
                delivery["recipientBindingKey"] = asked.get("binding", entry["profileKey"])
                generation = asked.get("generation", entry["registrationGeneration"])
                request = {"kind": kind, "requestId": self.next_id(), "auth": self.secret, "sentAtMs": now()}
                request |= {"recipientInstanceId": asked["instance"], "recipientRegistrationGeneration": generation}
                request |= {"delivery": delivery, bus.BODIES.get(kind, "message"): {"text": "hi"}}
                return await bus.send(asked.get("path", self.door), request, 5.0)
            case "deliver":
                entry = self.registry[asked["instance"]]
                kind, update = asked.get("kind", "leader.forwardMessage"), asked["update"]
                carrier = {"message_id": update, "chat": {"id": 1}, **asked.get("carrier", {}), bus.SOURCE: update}
                delivery = bus.delivery(kind, entry["profileKey"], update) | asked.get("delivery", {})
                request = {"kind": kind, "requestId": self.next_id(), "auth": self.secret, "sentAtMs": now()}
                request |= {"recipientInstanceId": asked["instance"], "delivery": delivery}
                request |= {"recipientRegistrationGeneration": entry["registrationGeneration"]}
                request |= {bus.BODIES.get(kind, "message"): carrier, **asked.get("members", {})}
                return await bus.send(self.door, request, 5.0)
            case "offer":
                entry = self.registry[asked["instance"]]
                request = {"kind": "leader.offerQueueHandoff", "requestId": self.next_id(), "auth": self.secret}
                request |= {"donorInstanceId": self.me, "recipientInstanceId": asked["instance"]}
                request |= {"recipientRegistrationGeneration": entry["registrationGeneration"]}
                request |= {"donorProcessId": os.getpid(), "donorProcessBirthId": birth(os.getpid())}
                request |= {"donorSessionGeneration": 1, "donorAcquisitionId": "6f0c", "donorAcquiredAtMs": now()}
                request |= {"handoffToken": secrets.token_hex(16), "payload": asked["payload"], "sentAtMs": now()}
                return await bus.send(entry["busSocketPath"], request, 5.0)
            case "ask":
                return await bus.send(self.held["door"], self.request(asked.pop("kind"), **asked), 5.0)
            case "send":
                return await bus.send(asked["path"], asked["request"], 5.0)
            case "register":
                entry = self.lock.entry()
                assert entry is not None
                return await self.register(entry, {})
            case "reload":
                return await self.reload()
            case "restart":
                return await self.restart(asked["pause"])
            case "registry":
                return self.registry
            case "hold":
                return self.free.clear()
            case "go on":
                return self.free.set()
            case "replace":
                entry = self.registry[asked["instance"]]
                request = {"kind": "leader.replaceFollowerTarget", "requestId": self.next_id(), "auth": self.secret}
                request |= {"recipientInstanceId": asked["instance"], "target": asked["target"], "sentAtMs": now()}
                request |= {"recipientRegistrationGeneration": entry["registrationGeneration"]}
                return await bus.send(entry["busSocketPath"], request | {"reason": "thread-restore"}, 5.0)
            case "request":
                return self.request(asked.pop("kind"), **asked)
            case "secret":
                self.secret = self.lock.secret = secrets.token_urlsafe(32)
                return self.lock.refresh()
        return None

    async def obey(self) -> None:
        """Commands, one after the other."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            try:
                say("done", answer=await self.command(json.loads(line)))
            except Exception as error:
                say("done", answer=None, error=f"{type(error).__name__}: {error}")

    async def run(self) -> None:
        """Until a signal."""
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        say("started", instance=self.me, key=self.key)
        self.spawn(self.obey())
        self.spawn(self.connect())
        await ended.wait()
        if self.leading:
            await self.stop_leading()
            self.lock.release()
        await self.stop_following()


def main() -> None:
    """As its options say."""
    options = argparse.ArgumentParser()
    options.add_argument("directory")
    options.add_argument("--lease", type=float, default=8.0)
    options.add_argument("--profile")
    options.add_argument("--cwd", default="/elsewhere")
    options.add_argument("--name", default="Other")
    options.add_argument("--shell", help="the birth identity of the parent, if another one's")
    options.add_argument("--provision", type=float, default=0.0, help="seconds that it takes")
    options.add_argument("--door", help="listen there, and say so in the entry")
    options.add_argument("--previous", help="a previous instance to name")
    options.add_argument("--thread", type=int, help="a thread to ask for")
    options.add_argument("--follow", action="store_true", help="do not lead at the start")
    options.add_argument("--bare", action="store_true", help="leave no threads in the state file")
    asyncio.run(Process(options.parse_args()).run())


if __name__ == "__main__":
    main()
