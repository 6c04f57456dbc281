"""What a runtime and its lease are told, remember and ask for: the vocabulary of `tenure.machines.leader_election`."""

from __future__ import annotations

import enum
from typing import ClassVar

import attrs

from tenure.machines.entry import Entry
from tenure.machines.identity import Epoch, Owner, Process
from tenure.machines.lease import MAX_EPOCH, Sight, ordered


@attrs.frozen
class Me:
    """What a runtime is, for as long as it lives. `stale_ms`: how long a lease lasts (locks.md 1). `max_epoch`: the
    highest epoch it may mint (DESIGN 10)."""

    process: Process
    cwd: str | None
    instance_id: str
    stale_ms: int
    bus_socket_path: str | None = None
    bus_secret: str | None = None
    max_epoch: int = MAX_EPOCH


@attrs.frozen
class Tenure:
    """The span in which this runtime owns `key`. `stamp_ms`: monotonic time of the last lease that is in the file."""

    key: str
    owner: Owner
    stamp_ms: int

    @property
    def epoch(self) -> int:
        """The fencing token."""
        return ordered(self.owner.leader_epoch)


@attrs.frozen
class Runtime:
    """Memory of the machine.

    `tenure` is owned in the phases owner, renewing, deleting and committing; it is intended in raising and placing,
    and nobody knows which in doubtful. `shown` is the owner that was seen last; `mode` how the key is being acquired:
    plain, election, forced, superseding, resume; `stamp_ms` the lease that is being written.
    """

    me: Me
    key: str
    generation: int = 0
    tenure: Tenure | None = None
    mode: str = "none"
    shown: Owner | None = None
    stamp_ms: int = 0


class Outcome(enum.Enum):
    """How a write of the registry went. UNKNOWN: an error after which the new file may or may not be in place."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


# -- what the machine is told ---------------------------------------------------------------------------------------


@attrs.frozen(cache_hash=True)
class Start:
    """The runtime starts with `generation`; `previous` is the highest that its process has had."""

    event: ClassVar[str] = "start"
    generation: int
    previous: int


@attrs.frozen(cache_hash=True)
class Look:
    """A plain read, for whoever wants to know the owner, and for an owner that checks (locks.md 9.3)."""

    event: ClassVar[str] = "look"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Acquire:
    """Ordinary acquisition (locks.md 7.1 A5)."""

    event: ClassVar[str] = "acquire"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Elect:
    """Acquisition by election: the owner seen last, or nobody (A2)."""

    event: ClassVar[str] = "elect"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Force:
    """An operator takes over from the owner that was shown (A4)."""

    event: ClassVar[str] = "force"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Supersede:
    """A newer runtime of the owner's process takes over (A3)."""

    event: ClassVar[str] = "supersede"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Resume:
    """A session takes up the lease that it saw left behind, by a dead process or an older runtime (9.4)."""

    event: ClassVar[str] = "resume"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Mint:
    """A candidate epoch, with the mark and the epoch in the entry, both read inside the transaction."""

    event: ClassVar[str] = "mint"
    epoch: int
    high_water: int
    entry_epoch: Epoch | None


@attrs.frozen(cache_hash=True)
class Abandon:
    """The mark cannot be read, or no epoch is left: the acquisition ends before anything is written."""

    event: ClassVar[str] = "abandon"


@attrs.frozen(cache_hash=True)
class Raised:
    """The answer to `RaiseHighWater`: whether the mark is on disk, file and directory, and what time it is."""

    event: ClassVar[str] = "raised"
    durable: bool
    wall_ms: int
    monotonic_ms: int


@attrs.frozen(cache_hash=True)
class Settle:
    """The answer to `WriteEntry` and `DeleteEntry`."""

    event: ClassVar[str] = "settle"
    outcome: Outcome


@attrs.frozen(cache_hash=True)
class Resolve:
    """A doubtful runtime has read again."""

    event: ClassVar[str] = "resolve"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Refresh:
    """The lease is to be renewed; a lease that has passed can be, as long as nobody has replaced it (7.2)."""

    event: ClassVar[str] = "refresh"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Release:
    """The lease is to be given up (7.2)."""

    event: ClassVar[str] = "release"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Commit:
    """An effect on a resource that cannot compare epochs is to run inside the transaction (commitIfOwned, 7.2)."""

    event: ClassVar[str] = "commit"
    sight: Sight


@attrs.frozen(cache_hash=True)
class Landed:
    """The answer to `RunEffect`: it has run, or failed."""

    event: ClassVar[str] = "landed"


@attrs.frozen(cache_hash=True)
class Send:
    """A fenced effect is to be sent, outside the transaction."""

    event: ClassVar[str] = "emit"
    monotonic_ms: int


@attrs.frozen(cache_hash=True)
class Switch:
    """The active profile, and with it the key, changes."""

    event: ClassVar[str] = "switch"
    key: str


@attrs.frozen(cache_hash=True)
class Die:
    """The process ends."""

    event: ClassVar[str] = "die"


Deciding = Look | Acquire | Elect | Force | Supersede | Resume | Resolve | Refresh | Release | Commit
Happening = Deciding | Start | Mint | Abandon | Raised | Settle | Landed | Send | Switch | Die


# -- what the adapter has to do --------------------------------------------------------------------------------------


@attrs.frozen
class RaiseHighWater:
    """Write the mark of `epoch` and sync it, file and directory; answer `Raised`."""

    epoch: int


@attrs.frozen
class WriteEntry:
    """Replace the entry of `key` in what was read, write all of it by rename; answer `Settle`."""

    key: str
    entry: Entry


@attrs.frozen
class DeleteEntry:
    """Delete the entry of `key` in what was read, write all of it by rename; answer `Settle`."""

    key: str


@attrs.frozen
class RunEffect:
    """Run the short, synchronous effect now, before leaving the transaction; answer `Landed`."""

    key: str
    epoch: int


@attrs.frozen
class SendEffect:
    """Send the effect with its epoch to the resource, which compares."""

    key: str
    epoch: int


@attrs.frozen
class Owned:
    """The runtime owns `key`; `how` it was acquired, resolved for a doubt that ended well."""

    key: str
    epoch: int
    how: str


@attrs.frozen
class Lost:
    """The runtime owns `key` no more, without having let go."""

    key: str
    epoch: int


Output = RaiseHighWater | WriteEntry | DeleteEntry | RunEffect | SendEffect | Owned | Lost
Answer = tuple[Runtime, tuple[Output, ...]]
