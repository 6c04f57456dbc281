"""The mark below which no epoch is minted again: `DIR/tmp/telegram/epochs.json` (DESIGN 10, "Epochs"; law Fresh).

A file of its own, since an entry goes when it is released, and the epochs it had must not come back. It is raised
durably, file and directory, before an entry with that epoch is written; a refresh does not touch it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenure.adapters.errors import TenureError, to_read
from tenure.adapters.files.replacing import read_or_absent, replace_file
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports
from tenure.machines.entry import integer
from tenure.machines.lease import MAX_EPOCH

FIELD = "highWater"


class MarkDamaged(TenureError):
    """The mark cannot be read. It is never taken for 0: an epoch would be used twice."""


def read_mark(ports: Ports, path: str) -> int:
    """The mark, 0 where no epoch was ever minted here. Raises `MarkDamaged`."""
    try:
        data = read_or_absent(ports.files, path)
    except OSError as error:
        why = f"{error.strerror or error}; {to_read(error)}"
        raise MarkDamaged(f"{path}: the mark of epochs cannot be read: {why}") from error
    if data is None:
        return 0
    found, problem = parse_mark(data)
    if problem:
        raise MarkDamaged(
            f"{path}: {problem}; without the mark an epoch could repeat, so nobody leads: write the highest epoch ever "
            f'given out there as {{"{FIELD}": N}} (logs and owners.json name it)'
        )
    return found


def parse_mark(data: bytes) -> tuple[int, str]:
    """The mark that a file's bytes are, and what is wrong with them (empty: nothing)."""
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return 0, "not UTF-8"
    except (ValueError, RecursionError) as error:
        return 0, "it is empty" if not data else f"bad JSON: {error}"
    if not isinstance(value, Mapping):
        return 0, "not a JSON object"
    mark = integer(value.get(FIELD))
    if mark is None or not 0 <= mark <= MAX_EPOCH:
        return 0, f"{FIELD} is not an integer from 0 to {MAX_EPOCH}"
    return mark, ""


def raise_mark(ports: Ports, path: str, epoch: int, known: int, timings: Timings) -> None:
    """Raise the mark to `epoch`, durably; `known` is what was read in this transaction. Never lowers it.

    Raises `WriteFailed`: the mark may then be raised or not, and either is harmless, since nobody has the epoch.
    """
    if epoch <= known:
        raise ValueError(f"{path}: {epoch} is not above the mark {known}")
    replace_file(ports, path, f'{{"{FIELD}": {epoch}}}\n'.encode(), timings, durable=True)
