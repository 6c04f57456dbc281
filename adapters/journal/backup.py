"""A copy of the whole journal as of one moment, made while others use it."""

from __future__ import annotations

import os
from contextlib import suppress

from tenure.adapters.errors import TenureError, to_write
from tenure.adapters.journal.transaction import Store
from tenure.adapters.ports import Files, Identities


def back_up(store: Store, files: Files, identities: Identities, target: str) -> None:
    """A copy at `target`, an absolute path where nothing stands; it opens as a journal does.

    Raises `TenureError`; then there is nothing at `target`, or all of it where only the directory could not be forced
    to the disk. Who dies meanwhile leaves a file with another name, `target`.<word>.tmp.
    """
    temporary = f"{target}.{identities.word(8)}.tmp"
    try:
        _require_free(files, target)
        files.create(temporary, b"")
        try:
            store.backup(temporary, target)
            _require_free(files, target)
            files.rename(temporary, target)
        except (TenureError, OSError):
            with suppress(OSError):
                files.unlink(temporary)
            raise
        files.sync(os.path.dirname(target))
    except OSError as error:
        raise TenureError(f"{target}: {error.strerror or error}; {to_write(error)}") from error


def _require_free(files: Files, target: str) -> None:
    if files.kind(target) != "absent":
        raise TenureError(f"{target}: something is there; name a file that does not exist")
