"""The `reach` stage: random runs, with a fixed seed and led by nothing, get everywhere (DESIGN 7).

Proofs about a row that no run takes are proofs about nothing. Two questions, of each module:

* Each machine alone, told any message that its vocabulary can spell and not only those that the world sends: is every
  row of its table taken, every explicit refusal met, and does every guard stop some row?
* The world in its smallest pinned configuration (`reach` in the manifest, at most 2,000 transitions): does choosing
  among the enabled actions blindly take 95 % of the transitions?

Machines run as a Hypothesis `RuleBasedStateMachine`. Worlds run as `@given` over a seed that a walk is drawn from: with
one rule and no shrinking that is the same run, and a step costs microseconds. No run is steered by what was visited;
coverage only decides when to stop.
"""

from __future__ import annotations

import importlib.util
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from tenure.adapters.machines_found import Machine, machine_of
from tenure.adapters.verify.manifest import ModuleEntry
from tenure.adapters.verify.result import StageResult, Value, Verdict, worst
from tenure.machines.chart import Refused, Row, Step, Table, step
from tenure.models.explore import Graph, LimitReached, explore
from tenure.models.world import World

Detail = dict[str, Value]

MOST_TRANSITIONS: Final = 2_000
"""The largest graph that random walks are asked to cover."""
FLOOR: Final = 0.95
"""The part of its transitions that they must take."""
NAMED: Final = 12
"""How many of the things that were not visited a message names."""

ROUNDS: Final = {"quick": 20, "thorough": 100}
"""Rounds at most, each with a seed of its own; a run stops after the first round that leaves nothing to visit."""
RUNS_A_ROUND: Final = 50
MESSAGES_A_RUN: Final = 50
WALKS_A_ROUND: Final = 200
STEPS_A_WALK: Final = 100


@attrs.define
class Visits:
    """What of one table was to be visited, and how often it was."""

    table: Table[Any, Any, Any]
    counts: dict[str, int] = attrs.field(init=False)
    messages: int = 0
    fault: str = ""

    def __attrs_post_init__(self) -> None:
        self.counts = dict.fromkeys(obligations(self.table), 0)

    def tell(self, phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
        """Take the message and count the row taken or the refusal, and each guard that stopped a row on the way."""
        self.messages += 1
        answer = step(self.table, phase, data, message)
        rows = self.table.rows[phase][message.event]
        for row in rows:
            stopper = next((g.name for g in row.guards if not g.holds(data, message)), None)
            if stopper is None:
                self.counts[_taken(row)] += 1
                break
            self.counts[_stops(stopper)] += 1
        if not rows:
            self.counts[_refused(phase, message.event)] += 1
        return answer

    @property
    def missing(self) -> list[str]:
        """What was not visited, in the table's order."""
        return [name for name, count in self.counts.items() if not count]


def obligations(table: Table[Any, Any, Any]) -> Iterator[str]:
    """What runs must visit: each row, each phase and event that is always refused, each guard as what stops a row."""
    for phase in table.phases:
        for event in table.events:
            if not table.rows[phase][event]:
                yield _refused(phase, event)
            for row in table.rows[phase][event]:
                yield _taken(row)
    for name in table.guards:
        yield _stops(name)


def reach(entry: ModuleEntry, effort: str = "quick") -> StageResult:
    """Run the stage for one module of the manifest; `effort` is ``quick`` or ``thorough``."""
    started = time.perf_counter()
    detail: list[Detail] = [
        {"graph": problem.name, "verdict": Verdict.FAIL.value, "message": problem.message}
        for problem in entry.problems
        if problem.stage == "reach"
    ]
    graph: Graph[Any] | None = None
    if importlib.util.find_spec("hypothesis") is None:
        message = "random runs need Hypothesis: pip install 'tenure[test]'"
        detail.append({"verdict": Verdict.UNDETERMINED.value, "message": message})
    elif entry.twin is None:
        message = f"the twin {entry.twin_name} cannot be imported"
        detail.append({"verdict": Verdict.FAIL.value, "message": message})
    else:
        told = Told()
        config = pinned(entry)
        if config is None:
            message = f"[{entry.name}] pins no configuration that walks could cover"
            detail.append({"verdict": Verdict.RAN_NOTHING.value, "message": message})
        else:
            graph, row = _walks(entry, config, told, ROUNDS[effort])
            detail.append(row)
        detail += [_runs(table, told, ROUNDS[effort]) for table in entry.twin.tables]
    verdict = worst(Verdict(str(row["verdict"])) for row in detail)
    sizes = (len(graph.states), len(graph.transitions())) if graph else (0, 0)
    return StageResult("reach", verdict, time.perf_counter() - started, *sizes, tuple(detail))


def pinned(entry: ModuleEntry) -> str | None:
    """The configuration that walks must cover: the one the manifest names, else the smallest it pins."""
    if entry.reach is not None:
        return entry.reach
    return min(entry.configs, key=lambda c: (entry.configs[c].transitions, c), default=None)


@attrs.define
class Told:
    """What a world was seen to tell each machine, and the data each machine starts with there."""

    pairs: dict[str, dict[tuple[Any, Any], None]] = attrs.field(factory=dict)
    starts: dict[str, dict[Any, None]] = attrs.field(factory=dict)
    starting: bool = False

    def listen(self, world: World[Any]) -> None:
        """Overhear every call of `world.step` from now on."""

        def overheard(table: Table[Any, Any, Any], phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
            self.pairs.setdefault(table.name, {})[data, message] = None
            if self.starting and phase == table.initial:
                self.starts.setdefault(table.name, {})[data] = None
            return step(table, phase, data, message)

        world.step = overheard

    def starts_of(self, world: World[Any]) -> None:
        """Try every action in the initial states, for the data that machines have there in their initial phase."""
        self.starting = True
        for state in world.initial():
            for action in world.actions():
                for args in action.args:
                    tuple(action.body(state, *args))
        self.starting = False


# -- machines -----------------------------------------------------------------


def _runs(table: Table[Any, Any, Any], told: Told, rounds: int) -> Detail:
    visits = Visits(table)
    try:
        machine = machine_of(table)
    except KeyError:
        message = f"{table.name} is no machine of tenure.machines, so nobody knows its messages"
        return {"table": table.name, "verdict": Verdict.FAIL.value, "message": message}
    run_machine(machine, visits, told, rounds)
    row: Detail = {
        "table": table.name,
        "rows": len(visits.counts),
        "visited": len(visits.counts) - len(visits.missing),
        "messages": visits.messages,
        "verdict": Verdict.PASS.value,
    }
    if visits.fault or visits.missing:
        row["verdict"] = Verdict.FAIL.value
        row["message"] = visits.fault or f"{table.name}: random messages never reach {_some(visits.missing)}"
    return row


def run_machine(machine: Machine, visits: Visits, told: Told, rounds: int) -> None:
    """Tell the machine random messages, in rounds of runs from its initial phase, until all of it was visited."""
    from hypothesis import HealthCheck, Phase, seed, settings  # noqa: PLC0415 - an extra
    from hypothesis import strategies as st  # noqa: PLC0415
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test  # noqa: PLC0415

    from tenure.adapters import strategies  # noqa: PLC0415

    words = strategies.vocabulary_of(machine, told.pairs.get(machine.name, ()))
    starts = list(told.starts.get(machine.name, ()))
    first = st.sampled_from(starts) if starts else strategies.data(machine, words)

    class Run(RuleBasedStateMachine):
        @initialize(data=first)
        def start(self, data: Any) -> None:
            self.phase, self.data = visits.table.initial, data

        @rule(message=strategies.messages(machine, words))
        def told(self, message: Any) -> None:
            try:
                answer = visits.tell(self.phase, self.data, message)
            except Exception as error:  # whatever a guard or effect raises is what we are looking for
                visits.fault = visits.fault or (
                    f"{machine.name} in {self.phase} with {self.data}, told {message}: {type(error).__name__}: {error}"
                )
                return
            if isinstance(answer, Step):
                self.phase, self.data = answer.phase, answer.data

    quietly = settings(
        max_examples=RUNS_A_ROUND,
        stateful_step_count=MESSAGES_A_RUN,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for number in range(rounds):
        run_state_machine_as_test(seed(number)(Run), settings=quietly)
        if visits.fault or not visits.missing:
            return


# -- worlds -------------------------------------------------------------------


def _walks(entry: ModuleEntry, config: str, told: Told, rounds: int) -> tuple[Graph[Any] | None, Detail]:
    row: Detail = {"graph": config, "verdict": Verdict.FAIL.value}
    world = entry.world(config)
    told.listen(world)
    try:
        graph = explore(world, MOST_TRANSITIONS + 1)
    except LimitReached:
        return None, row | {"message": _too_large(config, f"more than {MOST_TRANSITIONS} states")}
    everything = graph.transitions()
    if len(everything) > MOST_TRANSITIONS:
        return graph, row | {"message": _too_large(config, f"{len(everything)} transitions")}
    told.starts_of(world)
    taken, steps = walk(graph, rounds, len(everything))
    row |= {"transitions": len(everything), "visited": len(taken), "steps": steps}
    if not everything or len(taken) < FLOOR * len(everything):
        missing = [_transition(graph, t) for t in sorted(everything - taken)]
        message = (
            f"{config}: random walks take {len(taken)} of {len(everything)} transitions, {FLOOR:.0%} are wanted; "
            f"never taken: {_some(missing)}"
        )
        return graph, row | {"message": message}
    return graph, row | {"verdict": Verdict.PASS.value}


def walk(graph: Graph[Any], rounds: int, wanted: int) -> tuple[set[tuple[int, str, int]], int]:
    """Walk the graph blindly, from its initial states, and answer the transitions taken and the steps made."""
    from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: PLC0415 - an extra
    from hypothesis import strategies as st  # noqa: PLC0415

    out: list[list[tuple[int, str, int]]] = [[] for _ in graph.states]
    for source, label, target in graph.edges:
        out[source].append((source, graph.labels[label][0], target))
    taken: set[tuple[int, str, int]] = set()
    steps = 0

    @settings(
        max_examples=WALKS_A_ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True))
    def one(chance: random.Random) -> None:
        nonlocal steps
        here = chance.choice(graph.initial)
        for _ in range(STEPS_A_WALK):
            if not out[here]:
                break
            edge = chance.choice(out[here])
            taken.add(edge)
            steps += 1
            here = edge[2]

    for number in range(rounds):
        seed(number)(one)()
        if len(taken) >= wanted:
            break
    return taken, steps


# -- words --------------------------------------------------------------------


def _taken(row: Row[Any, Any, Any]) -> str:
    return f"{row} / {row.effect_name}" if row.effect_name else str(row)


def _refused(phase: str, event: str) -> str:
    return f"{phase} --{event}--> refused"


def _stops(guard: str) -> str:
    return f"{guard} as the refuser"


def _transition(graph: Graph[Any], transition: tuple[int, str, int]) -> str:
    source, action, target = transition
    return f"{action} from {graph.states[source]} to {graph.states[target]}"


def _some(names: Sequence[str]) -> str:
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def _too_large(config: str, size: str) -> str:
    return (
        f"{config} has {size}, random walks are asked to cover at most {MOST_TRANSITIONS} transitions: "
        'add a smaller configuration and name it with reach = "..." in manifest.toml'
    )
