"""The twin of `spec/PollingOwnership.tla`: one process's side of polling, its registry key, and what befalls both.

The runtimes and their poll loops are the machines; their outputs are performed here on the environment's variables
(calls outstanding, watchers on, loops live), so that a missing or a superfluous output is a different graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar, Final

import attrs

from tenure.machines import poller as loop
from tenure.machines import polling_messages as own
from tenure.machines.chart import Step
from tenure.machines.laws import Law
from tenure.machines.poller import POLLER, Loops
from tenure.machines.polling_messages import Acquire, Memory, Output, Report, Saw
from tenure.machines.polling_ownership import POLLING_OWNERSHIP
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, fair, prohibition, taken


@attrs.frozen(cache_hash=True)
class Node(Memory):
    """One runtime: its machine's memory and phase."""

    phase: str = "idle"


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
    "loss": _config("start pause force busy", 3),
    "takeover": _config("start confirm", 3),
    "threads": _config("start stop suspend busy confirm elect", 3, thread_mode=True),
    "session": _config("start session suspend late crash", 4),
    "background": _config("start session elect", 2, background=True),
    "reload": _config("start stop session suspend reload pause", 3, "old", "new"),
    "followers": _config("start elect reload", 3, "old", "new", thread_mode=True),
    "all": _config("start stop suspend session busy pause force fail confirm crash", 4),
}
"""The configurations of the manifest by name; each equals `spec/PollingOwnership_<name>.cfg`."""

NONE: Final = Entry("none", "there", False, 0)
IDLE: Final = Node()
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
_FORCE, _STOPS, _SUPERSEDED = own.Force(), own.Stop(), own.Superseded()
_STOPPED, _RELEASED = own.Stopped(), own.Released()
_ACQUIRED, _ACQUIRE_FAILED, _FAILED, _CLEAN_UP_FAILED = (
    own.Acquired(), own.AcquireFailed(), own.Failed(), own.CleanUpFailed(),
)  # fmt: skip
_RETURNED: Final = {call: own.Returned(call == "register") for call in (*MODES, *_ANSWERS)}
_SUSPENDS: Final = [own.Suspend(n) for n in range(4)]
_AUTO_RUNS: Final = [own.AutoRun(alone) for alone in (False, True)]
_RELEASE_FAILED: Final = [own.ReleaseFailed(passed) for passed in (False, True)]
_REQUESTS: Final = [own.Request(passed) for passed in (False, True)]
_LOOKS: Final = {
    (kind, saw, passed): kind(saw, passed)
    for kind in (own.Refreshed, own.Checked)
    for saw in ("mine", "other", "unknown")
    for passed in (False, True)
}
_START, _STOP, _ENDED = loop.Start(), loop.Stop(), loop.Ended()
_BEGINS: Final = [loop.Begin(owned) for owned in (False, True)]

Taken = Step[Memory, Output]


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

    def around(self, r: str, **changes: Any) -> None:
        """``[outside EXCEPT ![r].x = ...]``; attrs.evolve would be half of the explorer's time."""
        before = self.outside[r]
        get = changes.get
        self.outside = self.outside.set(
            r,
            Outside(
                get("calls", before.calls),
                get("watched", before.watched),
                get("asking", before.asking),
                get("noticed", before.noticed),
                get("live", before.live),
                get("wish", before.wish),
                get("closing", before.closing),
            ),
        )

    def done(self, state: State) -> Iterable[State]:
        """The step, unless it changes nothing but the budget: such a step does not exist."""
        same = (
            self.passed == state.passed
            and self.busy == state.busy
            and self.paused == state.paused
            and self.reloaded == state.reloaded
            and self.entry == state.entry
            and self.node == state.node
            and self.outside == state.outside
            and self.poller == state.poller
        )
        if same:
            return ()
        after = State(
            self.node, self.poller, self.outside, self.entry, self.passed, self.busy, self.paused, self.reloaded,
            self.budget,
        )  # fmt: skip
        return (after,)


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
        self.heard: dict[tuple[Node, own.Happening], Taken | None] = {}
        self.runtimes = config.runtimes
        self.starts = {alone: own.Start(not config.background, alone) for alone in (False, True)}
        owners = range(len(config.runtimes) + 3)
        self.denied = [own.Denied(n) for n in owners]
        self.elections = {
            (observed, alone): own.Elect(observed, not config.background, alone)
            for observed in owners
            for alone in (False, True)
        }
        self.unregistered = own.Unregistered(config.thread_mode)
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
        return not state.paused and self._there(state, r)

    def _there(self, state: State, r: str) -> bool:
        return r == "old" or state.reloaded

    def _succeeds(self, r: str, other: str) -> bool:
        return r == "new" and other == "old"

    def _hear(self, state: State, r: str, message: own.Happening) -> Taken | None:
        """Offer `message` to the runtime, whatever its phase. A machine is a function: its answer is remembered."""
        key = (state.node[r], message)
        try:
            return self.heard[key]
        except KeyError:
            done = self.heard[key] = taken(self.step(self.table, key[0].phase, key[0], message))
            return done

    def _turn(self, draft: _Draft, r: str, message: loop.Happening) -> bool:
        """Offer `message` to the runtime's poller; False when it refuses."""
        poll = draft.poller[r]
        done = taken(self.step(self.loops, poll.phase, Loops(poll.live), message))
        if done is not None:
            draft.poller = draft.poller.set(r, Poll(done.phase, done.data.live))
        return done is not None

    def _perform(self, draft: _Draft, r: str, done: Taken | None) -> None:
        """What the runtime answered becomes true around it."""
        if done is None:
            return
        data = done.data
        draft.node = draft.node.set(r, Node(data.waiting, data.shown, data.session, done.phase))
        for output in done.outputs:
            if isinstance(output, Report):
                continue
            if isinstance(output, Acquire):
                draft.around(r, calls=draft.outside[r].calls | {output.mode})
            elif output in ("register", "on_acquired", "start_polling", "clean_up", "release"):
                draft.around(r, calls=draft.outside[r].calls | {output})
                if output == "start_polling":
                    self._turn(draft, r, _START)
            elif output == "start_watchers":
                draft.around(r, watched=True, noticed=False)
            elif output == "stop_watchers":
                draft.around(r, watched=False)
            elif output == "stop_polling":
                self._turn(draft, r, _STOP)
            elif output == "transmit":
                draft.around(r, asking=True)

    def _on(
        self, state: State, r: str, message: own.Happening, call: str = "", cause: str = "", **around: Any
    ) -> Iterable[State]:
        """The runtime takes `message`: the answer to `call`, for a `cause` that costs, with `around` changed beside."""
        done = self._hear(state, r, message)
        if done is None or not self._runs(state, r) or (call and call not in state.outside[r].calls):
            return ()
        draft = _Draft(state)
        if cause and not self._spend(draft, cause):
            return ()
        if call:
            draft.around(r, calls=draft.outside[r].calls - {call})
        self._perform(draft, r, done)
        if around:
            draft.around(r, **around)
        return draft.done(state)

    def _spend(self, draft: _Draft, cause: str) -> bool:
        if cause not in self.config.causes or draft.budget == 0:
            return False
        draft.budget -= 1
        return True

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
            entry.owner in ("none", r) or self._stale(state) or self._succeeds(r, entry.owner)
        )  # fmt: skip
        if mode == "resume":
            return free and (entry.owner == r or self.guard("observed_still_there", exact))
        return free or (mode == "force" and self.guard("exact_owner", exact))

    def _fresh_id(self, state: State) -> int:
        used = {node.shown for node in state.node.values()}
        return next(n for n in range(1, len(used) + 2) if n not in used)

    def _alone(self, state: State, r: str) -> bool:
        before = [other for other in state.node if self._succeeds(r, other)]
        return all(state.node[other].phase == "retired" and state.poller[other].live == 0 for other in before)

    # -- commands -----------------------------------------------------------------------------------------------------

    def _start(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, self.starts[self._alone(state, r)], cause="start")

    def _force(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _FORCE, cause="confirm")

    def _elect(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, self.elections[state.entry.id, self._alone(state, r)], cause="elect")

    def _session_start(self, state: State, r: str) -> Iterable[State]:
        around, entry = state.outside[r], state.entry
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
        successor = "late" in self.config.causes and around.closing == 0
        if around.live != 0 and not successor:
            self._hear(state, r, message)
            return ()
        at_rest = state.node[r].phase in AT_REST
        closing = around.live if around.live != 0 else around.closing
        wish = around.wish or at_rest
        return self._on(state, r, message, cause="session", live=session, closing=closing, wish=wish)

    def _stop(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _STOPS, cause="stop", wish=False)

    def _suspend(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _SUSPENDS[state.outside[r].live], cause="suspend", live=0, wish=False)

    def _late_suspend(self, state: State, r: str) -> Iterable[State]:
        closing = state.outside[r].closing
        if not self._runs(state, r) or closing == 0:
            return ()
        draft = _Draft(state)
        self._perform(draft, r, self._hear(state, r, _SUSPENDS[closing]))
        draft.around(r, closing=0)
        return draft.done(state)

    # -- a start, step by step ----------------------------------------------------------------------------------------

    def _auto_run(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _AUTO_RUNS[self._alone(state, r)])

    def _acquire(self, state: State, r: str, mode: str) -> Iterable[State]:
        won = self._won(state, r, mode)
        done = self._hear(state, r, _ACQUIRED if won else self.denied[state.entry.id])
        if done is None:
            done = self._hear(state, r, _RETURNED[mode])
        if not self._runs(state, r) or state.busy or mode not in state.outside[r].calls:
            return ()
        return self._landed(state, r, mode, won, done)

    def _acquire_fails(self, state: State, r: str, mode: str, written: bool) -> Iterable[State]:
        done = self._hear(state, r, _ACQUIRE_FAILED)
        if done is None:
            done = self._hear(state, r, _RETURNED[mode])
        if not self._runs(state, r) or not state.busy or mode not in state.outside[r].calls:
            return ()
        if written and not self._won(state, r, mode):
            return ()
        return self._landed(state, r, mode, written, done)

    def _landed(self, state: State, r: str, mode: str, written: bool, done: Taken | None) -> Iterable[State]:
        """An acquire is over: what it wrote, and what the runtime made of its answer."""
        draft = _Draft(state)
        if written and state.entry.owner != r:
            draft.entry = Entry(r, "here", True, 0)
            draft.passed = False
        draft.around(r, calls=state.outside[r].calls - {mode})
        self._perform(draft, r, done)
        return draft.done(state)

    def _register(self, state: State, r: str) -> Iterable[State]:
        after = self._on(state, r, _ANSWERS["register"], "register")
        possible = self.config.thread_mode and state.entry.owner == "other" and state.entry.live
        return after if possible else ()

    def _register_fails(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, self.unregistered, "register")

    def _refresh(self, state: State, r: str) -> Iterable[State]:
        first = state.node[r].phase == "refreshing"
        saw: Saw = "unknown"
        if not state.busy and (first or not state.passed):
            saw = "mine" if state.entry.owner == r else "other"
        return self._looked(state, r, own.Refreshed, saw)

    def _check(self, state: State, r: str, fails: bool) -> Iterable[State]:
        saw: Saw = "unknown" if fails else "mine" if state.entry.owner == r else "other"
        return self._looked(state, r, own.Checked, saw) if state.busy or not fails else ()

    def _looked(self, state: State, r: str, kind: type[own.Refreshed | own.Checked], saw: Saw) -> Iterable[State]:
        done = self._hear(state, r, _LOOKS[kind, saw, state.passed])
        if done is None or not self._runs(state, r) or not state.outside[r].watched:
            return ()
        draft = _Draft(state)
        if saw == "mine" and kind is own.Refreshed:
            draft.passed = False
        self._perform(draft, r, done)
        if state.node[r].phase != "refreshing" and (saw == "other" or state.passed):
            draft.around(r, noticed=True)
        return draft.done(state)

    def _prepared(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _ANSWERS["on_acquired"], "on_acquired")

    def _begin(self, state: State, r: str) -> Iterable[State]:
        done = self._hear(state, r, _ANSWERS["start_polling"])
        draft = _Draft(state)
        begun = self._turn(draft, r, _BEGINS[state.entry.owner == r and not state.passed])
        if not begun or not self._runs(state, r) or "start_polling" not in state.outside[r].calls:
            return ()
        draft.around(r, calls=state.outside[r].calls - {"start_polling"})
        self._perform(draft, r, done)
        return draft.done(state)

    def _fail(self, state: State, r: str) -> Iterable[State]:
        call = "on_acquired" if state.node[r].phase == "preparing" else "start_polling"
        return self._on(state, r, _FAILED, call, "fail")

    def _return(self, state: State, r: str, call: str) -> Iterable[State]:
        late = self._hear(state, r, _RETURNED[call])
        if call not in state.outside[r].calls or not self._runs(state, r):
            return ()
        if self._hear(state, r, _ANSWERS[call]) is not None:
            return ()
        draft = _Draft(state)
        draft.around(r, calls=state.outside[r].calls - {call})
        self._perform(draft, r, late)
        return draft.done(state)

    # -- its end ------------------------------------------------------------------------------------------------------

    def _loop_dies(self, state: State, r: str) -> Iterable[State]:
        draft = _Draft(state)
        if not self._runs(state, r) or state.poller[r].phase != "running" or not self._spend(draft, "fail"):
            return ()
        self._turn(draft, r, _ENDED)
        self._perform(draft, r, self._hear(state, r, _FAILED))
        return draft.done(state)

    def _loop_ends(self, state: State, r: str) -> Iterable[State]:
        if not self._runs(state, r) or state.poller[r].phase == "running" or state.poller[r].live == 0:
            return ()
        draft = _Draft(state)
        self._turn(draft, r, _ENDED)
        draft.around(r, asking=False, noticed=False)
        return draft.done(state)

    def _clean_up(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _ANSWERS["clean_up"], "clean_up")

    def _clean_up_fails(self, state: State, r: str) -> Iterable[State]:
        done = self._hear(state, r, _CLEAN_UP_FAILED)
        draft = _Draft(state)
        if not self._runs(state, r) or "clean_up" not in state.outside[r].calls or not self._spend(draft, "fail"):
            return ()
        if state.node[r].phase != "cleaning":
            return ()
        draft.around(r, calls=draft.outside[r].calls - {"clean_up"})
        self._perform(draft, r, done)
        return draft.done(state)

    def _stopped(self, state: State, r: str) -> Iterable[State]:
        after = self._on(state, r, _STOPPED, asking=False, noticed=False)
        return after if state.poller[r] == OFF else ()

    def _release(self, state: State, r: str) -> Iterable[State]:
        done = self._hear(state, r, _RELEASED)
        if not self._runs(state, r) or state.busy or "release" not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        if state.entry.owner == r:
            draft.entry, draft.passed = NONE, False
        draft.around(r, calls=state.outside[r].calls - {"release"})
        self._perform(draft, r, done)
        return draft.done(state)

    def _release_fails(self, state: State, r: str) -> Iterable[State]:
        done = self._hear(state, r, _RELEASE_FAILED[state.passed])
        if not self._runs(state, r) or not state.busy or "release" not in state.outside[r].calls:
            return ()
        draft = _Draft(state)
        draft.around(r, calls=state.outside[r].calls - {"release"})
        self._perform(draft, r, done)
        return draft.done(state)

    def _supersede(self, state: State, r: str) -> Iterable[State]:
        over = any(self._succeeds(other, r) and self._there(state, other) for other in state.node)
        return self._on(state, r, _SUPERSEDED) if over else ()

    def _request(self, state: State, r: str) -> Iterable[State]:
        return self._on(state, r, _REQUESTS[state.passed])

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
        if state.passed or not any(self._unrefreshed(state, r) for r in state.node):
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
        if entry.owner != "other" or not entry.live:
            return ()
        return (attrs.evolve(state, entry=attrs.evolve(entry, live=False)),)

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
