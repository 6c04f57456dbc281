"""Benchmarks, by hand: ``python tests/bench/run.py [--json FILE] [--only NAMES]``; NAMES are some of step, tlc,
minicheck, compare, files, traces, bus, fleet, journal, handoff.

Every number that matters is a ratio of two things measured in this one run on this one machine (DESIGN 11). Wall time
is what is compared; the processor time beside it (of TLC with its collector and compiler) tells whether something else
was running.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import attrs
from bus import bench_bus
from files import bench_files
from fleet import bench_fleets
from handoff import bench_handoff
from journal import bench_journal
from statemachine import State, StateMachine
from traces import bench_traces

from tenure.adapters import dot, tlc
from tenure.adapters.verify import graphs
from tenure.adapters.verify.manifest import load, spec_directory
from tenure.machines.chart import Table, compile_chart, step
from tenure.machines.laws import Law, guard
from tenure.models.explore import check, explore
from tenure.models.file_transaction import Config as FileConfig
from tenure.models.file_transaction import FileTransaction
from tenure.models.transaction import Config, Transaction

Row = dict[str, Any]


@attrs.frozen
class Lease:
    """The lease as its owner remembers it."""

    token: int
    heartbeat: int


@attrs.frozen
class Refresh:
    """The entry that was read, and the time."""

    event: ClassVar[str] = "refresh"
    token: int
    now: int


class LeaseChart(StateMachine):
    """One guard and one effect: a lease refresh."""

    owner = State(initial=True)
    refresh = owner.to(owner, cond=["mine"], on="renew")

    @staticmethod
    @guard(Law.FENCE)
    def mine(data: Lease, message: Refresh) -> bool:
        return message.token == data.token

    @staticmethod
    def renew(data: Lease, message: Refresh) -> tuple[Lease, tuple[str, ...]]:
        return Lease(data.token, message.now), ("write",)


def median_us(run: Callable[[], object], loops: int, repeats: int = 41) -> float:
    """The median over `repeats` of the mean of `loops` calls, in microseconds."""
    times: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(loops):
            run()
        times.append((time.perf_counter() - started) / loops * 1e6)
    return statistics.median(times)


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """The answer, the wall seconds and the processor seconds (children included)."""

    def processor() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    wall, cpu = time.perf_counter(), processor()
    answer = run()
    return answer, time.perf_counter() - wall, processor() - cpu


# -- a step -------------------------------------------------------------------


def bench_step() -> list[Row]:
    """The compiled step, the library's engine, and a bare look into the table."""
    table: Table[Lease, Refresh, str] = compile_chart(LeaseChart)
    data, message = Lease(7, 0), Refresh(7, 1)
    machine = LeaseChart()
    rows, flat = table.rows, {("owner", "refresh"): 1}
    key = ("owner", "refresh")
    nothing = median_us(lambda: None, 20_000)
    ours = median_us(lambda: step(table, "owner", data, message), 20_000) - nothing
    engine = median_us(lambda: machine.send("refresh", data=data, message=message), 200)
    look = median_us(lambda: rows["owner"]["refresh"], 20_000) - nothing
    plain = median_us(lambda: flat[key], 20_000) - nothing
    return [
        {"what": "compiled step, one guard, one effect", "us": ours, "bar": "<= 4 us", "ok": ours <= 4},
        {"what": "python-statemachine's engine, same chart", "us": engine, "ratio to step": engine / ours},
        {
            "what": "bare table lookup",
            "us": look,
            "ratio to dict": look / plain,
            "bar": "<= 20 x dict",
            "ok": look <= 20 * plain,
        },
        {"what": "dict lookup", "us": plain},
    ]


# -- the explorer and TLC -----------------------------------------------------

THREE = {"a": "P", "b": "Q", "c": "R"}
LARGE = FileConfig(THREE, frozenset({"crash", "reuse"}), 1)
TINY = FileConfig(THREE, frozenset(), 0)


def _cfg(config: FileConfig, invariants: list[str]) -> str:
    faults = ", ".join(f'"{fault}"' for fault in sorted(config.faults))
    return "\n".join(
        [
            "SPECIFICATION Spec",
            "CONSTANTS",
            '    Threads = {"a", "b", "c"}',
            "    Pid <- Three",
            "    Foreign = {}",
            f"    Faults = {{{faults}}}",
            '    Neighbours = {"none"}',
            f"    Budget = {config.budget}",
            "    Off = {}",
            "INVARIANTS",
            *(f"    {name}" for name in invariants),
            "",
        ]
    )


def bench_tlc(budget: int) -> list[Row]:
    """Transitions a second on one model, invariants on; TLC with one worker, its start (a tiny model) taken off."""
    runner, spec = tlc.find(), spec_directory()
    config = attrs.evolve(LARGE, budget=budget)
    world = FileTransaction(config)
    names = list(world.invariants())

    def run(given: FileConfig) -> tlc.Run:
        return runner.run("MCFileTransaction", _cfg(given, names), spec, timeout=1_800)

    outcome, ours, ours_cpu = timed(lambda: check(world, names))
    _, start, start_cpu = timed(lambda: run(TINY))
    answer, theirs, theirs_cpu = timed(lambda: run(config))
    assert answer.answer is tlc.Answer.HOLDS, answer.message
    states, transitions = len(outcome.graph.states), len(outcome.graph.edges)
    assert answer.states == states, f"TLC has {answer.states} states, the twin {states}"
    ours_rate, theirs_rate = transitions / ours, transitions / (theirs - start)
    ratio = ours_rate / theirs_rate
    size = {"states": states, "transitions": transitions}
    return [
        {
            "what": "explorer, FileTransaction, invariants on",
            "per second": ours_rate,
            "seconds": ours,
            "cpu seconds": ours_cpu,
            **size,
            "ratio to TLC": ratio,
            "cpu ratio": (theirs_cpu - start_cpu) / ours_cpu,
            "bar": ">= 1 x TLC",
            "ok": ratio >= 1,
        },
        {
            "what": "TLC 2.15, one worker, start excluded",
            "per second": theirs_rate,
            "seconds": theirs - start,
            "cpu seconds": theirs_cpu - start_cpu,
            **size,
            "enough": transitions >= 500_000,
        },
    ]


# -- the explorer and minicheck -----------------------------------------------


def minicheck_model(threads: tuple[str, ...]) -> Any:
    """`Transaction` as one would write it for minicheck: a model class, fields and guarded transitions."""
    from minicheck import Model, invariant, transition

    members: dict[str, Any] = {"__annotations__": {"holder": str, **dict.fromkeys(threads, str)}, "holder": "nobody"}
    members |= dict.fromkeys(threads, "out")

    def add(label: str, when: Callable[[Any], bool], body: Callable[[Any], None]) -> None:
        members[label] = transition(when=when, label=label)(body)

    def enter(t: str) -> Callable[[Any], None]:
        def body(s: Any) -> None:
            s.holder = t
            setattr(s, t, "inside")

        return body

    def leave(t: str) -> Callable[[Any], None]:
        def body(s: Any) -> None:
            s.holder = "nobody"
            setattr(s, t, "out")

        return body

    def die(group: tuple[str, ...]) -> Callable[[Any], None]:
        def body(s: Any) -> None:
            for t in group:
                setattr(s, t, "out")
            if s.holder in group:
                s.holder = "abandoned"

        return body

    def becomes(field: str, value: str) -> Callable[[Any], None]:
        return lambda s: setattr(s, field, value)

    for t in threads:
        add(f"want_{t}", lambda s, t=t: getattr(s, t) == "out", becomes(t, "waiting"))
        add(f"enter_{t}", lambda s, t=t: getattr(s, t) == "waiting" and s.holder == "nobody", enter(t))
        add(f"withdraw_{t}", lambda s, t=t: getattr(s, t) == "waiting", becomes(t, "out"))
        add(f"leave_{t}", lambda s, t=t: getattr(s, t) == "inside", leave(t))
    for size in range(1, len(threads) + 1):
        for group in combinations(threads, size):
            add(f"die_{'_'.join(group)}", lambda s, g=group: all(getattr(s, t) != "out" for t in g), die(group))
    add(
        "free",
        lambda s: s.holder == "abandoned" and any(getattr(s, t) == "waiting" for t in threads),
        becomes("holder", "nobody"),
    )
    add("damage", lambda s: s.holder == "nobody", becomes("holder", "damaged"))
    add("repair", lambda s: s.holder == "damaged", becomes("holder", "nobody"))
    members["one_inside"] = invariant(lambda s: sum(getattr(s, t) == "inside" for t in threads) <= 1, name="OneInside")
    members["kept"] = invariant(
        lambda s: all(s.holder == t for t in threads if getattr(s, t) == "inside"), name="LiveHolderKept"
    )
    return type(Model)("TransactionModel", (Model,), members).protocol()


def bench_minicheck(size: int) -> list[Row]:
    """Transitions a second on `Transaction` with `size` threads, both invariants on, equal graphs asserted."""
    from minicheck import check_safety

    threads = tuple("abcdefghij"[:size])
    world, protocol = Transaction(Config(threads)), minicheck_model(threads)
    taken = 0
    inner = protocol.transitions

    def counted(state: Any) -> Any:
        nonlocal taken
        found = inner(state)
        taken += len(found)
        return found

    protocol.transitions = counted
    outcome, ours, ours_cpu = timed(lambda: check(world, ["OneInside", "LiveHolderKept"]))
    result, theirs, theirs_cpu = timed(lambda: check_safety(protocol))
    states, transitions = len(outcome.graph.states), len(outcome.graph.edges)
    assert result["reachable_states"] == states, f"minicheck has {result['reachable_states']} states, the twin {states}"
    assert taken == transitions, f"minicheck takes {taken} transitions, the twin {transitions}"
    assert all(found["holds"] for found in result["properties"].values())
    ratio = theirs / ours
    where = {"states": states, "transitions": transitions}
    return [
        {
            "what": f"explorer, Transaction, {size} threads",
            "per second": transitions / ours,
            "seconds": ours,
            "cpu seconds": ours_cpu,
            **where,
            "ratio to minicheck": ratio,
            "cpu ratio": theirs_cpu / ours_cpu,
            "bar": ">= 2 x minicheck",
            "ok": ratio >= 2,
        },
        {
            "what": "minicheck 0.4.0, same model",
            "per second": transitions / theirs,
            "seconds": theirs,
            "cpu seconds": theirs_cpu,
            **where,
        },
    ]


# -- the comparison of graphs -------------------------------------------------


def bench_compare(module: str, config: str) -> list[Row]:
    """What it costs, a transition, to read TLC's graph, to explore the twin's, and to compare the two as values."""
    entry = load(spec_directory())[module]
    found = entry.configs[config].cfg
    with tempfile.TemporaryDirectory() as room:
        path = Path(room) / "graph.dot"
        run = tlc.find().run(entry.root, _plain(entry.spec / f"{module}_{config}.cfg"), entry.spec, dump=path)
        assert run.answer is tlc.Answer.HOLDS, run.message
        dump, reading, _ = timed(lambda: dot.read(path))
    graph, exploring, _ = timed(lambda: explore(entry.world(config)))
    difference, comparing, _ = timed(lambda: graphs.compare(graph, dump))
    assert difference is None, difference
    transitions = len(graph.transitions())
    size = {"states": len(graph.states), "transitions": transitions, "properties": len(found.names)}
    return [
        {"what": f"{module}_{config}: {what}", "us per transition": seconds / transitions * 1e6, "seconds": seconds}
        | size
        for what, seconds in (("read TLC's dump", reading), ("explore the twin", exploring), ("compare", comparing))
    ]


def _plain(path: Path) -> str:
    """The configuration without its properties: the graph alone."""
    text = path.read_text(encoding="utf-8")
    for keyword in ("INVARIANTS", "INVARIANT", "PROPERTIES", "PROPERTY"):
        text = text.partition(f"\n{keyword}\n")[0]
    return text + "\n"


def show(rows: list[Row]) -> None:
    """A line for each row, its numbers behind it."""
    for row in rows:
        numbers = [
            f"{name} {value:,.2f}"
            if isinstance(value, float)
            else f"{name} {value:,}"
            if type(value) is int
            else f"{name} {value}"
            for name, value in row.items()
            if name != "what"
        ]
        print(f"{row['what']}\n    {'; '.join(numbers)}", flush=True)


def main() -> None:
    """Run what was asked for, print it, and perhaps write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--only", default="step,compare,minicheck,tlc,files", metavar="NAMES")
    parser.add_argument("--budget", type=int, default=2, help="faults in the model that TLC and the explorer are given")
    parser.add_argument("--threads", type=int, default=8, help="threads in the model that minicheck is given")
    parser.add_argument("--compared", default="FileTransaction_three", metavar="MODULE_CONFIG")
    parser.add_argument("--place", type=Path, metavar="DIR", help="the file system for the files, /tmp's by default")
    given = parser.parse_args()
    module, _, config = given.compared.partition("_")
    benches: dict[str, Callable[[], list[Row]]] = {
        "step": bench_step,
        "compare": lambda: bench_compare(module, config),
        "minicheck": lambda: bench_minicheck(given.threads),
        "tlc": lambda: bench_tlc(given.budget),
        "files": lambda: bench_files(given.place),
        "traces": bench_traces,
        "bus": lambda: bench_bus(given.place),
        "fleet": lambda: bench_fleets(given.place),
        "journal": lambda: bench_journal(given.place),
        "handoff": lambda: bench_handoff(given.place),
    }
    found: dict[str, list[Row]] = {}
    for name in given.only.split(","):
        found[name] = benches[name]()
        show(found[name])
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
