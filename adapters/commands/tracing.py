"""The command ``tenure trace check`` (DESIGN 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenure.adapters.commands.root import app

trace = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help="Check recorded traces.")
app.add_typer(trace, name="trace", short_help="check recorded traces")

EXPLAINED, UNEXPLAINED, UNDETERMINED = 0, 1, 3


@trace.callback()
def root() -> None:
    """Check recorded traces against the models."""


@trace.command(short_help="whether the models explain what was recorded")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Trace files, directories of them, journals.")],
    seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Give up after so long.")] = 120.0,
    tlc: Annotated[bool, typer.Option("--tlc", help="Ask TLC as well, about the first events.")] = False,
    tlc_path: Annotated[
        str | None, typer.Option("--tlc-path", metavar="PATH", help="Another tla2tools.jar or tlc script.")
    ] = None,
    sample: Annotated[int, typer.Option(metavar="N", min=1, help="How many events TLC is asked about.")] = 60,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the explanation, step by step.")] = False,
) -> None:
    """Merge recorded traces and say whether some behaviour of the models explains every event.

    Give all files of a recording: what is not in them is taken for somebody who does not record. A journal among them
    adds the decisions that a killed process has not recorded any more, or is explained alone. If there is no
    explanation: the first event without one, the nearest states, and what refused each candidate.

    Exit status: 0 explained, 1 not, 2 usage or no trace, 3 UNDETERMINED (a limit was hit: it is named).
    """
    from tenure.adapters.trace import check as checking
    from tenure.adapters.trace import journal_rows
    from tenure.adapters.trace.search import Limits

    verdict = checking.check(journal_rows.read(files), Limits(seconds=seconds))
    if verbose:
        for part in verdict.parts:
            typer.echo(part.title)
            for line in checking.told(part):
                typer.echo(f"  {line}")
    typer.echo(str(verdict))
    if verdict.explained and (tlc or tlc_path is not None):
        from tenure.adapters.trace import tlc_trace

        answer = tlc_trace.check(verdict, sample, tlc_path)
        typer.echo(answer.message)
        if not answer.agrees:
            raise typer.Exit(UNDETERMINED if answer.undetermined else UNEXPLAINED)
    if not verdict.explained:
        raise typer.Exit(UNDETERMINED if verdict.limit else UNEXPLAINED)
