"""Who one instance of the fleet is: the process, its activation, and the keys by which a leader knows it (bus.md 0).

An *instance* is one activation of a process, ``<pid>:<ms>``; a *process* is a pid and a birth. The profile key outlives
both: it is what a follower keeps its slot by when it is restarted in the same terminal.
"""

from __future__ import annotations

import os
import posixpath

import attrs

from tenure.adapters.fleet import identities
from tenure.adapters.ports import Processes
from tenure.machines.identity import GONE, Process
from tenure.machines.lease import DEFAULT_KEY


@attrs.frozen
class InstanceIdentity:
    """One activation of this process.

    `owner_id` is the birth of the parent, usually the shell (manualFollowerOwnerId): two processes of one shell share
    it (L24). `session` counts the sessions of the host inside one process, from 1. `name`: what a person called it.
    """

    process: Process
    instance_id: str
    owner_id: str
    session: int = 1
    cwd: str = "/"
    name: str | None = None

    @property
    def pid(self) -> int:
        """The process's pid."""
        return self.process.pid

    @property
    def birth_id(self) -> str:
        """processBirthId: what proves, to whoever sees this pid again, whether it is still this process."""
        return identities.linux_birth_id(self.process.pid, self.process.birth.ticks)

    @property
    def display_name(self) -> str:
        """The name that a registration proposes when nothing better is known: the directory's."""
        return self.name or posixpath.basename(self.cwd.rstrip("/")) or self.cwd

    def profile_key(self, profile: str | None = None) -> str:
        """The key by which a leader keeps this follower's slot and target: that of its parent process."""
        return identities.manual_profile_key(self.owner_id, _scope(profile))

    def own_profile_key(self, profile: str | None = None) -> str:
        """A key that no other process has: asked for when another living process of the same shell holds the shared
        one (L24). The same for every activation of this process."""
        return identities.own_profile_key(self.owner_id, self.birth_id, _scope(profile))

    def leader_key(self, profile: str | None = None) -> str:
        """The key of this instance where it leads: its directory's."""
        return identities.leader_profile_key(self.cwd, _scope(profile))


def own_identity(
    processes: Processes,
    instance_id: str,
    *,
    session: int = 1,
    cwd: str | None = None,
    name: str | None = None,
    parent: int | None = None,
) -> InstanceIdentity:
    """That of this process in its activation `instance_id`; `parent` is the pid of its parent (None: as the system
    says)."""
    above = os.getppid() if parent is None else parent
    seen = processes.sighting(above)
    if seen.ticks is None or seen.state == GONE:
        # Identifies the parent of this activation, and proves nobody's death.
        owner = identities.fallback_birth_id(above, instance_id)
    else:
        owner = identities.linux_birth_id(above, seen.ticks)
    return InstanceIdentity(processes.me(), instance_id, owner, session, os.getcwd() if cwd is None else cwd, name)


def _scope(profile: str | None) -> str | None:
    return None if profile in (None, "", DEFAULT_KEY) else profile
