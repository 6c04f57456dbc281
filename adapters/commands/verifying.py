"""The commands ``tenure verify``, ``explain``, ``guards`` and ``answers`` (DESIGN 7).

The verifier is imported by the command that needs it: whoever leads or commits does not wait for it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from tenure.adapters.commands.root import app, terminal
from tenure.adapters.errors import TenureError
from tenure.adapters.verify.effort import Effort


@app.command(short_help="check specifications, guards and machines")
def verify(
    modules: Annotated[
        list[str] | None, typer.Argument(metavar="MODULE", help="Modules of the manifest; all by default.")
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
    from tenure.adapters import explain as explaining
    from tenure.adapters.verify import cache, junit, manifest, report
    from tenure.adapters.verify.result import worst
    from tenure.adapters.verify.run import Options

    directory = spec if spec is not None else manifest.spec_directory()
    entries = manifest.load(directory)
    wanted = list(dict.fromkeys(modules)) if modules else list(entries)
    for name in wanted:
        if name not in entries:
            raise TenureError(explaining.no_module(directory, name, entries))
    to_stdout = json_file is not None and str(json_file) == "-"
    for file in (None if to_stdout else json_file, junit_file):
        if file is not None:
            _try_write(file)
    options = Options(effort=effort, tlc=tlc, timeout=timeout, cache=cache.directory())
    started = time.perf_counter()
    console = terminal(stderr=to_stdout)
    results = report.with_progress(console, [entries[name] for name in wanted], options)
    if pin:
        report.print_pins(console, results)
    report.show(console, results, time.perf_counter() - started)
    if json_file is not None:
        text = json.dumps(report.as_json(results), indent=2) + "\n"
        if to_stdout:
            sys.stdout.write(text)
        else:
            _write(json_file, text)
    if junit_file is not None:
        _write(junit_file, junit.text(results))
    raise typer.Exit(worst(r.verdict for r in results).exit_status)


@app.command(short_help="what a module asks, and what breaks without a guard")
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
    from tenure.adapters.verify import manifest

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


@app.command(short_help="every guard, its law, and what breaks without it")
def guards(
    check: Annotated[bool, typer.Option("--check", help="Only say whether GUARDS.md is current.")] = False,
    spec: Annotated[Path | None, typer.Option(metavar="DIR", help="A directory like spec/ of the repository.")] = None,
) -> None:
    """Print every guard and permit with its law, the property that breaks without it, and the length of the story.

    Exit status: 0; 1 with --check when GUARDS.md of the directory says something else.
    """
    from tenure.adapters import guards_md
    from tenure.adapters.verify import manifest

    directory = spec if spec is not None else manifest.spec_directory()
    if not check:
        typer.echo(guards_md.text(directory), nl=False)
        return
    message = guards_md.drift(directory)
    typer.echo(message or f"{directory / guards_md.FILE} is current")
    if message:
        raise typer.Exit(1)


@app.command(short_help="what every row of every machine answers")
def answers(
    spec: Annotated[Path | None, typer.Option(metavar="DIR", help="A directory like spec/ of the repository.")] = None,
) -> None:
    """Print what every row of every machine answers, as answers.toml pins it.

    tenure verify fails when a machine tells its adapter something else than it did; if that is meant, write the file
    again with this command and read the difference.
    """
    from tenure.adapters.verify import answers as pins
    from tenure.adapters.verify import manifest

    typer.echo(pins.text(spec if spec is not None else manifest.spec_directory()), nl=False)


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
