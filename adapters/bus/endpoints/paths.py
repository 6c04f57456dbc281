"""Where endpoints are (bus.md a, SOCKET PATHS): the same names as the other system's, at listen and at connect."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Final

from tenure.adapters.files.directory import AgentDirectory
from tenure.machines.lease import DEFAULT_KEY

LONGEST: Final = 80
"""Bytes that a path may have. A longer one is mapped: a Unix socket's address holds 108 with its NUL, 104 on macOS,
and the private name beside it is up to 19 longer."""
_SCOPE_LENGTH: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
_SHORT_NAME: Final = re.compile(r"[0-9a-f]{16}\.sock")


def leader_path(directory: AgentDirectory, key: str) -> str:
    """Where the leader of the registry key `key` ("default", or a profile) listens."""
    return f"{directory.state}/bus.sock" if key == DEFAULT_KEY else f"{directory.state}/bus.{_scope(key)}.sock"


def follower_path(directory: AgentDirectory, key: str, instance: str) -> str:
    """Where the follower `instance` of the registry key `key` listens."""
    room = followers_directory(directory, key)
    return f"{room}/{_scope(instance)}.sock"


def followers_directory(directory: AgentDirectory, key: str) -> str:
    """Where the followers of the registry key `key` have their endpoints."""
    room = f"{directory.state}/followers"
    return room if key == DEFAULT_KEY else f"{room}/{_scope(key)}"


def endpoint_path(path: str) -> str:
    """`path`, or where it is mapped to when it has more than `LONGEST` bytes: a name made of its hash, in
    `short_directory`. A path that is such a name stays as it is."""
    name = os.fsencode(path)
    short = short_directory()
    if len(name) <= LONGEST or (os.path.dirname(path) == short and _SHORT_NAME.fullmatch(os.path.basename(path))):
        return path
    return f"{short}/{hashlib.sha256(name).hexdigest()[:16]}.sock"


def short_directory() -> str:
    """Where the mapped endpoints of this user are. It lies where others may write: see `Endpoint`."""
    return os.path.join(_temporary(), f"pi-telegram-{os.getuid()}")


def _temporary() -> str:
    """The directory for temporary files as the other system finds it: not as Python does, which tries to write."""
    found = os.environ.get("TMPDIR") or os.environ.get("TMP") or os.environ.get("TEMP") or "/tmp"
    return os.path.normpath(found)


def _scope(text: str) -> str:
    """`text` as a part of a file's name. Beyond U+FFFF a character counts as two: there strings are UTF-16."""
    return _UNSAFE.sub(lambda found: "_" * (len(found[0].encode("utf-16-le", "surrogatepass")) // 2), text)[
        :_SCOPE_LENGTH
    ]
