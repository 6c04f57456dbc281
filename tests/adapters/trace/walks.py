"""Traces without drivers: a twin walks at random, and its participants record as drivers do."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Any

import attrs

from tenure.adapters.trace.file_transaction import LEAVING, OMITTED, OWN_CLAIM
from tenure.adapters.trace.leader_election import OMITTED as LEASE_OMITTED
from tenure.adapters.trace.lines import Event, Trace
from tenure.adapters.trace.polling_ownership import NAMES
from tenure.adapters.trace.polling_world import Several
from tenure.models import file_transaction as guards
from tenure.models import leader_election as leases
from tenure.models import polling_ownership as polls
from tenure.models.world import World

THREE = {"a": "P", "b": "Q", "c": "R"}
RARE = 0.03


@attrs.define
class Recording:
    """Files of events, one for each process, as they are written."""

    files: dict[str, list[Event]] = attrs.field(factory=dict)
    last: int = 0
    now: int = 0

    def note(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: str | int | None = None,
    ) -> None:
        file = self.files.setdefault(node.partition("/")[0], [])
        self.now += 1
        seq = len(file) + 1
        name = f"{node.partition('/')[0]}.trace"
        file.append(
            Event(name, seq, module, action, node, seq, number, self.last, args or {}, observed or {}, tenure, self.now)
        )

    def trace(self, rng: random.Random) -> Trace:
        """All of them, in any order of the files."""
        files = list(self.files.values())
        rng.shuffle(files)
        return Trace([event for file in files for event in file])

    def lose_last(self, process: str) -> None:
        """A kill: the event that was being written is lost."""
        if self.files.get(process):
            self.files[process].pop()


def choose(
    world: World[Any], state: Any, rng: random.Random, rare: Collection[str]
) -> tuple[str, tuple[Any, ...], Any]:
    """A step of the world; what is rare is taken rarely."""
    steps = [(a.name, args, after) for a in world.actions() for args in a.args for after in a.body(state, *args)]
    usual = [s for s in steps if s[0] not in rare]
    return rng.choice(usual if usual and rng.random() > RARE else steps)


def walk_guard(
    seed: int, steps: int, chatty: float = 0.1, threads: Mapping[str, str] = THREE
) -> tuple[Recording, random.Random]:
    """A walk of FileTransaction, with crashes, reuse of pids and failures."""
    rng = random.Random(seed)
    faults = frozenset({"crash", "reuse", "rename", "stage", "tidy"})
    world = guards.FileTransaction(guards.Config(dict(threads), faults, 1 << 30, ("none",)))
    (state,) = world.initial()
    recording = Recording()
    births = dict.fromkeys(threads.values(), 1)
    fresh = dict.fromkeys(threads.values(), False)
    number = dict.fromkeys(threads, 0)
    real: dict[int, str] = {}
    drawn = 0
    rare = {
        "Crash",
        "StageFails",
        "PublishFails",
        "ClaimFails",
        "MoveFails",
        "RollBackFails",
        "TidyFails",
        "ReleaseFails",
    }
    silent = {name for names in OMITTED.values() for name in names}
    for _ in range(steps):
        action, args, after = choose(world, state, rng, rare)
        if action in ("Crash", "Reuse"):
            pid = args[0]
            if action == "Crash":
                if fresh[pid] and rng.random() < 0.5:
                    recording.lose_last(f"{pid}-{births[pid]}")
            else:
                births[pid] += 1
                fresh[pid] = False
            state = after
            continue
        thread = args[0]
        node, then = state.node[thread], after.node[thread]
        if action == "Stage":
            drawn += 1
            real[then.id] = f"generation-{drawn}"
        if action == "Claim":
            drawn += 1
            real[after.guard.claim] = f"claim-{drawn}"
        if action == "Publish":
            recording.last += 1
            number[thread] = recording.last
        inside = number[thread] if node.phase in guards.INSIDE or action == "Publish" or action in LEAVING else 0
        fresh[threads[thread]] = action not in silent or rng.random() < chatty
        if fresh[threads[thread]]:
            own = (node.claim or then.claim) if action in OWN_CLAIM else (node.id or then.id)
            observed: dict[str, object] = {"phase": then.phase}
            if action == "Observe" and state.guard.kind in ("owner", "marker"):
                observed["id"] = real[state.guard.id]
            name = f"{threads[thread]}-{births[threads[thread]]}/{thread}"
            recording.note("FileTransaction", action, name, inside, None, observed, real.get(own) if own else None)
        state = after
    return recording, rng


def walk_lease(seed: int, steps: int, chatty: float = 0.1) -> tuple[Recording, random.Random]:
    """A walk of LeaderElection: three runtimes in two processes."""
    rng = random.Random(seed)
    runtimes = {"a": ("x", "main"), "b": ("x", "main"), "c": ("y", "main")}
    causes = frozenset({"crash", "pause", "force", "write", "release"})
    world = leases.LeaderElection(leases.Config(runtimes, ("main",), causes, 1 << 30, 1 << 30))
    (state,) = world.initial()
    recording = Recording()
    lives = {"x": 1, "y": 1}
    started: set[str] = set()
    number = 0
    rare = {"Crash", "Pass", "FailWrite", "LoseWrite", "FailRaise", "Abandon", "Release", "Displaced", "Force"}
    silent = {name for names in LEASE_OMITTED.values() for name in names} | {"Begin", "Leave"}
    environment = {"Crash", "Pass", "Age", "Arrive"}
    for _ in range(steps):
        action, args, after = choose(world, state, rng, rare)
        if action == "Crash":
            lives[args[0]] += 1
            started -= {r for r, (process, _) in runtimes.items() if process == args[0]}
        if action == "Begin":
            number += 1
            recording.last = number
        if action not in environment:
            runtime = args[0]
            node, then = state.node[runtime], after.node[runtime]
            name = f"{runtimes[runtime][0]}-{lives[runtimes[runtime][0]]}/{runtime}-{lives[runtimes[runtime][0]]}"
            if action not in silent or rng.random() < chatty or action == "Start":
                held = then.tenure if then.tenure.epoch else node.tenure
                observed: dict[str, object] = {"phase": then.phase}
                if action in ("Acquire", "Elect", "Force", "Supersede", "Displaced"):
                    lease = state.entry["main"]
                    owner = None if lease.owner == "none" else lease.owner
                    if owner is not None:
                        process = runtimes[owner][0]
                        observed["owner"] = None
                        life = lives[process] if lease.life == "alive" else None
                        observed["owner"] = f"{owner}-{life}" if life else None
                        if life is None:
                            del observed["owner"]
                    else:
                        observed["owner"], observed["id"] = None, None
                    if observed.get("owner"):
                        observed["id"] = 10 * lease.epoch + 3
                recording.note(
                    "LeaderElection",
                    action,
                    name,
                    number if state.guard == runtime else 0,
                    {"key": "main"} if action == "Start" else {},
                    observed,
                    10 * held.epoch + 3 if held.epoch else None,
                )
        state = after
    return recording, rng


def walk_polling(seed: int, steps: int, runtimes: tuple[str, ...] = NAMES) -> tuple[Recording, random.Random]:
    """A walk of PollingOwnership: an old and a new runtime of one process, or more of them."""
    rng = random.Random(seed)
    causes = frozenset({"start", "stop", "session", "suspend", "busy", "fail", "pause", "force", "reload"})
    world = (polls.PollingOwnership if runtimes == NAMES else Several)(polls.Config(runtimes, causes, 1 << 30))
    (state,) = world.initial()
    recording = Recording()
    rare = {"Busy", "Pause", "Fail", "LoopDies", "Stop", "Suspend", "ForeignForces", "CleanUpFails", "Reload"}
    environment = {
        "Reload", "Expire", "Busy", "Calm", "Pause", "Continue", "ForeignTakes", "ForeignForces", "ForeignDies",
        "ForeignLeaves", "Answer",
    }  # fmt: skip
    names = {"Acquire": ("mode",), "AcquireFails": ("mode",), "Check": ("fails",), "Return": ("call",)}
    for _ in range(steps):
        action, args, after = choose(world, state, rng, rare)
        if action not in environment:
            runtime = args[0]
            poll = after.poller[runtime]
            observed = {"phase": after.node[runtime].phase, "poller": poll.phase, "live": poll.live}
            said = dict(zip(names.get(action, ()), args[1:], strict=False))
            recording.note("PollingOwnership", action, f"p-1/{runtime}", 0, said, observed)
        state = after
    return recording, rng
