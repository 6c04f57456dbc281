"""Which journal a command is about, and how a person calls it again."""

from __future__ import annotations

import os
import shlex
from typing import Final

import attrs

from tenure.adapters.errors import TenureError, to_read
from tenure.adapters.files.directory import AgentDirectory, agent_directory, registry_key
from tenure.adapters.journal.journal import journal_path
from tenure.machines.lease import DEFAULT_KEY

_HEAD: Final = b"SQLite format 3\0"
"""How the file of a journal begins."""


@attrs.frozen
class Place:
    """The journal at `path`, of profile `key`. `said`: DIR as the person wrote it; `backup`: it is the file of one,
    which belongs to no directory: `root` is the absolute path of what DIR names."""

    said: str
    key: str
    path: str
    root: str
    backup: bool = False

    @property
    def directory(self) -> AgentDirectory:
        """The agent directory."""
        assert not self.backup, "a backup belongs to no directory"
        return AgentDirectory(self.root)

    def command(self, verb: str, *words: str) -> str:
        """The command that does `verb` here, to be typed as it stands."""
        more = () if self.key == DEFAULT_KEY or self.backup else ("--profile", self.key)
        return shlex.join(["tenure", *verb.split(" "), self.said, *words, *more])


def place_in(directory: str, profile: str | None) -> Place:
    """The journal of an agent directory. Raises `TenureError` for what is none, and for a name that is none."""
    where, key = agent_directory(directory), registry_key(profile)
    return Place(directory, key, journal_path(where, key), where.root)


def place_to_read(directory: str, profile: str | None) -> Place:
    """The same, or the file of a backup. Raises `TenureError` for a file that is none, also one cut to nothing."""
    if not os.path.isfile(directory):
        return place_in(directory, profile)
    if profile is not None:
        raise TenureError(f"{directory}: a file; --profile says which journal of a directory is meant")
    path = os.path.realpath(directory)
    try:
        with open(path, "rb") as file:
            head = file.read(len(_HEAD))
    except OSError as error:
        raise TenureError(f"{directory}: {error.strerror or error}; {to_read(error)}") from error
    if head != _HEAD:
        what = "no journal" if head else "an empty file, and no journal"
        raise TenureError(f"{directory}: {what}; name the agent's directory, or the file of a backup")
    return Place(directory, DEFAULT_KEY, path, path, backup=True)
