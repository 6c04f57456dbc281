"""Files as values: what stands on a disk is a number, and a call on it is looked up."""

from __future__ import annotations

import re
import string
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from tenure.adapters.testing.memory import MemoryFiles
from tenure.adapters.verify.bind.calls import Answer, Call, Got, Raised

Contents = Mapping[str, bytes | None]
"""Everything by path: a file's bytes, None for a directory."""

NAMED: Final = re.compile(
    r"(?<![0-9a-f-])00000000-0000-(?:4000-8000-(?P<uuid>[0-9a-f]{12})|8(?P<bits>[0-9a-f]{3})-)"
    r"|\.staged\.(?P<word>[0-9A-Za-z]{6})(?![0-9A-Za-z])"
)
"""An identity in a text: a uuid that was drawn, a claim marker's, a staged guard's name."""


_LETTERS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase


def identities(texts: Iterable[str]) -> frozenset[int]:
    """The numbers of all identities that the texts name."""
    found: set[int] = set()
    for text in texts:
        for match in NAMED.finditer(text):
            word = match["word"]
            found.add(_drawn(word) if word else int(match["uuid"] or match["bits"], 16))
    return frozenset(found)


def _drawn(word: str) -> int:
    """The 13 random bits in the name of a staged guard (`debris.staged_word`)."""
    number = 0
    for letter in word:
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number % 2**13


def identity(text: str) -> int:
    """The number of the one identity that the text names; 0 for none."""
    return next(iter(identities((text,))), 0)


class Disks:
    """Every disk that was met, by number, with what each call does to each."""

    CHANGES: Final = frozenset({"make_directory", "create", "rename", "unlink", "remove_directory"})
    CALLS: Final = CHANGES | {"read", "entries", "kind", "sync"}

    def __init__(self) -> None:
        self.contents: list[dict[str, bytes | None]] = []
        self.index: dict[Hashable, int] = {}
        self.done: dict[tuple[int, Call], tuple[Answer, int]] = {}
        self.named: dict[int, frozenset[int]] = {}

    def add(self, contents: Contents) -> int:
        """The number of the disk with these contents."""
        key = frozenset(contents.items())
        found = self.index.get(key)
        if found is None:
            found = self.index[key] = len(self.contents)
            self.contents.append(dict(contents))
        return found

    def do(self, disk: int, call: Call) -> tuple[Answer, int]:
        """What the call answers, and the disk afterwards."""
        key = (disk, call)
        found = self.done.get(key)
        if found is None:
            files = self._load(disk)
            answer: Answer
            try:
                value = getattr(files, call.name)(*call.args)
                answer = Got(value)
            except OSError as error:
                answer = Raised(error.errno or 0)
            found = self.done[key] = (answer, self._save(files) if call.name in self.CHANGES else disk)
        return found

    def identities(self, disk: int) -> frozenset[int]:
        """Those that something on the disk names."""
        found = self.named.get(disk)
        if found is None:
            contents = self.contents[disk]
            texts = [*contents, *(data.decode("utf-8", "replace") for data in contents.values() if data)]
            found = self.named[disk] = identities(texts)
        return found

    def _load(self, disk: int) -> MemoryFiles:
        files = MemoryFiles()
        for path, data in sorted(self.contents[disk].items()):
            if data is None:
                files.make_directories(path)
            else:
                files.create(path, data)
        return files

    def _save(self, files: MemoryFiles) -> int:
        directories: dict[str, bytes | None] = {path: None for path in files.directories if path != "/"}
        return self.add(directories | files.data)
