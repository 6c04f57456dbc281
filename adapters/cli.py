"""The entry point of the command line: the exit statuses, and one line for whatever is missing or wrong."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType
from typing import Final

from tenure.adapters.errors import TenureError, printable

USAGE = 2


_LATER_S: Final = 0.01
"""How long a signal waits that came at a moment when nobody could be told."""
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(BaseException):
    """Somebody asked the process to end. No Exception: nothing that handles errors should go on after it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; always ends in SystemExit. A `TenureError` is one line on standard error and status 2; a signal
    that ends it is one line and status 128 + its number."""
    try:
        with _interruptible():
            _run(arguments)
    except Interrupted as interrupted:
        sys.exit(128 + interrupted.number)


def _run(arguments: Sequence[str] | None) -> None:
    try:
        from tenure.adapters.commands import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        extra = "pip install 'tenure[cli]', or 'tenure[verify]' to verify"
        _say(f"{error.name} is not installed; install the extra: {extra}")
        sys.exit(USAGE)
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except TenureError as error:
        _say(str(error))
        sys.exit(USAGE)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Every signal that asks for the end unwinds the command, so that it ends its JVMs and removes its directories.

    One that is ignored, as by nohup, or that somebody else handles is left as it is.
    """
    asked = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if _deaf(frame):
            Timer(_LATER_S, signal.raise_signal, (number,)).start()
        elif not asked:  # a second one must not cut the unwinding short
            asked = True
            with suppress(OSError, RuntimeError):  # the terminal is gone, or is being written to at this moment
                _say(f"interrupted by {signal.Signals(number).name}")
            raise Interrupted(number)

    before = {}
    with suppress(ValueError):  # not in the main thread, where alone signals are handled
        for number in _SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _deaf(frame: FrameType | None) -> bool:
    """Whether what is interrupted would swallow an exception, or make another one of it: a finalizer, and a class that
    is being made, as while modules are imported."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("__del__", "__set_name__") or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say(text: str) -> None:
    print(f"tenure: {printable(text)}", file=sys.stderr)


if __name__ == "__main__":
    main()
