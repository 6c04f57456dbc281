"""Errors in words: what reaches a person is one line, without numbers of the operating system."""

from __future__ import annotations

import errno

import pytest

from tenure.adapters.errors import TenureError, in_words


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
