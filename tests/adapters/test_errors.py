"""Errors in words: what reaches a person is one line, without numbers of the operating system."""

from __future__ import annotations

import errno

import pytest

from tenure.adapters.errors import MEND, TenureError, in_words, to_read, to_write


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TenureError("owners.json: damaged; move it away"), "owners.json: damaged; move it away"),
        (PermissionError(errno.EACCES, "Permission denied", "/agent"), "/agent: Permission denied"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError("nothing is known"), "OSError: nothing is known"),
        (ValueError("two\nlines"), "ValueError: two\\nlines"),
    ],
)
def test_in_words(error: Exception, words: str) -> None:
    assert in_words(error) == words


@pytest.mark.parametrize(
    ("number", "read", "write"),
    [
        (errno.EACCES, "give this user the right to read it", "make the directory writable for this user"),
        (errno.ENOSPC, MEND, "free some space"),
        (errno.EIO, MEND, "see tenure doctor --probe"),
    ],
)
def test_what_to_do(number: int, read: str, write: str) -> None:
    """Nothing heals what this user has no right to."""
    error = OSError(number, "why")
    assert (read, write) == (to_read(error), to_write(error))
