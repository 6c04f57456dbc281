"""The other system's leader as bus.md (b) and locks.md 9 describe it: it evicts by profile key, inherits heartbeat ages
(L12), and gives a follower one second to answer (L11)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import string
from collections.abc import Callable, Coroutine
from typing import Any

from tests.real import other_bus as bus
from tests.real.other_bus import Envelope, ack, may, no
from tests.real.other_runtime import Runtime, now, say


class Leader(Runtime):
    """A runtime that leads, when it is told to."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.leading = False
        self.server: bus.Server | None = None
        self.faults: dict[str, tuple[str, int]] = {}
        self.registry: dict[str, Envelope] = {}
        self.turns: dict[str, asyncio.Lock] = {}
        self.threads: list[Envelope] = []
        self.last = "Z"
        self.watchers: list[asyncio.Task[None]] = []
        self.come_back: Callable[[], Coroutine[Any, Any, None]]
        """What follows a loss."""

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
        self.spawn(self.come_back())

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
