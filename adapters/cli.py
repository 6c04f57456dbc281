"""The entry point of the command line: the exit statuses, and one line for whatever is missing or wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tenure.adapters.errors import TenureError

USAGE = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; always ends in SystemExit. A `TenureError` is one line on standard error and status 2."""
    try:
        from tenure.adapters.commands import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        _say(f"{error.name} is not installed; install the extra: pip install 'tenure[verify]'")
        sys.exit(USAGE)
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except TenureError as error:
        _say(str(error))
        sys.exit(USAGE)


def _say(text: str) -> None:
    print(f"tenure: {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
