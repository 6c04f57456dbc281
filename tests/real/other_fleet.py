"""A process of the other system: `python other_fleet.py DIR [options]`. It leads or follows as bus.md (b) and locks.md
9 to 12 describe it, with every hole: it evicts by profile key, waits for a leader that hangs (K3), inherits heartbeat
ages (L12), and forgets what a failed promotion leaves behind (K4).

What happens is said on standard output, one JSON object a line; commands come on standard input, one a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import string
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is a part of no package

from tests.real import other_bus as bus
from tests.real import other_system as system
from tests.real.other_bus import Envelope, ack, may, no


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


class Process:
    """One runtime."""

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
        place = self.room / "followers" / (options.profile or "")
        self.receiver = bus.Server(str(place / f"{self.me.replace(':', '_')}.sock"), self.deliver)
        self.count = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.leading = False
        self.server: bus.Server | None = None
        self.faults: dict[str, tuple[str, int]] = {}
        self.registry: dict[str, Envelope] = {}
        self.turns: dict[str, asyncio.Lock] = {}
        self.threads: list[Envelope] = []
        self.last = "Z"
        self.watchers: list[asyncio.Task[None]] = []
        self.held: Envelope = {}
        """The registration that is held: door, secret, generation, target, slot, name."""
        self.known: Envelope = {}
        self.roster: list[str] = []
        self.heart: asyncio.Task[None] | None = None
        self.beating: str | None = None
        self.recovering = False
        self.free = asyncio.Event()
        """Nothing keeps a delivery from being answered."""
        self.free.set()

    # -- both ---------------------------------------------------------------------------------------------------------

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

    async def connect(self) -> None:
        """Lead or follow, at last (locks.md 9.1)."""
        while not self.leading and not self.held and not self.recovering:
            if not self.options.follow and self.lock.acquire():
                await self.lead({})
                return
            if (entry := self.lock.entry()) is not None and self.lock.state() == "active-elsewhere":
                try:
                    if await self.register(entry, {}):
                        return
                except Exception as error:
                    say("refused", text=f"{type(error).__name__}: {error}")
            await asyncio.sleep(self.grace / 5)

    # -- leader -------------------------------------------------------------------------------------------------------

    async def lead(self, binding: Envelope) -> bool:
        """The owned start (locks.md 9.2)."""
        self.watchers = [self.spawn(self.check()), self.spawn(self.refresh())]
        try:
            if not self.lock.refresh():
                return await self.stop_leading()
            self.load()
            for thread in self.threads:  # mine as a follower is the leader's from now on: after winning (S32)
                if thread["profileKey"] == self.key and thread["profileKey"] != self.own_key:
                    thread |= {"profileKey": self.own_key, "owner": {"kind": "leader"}}
                    self.threads = [t for t in self.threads if t is thread or t["profileKey"] != self.own_key]
            mine = self.provision(self.own_key, "leader", self.me, binding)
            self.server = bus.Server(self.door, self.answer, self.lock.commit_if_owned)
            self.server.faults = self.faults
            await self.server.start()
        except Exception as error:
            await self.stop_leading()
            self.lock.release()
            say("rollback", text=f"{type(error).__name__}: {error}")
            raise
        self.watchers.append(self.spawn(self.prune()))
        if not self.lock.owns():
            return await self.stop_leading()
        self.leading = True
        say("leading", slot=mine["slot"], name=mine["threadName"], epoch=self.lock.entry()["leaderEpoch"])  # type: ignore[index]
        return True

    async def stop_leading(self) -> bool:
        """Whatever was begun."""
        self.leading = False
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            if watcher is not asyncio.current_task():
                watcher.cancel()
        if self.server is not None:
            await self.server.stop()
        self.registry.clear()
        return False

    async def lose(self, why: str) -> None:
        """The lease is somebody else's."""
        await self.stop_leading()
        say("lost", why=why)
        self.spawn(self.connect())

    async def check(self) -> None:
        """Every second: is it still mine?"""
        while True:
            await asyncio.sleep(self.tick)
            if not self.lock.owns():
                return await self.lose("check")

    async def refresh(self) -> None:
        """Every two seconds; one failure is a loss (K6)."""
        while True:
            await asyncio.sleep(2 * self.tick)
            try:
                kept = self.lock.refresh()
            except Exception as error:
                return await self.lose(str(error))
            if not kept:
                return await self.lose("refresh")

    async def prune(self) -> None:
        """Drop who is silent; publish the endpoint again where it is missing."""
        while True:
            await asyncio.sleep(self.tick)
            for name, entry in tuple(self.registry.items()):
                if now() - entry["heard"] > self.silent_ms:
                    del self.registry[name]
                    say("pruned", instance=name)
            if self.server is not None and self.server.up and not os.path.exists(self.server.path):
                await self.server.stop()
                await self.server.start()
                say("healed")

    def load(self) -> None:
        """What the leader before left in the state file."""
        state = self.state() or {}
        self.threads = [t for t in state.get("threads", []) if bus.target_of(t.get("target")) is not None]
        self.last = state.get("bot", {}).get("lastSlot") or "Z"

    def state(self) -> Envelope | None:
        """The state file; None for what is none."""
        with suppress(OSError, ValueError):
            found = json.loads(self.state_path.read_text())
            return found if isinstance(found, dict) and found.get("version") == 1 else None
        return None

    def persist(self) -> None:
        """Temp, and a rename inside the transaction."""
        threads = [] if self.options.bare else self.threads
        bot = {"threadMode": "enabled", "lastSlot": self.last, "updatedAtMs": now()}
        empty: dict[str, list[Any]] = {"identities": [], "reservations": [], "pendingProvisions": []}
        state = {"version": 1, "source": "snapshot", "writtenAtMs": now(), "bot": bot, "threads": threads, **empty}
        state |= {"pendingCleanups": [], "syncObservations": []}
        temporary = self.state_path.with_name(f"{self.state_path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(state, indent=2) + "\n")
        if not self.lock.commit_if_owned(lambda: os.rename(temporary, self.state_path)):
            raise RuntimeError("not the owner")

    def provision(self, key: str, kind: str, instance: str, wanted: Envelope) -> Envelope:
        """A thread: that of the profile, else what is wanted and free, else a new one."""
        found = next((t for t in self.threads if t["profileKey"] == key), None)
        if found is None:
            slots = {t.get("slot") for t in self.threads}
            ring = [string.ascii_uppercase[(ord(self.last) - 64 + k) % 26] for k in range(26)]
            slot = (
                wanted["slot"] if wanted.get("slot") not in (None, *slots) else next(s for s in ring if s not in slots)
            )
            targets = [t["target"] for t in self.threads]
            fresh = {"chatId": 777, "threadId": 1 + max([100, *(t.get("threadId", 0) for t in targets)])}
            target = wanted.get("target")
            found = {
                "owner": {"kind": kind},
                "profileKey": key,
                "target": fresh if target is None or target in targets else target,
                "status": "active",
                "slot": slot,
                "threadName": wanted.get("name") or wanted.get("threadName") or f"Thread{slot}",
                "createdAtMs": now(),
            }
            self.threads.append(found)
            self.last = slot
        found |= {"instanceId": instance, "updatedAtMs": now()}
        self.persist()
        return found

    def live(self, request: Envelope) -> Envelope | str:
        """The entry that a request names, with its very generation."""
        entry = self.registry.get(request.get("recipientInstanceId") or request.get("instanceId") or "")
        if entry is None:
            return "unknown instance"
        named = request.get("recipientRegistrationGeneration") or request.get("registrationGeneration")
        return entry if named and named == entry["registrationGeneration"] else "stale generation"

    async def answer(self, request: Envelope) -> Envelope:
        """LEADER SERVER ORDER."""
        if not may(self.secret, request):
            return no(request, "unauthorized")
        if request["kind"] == "follower.register":
            return await self.admit(request, request["registration"])
        entry = self.live(request)
        if isinstance(entry, str):
            return no(request, entry)
        if request["kind"] != "follower.disconnect":
            entry["heard"] = now()
        match request["kind"]:
            case "follower.heartbeat":
                capable = [e for e in self.registry.values() if bus.DURABLE in e["protocol"]["capabilities"]]
                slots = sorted({e["slot"] for e in capable if now() - e["heard"] <= self.silent_ms})
                return ack(request, True, result={"eligibleElectionSlots": slots})
            case "follower.disconnect":
                async with self.turn(entry):
                    if isinstance(again := self.live(request), str):
                        return no(request, again)
                    self.threads = [t for t in self.threads if t["profileKey"] != entry.get("profileKey")]
                    self.persist()
                    self.registry.pop(entry["instanceId"], None)
                    return ack(request, True)
            case "follower.callApi":
                return ack(request, True, result={"id": 1})
            case kind if kind.startswith("leader.forward"):
                return await self.relay(request, entry)
        return no(request, "not handled")

    def turn(self, registration: Envelope) -> asyncio.Lock:
        """One change of a profile at a time."""
        name = registration.get("profileKey") or registration["instanceId"]
        return self.turns.setdefault(name, asyncio.Lock())

    async def admit(self, request: Envelope, asked: Envelope) -> Envelope:
        """A registration."""
        if (why := bus.unlike(asked.get("protocol"))) is not None:
            error = {"code": "incompatible-protocol"}
            return no(request, f"incompatible: {why}", protocol=bus.IDENTITY, error=error)
        async with self.turn(asked):
            if not asked.get("registrationGeneration") or not self.lock.owns():
                return no(request, "refused", protocol=bus.IDENTITY)
            await asyncio.sleep(self.options.provision)
            key = asked.get("profileKey") or f"manual:{asked['instanceId']}"
            place = self.provision(key, "manual-follower", asked["instanceId"], asked)
            for name, other in tuple(self.registry.items()):
                same = other.get("profileKey") == asked.get("profileKey") or other["target"] == place["target"]
                if name != asked["instanceId"] and same:
                    del self.registry[name]
                    say("evicted", instance=name)
            before = self.registry.get(asked["instanceId"], {"heard": now()})
            slot, target = place["slot"], place["target"]
            self.registry[asked["instanceId"]] = asked | {"slot": slot, "target": target, "heard": before["heard"]}
            say("accepted", registration=asked, slot=slot, target=target)
            result = target | {"slot": slot, "threadName": place["threadName"]}
            return ack(request, True, protocol=bus.IDENTITY, result=result)

    async def relay(self, request: Envelope, entry: Envelope) -> Envelope:
        """One second for the follower (L11)."""
        try:
            found = await bus.send(entry["busSocketPath"], request | {"auth": self.secret}, 1.0)
        except Exception as error:
            return no(request, f"{type(error).__name__}: {error}")
        return found or no(request, "no response")

    # -- follower -----------------------------------------------------------------------------------------------------

    async def deliver(self, request: Envelope) -> Envelope:
        """FOLLOWER SERVER ORDER."""
        if not may(self.held.get("secret"), request):
            return no(request, "unauthorized")
        if request.get("recipientInstanceId") != self.me or not request["kind"].startswith("leader."):
            return no(request, "not for me")
        generation = self.held.get("generation")
        if generation is None or request.get("recipientRegistrationGeneration") != generation:
            return no(request, "stale")
        if request["kind"] == "leader.replaceFollowerTarget":
            self.held["target"] = request["target"]
            return ack(request, True)
        say("asked to deliver")
        await self.free.wait()
        delivery = request["delivery"]
        if delivery["recipientBindingKey"] != self.key:
            return no(request, "another binding")
        say("delivered", kind=request["kind"], delivery=delivery)
        return ack(request, True, result={k: delivery[k] for k in ("deliveryId", "sourceUpdateId")})

    async def register(self, entry: Envelope, binding: Envelope, before: str | None = None) -> bool:
        """Rows 1 to 8."""
        if ((self.state() or {}).get("bot") or {}).get("threadMode") != "enabled":
            say("unreadable state")
            return False
        await self.receiver.start()
        carried = {k: v for k, v in (binding or self.known).items() if k in ("target", "slot") and v is not None}
        if before is not None:
            carried["previousInstanceId"] = before
        if self.options.previous:
            carried = {
                "previousInstanceId": self.options.previous,
                "target": {"chatId": 0, "threadId": self.options.thread},
            }
        door, secret, generation = entry.get("busSocketPath") or self.door, entry.get("busSecret"), self.next_id()
        registration = {
            "instanceId": self.me,
            "connectedAtMs": now(),
            "profileKey": self.key,
            "threadName": (binding or self.known).get("name") or self.options.name,
            **carried,
            "cwd": self.options.cwd,
            "pid": os.getpid(),
            "busSocketPath": self.receiver.path,
            "registrationGeneration": generation,
            "protocol": bus.IDENTITY,
            "sessionGeneration": 1,
            "processBirthId": birth(os.getpid()),
        }
        request = {"kind": "follower.register", "requestId": generation, "auth": secret, "registration": registration}
        self.held = {"secret": secret}
        answer = None
        try:
            answer = await bus.send(door, request, self.patience, 10, 0.15 * self.beat)
            if answer is not None and (why := bus.unlike(answer.get("protocol"))) is not None:
                raise RuntimeError(f"incompatible: {why}")
            if answer is not None and not answer["ok"]:
                raise RuntimeError(answer.get("message", "refused"))
        finally:
            if answer is None or not answer["ok"] or bus.unlike(answer.get("protocol")) is not None:
                await self.stop_following()
        if answer is None:
            return False
        result = answer["result"]
        place = {"target": bus.target_of(result), "slot": result.get("slot"), "name": result.get("threadName")}
        self.held = {"door": door, "secret": secret, "generation": generation, **place}
        self.known = place
        say("following", leader=entry["pid"], generation=generation, **place)
        await self.heartbeat(generation)
        if self.held.get("generation") == generation:
            if self.heart is not None:
                self.heart.cancel()
            self.heart = self.spawn(self.beats(generation))
        return True

    async def beats(self, generation: str) -> None:
        """Every second."""
        while self.held.get("generation") == generation:
            await asyncio.sleep(self.beat)
            self.spawn(self.heartbeat(generation))

    async def heartbeat(self, generation: str) -> None:
        """One at a time; what comes late is ignored."""
        if self.held.get("generation") != generation or self.beating == generation:
            return
        self.beating = generation
        try:
            answer = await bus.send(self.held["door"], self.request("follower.heartbeat"), 1.0)
            why = "no response" if answer is None else answer.get("message", "refused")
        except Exception as error:
            answer, why = None, type(error).__name__
        finally:
            self.beating = None
        if self.held.get("generation") != generation:
            return
        if answer is not None and answer["ok"]:
            slots = answer["result"]["eligibleElectionSlots"]
            if slots != self.roster:
                self.roster = slots
                say("roster", slots=slots)
            return
        say("heartbeat failed", why=why)
        self.spawn(self.recover())

    def request(self, kind: str, **members: Any) -> Envelope:
        """A request of the registration that is held."""
        mine = {"instanceId": self.me, "registrationGeneration": self.held["generation"], "sentAtMs": now()}
        return {"kind": kind, "requestId": self.next_id(), "auth": self.held["secret"], **mine, **members}

    async def stop_following(self) -> None:
        """No registration, no receiver."""
        self.held = {}
        if self.heart is not None and self.heart is not asyncio.current_task():
            self.heart.cancel()
        await self.receiver.stop()

    async def recover(self, carried: Envelope | None = None) -> None:
        """R1 to R5, one at a time."""
        if self.recovering or self.leading:
            return
        self.recovering = True
        try:
            again = await self.recovery(
                carried or {k: self.held.get(k) or self.known.get(k) for k in ("target", "slot", "name")}
            )
        finally:
            self.recovering = False
        if again is not None:
            await asyncio.sleep(self.grace)
            self.spawn(self.recover(again))

    async def recovery(self, binding: Envelope) -> Envelope | None:
        """One recovery; the binding to try again with, None when it is over."""
        deferred = False
        while True:
            if self.lock.state() == "active-elsewhere":
                if await self.retry(binding):
                    return None
                await asyncio.sleep(self.grace)
                if self.lock.state() == "active-elsewhere":
                    return None if await self.retry(binding) else binding
            if self.lock.state() == "active-here":
                return None
            before_me = [slot for slot in self.roster if binding.get("slot") and slot < binding["slot"]]
            if not before_me or deferred:
                break
            deferred = True
            say("deferring", to=before_me)
            await asyncio.sleep(self.grace)
        seen = self.lock.entry()
        await self.stop_following()
        if not self.lock.elect(seen):
            say("lost the election")
            return binding
        return None if await self.lead(binding) else binding

    async def restart(self, pause: float) -> bool:
        """A leader's session is replaced: the entry stays, the endpoint is gone for so long, and then another
        activation of this process supersedes the one before (row A5)."""
        await self.stop_leading()
        await asyncio.sleep(pause)
        self.lock.started = now()
        self.me = f"{os.getpid()}:{self.lock.started}"
        system.transaction(self.lock.registry, self.lock.take)
        return await self.lead({})

    async def reload(self) -> str:
        """Rows 16 and 17: another activation of this process takes the place of the one before; its instance."""
        before, entry = self.me, self.lock.entry()
        await self.stop_following()
        self.me = f"{os.getpid()}:{now()}"
        room = Path(self.receiver.path).parent
        self.receiver = bus.Server(str(room / f"{self.me.replace(':', '_')}.sock"), self.deliver)
        assert entry is not None
        await self.register(entry, self.known, before)
        return self.me

    async def retry(self, binding: Envelope) -> bool:
        """Register again."""
        entry = self.lock.entry()
        try:
            return entry is not None and await self.register(entry, binding)
        except Exception as error:
            say("refused", text=f"{type(error).__name__}: {error}")
            return False

    # -- commands -----------------------------------------------------------------------------------------------------

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
