"""A file read and replaced as a whole: a temporary file beside it, renamed over it (locks.md 1, 2 and 4; S13).

Readers see the old file or the new one. What went wrong is told apart by what is known: `FAILED` where the old file is
surely still there, `UNKNOWN` where nobody can say.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Final

from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Files, Ports
from tenure.machines.leader_messages import Outcome

TRANSIENT: Final = frozenset({errno.EPERM, errno.EBUSY, errno.EACCES})
"""What a rename is tried again for: a scanner or an indexer has the file open, on some file systems."""
_REFUSALS: Final = TRANSIENT | {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EXDEV, errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.EMLINK,
    errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.ENOMEM,
}  # fmt: skip
"""Errors with which rename(2) says that it has changed nothing. EIO is none of them."""


class WriteFailed(TenureError):
    """A file could not be replaced. `outcome`: whether the old one is surely still there (FAILED), or perhaps not."""

    def __init__(self, path: str, error: OSError, outcome: Outcome, then: str = "") -> None:
        what = "was not written" if outcome is Outcome.FAILED else "may or may not have been written"
        super().__init__(f"{path}: {what}: {error.strerror or error}{then or _advice(error)}")
        self.path = path
        self.errno = error.errno
        self.outcome = outcome


def read_or_absent(files: Files, path: str) -> bytes | None:
    """A file's bytes, a link to it followed; None where nothing stands at the path, which is seen by two calls: whoever
    takes a file for absent writes a new one. Raises OSError."""
    try:
        return files.read(path, follow=True)
    except FileNotFoundError:
        if files.kind(path) == "absent":
            return None
        raise


def replace_file(ports: Ports, path: str, data: bytes, timings: Timings, *, durable: bool = False) -> None:
    """Replace the file at `path`, mode 0600; `durable`: also against a power cut, file and directory (DESIGN 10).

    Only for whoever holds the guard of the file. A rename that is refused for a moment is tried `rename_attempts`
    times. Raises `WriteFailed`.
    """
    files = ports.files
    prefix = f"{path}.{ports.processes.me().pid}.{ports.clock.wall_ms()}"
    attempt = 0
    while True:
        attempt += 1
        temporary = f"{prefix}.{attempt}.tmp"
        try:
            files.create(temporary, data)
            if durable:
                files.sync(temporary)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                _discard(files, temporary)
            failed, outcome = error, Outcome.FAILED
        else:
            try:
                files.rename(temporary, path)
            except OSError as error:
                failed, outcome = error, _after(files, temporary, error)
                _discard(files, temporary)
            else:
                break
        again = failed.errno in TRANSIENT or failed.errno == errno.EEXIST
        if outcome is not Outcome.FAILED or not again or attempt >= timings.rename_attempts:
            raise WriteFailed(path, failed, outcome)
        ports.clock.sleep_ms(timings.rename_delay_ms * attempt)
    if durable:
        try:
            files.sync(os.path.dirname(path))
        except OSError as error:
            raise WriteFailed(path, error, Outcome.UNKNOWN, " (it may not survive a power cut)") from error


def _after(files: Files, temporary: str, error: OSError) -> Outcome:
    """What a failed rename has done. The temporary name is ours alone: while it is there nothing was renamed."""
    if error.errno not in _REFUSALS:
        return Outcome.UNKNOWN
    try:
        return Outcome.FAILED if files.kind(temporary) == "file" else Outcome.UNKNOWN
    except OSError:
        return Outcome.UNKNOWN


def _discard(files: Files, temporary: str) -> None:
    with suppress(OSError):
        files.unlink(temporary)


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "; free some space"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "; make the directory writable for this user"
        case errno.ENOENT | errno.ENOTDIR:
            return "; the directory has gone"
    return ""
