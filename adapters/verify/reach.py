"""The `reach` stage: random runs, with a fixed seed and led by nothing, get everywhere (DESIGN 7).

Proofs about a row that no run takes are proofs about nothing. Two questions, of each module:

* Each machine alone, told any message that its vocabulary can spell and not only those that the world sends: is every
  row of its table taken, every explicit refusal met, and does every guard stop some row?
* The world in its smallest pinned configuration (`reach` in the manifest, at most 2,000 transitions): does choosing
  among the enabled actions blindly take 95 % of the transitions?

Hypothesis draws the messages of a run and the seed of its walk, which then costs microseconds a step; with one rule and
nothing to shrink, a rule-based run would be the same walk thirty times slower (tests/machines/test_stateful.py has it).
Seeds are fixed, nothing is remembered from run to run, and no run is steered by what was visited: coverage only decides
when to stop.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from tenure.adapters import story
from tenure.adapters.machines_found import Machine, machine_of
from tenure.adapters.verify.manifest import ModuleEntry
from tenure.adapters.verify.overheard import Overheard, overhear
from tenure.adapters.verify.result import StageResult, Value, Verdict, worst
from tenure.machines.chart import Refused, Step, Table, step
from tenure.machines.laws import Kind
from tenure.models.explore import Graph, LimitReached, explore

Detail = dict[str, Value]

MOST_TRANSITIONS: Final = 2_000
"""The largest graph that random walks are asked to cover."""
FLOOR: Final = 0.95
"""The part of its transitions that they must take."""
NAMED: Final = 4
"""How many of the things that were not visited a message names."""

ROUNDS: Final = {"quick": 60, "thorough": 300}
"""Rounds at most, each with a seed of its own; a run stops after the first round that leaves nothing to visit."""
RUNS_A_ROUND: Final = 25
TURNS_A_RUN: Final = 1_000
TURNS_A_STAY: Final = 50
"""After so many turns a run goes on from where a world was seen to bring the machine."""
SWEEPS: Final = 0.1
"""The part of the turns in which a machine is told one message of each kind that its phase has no row for."""
BLIND: Final = 0.15
"""The part of the turns in which it is told just anything."""
HEARD: Final = 0.6
"""The part of the turns in which it is told what a world would tell it, as far as that is known."""
SPOKEN: Final = 4
"""Messages with fields that a run knows of each class; they are drawn afresh for every run."""
WALKS_A_ROUND: Final = 200
STEPS_A_WALK: Final = 100


@attrs.define
class Visits:
    """What of one table was to be visited, and what was."""

    table: Table[Any, Any, Any]
    names: dict[tuple[str, ...], str] = attrs.field(init=False)
    seen: set[tuple[str, ...]] = attrs.field(init=False, factory=set)
    messages: int = 0
    fault: str = ""

    def __attrs_post_init__(self) -> None:
        self.names = dict(obligations(self.table))

    def tell(self, phase: str, data: Any, message: Any) -> Step[Any, Any] | Refused:
        """`step`, noting the row taken or the refusal, and each guard that stopped a row on the way."""
        self.messages += 1
        rows = self.table.rows[phase][message.event]
        for number, row in enumerate(rows):
            stopper = next((g.name for g in row.guards if not g.holds(data, message)), None)
            if stopper is None:
                self.seen.add((phase, message.event, str(number)))
                break
            self.seen.add((stopper,))
        else:
            self.seen.add((phase, message.event))
        return step(self.table, phase, data, message) if rows else Refused(message.event, phase, ())

    @property
    def missing(self) -> list[str]:
        """What was not visited, in the table's order."""
        return [name for key, name in self.names.items() if key not in self.seen]


def obligations(table: Table[Any, Any, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What runs must visit, by key and name: each row, each phase and event that is always refused, and each guard as
    what stops a row. A permit need not stop one: it may be a permission without conditions, there to be taken away."""
    for phase in table.phases:
        for event in table.events:
            rows = table.rows[phase][event]
            if not rows:
                yield (phase, event), f"{phase} --{event}--> refused"
            for number, row in enumerate(rows):
                yield (phase, event, str(number)), f"{row} / {row.effect_name}" if row.effect_name else str(row)
    for name, mark in table.guards.items():
        if mark.kind is Kind.GUARD:
            yield (name,), f"{name} as what refuses"


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
        message = "random runs need Hypothesis: pip install 'tenure[verify]'"
        detail.append({"verdict": Verdict.UNDETERMINED.value, "message": message})
    elif entry.twin is None:
        message = f"the twin {entry.twin_name} cannot be imported"
        detail.append({"verdict": Verdict.FAIL.value, "message": message})
    else:
        config = pinned(entry)
        if config is None:
            message = f"[{entry.name}] pins no configuration that walks could cover"
            detail.append({"verdict": Verdict.RAN_NOTHING.value, "message": message})
        else:
            graph, row = _walks(entry, config, ROUNDS[effort])
            detail.append(row)
        overheard = overhear(entry) if graph is not None else Overheard()
        detail += [_runs(table, overheard, ROUNDS[effort]) for table in entry.twin.tables]
    verdict = worst(Verdict(str(row["verdict"])) for row in detail)
    sizes = (len(graph.states), len(graph.transitions())) if graph else (0, 0)
    return StageResult("reach", verdict, time.perf_counter() - started, *sizes, tuple(detail))


def pinned(entry: ModuleEntry) -> str | None:
    """The configuration that walks must cover: the one the manifest names, else the smallest it pins."""
    if entry.reach is not None:
        return entry.reach
    return min(entry.configs, key=lambda c: (entry.configs[c].transitions, c), default=None)


# -- machines -----------------------------------------------------------------


def _runs(table: Table[Any, Any, Any], overheard: Overheard, rounds: int) -> Detail:
    visits = Visits(table)
    try:
        machine = machine_of(table)
    except KeyError:
        message = f"{table.name} is no machine of tenure.machines, so nobody knows its messages"
        return {"table": table.name, "verdict": Verdict.FAIL.value, "message": message}
    run_machine(machine, visits, overheard, rounds)
    row: Detail = {
        "table": table.name,
        "rows": len(visits.names),
        "visited": len(visits.names) - len(visits.missing),
        "messages": visits.messages,
        "verdict": Verdict.PASS.value,
    }
    if visits.fault or visits.missing:
        row["verdict"] = Verdict.FAIL.value
        row["message"] = visits.fault or f"{table.name}: random messages never reach {_some(visits.missing)}"
    return row


def run_machine(machine: Machine, visits: Visits, overheard: Overheard, rounds: int) -> None:
    """Tell the machine random messages, in rounds of runs, until all of it was visited.

    A run starts where the machine starts, and goes on from where a world was seen to bring it (always reachable).

    Of thirty events a phase takes one or two, and a run that offered all of them alike would hardly leave the first
    phases. So a turn mostly offers a message that the phase has a row for: any, or one that a world was heard to tell a
    machine in this phase with these data. Sometimes it offers any message at all, and now and then all those that the
    phase should refuse.
    """
    from hypothesis import given, seed
    from hypothesis import strategies as st

    from tenure.adapters import strategies

    words = strategies.vocabulary_of(machine, overheard.pairs(machine.name))
    starts = list(overheard.starts.get(machine.name, ()))
    heard = {key: list(messages) for key, messages in overheard.told.get(machine.name, {}).items()}
    places = list(heard)
    table = visits.table
    first = st.sampled_from(starts) if starts else strategies.data(machine, words)
    each = [
        st.lists(strategies.instances(kind, words), min_size=SPOKEN if attrs.fields(kind) else 1, max_size=SPOKEN)
        for kind in machine.messages
    ]

    @_quietly(RUNS_A_ROUND)
    @given(first, st.tuples(*each), st.randoms(use_true_random=True))
    def run(data: Any, spoken: tuple[list[Any], ...], seeds: random.Random) -> None:
        chance = random.Random(seeds.getrandbits(64))
        everything = list(itertools.chain(*spoken))
        takes = {p: [m for m in everything if table.rows[p][m.event]] for p in table.phases}
        refuses = {p: [ms for ms in spoken if not table.rows[p][ms[0].event]] for p in table.phases}
        phase = table.initial
        for number in range(TURNS_A_RUN):
            if number % TURNS_A_STAY == 0 and number and heard:
                phase, data = chance.choice(places)
            turn = chance.random()
            if turn < SWEEPS:
                told = [chance.choice(messages) for messages in refuses[phase]]
            elif turn < SWEEPS + BLIND or not takes[phase]:
                told = [chance.choice(everything)]
            elif turn < SWEEPS + BLIND + HEARD and (phase, data) in heard:
                told = [chance.choice(heard[phase, data])]
            else:
                told = [chance.choice(takes[phase])]
            for message in told:
                try:
                    answer = visits.tell(phase, data, message)
                except Exception as error:  # whatever a guard or effect raises is what we are looking for
                    at = f"{machine.name} in {phase} with {data}, told {message}"
                    visits.fault = visits.fault or f"{at}: {type(error).__name__}: {error}"
                    return
                if isinstance(answer, Step):
                    phase, data = answer.phase, answer.data

    for number in range(rounds):
        seed(number)(run)()
        if visits.fault or not visits.missing:
            return


# -- worlds -------------------------------------------------------------------


def _walks(entry: ModuleEntry, config: str, rounds: int) -> tuple[Graph[Any] | None, Detail]:
    row: Detail = {"graph": config, "verdict": Verdict.FAIL.value}
    try:
        graph = explore(entry.world(config), MOST_TRANSITIONS + 1)
    except LimitReached:
        return None, row | {"message": _too_large(config, f"more than {MOST_TRANSITIONS} states")}
    except Exception as error:  # a twin that raises is what we are looking for
        return None, row | {"message": f"{config}: exploring the twin raises {type(error).__name__}: {error}"}
    everything = graph.transitions()
    if len(everything) > MOST_TRANSITIONS:
        return graph, row | {"message": _too_large(config, f"{len(everything)} transitions")}
    taken, steps = walk(graph, rounds, math.ceil(FLOOR * len(everything)))
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
    from hypothesis import given, seed
    from hypothesis import strategies as st

    out: list[list[tuple[int, str, int]]] = [[] for _ in graph.states]
    for source, label, target in graph.edges:
        out[source].append((source, graph.labels[label][0], target))
    taken: set[tuple[int, str, int]] = set()
    steps = 0

    @_quietly(WALKS_A_ROUND)
    @given(st.randoms(use_true_random=True))
    def one(seeds: random.Random) -> None:
        nonlocal steps
        chance = random.Random(seeds.getrandbits(64))
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


def _quietly(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Settings of a run that looks for nothing to shrink and remembers nothing."""
    from hypothesis import HealthCheck, Phase, settings

    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


# -- words --------------------------------------------------------------------


def _transition(graph: Graph[Any], transition: tuple[int, str, int]) -> str:
    source, action, target = transition
    changed = story.changes(story.of_state(graph.states[source]), story.of_state(graph.states[target]))
    return f"{action} ({', '.join(changed) or 'nothing changes'}), {len(graph.path(source)) - 1} steps from the start"


def _some(names: Sequence[str]) -> str:
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def _too_large(config: str, size: str) -> str:
    return (
        f"{config} has {size}, random walks are asked to cover at most {MOST_TRANSITIONS} transitions: "
        'add a smaller configuration and name it with reach = "..." in manifest.toml'
    )
