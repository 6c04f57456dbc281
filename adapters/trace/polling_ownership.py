"""The twin `PollingOwnership` instantiated from a trace: one instance for each process.

A node is a runtime, ``PROCESS/INSTANCE``: the model's "new", or "old" and "new" where a process had two. Where it had
more, each is to those before it what the new one is to the old one (`polling_world`).

What events say: `args` names the action's parameters (`mode`, `written`, `fails`, `call`), where they are known;
`observed.phase`, `observed.poller` and `observed.live` are the phases of its two machines and the loops that live,
after the step. Commands and the answers of calls are always recorded; looks that changed nothing, requests and their
answers, and calls that return after their run was given up may be left out. Other processes and the clock are
environment.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from tenure.adapters.trace.instance import BUDGET, NOT_SAID, Args, Binding, Hidden, Instance, Label
from tenure.adapters.trace.lines import Event
from tenure.adapters.trace.polling_world import Several
from tenure.models.polling_ownership import Config, PollingOwnership, State

CAUSES: Final = frozenset(
    [
        "start",
        "stop",
        "session",
        "suspend",
        "late",
        "elect",
        "confirm",
        "busy",
        "fail",
        "crash",
        "reload",
        "pause",
        "force",
    ]
)
OMITTED: Final[Mapping[str, int]] = {
    "Refresh": 1,
    "Stopped": 1,
    "LoopEnds": 1,
    "Supersede": 2,
    "Answer": 1,
    "Request": 2,
}
BEFALLS: Final[Mapping[str, int]] = {
    "Calm": 1, "Continue": 1, "Busy": 2, "Expire": 3, "Pause": 3, "Reload": 3,
    "ForeignDies": 4, "ForeignLeaves": 4, "ForeignForces": 5,
}  # fmt: skip
NAMES: Final = ("old", "new")
MEMBERS: Final = ("poller", "live")
LOOKS: Final = frozenset({"Check", "Refresh", "Request"})


class PollingOwnerships(Instance[State]):
    """One process, with its runtimes."""

    module: ClassVar[str] = "PollingOwnership"
    parameters: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Acquire": ("mode",), "AcquireFails": ("mode", "written"), "Check": ("fails",), "Return": ("call",),
    }  # fmt: skip
    environment: ClassVar[frozenset[str]] = frozenset(
        [
            "Reload",
            "Expire",
            "Busy",
            "Calm",
            "Pause",
            "Continue",
            "Crash",
            "ForeignTakes",
            "ForeignForces",
            "ForeignDies",
            "ForeignLeaves",
        ]
    )

    def __init__(self, config: Config, title: str) -> None:
        super().__init__((PollingOwnership if set(config.runtimes) <= set(NAMES) else Several)(config), title)
        self.runtimes: dict[str, str] = {}

    @classmethod
    def of(cls, events: Sequence[Event], title: str, pool: dict[Hashable, object]) -> PollingOwnerships:
        nodes = list(dict.fromkeys(e.node for e in events))
        following = any(e.action == "Register" or e.observed.get("phase") == "follower" for e in events)
        several = tuple(str(number) for number in range(1, len(nodes) + 1))
        runtimes = several if len(nodes) > len(NAMES) else NAMES[-len(nodes) :]
        config = Config(runtimes, CAUSES, BUDGET, thread_mode=following)
        key = ("PollingOwnership", config.runtimes, following)
        found = pool.get(key)
        if not isinstance(found, cls):
            found = pool[key] = cls(config, title)
        found.title = title
        for node, runtime in zip(nodes, config.runtimes, strict=True):
            found.runtimes[node] = runtime
        return found

    def process_of(self, event: Event) -> str:
        return event.process

    def label(self, event: Event, binding: Binding) -> Label:
        observed, args = event.observed, event.args
        phase = observed.get("phase", "")
        names = self.parameters.get(event.action, ())
        known = tuple((n, args[n]) for n in names if n in args)
        more = tuple((m, observed[m]) for m in MEMBERS if m in observed)
        return Label(
            self.runtimes[event.node],
            event.action,
            known,
            NOT_SAID,
            NOT_SAID,
            phase if type(phase) is str else "?",
            more,
        )

    def agrees(self, before: State, after: State, label: Label, args: Args) -> bool:
        return self._is(after, label)

    def _is(self, state: State, label: Label) -> bool:
        if label.phase and state.node[label.node].phase != label.phase:
            return False
        poll = state.poller[label.node]
        return all(value == (poll.phase if member == "poller" else poll.live) for member, value in label.more)

    def stutters(self, state: State, label: Label) -> bool:
        """A look or a request that changes nothing. A look sees what stands there."""
        runtime = label.node
        if label.action not in LOOKS or runtime not in state.node:
            return False
        if not self._is(state, label) or not state.outside[runtime].watched:
            return False
        if state.paused or state.passed:
            return False
        if label.action == "Check" and ("fails", True) in label.args:
            return state.busy
        return label.action == "Request" or state.busy or state.entry.owner == runtime

    def hidden(self, state: State, label: Label, ended: frozenset[str]) -> Iterable[Hidden]:
        for runtime in state.node:
            extra = 0 if runtime == label.node else 1
            for action, cost in OMITTED.items():
                yield Hidden(cost + extra, action, (runtime,))
            yield Hidden(1 + extra, "Check", (runtime, False))
            for call in sorted(state.outside[runtime].calls):
                if call in ("register", "on_acquired", "start_polling", "clean_up"):
                    yield Hidden(2 + extra, "Return", (runtime, call))
        for action, cost in BEFALLS.items():
            yield Hidden(cost, action, ())
        yield Hidden(4, "ForeignTakes", ("there",))
        yield Hidden(5, "ForeignTakes", ("here",))

    def phase(self, state: State, node: str) -> str:
        return state.node[node].phase if node in state.node else "not there yet"

    def shown(self, state: State) -> str:
        said = [f"{r} {n.phase}, its poller {state.poller[r].phase}" for r, n in state.node.items()]
        flags = [name for name in ("passed", "busy", "paused") if getattr(state, name)]
        return f"owner {state.entry.owner}; {'; '.join(said)}" + (f"; {', '.join(flags)}" if flags else "")
