"""The other system's follower as bus.md (b) and locks.md 12 describe it: it waits for a leader that hangs (K3), and
forgets what a failed promotion leaves behind (K4)."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from tests.real import other_bus as bus
from tests.real import other_system as system
from tests.real.other_bus import Envelope, ack, may, no
from tests.real.other_leader import Leader
from tests.real.other_runtime import birth, now, say


class Follower(Leader):
    """A runtime that leads or follows."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.come_back = self.connect
        place = self.room / "followers" / (options.profile or "")
        self.receiver = bus.Server(str(place / f"{self.me.replace(':', '_')}.sock"), self.deliver)
        self.receiver.faults = self.faults
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
        carrier = request[bus.BODIES.get(request["kind"], "message")]
        if delivery != bus.delivery(request["kind"], self.key, delivery["sourceUpdateId"]):
            say("another id", delivery=delivery)
        if carrier.get(bus.SOURCE) != delivery["sourceUpdateId"]:
            say("another source", carrier=carrier)
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
        self.receiver.faults = self.faults
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
