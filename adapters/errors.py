"""The one exception hierarchy at the adapters' edge: what went wrong with which file, field or peer, in one line."""

from __future__ import annotations

import errno
from typing import Final

MEND: Final = "mend it, or run tenure doctor"
"""What to do about a file that is damaged."""
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


class TenureError(Exception):
    """Bad input or a missing tool. The message is one line that names the thing and says what to do."""


def printable(text: str) -> str:
    """`text` on one line: what others wrote into a file, or called one, must neither end the line nor steer the
    terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def in_words(error: BaseException) -> str:
    """An error on one line for a person: no number of the operating system, and the name of the class only for a fault
    of a program."""
    if isinstance(error, TenureError):
        return printable(str(error))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return printable(f"{where}{error.strerror}")
    return printable(f"{type(error).__name__}: {error}")


def forbidden(error: OSError | None) -> bool:
    """This user lacks a right."""
    return error is not None and error.errno in _FORBIDDEN


def to_read(error: OSError) -> str:
    """What to do about a file that could not be read: nothing heals what this user may not read."""
    return "give this user the right to read it" if forbidden(error) else MEND


def to_write(error: OSError | None) -> str:
    """What to do where a file or directory could not be made; None: why is not known."""
    if forbidden(error):
        return "make the directory writable for this user"
    if error is not None and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space"
    return "see tenure doctor --probe"
