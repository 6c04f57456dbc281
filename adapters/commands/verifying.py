"""The commands ``tenure verify``, ``explain``, ``guards`` and ``answers`` (DESIGN 7)."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tenure.adapters.commands.root import app, terminal
from tenure.adapters.errors import TenureError
from tenure.adapters.verify import cache, junit, manifest
from tenure.adapters.verify.result import ModuleResult, Verdict, worst
from tenure.adapters.verify.run import Effort, Options
from tenure.adapters.verify.run import verify as run_verify


@app.command()
def verify(
    modules: Annotated[
        list[str] | None, typer.Argument(metavar="[MODULE]...", help="Modules of the manifest; all by default.")
    ] = None,
    effort: Annotated[
        Effort, typer.Option(help="quick runs again only what changed since it passed; thorough runs everything.")
    ] = Effort.QUICK,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - for standard output.")
    ] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the result as JUnit XML.")
    ] = None,
    tlc: Annotated[
        str | None, typer.Option(metavar="PATH", help="A tla2tools.jar or a tlc script, in place of the pinned TLC.")
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A directory like spec/ of the repository; the installed one by default."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.001, help="How long one TLC run may take (quick 300, thorough 1200)."),
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Print the counts that the manifest should pin; writes nothing.")
    ] = False,
) -> None:
    """Show that the specifications hold, that every guard matters, and that the machines are the specifications.

    What is verified is what is installed. After an edit in a clone, install again (pip install '.[all]') and verify;
    or verify an edited copy of spec/ alone with --spec DIR. Passed checks are kept in TENURE_CACHE, or in your cache
    directory, under a hash of everything they depend on.

    Exit status: 0 PASS, 1 FAIL, 2 usage, 3 UNDETERMINED (a limit was hit or a tool is missing), 4 RAN-NOTHING.
    """
    directory = spec if spec is not None else manifest.spec_directory()
    entries = manifest.load(directory)
    wanted = list(dict.fromkeys(modules)) if modules else list(entries)
    for name in wanted:
        if name not in entries:
            raise TenureError(f"no module {name}; {directory / 'manifest.toml'} has {', '.join(entries) or 'none'}")
    to_stdout = json_file is not None and str(json_file) == "-"
    for file in (None if to_stdout else json_file, junit_file):
        if file is not None:
            _try_write(file)
    options = Options(effort=effort, tlc=tlc, timeout=timeout, cache=cache.directory())
    started = time.perf_counter()
    console = terminal(stderr=to_stdout)
    results = _with_progress(console, [entries[name] for name in wanted], options)
    if pin:
        _print_pins(console, results)
    _report(console, results, time.perf_counter() - started)
    if json_file is not None:
        text = json.dumps(as_json(results), indent=2) + "\n"
        if to_stdout:
            sys.stdout.write(text)
        else:
            _write(json_file, text)
    if junit_file is not None:
        _write(junit_file, junit.text(results))
    raise typer.Exit(worst(r.verdict for r in results).exit_status)


@app.command()
def explain(
    module: Annotated[str, typer.Argument(metavar="MODULE", help="A module of the manifest.")],
    without: Annotated[
        str | None, typer.Option(metavar="GUARD", help="Tell the shortest story of what happens without it.")
    ] = None,
    diagram: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the story as a Mermaid sequence diagram; - for output.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(metavar="DIR", help="A directory like spec/ of the repository.")] = None,
) -> None:
    """Say what a module asks; or, without one of its guards, tell what happens, step by step. Needs no Java.

    Exit status: 0, 1 when the property still holds without the guard, 2 usage.
    """
    from tenure.adapters import explain as explaining

    entry = explaining.module(spec if spec is not None else manifest.spec_directory(), module)
    if without is None:
        if diagram is not None:
            raise TenureError("--diagram draws a story: say which with --without GUARD")
        typer.echo("\n".join(explaining.overview(entry)))
        return
    found, lines = explaining.without(entry, without)
    if diagram is None or str(diagram) != "-":
        typer.echo("\n".join(lines))
    if diagram is not None and found.violation is not None:
        drawn = explaining.diagram(found)
        if str(diagram) == "-":
            typer.echo(drawn, nl=False)
        else:
            _write(diagram, drawn)
    if found.violation is None:
        raise typer.Exit(1)


@app.command()
def guards(
    check: Annotated[bool, typer.Option("--check", help="Only say whether GUARDS.md is current.")] = False,
    spec: Annotated[Path | None, typer.Option(metavar="DIR", help="A directory like spec/ of the repository.")] = None,
) -> None:
    """Print every guard and permit with its law, the property that breaks without it, and the length of the story.

    Exit status: 0; 1 with --check when GUARDS.md of the directory says something else.
    """
    from tenure.adapters import guards_md

    directory = spec if spec is not None else manifest.spec_directory()
    if not check:
        typer.echo(guards_md.text(directory), nl=False)
        return
    message = guards_md.drift(directory)
    typer.echo(message or f"{directory / guards_md.FILE} is current")
    if message:
        raise typer.Exit(1)


@app.command()
def answers(
    spec: Annotated[Path | None, typer.Option(metavar="DIR", help="A directory like spec/ of the repository.")] = None,
) -> None:
    """Print what every row of every machine answers, as answers.toml pins it.

    tenure verify fails when a machine tells its adapter something else than it did; if that is meant, write the file
    again with this command and read the difference.
    """
    from tenure.adapters.verify import answers as pins

    typer.echo(pins.text(spec if spec is not None else manifest.spec_directory()), nl=False)


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
                    for stage in result.stages
                ],
            }
            for result in results
        ],
    }


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TenureError(f"{path}: {error.strerror}") from error


def _try_write(path: Path) -> None:
    """Say before a long run that its result could not be written. What is there stays as it is."""
    there = path.exists()
    if there and not path.is_file() and not path.is_dir():
        return  # a pipe or a device: to open it would already tell its reader something
    try:
        path.open("a", encoding="utf-8").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise TenureError(f"{path}: {error.strerror}") from error


def _with_progress(
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


def _report(console: Console, results: Sequence[ModuleResult], seconds: float) -> None:
    for result in results:
        bad: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for stage in result.stages:
            for row in filter(_is_bad, stage.detail):
                bad[str(row["verdict"]), str(row.get("message", ""))][stage.stage] += 1
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
                Text(stage.verdict.value, style=_STYLES[stage.verdict]),
                f"{stage.seconds:.1f}",
                f"{stage.states:,}",
                f"{stage.transitions:,}",
                f"{len(stage.detail)} ({cached} cached)" if cached else str(len(stage.detail)),
            )
        table.add_section()
    console.print(table)
    verdict = worst(result.verdict for result in results)
    console.print(Text.assemble((verdict.value, _STYLES[verdict]), f" in {seconds:.1f} s"))


def _print_pins(console: Console, results: Sequence[ModuleResult]) -> None:
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
