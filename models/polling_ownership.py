"""The twin of `spec/PollingOwnership.tla`: one process's side of polling, its registry key, and what befalls both.

The runtimes and their poll loops are the machines; their outputs are performed here on the environment's variables
(calls outstanding, watchers on, loops live), so that a missing or a superfluous output is a different graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar, Final

import attrs

from tenure.machines import poller as loop
from tenure.machines import polling_ownership as own
from tenure.machines.chart import Refused
from tenure.machines.laws import Law
from tenure.machines.poller import POLLER, Loops
from tenure.machines.polling_ownership import POLLING_OWNERSHIP, Acquire, Memory, Output, Report, Saw
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, fair, prohibition


@attrs.frozen(cache_hash=True)
class Node:
    """One runtime: its machine's phase and memory."""

    phase: str
    waiting: bool
    shown: int
    session: int


@attrs.frozen(cache_hash=True)
class Poll:
    """One runtime's poll loop: its machine's phase and the loops that have not ended."""

    phase: str
    live: int


@attrs.frozen(cache_hash=True)
class Outside:
    """What is true around one runtime, whatever it remembers."""

    calls: frozenset[str]
    watched: bool
    asking: bool
    noticed: bool
    live: int
    wish: bool
    closing: int


@attrs.frozen(cache_hash=True)
class Entry:
    """The registry's entry for this profile, as seen from here."""

    owner: str
    cwd: str
    live: bool
    id: int


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    node: FrozenMap[str, Node]
    poller: FrozenMap[str, Poll]
    outside: FrozenMap[str, Outside]
    entry: Entry
    passed: bool
    busy: bool
    paused: bool
    reloaded: bool
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    runtimes: tuple[str, ...]
    causes: frozenset[str]
    budget: int
    thread_mode: bool = False
    background: bool = False


def _config(causes: str, budget: int, *runtimes: str, thread_mode: bool = False, background: bool = False) -> Config:
    return Config(runtimes or ("new",), frozenset(causes.split()), budget, thread_mode, background)


CONFIGS: Mapping[str, Config] = {
    "start": _config("start stop busy fail", 3),
    "loss": _config("start pause force busy", 4),
    "takeover": _config("start confirm", 3),
    "threads": _config("start confirm elect", 3, thread_mode=True),
    "session": _config("start session suspend late crash", 4),
    "background": _config("start session", 2, background=True),
    "reload": _config("start session suspend reload pause", 3, "old", "new"),
    "all": _config("start stop suspend session busy pause force fail confirm crash", 3),
}
"""The configurations of the manifest by name; each equals `spec/PollingOwnership_<name>.cfg`."""

NONE: Final = Entry("none", "there", False, 0)
IDLE: Final = Node("idle", False, 0, 0)
OFF: Final = Poll("off", 0)
ALONE: Final = Outside(frozenset(), False, False, False, 0, False, 0)
MODES: Final = frozenset({"plain", "force", "elect", "resume"})
STARTING: Final = frozenset({"refreshing", "preparing", "launching", "confirming"})
AT_REST: Final = frozenset({"idle", "suspended", "retired"})

_ANSWERS: Final[Mapping[str, own.Happening]] = {
    "register": own.Registered(),
    "on_acquired": own.Prepared(),
    "start_polling": own.Launched(),
    "clean_up": own.Cleaned(),
}
_ACQUIRED, _ACQUIRE_FAILED, _FAILED = own.Acquired(), own.AcquireFailed(), own.Failed()
_RETURNED: Final = {call: own.Returned(call == "register") for call in (*MODES, *_ANSWERS)}
_LOOKS: Final = {
    (kind, saw, passed): kind(saw, passed)
    for kind in (own.Refreshed, own.Checked)
    for saw in ("mine", "other", "unknown")
    for passed in (False, True)
}


def _grow(map_: FrozenMap[str, Node], key: str, value: Node) -> FrozenMap[str, Node]:
    return map_ if map_[key] == value else map_.set(key, value)


class _Draft:
    """A successor in the making: the fields of a state, changed by outputs, then frozen."""

    __slots__ = ("budget", "busy", "entry", "node", "outside", "passed", "paused", "poller", "reloaded")

    def __init__(self, state: State) -> None:
        self.node = state.node
        self.poller = state.poller
        self.outside = state.outside
        self.entry = state.entry
        self.passed = state.passed
        self.busy = state.busy
        self.paused = state.paused
        self.reloaded = state.reloaded
        self.budget = state.budget

    def around(self, r: str, **changes: object) -> None:
        self.outside = self.outside.set(r, attrs.evolve(self.outside[r], **changes))

    def done(self, state: State) -> Iterable[State]:
        """The step, unless it changes nothing (the budget apart): such a step does not exist."""
        after = State(
            self.node, self.poller, self.outside, self.entry, self.passed, self.busy, self.paused, self.reloaded,
            state.budget,
        )  # fmt: skip
        if after == state:
            return ()
        if self.budget == state.budget:
            return (after,)
        return (attrs.evolve(after, budget=self.budget),)


class PollingOwnership(World[State]):
    """A process with one runtime, or an old and a new one, that may poll one bot."""

    module: ClassVar[str] = "PollingOwnership"
    tables = (POLLING_OWNERSHIP, POLLER)
    environment = (
        prohibition("exact_owner", Law.FENCE),
        prohibition("observed_still_there", Law.FENCE),
        prohibition("heartbeat_from_acquisition", Law.PROOF),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(POLLING_OWNERSHIP)
        self.loops = self.weakened(POLLER)
        self.runtimes = config.runtimes
        self.starts = {alone: own.Start(not config.background, alone) for alone in (False, True)}
        self.reload_possible = "old" in config.runtimes

    def initial(self) -> Iterable[State]:
        each = self.runtimes
        yield State(
            FrozenMap({r: IDLE for r in each}),
            FrozenMap({r: OFF for r in each}),
            FrozenMap({r: ALONE for r in each}),
            NONE, False, False, False, not self.reload_possible, self.config.budget,
        )  # fmt: skip

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((r,) for r in self.runtimes)
        modes = tuple((r, m) for r in self.runtimes for m in sorted(MODES))
        either = tuple((r, b) for r in self.runtimes for b in (False, True))
        places = (("here",), ("there",))
        found = (
            Action("Start", self._start, each),
            Action("Force", self._force, each),
            Action("Elect", self._elect, each),
            Action("SessionStart", self._session_start, each),
            Action("Stop", self._stop, each),
            Action("Suspend", self._suspend, each),
            Action("LateSuspend", self._late_suspend, each),
            Action("AutoRun", self._auto_run, each),
            Action("Acquire", self._acquire, modes),
            Action("AcquireFails", self._acquire_fails, tuple((*m, b) for m in modes for b in (False, True))),
            Action("Register", self._register, each),
            Action("RegisterFails", self._register_fails, each),
            Action("Refresh", self._refresh, each),
            Action("Check", self._check, either),
            Action("Prepared", self._prepared, each),
            Action("Begin", self._begin, each),
            Action("Fail", self._fail, each),
            Action("LoopDies", self._loop_dies, each),
            Action("LoopEnds", self._loop_ends, each),
            Action("Return", self._return, tuple((r, c) for r in self.runtimes for c in _ANSWERS)),
            Action("CleanUp", self._clean_up, each),
            Action("CleanUpFails", self._clean_up_fails, each),
            Action("Stopped", self._stopped, each),
            Action("Release", self._release, each),
            Action("ReleaseFails", self._release_fails, each),
            Action("Supersede", self._supersede, each),
            Action("Request", self._request, each),
            Action("Answer", self._answer, each),
            Action("Reload", self._reload),
            Action("Expire", self._expire),
            Action("Busy", self._get_busy),
            Action("Calm", self._calm),
            Action("Pause", self._pause),
            Action("Continue", self._continue),
            Action("Crash", self._crash, places),
            Action("ForeignTakes", self._foreign_takes, places),
            Action("ForeignForces", self._foreign_forces),
            Action("ForeignDies", self._foreign_dies),
            Action("ForeignLeaves", self._foreign_leaves),
        )
        self.named = {a.name: a for a in found}
        return found

    # -- how a participant takes a step -----------------------------------------------------------------------------

    def _runs(self, state: State, r: str) -> bool:
        return not state.paused and (r == "old" or state.reloaded)

    def _tell(self, draft: _Draft, r: str, message: own.Happening) -> bool:
        """Offer `message` to the runtime and perform what it answers; False when it refuses."""
        node = draft.node[r]
        result = self.step(self.table, node.phase, Memory(node.waiting, node.shown, node.session), message)
        if isinstance(result, Refused):
            return False
        data = result.data
        draft.node = _grow(draft.node, r, Node(result.phase, data.waiting, data.shown, data.session))
        for output in result.outputs:
            self._perform(draft, r, output)
        return True

    def _perform(self, draft: _Draft, r: str, output: Output) -> None:
        if isinstance(output, Report):
            return
        if isinstance(output, Acquire):
            draft.around(r, calls=draft.outside[r].calls | {output.mode})
        elif output in ("register", "on_acquired", "start_polling", "clean_up", "release"):
            draft.around(r, calls=draft.outside[r].calls | {output})
            if output == "start_polling":
                self._turn(draft, r, loop.Start())
        elif output == "start_watchers":
            draft.around(r, watched=True, noticed=False)
        elif output == "stop_watchers":
            draft.around(r, watched=False)
        elif output == "stop_polling":
            self._turn(draft, r, loop.Stop())
        elif output == "transmit":
            draft.around(r, asking=True)

    def _turn(self, draft: _Draft, r: str, message: loop.Happening) -> bool:
        """Offer `message` to the runtime's poller; False when it refuses."""
        poll = draft.poller[r]
        result = self.step(self.loops, poll.phase, Loops(poll.live), message)
        if isinstance(result, Refused):
            return False
        draft.poller = draft.poller.set(r, Poll(result.phase, result.data.live))
        return True

    def _answered(self, draft: _Draft, r: str, call: str, message: own.Happening) -> None:
        """`call` is answered: with `message`, or as the return of an abandoned run when that is refused."""
        draft.around(r, calls=draft.outside[r].calls - {call})
        if not self._tell(draft, r, message):
            self._tell(draft, r, _RETURNED[call])

    def _spend(self, draft: _Draft, cause: str) -> bool:
        if cause not in self.config.causes or draft.budget == 0:
            return False
        draft.budget -= 1
        return True

    def _simple(self, state: State, r: str, message: own.Happening, cause: str | None = None) -> Iterable[State]:
        """A message from outside that needs nothing but a running process (and a cause)."""
        draft = _Draft(state)
        if not self._runs(state, r) or (cause is not None and not self._spend(draft, cause)):
            return ()
        return draft.done(state) if self._tell(draft, r, message) else ()

    # -- the registry -------------------------------------------------------------------------------------------------

    def _stale(self, state: State) -> bool:
        entry = state.entry
        if entry.owner in self.runtimes:
            return state.passed
        return entry.owner != "none" and not entry.live

    def _won(self, state: State, r: str, mode: str) -> bool:
        """What locks.md 7.1 answers to an acquire in this mode."""
        entry = state.entry
        exact = entry.owner != "none" and entry.id == state.node[r].shown
        if mode == "elect":
            return entry.owner == "none" or (self._stale(state) and exact)
        free = (
            entry.owner in ("none", r) or self._stale(state) or (entry.owner == "old" and r == "new")
        )  # fmt: skip
        if mode == "resume":
            return free and (entry.owner == r or self.guard("observed_still_there", exact))
        return free or (mode == "force" and self.guard("exact_owner", exact))

    def _write(self, draft: _Draft, r: str) -> None:
        if draft.entry.owner != r:
            draft.entry = Entry(r, "here", True, 0)
            draft.passed = False

    def _fresh_id(self, state: State) -> int:
        used = {node.shown for node in state.node.values()}
        return next(n for n in range(1, len(used) + 2) if n not in used)

    def _alone(self, state: State, r: str) -> bool:
        if r == "old" or not self.reload_possible:
            return True
        return state.node["old"].phase == "retired" and state.poller["old"].live == 0

    # -- commands -----------------------------------------------------------------------------------------------------

    def _start(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, self.starts[self._alone(state, r)], "start")

    def _force(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, own.Force(), "confirm")

    def _elect(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, own.Elect(state.entry.id), "elect")

    def _session_start(self, state: State, r: str) -> Iterable[State]:
        around, entry = state.outside[r], state.entry
        draft = _Draft(state)
        late = "late" in self.config.causes and around.closing == 0
        if not self._runs(state, r) or (around.live != 0 and not late) or not self._spend(draft, "session"):
            return ()
        session = next(n for n in (1, 2, 3) if n not in (around.live, around.closing))
        message = own.SessionStart(
            session=session,
            interactive=not self.config.background,
            observed=entry.id,
            mine=entry.owner == r,
            here=entry.owner != "none" and entry.cwd == "here",
            stale=self._stale(state),
            same_process=entry.owner in self.runtimes and entry.owner != r,
        )
        at_rest = state.node[r].phase in AT_REST
        closing = around.live if around.live != 0 else around.closing
        draft.around(r, live=session, closing=closing, wish=around.wish or at_rest)
        return draft.done(state) if self._tell(draft, r, message) else ()

    def _stop(self, state: State, r: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._runs(state, r) or not self._spend(draft, "stop") or not self._tell(draft, r, own.Stop()):
            return ()
        draft.around(r, wish=False)
        return draft.done(state)

    def _suspend(self, state: State, r: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._runs(state, r) or not self._spend(draft, "suspend"):
            return ()
        if not self._tell(draft, r, own.Suspend(state.outside[r].live)):
            return ()
        draft.around(r, live=0, wish=False)
        return draft.done(state)

    def _late_suspend(self, state: State, r: str) -> Iterable[State]:
        closing = state.outside[r].closing
        if not self._runs(state, r) or closing == 0:
            return ()
        draft = _Draft(state)
        self._tell(draft, r, own.Suspend(closing))
        draft.around(r, closing=0)
        return draft.done(state)

    # -- a start, step by step ----------------------------------------------------------------------------------------

    def _auto_run(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, own.AutoRun(self._alone(state, r)))

    def _acquire(self, state: State, r: str, mode: str) -> Iterable[State]:
        if not self._runs(state, r) or state.busy or mode not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        if self._won(state, r, mode):
            self._write(draft, r)
            self._answered(draft, r, mode, _ACQUIRED)
        else:
            self._answered(draft, r, mode, own.Denied(state.entry.id))
        return draft.done(state)

    def _acquire_fails(self, state: State, r: str, mode: str, written: bool) -> Iterable[State]:
        if not self._runs(state, r) or not state.busy or mode not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        if written:
            if not self._won(state, r, mode):
                return ()
            self._write(draft, r)
        self._answered(draft, r, mode, _ACQUIRE_FAILED)
        return draft.done(state)

    def _register(self, state: State, r: str) -> Iterable[State]:
        possible = self.config.thread_mode and state.entry.owner == "other" and state.entry.live
        return self._call(state, r, "register", _ANSWERS["register"]) if possible else ()

    def _register_fails(self, state: State, r: str) -> Iterable[State]:
        return self._call(state, r, "register", own.Unregistered(self.config.thread_mode))

    def _call(
        self, state: State, r: str, call: str, message: own.Happening, cause: str | None = None
    ) -> Iterable[State]:
        """The answer to a call, while the run that made it goes on."""
        draft = _Draft(state)
        if not self._runs(state, r) or call not in state.outside[r].calls:
            return ()
        if cause is not None and not self._spend(draft, cause):
            return ()
        draft.around(r, calls=draft.outside[r].calls - {call})
        return draft.done(state) if self._tell(draft, r, message) else ()

    def _refresh(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or not state.outside[r].watched:
            return ()
        draft = _Draft(state)
        first = state.node[r].phase == "refreshing"
        saw: Saw = "unknown"
        if not state.busy and (first or not state.passed):
            saw = "mine" if state.entry.owner == r else "other"
        if saw == "mine":
            draft.passed = False
        return self._looked(state, draft, r, own.Refreshed, saw)

    def _check(self, state: State, r: str, fails: bool) -> Iterable[State]:
        if not self._runs(state, r) or not state.outside[r].watched or (fails and not state.busy):
            return ()
        saw: Saw = "unknown" if fails else "mine" if state.entry.owner == r else "other"
        return self._looked(state, _Draft(state), r, own.Checked, saw)

    def _looked(
        self, state: State, draft: _Draft, r: str, kind: type[own.Refreshed | own.Checked], saw: Saw
    ) -> Iterable[State]:
        passed = state.passed
        if not self._tell(draft, r, _LOOKS[kind, saw, passed]):
            return ()
        if state.node[r].phase != "refreshing" and (saw == "other" or passed):
            draft.around(r, noticed=True)
        return draft.done(state)

    def _prepared(self, state: State, r: str) -> Iterable[State]:
        return self._call(state, r, "on_acquired", _ANSWERS["on_acquired"])

    def _begin(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or "start_polling" not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        if not self._turn(draft, r, loop.Begin(state.entry.owner == r and not state.passed)):
            return ()
        self._answered(draft, r, "start_polling", _ANSWERS["start_polling"])
        return draft.done(state)

    def _fail(self, state: State, r: str) -> Iterable[State]:
        call = {"preparing": "on_acquired", "launching": "start_polling"}.get(state.node[r].phase, "")
        return self._call(state, r, call, _FAILED, "fail")

    def _return(self, state: State, r: str, call: str) -> Iterable[State]:
        if not self._runs(state, r) or call not in state.outside[r].calls or self._tell(_Draft(state), r, _ANSWERS[call]):
            return ()
        draft = _Draft(state)
        self._answered(draft, r, call, _RETURNED[call])
        return draft.done(state)

    # -- its end ------------------------------------------------------------------------------------------------------

    def _loop_dies(self, state: State, r: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._runs(state, r) or state.poller[r].phase != "running" or not self._spend(draft, "fail"):
            return ()
        self._turn(draft, r, loop.Ended())
        self._tell(draft, r, _FAILED)
        return draft.done(state)

    def _loop_ends(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or state.poller[r].phase == "running" or state.poller[r].live == 0:
            return ()
        draft = _Draft(state)
        self._turn(draft, r, loop.Ended())
        draft.around(r, asking=False, noticed=False)
        return draft.done(state)

    def _clean_up(self, state: State, r: str) -> Iterable[State]:
        return self._call(state, r, "clean_up", _ANSWERS["clean_up"])

    def _clean_up_fails(self, state: State, r: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._runs(state, r) or state.node[r].phase != "cleaning" or not self._spend(draft, "fail"):
            return ()
        if "clean_up" not in state.outside[r].calls:
            return ()
        draft.around(r, calls=draft.outside[r].calls - {"clean_up"})
        self._tell(draft, r, own.CleanUpFailed())
        return draft.done(state)

    def _stopped(self, state: State, r: str) -> Iterable[State]:
        poll = state.poller[r]
        draft = _Draft(state)
        if not self._runs(state, r) or poll.phase != "off" or poll.live != 0 or not self._tell(draft, r, own.Stopped()):
            return ()
        draft.around(r, asking=False, noticed=False)
        return draft.done(state)

    def _release(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or state.busy or "release" not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        if state.entry.owner == r:
            draft.entry, draft.passed = NONE, False
        draft.around(r, calls=draft.outside[r].calls - {"release"})
        self._tell(draft, r, own.Released())
        return draft.done(state)

    def _release_fails(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or not state.busy or "release" not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        draft.around(r, calls=draft.outside[r].calls - {"release"})
        self._tell(draft, r, own.ReleaseFailed(state.passed))
        return draft.done(state)

    def _supersede(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, own.Superseded()) if r == "old" and state.reloaded else ()

    def _request(self, state: State, r: str) -> Iterable[State]:
        return self._simple(state, r, own.Request(state.passed))

    def _answer(self, state: State, r: str) -> Iterable[State]:
        if not state.outside[r].asking:
            return ()
        draft = _Draft(state)
        draft.around(r, asking=False)
        return draft.done(state)

    # -- what befalls the process and its key -------------------------------------------------------------------------

    def _reload(self, state: State) -> Iterable[State]:
        draft = _Draft(state)
        if state.paused or state.reloaded or not self._spend(draft, "reload"):
            return ()
        draft.reloaded = True
        return draft.done(state)

    def _expire(self, state: State) -> Iterable[State]:
        if state.passed or not any(self._unrefreshed(state, r) for r in self.runtimes):
            return ()
        return (attrs.evolve(state, passed=True),)

    def _unrefreshed(self, state: State, r: str) -> bool:
        watched = state.outside[r].watched
        if not watched:
            return state.entry.owner == r
        late = state.node[r].phase in STARTING and self.guard("heartbeat_from_acquisition", False)
        return state.paused or state.busy or late

    def _get_busy(self, state: State) -> Iterable[State]:
        draft = _Draft(state)
        if state.busy or not self._spend(draft, "busy"):
            return ()
        draft.busy = True
        return draft.done(state)

    def _calm(self, state: State) -> Iterable[State]:
        return (attrs.evolve(state, busy=False),) if state.busy else ()

    def _pause(self, state: State) -> Iterable[State]:
        draft = _Draft(state)
        if state.paused or not self._spend(draft, "pause"):
            return ()
        draft.paused = True
        return draft.done(state)

    def _continue(self, state: State) -> Iterable[State]:
        return (attrs.evolve(state, paused=False),) if state.paused else ()

    def _crash(self, state: State, cwd: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._spend(draft, "crash"):
            return ()
        entry = state.entry
        if entry.owner in self.runtimes:
            draft.entry = Entry("former", cwd, False, 1)
        elif entry.owner != "none" and cwd == "there":
            draft.entry = attrs.evolve(entry, cwd="there")
        draft.node = FrozenMap({r: IDLE for r in self.runtimes})
        draft.poller = FrozenMap({r: OFF for r in self.runtimes})
        draft.outside = FrozenMap({r: ALONE for r in self.runtimes})
        draft.passed = draft.paused = False
        draft.reloaded = not self.reload_possible
        return draft.done(state)

    def _foreign_takes(self, state: State, cwd: str) -> Iterable[State]:
        if state.busy or not (state.entry.owner == "none" or self._stale(state)):
            return ()
        return (attrs.evolve(state, entry=Entry("other", cwd, True, self._fresh_id(state))),)

    def _foreign_forces(self, state: State) -> Iterable[State]:
        draft = _Draft(state)
        if state.busy or state.entry.owner not in self.runtimes or not self._spend(draft, "force"):
            return ()
        draft.entry = Entry("other", "there", True, self._fresh_id(state))
        return draft.done(state)

    def _foreign_dies(self, state: State) -> Iterable[State]:
        entry = state.entry
        return (attrs.evolve(state, entry=attrs.evolve(entry, live=False)),) if entry.owner == "other" and entry.live else ()

    def _foreign_leaves(self, state: State) -> Iterable[State]:
        return (attrs.evolve(state, entry=NONE),) if state.entry.owner == "other" and not state.busy else ()

    # -- properties ---------------------------------------------------------------------------------------------------

    def _each(self, holds: Callable[[State, str], bool]) -> Callable[[State], bool]:
        return lambda state: all(holds(state, r) for r in self.runtimes)

    def _each_step(self, holds: Callable[[State, State, str], bool]) -> Callable[[State, State], bool]:
        return lambda before, after: all(holds(before, after, r) for r in self.runtimes)

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {
            "PollOnlyOwned_S37": self._one_loop,
            "FailedStartLeavesNothing_S27": self._each(self._idle_is_clean),
            "LossStopsPolling_S29": self._each(self._noticed_stops),
            "NoStealAtSessionStart_A41": lambda s: not (self.config.background and s.entry.owner in self.runtimes),
        }

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "PollOnlyOwned_S25": self._each_step(self._begins_owned),
            "PollOnlyOwned_S26": self._each_step(self._announces_owned),
            "PollOnlyOwned_S28": self._slow_is_not_stale,
            "PollOnlyOwned_S30": self._live_leader_is_kept,
            "PollOnlyOwned_S15": self._each_step(self._evicts_only_shown),
            "PollOnlyOwned_S34": self._each_step(self._rest_is_rest),
            "PollOnlyOwned_K11": self._each_step(self._asks_alone),
            "NoStealAtSessionStart_S33": self._each_step(self._session_takes_what_was_left),
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        each = [self._promises(r) for r in self.runtimes]
        return {name: tuple(promises[name] for promises in each) for name in each[0]}

    def _promises(self, r: str) -> Mapping[str, LeadsTo[State]]:
        def quiet(s: State) -> bool:
            return s.poller[r].live == 0

        def polling(s: State) -> bool:
            return s.poller[r].phase == "running"

        def lost(s: State) -> bool:
            return s.entry.owner != r or s.passed

        def waits(s: State) -> bool:
            phase, entry = s.node[r].phase, s.entry
            mine = phase == "suspended" and entry.owner == r
            left = entry.owner == "former" and entry.cwd == "here" and phase != "retired"
            return s.outside[r].wish and (mine or left)

        def healthy(s: State) -> bool:
            return not lost(s) and s.node[r].phase not in ("suspended", "retired")

        def leaving(s: State) -> bool:
            return s.node[r].phase in ("cleaning", "unwinding", "releasing")

        return {
            "EventuallyPolling_V10": LeadsTo(waits, lambda s: not waits(s)),
            "EventuallyPolling_V10_left": LeadsTo(leaving, lambda s: not leaving(s)),
            "EventuallyPolling_V11": LeadsTo(lambda s: polling(s) and lost(s), quiet),
            "EventuallyPolling_V12": LeadsTo(healthy, lambda s: polling(s) or not healthy(s)),
        }

    def fairness(self) -> tuple[Fair, ...]:
        self.actions()
        found = [fair(Strength.WEAK, self.named[name]) for name in ("Calm", "Continue")]
        for name in ("AutoRun", "RegisterFails", "Refresh", "Prepared", "Begin", "LoopEnds", "CleanUp", "Stopped",
                     "Release", "Supersede"):  # fmt: skip
            found += [fair(Strength.WEAK, self.named[name], r) for r in self.runtimes]
        for r in self.runtimes:
            found += [
                Fair(Strength.WEAK, frozenset(("Acquire", (r, m)) for m in MODES)),
                Fair(Strength.WEAK, frozenset(("Check", (r, b)) for b in (False, True))),
                Fair(Strength.WEAK, frozenset(("Return", (r, c)) for c in _ANSWERS)),
            ]
        return tuple(found)

    def _one_loop(self, state: State) -> bool:
        return sum(poll.live for poll in state.poller.values()) <= 1

    def _idle_is_clean(self, state: State, r: str) -> bool:
        if state.node[r].phase != "idle":
            return True
        return state.poller[r].phase == "off" and (state.entry.owner != r or state.passed)

    def _noticed_stops(self, state: State, r: str) -> bool:
        return not (state.outside[r].noticed and state.poller[r].phase == "running")

    def _begins_owned(self, before: State, after: State, r: str) -> bool:
        return after.poller[r].live <= before.poller[r].live or (before.entry.owner == r and not before.passed)

    def _announces_owned(self, before: State, after: State, r: str) -> bool:
        if after.node[r].phase != "active" or before.node[r].phase == "active":
            return True
        return before.entry.owner == r and not before.passed

    def _slow_is_not_stale(self, before: State, after: State) -> bool:
        if before.passed or not after.passed or before.paused or before.busy:
            return True
        return not any(around.watched for around in before.outside.values())

    def _live_leader_is_kept(self, before: State, after: State) -> bool:
        if not self.config.thread_mode:
            return True
        if any(after.node[r].phase == "follower" and after.poller[r].phase != "off" for r in self.runtimes):
            return False
        live = before.entry.owner == "other" and before.entry.live
        return not (live and after.entry.owner in self.runtimes)

    def _evicts_only_shown(self, before: State, after: State, r: str) -> bool:
        live = before.entry.owner == "other" and before.entry.live
        return not (live and after.entry.owner == r) or before.node[r].shown == before.entry.id

    def _rest_is_rest(self, before: State, after: State, r: str) -> bool:
        if before.node[r].phase not in AT_REST:
            return True
        takes = after.entry.owner == r and before.entry.owner != r
        return not takes and after.poller[r].live <= before.poller[r].live

    def _asks_alone(self, before: State, after: State, r: str) -> bool:
        asks = after.outside[r].asking and not before.outside[r].asking
        return not (asks and before.passed and before.entry.owner != r)

    def _session_takes_what_was_left(self, before: State, after: State, r: str) -> bool:
        if "resume" not in before.outside[r].calls or before.entry.owner == r or after.entry.owner != r:
            return True
        return before.entry.owner != "none" and before.entry.cwd == "here"
