"""Lines for people, on a terminal or in a log: a label, and text that is wrapped beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from rich.text import Text

from tenure.adapters.commands.root import terminal
from tenure.adapters.errors import printable
from tenure.adapters.looking.line import Line

STYLES: Final = {"good": "green", "quiet": "", "warn": "yellow", "bad": "bold red"}
_LABEL: Final = 12
_WIDEST: Final = 20
_INDENT: Final = 2


def say(title: str, lines: Iterable[Line]) -> None:
    """Print a title, and the lines below it, none of them wider than the terminal if its words can be parted."""
    console = terminal()
    shown = list(lines)
    label = min(max([_LABEL, *(len(line.label) for line in shown)]), _WIDEST)
    console.print(Text(printable(title), style="bold"), soft_wrap=True)
    room = max(console.width - _INDENT - label - 1, 30)
    for line in shown:
        begin = f"{' ' * _INDENT}{line.label:{label}} "
        for part in _parted(line.text, room):
            console.print(Text(f"{begin}{part}".rstrip(), style=STYLES[line.mood]), soft_wrap=True)
            begin = " " * (_INDENT + label + 1)


def _parted(text: str, width: int) -> list[str]:
    """`text` in lines; what is indented stays so, and a command stays on its line, to be copied whole."""
    indent = " " * (len(text) - len(text.lstrip()))
    if " tenure " in text:
        return [text]
    return textwrap.wrap(
        text, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False
    ) or [""]
