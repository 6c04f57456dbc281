"""How `tenure verify` shows what it does and what it found: progress, a table, JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tenure.adapters.verify import manifest
from tenure.adapters.verify.result import ModuleResult, Verdict, worst
from tenure.adapters.verify.run import Options
from tenure.adapters.verify.run import verify as run_verify


def as_json(results: Sequence[ModuleResult]) -> dict[str, Any]:
    """The shape of ``--json``."""
    return {
        "verdict": worst(result.verdict for result in results).value,
        "modules": [
            {
                "module": result.module,
                "stages": [
                    {
                        "stage": stage.stage,
                        "verdict": stage.verdict.value,
                        "seconds": stage.seconds,
                        "states": stage.states,
                        "transitions": stage.transitions,
                        "detail": [dict(row) for row in stage.detail],
                    }
                    | ({"none": stage.none} if stage.none else {})
                    for stage in result.stages
                ],
            }
            for result in results
        ],
    }


def with_progress(
    console: Console, entries: Sequence[manifest.ModuleEntry], options: Options
) -> tuple[ModuleResult, ...]:
    if not console.is_terminal:

        def plain(title: str, done: int, total: int) -> None:
            console.print(f"[{done}/{total}] {title}", markup=False, highlight=False, soft_wrap=True)

        return run_verify(entries, options, plain)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("verifying", total=None)

        def draw(title: str, done: int, total: int) -> None:
            bar.update(task, description=title, completed=done, total=total)

        return run_verify(entries, options, draw)


_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.UNDETERMINED: "yellow",
    Verdict.RAN_NOTHING: "yellow",
}


def _is_bad(row: Mapping[str, object]) -> bool:
    return row.get("verdict") != Verdict.PASS.value


def show(console: Console, results: Sequence[ModuleResult], seconds: float) -> None:
    for result in results:
        bad: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for stage in result.stages:
            for row in filter(_is_bad, stage.detail):
                bad[str(row["verdict"]), str(row.get("message", ""))][stage.stage] += 1
            if stage.none:
                console.print(Text(f"\nnothing {result.module} {stage.stage}: {stage.none}"), soft_wrap=True)
        for (said, message), times in bad.items():
            again = f" ({times.total()} times)" if times.total() > 1 else ""
            where = ", ".join(times)
            console.print(Text(f"\n{said} {result.module} {where}{again}: {message}"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("module", "stage", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("seconds", "states", "transitions", "checks"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        for number, stage in enumerate(result.stages):
            cached = sum(bool(row.get("cached")) for row in stage.detail)
            table.add_row(
                result.module if number == 0 else "",
                stage.stage,
                Text("none", style="dim") if stage.none else Text(stage.verdict.value, style=_STYLES[stage.verdict]),
                f"{stage.seconds:.1f}",
                f"{stage.states:,}",
                f"{stage.transitions:,}",
                f"{len(stage.detail)} ({cached} cached)" if cached else str(len(stage.detail)),
            )
        table.add_section()
    console.print(table)
    verdict = worst(result.verdict for result in results)
    console.print(Text.assemble((verdict.value, _STYLES[verdict]), f" in {seconds:.1f} s"))


def print_pins(console: Console, results: Sequence[ModuleResult]) -> None:
    for result in results:
        for stage in result.stages:
            for row in stage.detail:
                if stage.stage == "twin" and row.get("off") == []:
                    lines = [f"[{result.module}.config.{row['config']}]"]
                    lines += [f"{key} = {row.get(key)}" for key in ("states", "transitions")]
                elif "coverage" in row:
                    lines = [f"[{result.module}.coverage]"]
                    lines += [f"{key} = {row.get(key)}" for key in ("actions", "rows", "refusals")]
                else:
                    continue
                console.print("\n".join(lines) + "\n", markup=False, highlight=False)
