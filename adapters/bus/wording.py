"""Why a request had no answer, in words for people: `Unreachable` names an errno, which nobody has to know (bus.md a,
CLIENT ERROR CLASSES)."""

from __future__ import annotations

import errno
import os
from typing import Final

from tenure.adapters.bus.client import FOREIGN, TIMEOUT, TOO_LONG, NoResponse, Unreachable
from tenure.adapters.errors import printable

_WORDS: Final = {
    "ENOENT": "nobody listens there",
    "ENOTDIR": "nobody listens there",
    "ECONNREFUSED": "nobody listens there any more",
    "EPIPE": "closed while it was being asked",
    "ECONNRESET": "closed while it was being asked",
    "EACCES": "this user may not connect to it",
    "EPERM": "this user may not connect to it",
    "EMFILE": "this process has too many files open to connect to it",
    "ENFILE": "this machine has too many files open to connect to it",
    "ENAMETOOLONG": "the path is too long for a socket",
    "EINVAL": "the path is none of a socket",
    "EPROTOTYPE": "what listens there is not of our kind",
    TIMEOUT: "no answer in time; whoever listens there hangs, is stopped, or has too much to do",
    FOREIGN: "a process of another user listens there, and is told nothing; run this as that user, or end that process",
    TOO_LONG: "the answer is longer than any of ours; whoever listens there is not of our kind",
}


def unanswered(path: str, reply: NoResponse | Unreachable) -> str:
    """One line: the endpoint, and what came instead of an answer."""
    return f"{printable(path)}: {'closed without an answer' if isinstance(reply, NoResponse) else _words(reply.reason)}"


def _words(reason: str) -> str:
    if (words := _WORDS.get(reason)) is not None:
        return words
    number = next((number for number, name in errno.errorcode.items() if name == reason), None)
    return f"cannot be reached ({printable(reason if number is None else os.strerror(number))})"
