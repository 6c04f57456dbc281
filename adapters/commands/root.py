"""The application that all commands belong to, and the terminal they write to."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

Lease = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        max=86_400.0,
        help="How long a lease lasts; the same for all of DIR: a shorter one deposes a healthy leader.",
    ),
]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Who holds what: specifications, the machines that mirror them, and the proof that they agree.",
)

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask: enough for the table, so that a log shows it whole."""


def _version(asked: bool) -> None:
    if asked:
        try:
            found = metadata.version("tenure")
        except metadata.PackageNotFoundError:
            found = "of a tree that is not installed"
        typer.echo(f"tenure {found}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """Who holds what: specifications, the machines that mirror them, and the proof that they agree."""


class Running(TyperCommand):
    """A command that runs another one: what is meant for that one is no option of ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As every command, with a hint where an option is not known."""
        unparted = "--" not in args
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # click's, or typer's copy of it, by the version of typer
            if unparted and type(error).__name__ == "NoSuchOption" and not getattr(error, "possibilities", None):
                error.message += "; what belongs to the command that runs comes after --"  # type: ignore[attr-defined]
            raise


def terminal(*, stderr: bool = False) -> Console:
    """Where people read."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PLAIN_WIDTH)
