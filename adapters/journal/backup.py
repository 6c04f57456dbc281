"""A copy of the whole journal as of one moment, made while others use it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from tenure.adapters.errors import TenureError, to_write
from tenure.adapters.journal.transaction import Store
from tenure.adapters.ports import Files, Identities


def back_up(store: Store, files: Files, identities: Identities, target: str) -> None:
    """A copy at `target`, an absolute path where nothing stands: it is there as a whole, on the disk, or not at all.

    It opens as a journal does. Raises `TenureError`; then `target` is as it was.
    """
    if files.kind(target) != "absent":
        raise TenureError(f"{target}: something is there; name a file that does not exist")
    room = os.path.dirname(target)
    temporary = f"{target}.{identities.word(8)}.tmp"
    try:
        files.create(temporary, b"")
    except OSError as error:
        raise TenureError(f"{target}: {error.strerror or error}; {to_write(error)}") from error
    try:
        store.backup(temporary)
        _publish(files, temporary, target)
        files.sync(room)
    except TenureError:
        _discard(files, temporary)
        raise
    except OSError as error:
        _discard(files, temporary)
        if isinstance(error, FileExistsError):
            raise TenureError(f"{target}: something is there; name a file that does not exist") from error
        raise TenureError(f"{target}: {error.strerror or error}; {to_write(error)}") from error


def _publish(files: Files, temporary: str, target: str) -> None:
    if files.kind(target) != "absent":
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    files.rename(temporary, target)


def _discard(files: Files, temporary: str) -> None:
    with suppress(OSError):
        files.unlink(temporary)
