"""The application that all commands belong to, and the terminal they write to."""

from __future__ import annotations

import typer
from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Who holds what: specifications, the machines that mirror them, and the proof that they agree.",
)

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask: enough for the table, so that a log shows it whole."""


@app.callback()
def root() -> None:
    """Who holds what: specifications, the machines that mirror them, and the proof that they agree."""


def terminal(*, stderr: bool = False) -> Console:
    """Where people read."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PLAIN_WIDTH)
