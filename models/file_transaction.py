"""The twin of `spec/FileTransaction.tla`: threads, processes and one path, with the machine in each thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import ClassVar, Final

import attrs

from tenure.machines.chart import Step
from tenure.machines.file_calls import (
    Aborted,
    Answer,
    Begin,
    Call,
    Claimed,
    ClaimMissed,
    GaveUp,
    Left,
    ListedOther,
    Looked,
    MarkerGone,
    MarkerJudged,
    MarkerListed,
    Moved,
    MovedAway,
    MoveFailed,
    Observed,
    OwnerJudged,
    OwnerListed,
    Published,
    PublishRefused,
    ReleasedDeleted,
    ReleaseFailed,
    RemoveNeighbour,
    Reread,
    RollbackFailed,
    RolledBack,
    Staged,
    StageFailed,
    StaleDeleted,
    Tidied,
    TidyFailed,
    Woke,
)
from tenure.machines.file_transaction import FILE_TRANSACTION, Attempt
from tenure.machines.laws import Law
from tenure.machines.transaction import ABANDONED, DAMAGED, NOBODY
from tenure.models import transaction
from tenure.models.world import (
    Action,
    Fair,
    FrozenMap,
    LeadsTo,
    Offers,
    Refinement,
    Strength,
    World,
    permission,
    prohibition,
    refine,
    taken,
)

INSIDE: Final = frozenset({"tidying", "inside", "verifying", "releasing"})
"""Phases in which the thread's own guard stands at the path."""
WAITING: Final = frozenset(FILE_TRANSACTION.phases) - INSIDE - {"idle", "deleting_released"}
"""Phases in which the thread wants to enter."""


@attrs.frozen(cache_hash=True)
class Path:
    """What stands at the path: absent, owner, marker, empty or alien, with the owner's payload and the claim."""

    kind: str
    id: int = 0
    pid: str = "none"
    birth: int = 0
    claim: int = 0
    claimant: str = "none"
    since: int = 0


NOTHING = Path("absent")


@attrs.frozen(cache_hash=True)
class Process:
    """The process that has a pid now."""

    up: bool
    birth: int


@attrs.frozen(cache_hash=True)
class Node:
    """A thread: the machine's phase and its `Attempt`."""

    phase: str
    id: int = 0
    saw: bool = False
    payload: int = 0
    name: int = 0
    claim: int = 0
    recovered: bool = False


IDLE = Node("idle")


@attrs.frozen(cache_hash=True)
class State:
    """VARIABLES of the module."""

    guard: Path
    proc: FrozenMap[str, Process]
    node: FrozenMap[str, Node]
    neighbour: str
    stranger: str
    budget: int


@attrs.frozen
class Config:
    """CONSTANTS of the module, without Off."""

    pid: Mapping[str, str]
    faults: frozenset[str] = frozenset()
    budget: int = 0
    neighbours: tuple[str, ...] = ("none",)
    foreign: frozenset[str] = frozenset()


_TWO = {"a": "P", "b": "Q"}
_THREE = {"a": "P", "b": "Q", "c": "R"}
_TWIN = {"a": "P", "b": "P", "c": "Q"}
_OWN = {"a": "P", "b": "P"}

CONFIGS: Mapping[str, Config] = {
    "two": Config(_TWO, frozenset({"crash", "reuse", "rename", "stage", "tidy"}), 3, ("dead", "live")),
    "pair": Config(_TWO, frozenset({"crash", "reuse"}), 3),
    "tidy": Config(_TWO, frozenset({"crash", "tidy"}), 2, ("dead", "live")),
    "rename": Config(_TWO, frozenset({"crash", "rename"}), 2),
    "three": Config(_THREE, frozenset({"crash"}), 2),
    "twin": Config(_TWIN, frozenset({"crash", "abort", "rename"}), 2),
    "own": Config(_OWN, frozenset({"crash", "abort", "reuse"}), 3),
    "stranger": Config(_TWO, frozenset({"litter", "stranger"}), 2),
    "tamper": Config(_TWO, frozenset({"tamper"}), 1),
    "foreign": Config(_TWO, frozenset({"crash", "rename"}), 2, foreign=frozenset({"P"})),
}
"""The configurations of the manifest by name; each equals `spec/FileTransaction_<name>.cfg`."""


class FileTransaction(World[State]):
    """Threads, their processes, and one guarded path."""

    module: ClassVar[str] = "FileTransaction"
    tables = (FILE_TRANSACTION,)
    environment = (
        prohibition("generation_is_fresh", Law.FRESH),
        prohibition("rename_refuses_occupied", Law.FENCE),
        prohibition("claim_by_name", Law.FENCE),
        prohibition("claim_precedes_move", Law.DURABLE_FIRST),
        permission("claim_rolls_back", Law.PROOF),
        prohibition("failed_tidy_leaks", Law.REFUSAL_IS_INERT),
        prohibition("no_nesting", Law.REFUSAL_IS_INERT),
        permission("release_is_retried", Law.UNKNOWN),
        prohibition("moved_away_first", Law.FENCE),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.table = self.weakened(FILE_TRANSACTION)
        self.pid = dict(config.pid)
        self.threads = tuple(self.pid)
        self.pids = tuple(dict.fromkeys(self.pid.values()))
        self._split: dict[Node, Attempt] = {}
        self._join: dict[tuple[str, Attempt], Node] = {}

    def initial(self) -> Iterable[State]:
        for neighbour in self.config.neighbours:
            yield State(
                NOTHING,
                FrozenMap({p: Process(True, 1) for p in self.pids}),
                FrozenMap({t: IDLE for t in self.threads}),
                neighbour,
                "out",
                self.config.budget,
            )

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((t,) for t in self.threads)
        pids = tuple((p,) for p in self.pids)
        return (
            Action("EnsureParent", self._ensure_parent, each),
            Action("Stage", self._stage, each),
            Action("StageFails", self._stage_fails, each),
            Action("Look", self._look, each),
            Action("Publish", self._publish, each),
            Action("PublishRefused", self._publish_refused, each),
            Action("PublishFails", self._publish_fails, each),
            Action("Observe", self._observe, each),
            Action("List", self._list, each),
            Action("JudgeOwner", self._judge_owner, each),
            Action("JudgeMarker", self._judge_marker, each),
            Action("Claim", self._claim, each),
            Action("ClaimMissed", self._claim_missed, each),
            Action("ClaimFails", self._claim_fails, each),
            Action("MoveUnclaimed", self._move_unclaimed, each, "claim_precedes_move"),
            Action("Move", self._move, each),
            Action("MoveFails", self._move_fails, each),
            Action("RollBack", self._roll_back, each),
            Action("RollBackFails", self._roll_back_fails, each),
            Action("Abort", self._abort, each),
            Action("DeleteStale", self._delete_stale, each),
            Action("Tidy", self._tidy, each),
            Action("TidyFails", self._tidy_fails, each),
            Action("Wake", self._wake, each),
            Action("GiveUp", self._give_up, each),
            Action("Leave", self._leave, each),
            Action("Nest", self._nest, each, "no_nesting"),
            Action("Verify", self._verify, each),
            Action("MoveAway", self._move_away, each),
            Action("ReleaseFails", self._release_fails, each),
            Action("DeleteReleased", self._delete_released, each),
            Action("EmptyInPlace", self._empty_in_place, each, "moved_away_first"),
            Action("DeleteInPlace", self._delete_in_place, each, "moved_away_first"),
            Action("Crash", self._crash, pids),
            Action("Reuse", self._reuse, pids),
            Action("Drop", self._drop),
            Action("Intrude", self._intrude),
            Action("StrangerLeaves", self._stranger_leaves),
            Action("Quarantine", self._quarantine),
            Action("Tamper", self._tamper),
        )

    def offers(self) -> Offers[State]:
        return Offers(self.table, lambda state, thread: state.node[thread].phase, _OFFERS)

    def fairness(self) -> tuple[Fair, ...]:
        return tuple(Fair(Strength.WEAK, frozenset((name, (t,)) for name in _PROGRESS)) for t in self.threads)

    # -- what the bodies are made of ------------------------------------------

    def _taken(self, state: State, thread: str, answer: Answer) -> Step[Attempt, Call] | None:
        """The machine's step when the thread is told `answer`; None if it refuses, or the process is down."""
        if not state.proc[self.pid[thread]].up:
            return None
        node = state.node[thread]
        data = self._split.get(node)
        if data is None:
            data = Attempt(node.id, node.saw, node.payload, node.name, node.claim, node.recovered)
            self._split[node] = data
        return taken(self.step(self.table, node.phase, data, answer))

    def _node(self, done: Step[Attempt, Call]) -> Node:
        """The thread after the step."""
        key = (done.phase, done.data)
        node = self._join.get(key)
        if node is None:
            d = done.data
            node = Node(done.phase, d.id, d.saw, d.payload, d.name, d.claim, d.recovered)
            self._join[key] = node
        return node

    def _tell(
        self, state: State, thread: str, answer: Answer, guard: Path | None = None, cost: int = 0
    ) -> tuple[State, ...]:
        """The one step in which the thread takes the answer, `guard` comes to stand there, and the fault costs."""
        done = self._taken(state, thread, answer)
        if done is None:
            return ()
        return (
            State(
                state.guard if guard is None else guard,
                state.proc,
                state.node.set(thread, self._node(done)),
                state.neighbour,
                state.stranger,
                state.budget - cost,
            ),
        )

    def _forced(
        self, state: State, thread: str, phase: str, node: Node, guard: Path | None = None
    ) -> tuple[State, ...]:
        """A step of a mutant: from `phase` to `node`, whatever the machine says."""
        if state.node[thread].phase != phase or not state.proc[self.pid[thread]].up:
            return ()
        nodes = state.node.set(thread, node)
        return (attrs.evolve(state, node=nodes, guard=state.guard if guard is None else guard),)

    def _may(self, state: State, kind: str) -> bool:
        return state.budget > 0 and kind in self.config.faults

    def _fails(self, state: State, thread: str, answer: Answer, kind: str) -> tuple[State, ...]:
        return self._tell(state, thread, answer, cost=1) if self._may(state, kind) else ()

    def _birth(self, state: State, pid: str) -> int:
        """The birth that a process writes of itself."""
        return 0 if pid in self.config.foreign else state.proc[pid].birth

    def _probe(self, state: State, thread: str, pid: str) -> tuple[bool, int]:
        """What the thread can learn of whoever has `pid` now: alive, and its birth."""
        if pid == "none":
            return False, 0
        process = state.proc[pid]
        return process.up, 0 if self.pid[thread] in self.config.foreign else process.birth

    def _fresh(self, state: State) -> int:
        used = {state.guard.id, state.guard.claim}
        for node in state.node.values():
            used |= {node.id, node.payload, node.name, node.claim}
        fresh = 1
        while fresh in used:
            fresh += 1
        return fresh

    def _running(self, state: State, pid: str) -> set[int]:
        return {state.node[t].claim for t in self.threads if self.pid[t] == pid}

    # -- entering -------------------------------------------------------------

    def _ensure_parent(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _BEGIN)

    def _stage(self, state: State, thread: str) -> Iterable[State]:
        fresh = self._fresh(state)
        for generation in {fresh, 1}:
            if self.guard("generation_is_fresh", generation == fresh):
                yield from self._tell(state, thread, _STAGED[generation])

    def _stage_fails(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _STAGE_FAILED, "stage")

    def _look(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _LOOKED[state.guard.kind != "absent"])

    def _publish(self, state: State, thread: str) -> Iterable[State]:
        if not self.guard("rename_refuses_occupied", state.guard.kind in ("absent", "empty")):
            return ()
        pid = self.pid[thread]
        mine = Path("owner", state.node[thread].id, pid, self._birth(state, pid))
        return self._tell(state, thread, _PUBLISHED, mine)

    def _publish_refused(self, state: State, thread: str) -> Iterable[State]:
        if self.guard("rename_refuses_occupied", state.guard.kind in ("absent", "empty")):
            return ()
        return self._tell(state, thread, _PUBLISH_REFUSED)

    def _publish_fails(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _PUBLISH_REFUSED, "rename")

    # -- recovering -----------------------------------------------------------

    def _observe(self, state: State, thread: str) -> Iterable[State]:
        guard = state.guard
        alive, birth_now = self._probe(state, thread, guard.pid)
        verifiable = guard.kind in ("owner", "marker")
        return self._tell(state, thread, Observed(verifiable, guard.id, alive, guard.birth, birth_now))

    def _list(self, state: State, thread: str) -> Iterable[State]:
        guard = state.guard
        if guard.kind in ("owner", "alien"):
            return self._tell(state, thread, OwnerListed(guard.id))
        if guard.kind == "marker":
            return self._tell(state, thread, MarkerListed(guard.claim))
        return self._tell(state, thread, _LISTED_OTHER)

    def _judge_owner(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _OWNER_JUDGED)

    def _judge_marker(self, state: State, thread: str) -> Iterable[State]:
        guard, pid = state.guard, self.pid[thread]
        if guard.kind != "marker" or guard.claim != state.node[thread].name:
            return self._tell(state, thread, _MARKER_GONE)
        alive, birth_now = self._probe(state, thread, guard.claimant)
        mine = guard.claimant == pid and guard.since in (0, self._birth(state, pid))
        running = guard.claim in self._running(state, pid)
        return self._tell(state, thread, MarkerJudged(alive, guard.since, birth_now, mine, running))

    def _named(self, state: State, thread: str) -> bool:
        """Does the entry that the thread wants to rename stand there?"""
        guard, name = state.guard, state.node[thread].name
        if guard.kind in ("owner", "alien"):
            return self.guard("claim_by_name", guard.id == name)
        return guard.kind == "marker" and self.guard("claim_by_name", guard.claim == name)

    def _claim(self, state: State, thread: str) -> Iterable[State]:
        if not self._named(state, thread):
            return ()
        guard, pid, claim = state.guard, self.pid[thread], self._fresh(state)
        marker = Path("marker", guard.id, guard.pid, guard.birth, claim, pid, self._birth(state, pid))
        return self._tell(state, thread, Claimed(claim), marker)

    def _claim_missed(self, state: State, thread: str) -> Iterable[State]:
        return () if self._named(state, thread) else self._tell(state, thread, _CLAIM_MISSED)

    def _claim_fails(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _CLAIM_MISSED, "rename")

    def _move_unclaimed(self, state: State, thread: str) -> Iterable[State]:
        if not self.guard("claim_precedes_move", False):
            return ()
        return self._forced(state, thread, "claiming", Node("deleting_stale"), NOTHING)

    def _move(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _MOVED, NOTHING)

    def _move_fails(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _MOVE_FAILED, "rename")

    def _roll_back(self, state: State, thread: str) -> Iterable[State]:
        if not self.permit("claim_rolls_back", True):
            return ()
        guard = state.guard
        return self._tell(state, thread, _ROLLED_BACK, Path("owner", guard.id, guard.pid, guard.birth))

    def _roll_back_fails(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _ROLLBACK_FAILED, "rename")

    def _abort(self, state: State, thread: str) -> Iterable[State]:
        return self._fails(state, thread, _ABORTED, "abort")

    def _delete_stale(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _STALE_DELETED)

    def _tidy(self, state: State, thread: str) -> Iterable[State]:
        done = self._taken(state, thread, _TIDIED[state.neighbour == "live"])
        if done is None:
            return ()
        neighbour = "none" if RemoveNeighbour() in done.outputs else state.neighbour
        return (attrs.evolve(state, node=state.node.set(thread, self._node(done)), neighbour=neighbour),)

    def _tidy_fails(self, state: State, thread: str) -> Iterable[State]:
        if not self.guard("failed_tidy_leaks", False):
            return self._fails(state, thread, _TIDY_FAILED, "tidy")
        if not self._may(state, "tidy"):
            return ()
        return self._forced(attrs.evolve(state, budget=state.budget - 1), thread, "tidying", IDLE)

    def _wake(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _WOKE)

    def _give_up(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _GAVE_UP)

    # -- leaving --------------------------------------------------------------

    def _leave(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _LEFT)

    def _nest(self, state: State, thread: str) -> Iterable[State]:
        return self._forced(state, thread, "inside", Node("staging")) if self.guard("no_nesting", False) else ()

    def _verify(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, Reread(state.guard.id if state.guard.kind == "owner" else 0))

    def _move_away(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _MOVED_AWAY, NOTHING)

    def _release_fails(self, state: State, thread: str) -> Iterable[State]:
        if self.permit("release_is_retried", True):
            return self._fails(state, thread, _RELEASE_FAILED, "rename")
        if not self._may(state, "rename"):
            return ()
        return self._forced(attrs.evolve(state, budget=state.budget - 1), thread, "releasing", IDLE)

    def _delete_released(self, state: State, thread: str) -> Iterable[State]:
        return self._tell(state, thread, _RELEASED_DELETED)

    def _empty_in_place(self, state: State, thread: str) -> Iterable[State]:
        if not self.guard("moved_away_first", False):
            return ()
        return self._forced(state, thread, "releasing", Node("deleting_released"), Path("empty"))

    def _delete_in_place(self, state: State, thread: str) -> Iterable[State]:
        if not self.guard("moved_away_first", False):
            return ()
        return self._forced(state, thread, "deleting_released", IDLE, NOTHING)

    # -- faults and operators -------------------------------------------------

    def _crash(self, state: State, pid: str) -> Iterable[State]:
        process = state.proc[pid]
        if not process.up or not self._may(state, "crash"):
            return ()
        nodes = {t: IDLE if self.pid[t] == pid else n for t, n in state.node.items()}
        down = state.proc.set(pid, Process(False, process.birth))
        return (attrs.evolve(state, proc=down, node=FrozenMap(nodes), budget=state.budget - 1),)

    def _reuse(self, state: State, pid: str) -> Iterable[State]:
        process = state.proc[pid]
        if process.up or not self._may(state, "reuse"):
            return ()
        other = state.proc.set(pid, Process(True, process.birth + 1))
        return (attrs.evolve(state, proc=other, budget=state.budget - 1),)

    def _drop(self, state: State) -> Iterable[State]:
        if state.guard.kind != "absent" or not self._may(state, "litter"):
            return ()
        return (attrs.evolve(state, guard=Path("empty"), budget=state.budget - 1),)

    def _intrude(self, state: State) -> Iterable[State]:
        if state.guard.kind != "absent" or not self._may(state, "stranger"):
            return ()
        return (attrs.evolve(state, guard=Path("alien"), stranger="inside", budget=state.budget - 1),)

    def _stranger_leaves(self, state: State) -> Iterable[State]:
        if state.stranger != "inside":
            return ()
        guard = NOTHING if state.guard.kind == "alien" else state.guard
        return (attrs.evolve(state, guard=guard, stranger="out"),)

    def _quarantine(self, state: State) -> Iterable[State]:
        return (attrs.evolve(state, guard=NOTHING),) if state.guard.kind == "empty" else ()

    def _tamper(self, state: State) -> Iterable[State]:
        held = any(n.phase == "inside" and n.id == state.guard.id for n in state.node.values())
        if not held or not self._may(state, "tamper"):
            return ()
        return (attrs.evolve(state, guard=NOTHING, budget=state.budget - 1),)

    # -- properties -----------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {
            "OneInside_S1": lambda s: len(self._inside(s)) <= 1,
            "OneInside_S2": lambda s: not any(s.node[t].saw for t in self._inside(s)),
            "OneInside_S9": lambda s: s.stranger == "out" or not self._inside(s),
            "LiveHolderKept_S3": self._live_holder_kept,
            "LiveHolderKept_S4": self._no_marker_on_it,
            "LiveHolderKept_S5": self._nobody_about_to_rename_it,
            "LiveHolderKept_S6": self._moves_its_own_claim,
            "LiveHolderKept_S7": lambda s: sum(n.phase in ("moving", "rolling_back") for n in s.node.values()) <= 1,
            "NothingLeaked_S10": self._nothing_leaked,
            "NothingLeaked_R8": self._neighbour_cleared,
        }

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {
            "LiveHolderKept_R8": lambda s, n: s.neighbour != "live" or n.neighbour == "live",
            "ReleaseOnlyOwn_S8": self._release_only_own,
        }

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "EventuallyFree_V1": LeadsTo(
                self._wants,
                lambda s: not self._wants(s) or s.guard.kind in ("empty", "alien") or bool(self._inside(s)),
            ),
            "EventuallyFree_V2": LeadsTo(
                lambda s: s.guard.kind == "marker" and self._wants(s),
                lambda s: s.guard.kind != "marker" or not self._wants(s),
            ),
            "EventuallyFree_V3": tuple(
                LeadsTo(partial(self._stranded, pid=p), partial(self._not_stranded, pid=p)) for p in self.pids
            ),
        }

    def refines(self) -> Mapping[str, Refinement[State]]:
        abstract = transaction.Transaction(transaction.Config(self.threads))
        return {"RefinesTransaction": refine(abstract, self._image)}

    def _inside(self, state: State) -> list[str]:
        # A dead process's threads are idle, so there is no need to ask whether it is up.
        return [t for t, n in state.node.items() if n.phase in INSIDE]

    def _wants(self, state: State) -> bool:
        return any(n.phase in WAITING for n in state.node.values())

    def _live_holder_kept(self, state: State) -> bool:
        guard = state.guard
        return all(guard.kind == "owner" and guard.id == state.node[t].id for t in self._inside(state))

    def _no_marker_on_it(self, state: State) -> bool:
        guard = state.guard
        return guard.kind != "marker" or all(guard.id != state.node[t].id for t in self._inside(state))

    def _nobody_about_to_rename_it(self, state: State) -> bool:
        guard = state.guard
        return (
            guard.kind != "owner"
            or not any(n.phase == "claiming" and n.name == guard.id for n in state.node.values())
            or not self._inside(state)
        )

    def _moves_its_own_claim(self, state: State) -> bool:
        guard = state.guard
        return all(
            n.phase != "moving" or (guard.kind == "marker" and guard.claim == n.claim) for n in state.node.values()
        )

    def _stranded(self, state: State, pid: str) -> bool:
        guard = state.guard
        return (
            guard.kind == "marker"
            and guard.claimant == pid
            and state.proc[pid].up
            and guard.claim not in self._running(state, pid)
            and any(self.pid[t] == pid and n.phase in WAITING for t, n in state.node.items())
        )

    def _not_stranded(self, state: State, pid: str) -> bool:
        return not self._stranded(state, pid)

    def _nothing_leaked(self, state: State) -> bool:
        guard = state.guard
        if guard.kind != "owner" or guard.pid in self.config.foreign:
            return True
        if state.proc[guard.pid] != Process(True, guard.birth):
            return True
        return any(self.pid[t] == guard.pid and n.id == guard.id for t, n in state.node.items())

    def _neighbour_cleared(self, state: State) -> bool:
        return state.neighbour != "dead" or not any(n.phase == "inside" and n.recovered for n in state.node.values())

    def _release_only_own(self, state: State, after: State) -> bool:
        if after.guard == state.guard:
            return True
        return all(
            n.phase != "releasing" or after.node[t] == n or state.guard.id == n.id for t, n in state.node.items()
        )

    def _image(self, state: State) -> transaction.State:
        inside = self._inside(state)
        kind = state.guard.kind
        if inside:
            holder = inside[0]
        elif kind in ("absent", "empty"):
            holder = NOBODY
        else:
            holder = DAMAGED if kind == "alien" else ABANDONED
        return transaction.State(holder, FrozenMap({t: _abstract_phase(n.phase) for t, n in state.node.items()}))


def _abstract_phase(phase: str) -> str:
    return "inside" if phase in INSIDE else "waiting" if phase in WAITING else "out"


_PROGRESS: Final = (
    "Stage",
    "Look",
    "Publish",
    "PublishRefused",
    "Observe",
    "List",
    "JudgeOwner",
    "JudgeMarker",
    "Claim",
    "ClaimMissed",
    "Move",
    "RollBack",
    "DeleteStale",
    "Tidy",
    "Wake",
    "Leave",
    "Verify",
    "MoveAway",
    "DeleteReleased",
)
"""Progress(t) of the module: what a live thread goes on to do."""

_BEGIN, _STAGE_FAILED, _PUBLISHED, _PUBLISH_REFUSED = Begin(), StageFailed(), Published(), PublishRefused()
_STAGED: Final = [Staged(i) for i in range(32)]
_LOOKED: Final = {present: Looked(present) for present in (False, True)}
_LISTED_OTHER, _OWNER_JUDGED, _MARKER_GONE, _CLAIM_MISSED = ListedOther(), OwnerJudged(), MarkerGone(), ClaimMissed()
_MOVED, _MOVE_FAILED, _ROLLED_BACK, _ROLLBACK_FAILED = Moved(), MoveFailed(), RolledBack(), RollbackFailed()
_ABORTED, _STALE_DELETED, _TIDY_FAILED, _WOKE, _GAVE_UP, _LEFT = (
    Aborted(),
    StaleDeleted(),
    TidyFailed(),
    Woke(),
    GaveUp(),
    Left(),
)
_TIDIED: Final = {alive: Tidied(alive) for alive in (False, True)}
_MOVED_AWAY, _RELEASE_FAILED, _RELEASED_DELETED = MovedAway(), ReleaseFailed(), ReleasedDeleted()
_OFFERS: Final[Mapping[str, tuple[str, ...]]] = {
    "EnsureParent": ("begin",),
    "Stage": ("staged",),
    "StageFails": ("stage_failed",),
    "Look": ("looked",),
    "Publish": ("published",),
    "PublishRefused": ("publish_refused",),
    "PublishFails": ("publish_refused",),
    "Observe": ("observed",),
    "List": ("owner_listed", "marker_listed", "listed_other"),
    "JudgeOwner": ("owner_judged",),
    "JudgeMarker": ("marker_judged", "marker_gone"),
    "Claim": ("claimed",),
    "ClaimMissed": ("claim_missed",),
    "ClaimFails": ("claim_missed",),
    "Move": ("moved",),
    "MoveFails": ("move_failed",),
    "RollBack": ("rolled_back",),
    "RollBackFails": ("rollback_failed",),
    "Abort": ("aborted",),
    "DeleteStale": ("stale_deleted",),
    "Tidy": ("tidied",),
    "Wake": ("woke",),
    "GiveUp": ("gave_up",),
    "Leave": ("left",),
    "Verify": ("reread",),
    "MoveAway": ("moved_away",),
    "DeleteReleased": ("released_deleted",),
}
"""`World.offers`: the actions of a thread that tell it one answer (not those that a mutant does otherwise)."""
