"""One process is one member of a fleet: it has one lease there."""

from __future__ import annotations

from typing import Final, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.process_state import ProcessState, process_state


class Resident(Protocol):
    """A member that was entered."""

    @property
    def runs(self) -> bool:
        """Whether it can still leave."""


_Key = tuple[str, str]
_HERE: Final[WeakKeyDictionary[ProcessState, WeakValueDictionary[_Key, Resident]]] = WeakKeyDictionary()
"""The members of a process, by registry and key."""


def settle_in(process: ProcessState | None, directory: AgentDirectory, key: str, who: Resident) -> None:
    """From now on `who` is this process's member of the fleet. Raises TenureError as long as another is."""
    here, where = _neighbours(process), (directory.registry, key)
    other = here.get(where)
    if other is not None and other.runs:
        raise TenureError(
            f"{directory.root}: this process is a member of this fleet already ({key}); have that one leave first"
        )
    here[where] = who


def settle_out(process: ProcessState | None, directory: AgentDirectory, key: str, who: Resident) -> None:
    """It has left."""
    here, where = _neighbours(process), (directory.registry, key)
    if here.get(where) is who:
        del here[where]


def _neighbours(process: ProcessState | None) -> WeakValueDictionary[_Key, Resident]:
    return _HERE.setdefault(process_state() if process is None else process, WeakValueDictionary())
