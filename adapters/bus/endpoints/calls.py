"""What an endpoint needs of the world, one method per call (as `tenure.adapters.ports`, for sockets' names)."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from typing import Final, Literal, Protocol

import attrs

from tenure.adapters.files.processes import processes
from tenure.machines.identity import GONE

Standing = Literal["absent", "link", "socket", "directory", "other"]
Listener = Literal["live", "dead", "barred"]
"""Somebody listens; nobody does (refused, or not there); it may not be asked."""
_ABSENT: Final = (errno.ENOENT, errno.ENOTDIR)


@attrs.frozen
class Node:
    """What stands at a path, links not followed."""

    standing: Standing
    uid: int = -1
    mode: int = 0
    """Permission bits."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode."""
    age_ms: int = 0
    """Since its inode changed, by the wall clock."""

    @property
    def obstacle(self) -> str:
        """What stands there that can be no endpoint of anybody; "" for all else."""
        if self.standing == "directory":
            return "a directory"
        return "a file that is no socket" if self.standing == "other" else ""


class EndpointCalls(Protocol):
    """Every method is one call, raises OSError as the operating system does, and takes absolute paths."""

    def make_directory(self, path: str) -> None:
        """mkdir with mode 0700. FileExistsError where anything stands."""

    def change_mode(self, path: str, mode: int) -> None:
        """chmod; follows a link."""

    def node(self, path: str) -> Node:
        """lstat. Absent is no error."""

    def leads_to_socket(self, path: str) -> bool:
        """Whether a socket is there once links are followed; True where that cannot be told."""

    def bind(self, path: str) -> socket.socket:
        """A stream socket that does not block, bound to `path`, not listening yet."""

    def listen(self, end: socket.socket, backlog: int) -> None:
        """listen(2)."""

    def link(self, target: str, path: str) -> None:
        """symlink(2)."""

    def target(self, path: str) -> str:
        """readlink(2)."""

    def rename(self, source: str, target: str) -> None:
        """rename(2)."""

    def unlink(self, path: str) -> None:
        """unlink(2)."""

    def entries(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted."""

    def gone(self, pid: int) -> bool:
        """Whether no process has this pid."""

    def probe(self, path: str) -> Listener:
        """Whether somebody listens at `path`: connect, and close. It does not wait: a Unix socket answers at once, and
        a full backlog is an answer."""


class PosixCalls:
    """The operating system's."""

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def change_mode(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def node(self, path: str) -> Node:
        try:
            found = os.lstat(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return Node("absent")
            raise
        return Node(
            _standing(found.st_mode),
            found.st_uid,
            stat.S_IMODE(found.st_mode),
            (found.st_dev, found.st_ino),
            int((time.time() - found.st_ctime) * 1000),
        )

    def leads_to_socket(self, path: str) -> bool:
        try:
            return stat.S_ISSOCK(os.stat(path).st_mode)
        except OSError as error:
            return error.errno not in (*_ABSENT, errno.ELOOP)

    def bind(self, path: str) -> socket.socket:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            end.setblocking(False)
            end.bind(path)
        except BaseException:
            end.close()
            raise
        return end

    def listen(self, end: socket.socket, backlog: int) -> None:
        end.listen(backlog)

    def link(self, target: str, path: str) -> None:
        os.symlink(target, path)

    def target(self, path: str) -> str:
        return os.readlink(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def entries(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(path)))

    def gone(self, pid: int) -> bool:
        return processes().sighting(pid).state == GONE

    def probe(self, path: str) -> Listener:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            end.setblocking(False)
            try:
                end.connect(path)
            except BlockingIOError:
                return "live"
            except OSError as error:
                return "dead" if error.errno in (errno.ECONNREFUSED, *_ABSENT) else "barred"
        return "live"


def _standing(mode: int) -> Standing:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "directory" if stat.S_ISDIR(mode) else "other"
