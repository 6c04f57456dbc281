"""`Files` on a real directory: each method is the system calls that it names, and nothing else."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from tenure.adapters.ports import READ_LIMIT, NodeKind

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
# Without O_NONBLOCK the opening of a pipe that somebody put there would wait for its writer, inside a guard.
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK: Final = 64 * 1024
_NOT_OPENED: Final = frozenset({errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP})
"""How open(2) refuses a socket, or a device that is not there."""


class PosixFiles:
    """The operating system's files."""

    def make_directory(self, path: str) -> None:
        os.mkdir(path, _DIRECTORY_MODE)

    def create(self, path: str, data: bytes) -> None:
        descriptor = os.open(path, _CREATE, _FILE_MODE)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def read(self, path: str, *, follow: bool = False) -> bytes:
        try:
            descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in _NOT_OPENED:
                raise OSError(errno.EINVAL, "not a regular file", path) from error
            raise
        try:
            found = os.read(descriptor, _CHUNK)  # EISDIR for a directory; an empty answer needs a second look
            if len(found) < _CHUNK and found:
                return found
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            parts, size = [found], len(found)
            while found:
                found = os.read(descriptor, _CHUNK)
                parts.append(found)
                size += len(found)
                if size > READ_LIMIT:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def entries(self, path: str) -> tuple[str, ...]:
        descriptor = os.open(path, _READ | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return tuple(sorted(os.listdir(descriptor)))
        finally:
            os.close(descriptor)

    def kind(self, path: str) -> NodeKind:
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        if stat.S_ISDIR(mode):
            return "directory"
        return "file" if stat.S_ISREG(mode) else "other"

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
