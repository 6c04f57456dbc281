"""Where things are in an agent directory (locks.md 2; DESIGN 10)."""

from __future__ import annotations

import os
import re
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.machines.lease import DEFAULT_KEY

_PROFILE: Final = re.compile(r"[a-z0-9]{1,32}")
_RESERVED: Final = frozenset({"main", "active"})


@attrs.frozen
class AgentDirectory:
    """An agent directory, as an absolute path. What is below `state` belongs to the protocols."""

    root: str

    @property
    def state(self) -> str:
        """`DIR/tmp/telegram`."""
        return f"{self.root}/tmp/telegram"

    @property
    def registry(self) -> str:
        """The owner registry."""
        return f"{self.state}/owners.json"

    @property
    def guard(self) -> str:
        """The registry's guard."""
        return f"{self.registry}.transaction"

    @property
    def recovery_guard(self) -> str:
        """The resource whose guard serialises quarantine (locks.md 8); its guard is `<this>.transaction`."""
        return f"{self.state}/runtime-recovery"

    @property
    def quarantine(self) -> str:
        """Where what is damaged is moved to."""
        return f"{self.state}/recovery"

    @property
    def high_water(self) -> str:
        """The mark below which no epoch is minted again: ours, beside the registry."""
        return f"{self.state}/epochs.json"

    def work_lock(self, key: str) -> str:
        """What COMMAND of ``tenure lead`` and its descendants keep locked."""
        return f"{self.state}/lead.lock" if key == DEFAULT_KEY else f"{self.state}/lead.{key}.lock"

    def commit_lock(self, key: str) -> str:
        """What CMD of ``tenure commit`` and its descendants keep locked."""
        return f"{self.state}/commit.lock" if key == DEFAULT_KEY else f"{self.state}/commit.{key}.lock"


def agent_directory(path: str | os.PathLike[str]) -> AgentDirectory:
    """The agent directory at `path`. Raises `TenureError` where there is no directory."""
    if not os.fspath(path):
        raise TenureError("DIR is empty; name the agent's directory")
    root = os.path.abspath(path)
    if os.path.isfile(root):
        raise TenureError(f"{path}: a file, not a directory; name the agent's directory")
    if not os.path.isdir(root):
        raise TenureError(f"{path}: no such directory; create it first, or name the agent's directory")
    return AgentDirectory(root)


def require_directory(directory: object) -> None:
    """Raises `TenureError` for what is no `AgentDirectory`, as a path is none: nobody looked whether it is there."""
    if not isinstance(directory, AgentDirectory):
        raise TenureError(f"{directory!r} is no AgentDirectory; pass agent_directory(DIR)")


def require_key(key: str) -> None:
    """Raises `TenureError` for what is no key of the registry: nobody else would ever look there."""
    if registry_key(key) != key:
        raise TenureError(f"key {key!r} is none; pass registry_key(PROFILE)")


def registry_key(profile: str | None) -> str:
    """The registry's key of a profile (locks.md 1), `default` for none. Raises `TenureError` for what is no name."""
    if profile is None or profile in ("", DEFAULT_KEY):
        return DEFAULT_KEY
    if not _PROFILE.fullmatch(profile) or profile in _RESERVED:
        raise TenureError(f"profile {profile!r}: a name has 1 to 32 of a-z and 0-9, and is not main or active")
    return profile
