"""What the leader's registry of routes is told, remembers and answers: the vocabulary of `tenure.machines.routes`.

Times are ms of the leader's own monotonic clock. An *epoch* in a message is the one under which this process leads
when the message is made, None when it does not: read from the owner registry for `Register`, `Provisioned`,
`Disconnect`, `Reclaim` and `Cleaned`; for the frequent ones what the leadership says (one check old at most).
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import attrs

from tenure.machines.follower_messages import NOTHING_BOUND, Binding, Generation, Target
from tenure.machines.identity import Epoch

SILENT_MS: Final = 5_000
"""A follower that was not heard for longer leaves the routes (bus.md 0)."""

Kind = Literal["register", "clean_up"]
Request = Literal["register", "heartbeat", "disconnect"]


@attrs.frozen(cache_hash=True)
class Entry:
    """The route to a follower."""

    instance: str
    generation: Generation
    key: str
    """Its profile key: who comes back with it is the same member."""
    process: str
    """Birth identity of its process; empty when it named none, and then nobody is the same process."""
    binding: Binding
    heard: int
    """When it was heard last, ms."""
    capable: bool = True
    """It has what a successor needs: it may stand in the roster."""


@attrs.frozen(cache_hash=True)
class Mutation:
    """A change of one profile that is under way."""

    kind: Kind
    instance: str
    generation: Generation
    key: str
    process: str
    binding: Binding
    epoch: Epoch
    """Under which it began."""
    capable: bool = True
    asked: bool = True
    """A follower waits for the acknowledgement."""


@attrs.frozen(cache_hash=True)
class Intent:
    """On disk: this thread is to be deleted, unless another registration has it by then (annex I)."""

    instance: str
    generation: Generation
    key: str
    target: Target | None


@attrs.frozen(cache_hash=True)
class Routes:
    """What the leader's registry remembers besides its phase."""

    silent_ms: int = SILENT_MS
    epoch: Epoch | None = None
    """Under which it serves."""
    entries: tuple[Entry, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    intents: tuple[Intent, ...] = ()
    """As they are on disk."""

    def entry(self, instance: str) -> Entry | None:
        """The route to `instance`."""
        return next((e for e in self.entries if e.instance == instance), None)


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Open:
    """We lead under `epoch`; `intents` is what the disk has."""

    event: ClassVar[str] = "open"
    epoch: Epoch
    intents: tuple[Intent, ...] = ()


@attrs.frozen(cache_hash=True)
class Register:
    """A register request. `authenticated`: it has our secret. `compatible`: by our judgement of its protocol identity.
    `dead`: instances whose processes are proven dead. `same`: instances that are proven to be of the asking process,
    whatever `process` their routes have (a relay spoke for it). `binding`: what the follower carries, or names as
    somebody's."""

    event: ClassVar[str] = "register"
    instance: str
    generation: Generation | None
    key: str
    process: str
    binding: Binding
    epoch: Epoch | None
    authenticated: bool
    compatible: bool
    capable: bool = True
    dead: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()


@attrs.frozen(cache_hash=True)
class Provisioned:
    """The provisioning of `generation` ended well, with `binding`, at `now`. `dead`, `same`: as in `Register`, now."""

    event: ClassVar[str] = "provisioned"
    instance: str
    generation: Generation
    binding: Binding
    epoch: Epoch | None
    now: int
    dead: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()


@attrs.frozen
class ProvisionFailed:
    """The provisioning of `generation` ended in an error."""

    event: ClassVar[str] = "provision_failed"
    instance: str
    generation: Generation
    error: str = ""


@attrs.frozen
class Replay:
    """The request ledger remembers an acknowledgement of this registration: does it still stand (L14)? It does when
    this is taken; when it is refused the registration is over, and so is the request."""

    event: ClassVar[str] = "replay"
    instance: str
    generation: Generation | None


@attrs.frozen
class Heartbeat:
    """A heartbeat."""

    event: ClassVar[str] = "heartbeat"
    instance: str
    generation: Generation | None
    epoch: Epoch | None
    now: int


@attrs.frozen
class Ask:
    """A request of a follower: an API call, an agent message, a handoff."""

    event: ClassVar[str] = "ask"
    instance: str
    generation: Generation | None
    epoch: Epoch | None
    now: int
    number: int


@attrs.frozen
class Forward:
    """Work for `instance`, decided under the route of `generation`."""

    event: ClassVar[str] = "forward"
    instance: str
    generation: Generation | None
    epoch: Epoch | None
    now: int
    number: int


@attrs.frozen
class Disconnect:
    """A goodbye: delete the thread, then forget the route."""

    event: ClassVar[str] = "disconnect"
    instance: str
    generation: Generation | None
    epoch: Epoch | None


@attrs.frozen
class Reclaim:
    """The thread of a registration may be deleted: an intent of it is on disk, or its process is proven dead (`dead`).
    `held_by`, `held_as`: instance and generation of the current record of this target, None without one."""

    event: ClassVar[str] = "reclaim"
    intent: Intent
    epoch: Epoch | None
    dead: bool
    held_by: str | None
    held_as: Generation | None


@attrs.frozen
class Cleaned:
    """The thread of `generation` is deleted, for certain."""

    event: ClassVar[str] = "cleaned"
    instance: str
    generation: Generation
    epoch: Epoch | None


@attrs.frozen
class CleanUpFailed:
    """It is not certain that the thread of `generation` is deleted."""

    event: ClassVar[str] = "clean_up_failed"
    instance: str
    generation: Generation
    error: str = ""


@attrs.frozen
class Prune:
    """The time of `instance` is looked at."""

    event: ClassVar[str] = "prune"
    instance: str
    now: int


@attrs.frozen
class Close:
    """We do not lead any more."""

    event: ClassVar[str] = "close"


Happening = (
    Open | Register | Provisioned | ProvisionFailed | Replay | Heartbeat | Ask | Forward | Disconnect | Reclaim
    | Cleaned | CleanUpFailed | Prune | Close
)  # fmt: skip


# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Provision:
    """Call the provisioning port; answer `Provisioned` or `ProvisionFailed`. What of `binding` is free is kept."""

    instance: str
    generation: Generation
    key: str
    binding: Binding
    epoch: Epoch


@attrs.frozen
class PersistIntent:
    """Write the intent down, durably, before what follows."""

    intent: Intent


@attrs.frozen
class DropIntent:
    """The intent is fulfilled or void: remove it from the disk."""

    intent: Intent


@attrs.frozen
class CleanUp:
    """Call: delete the thread, each step under `epoch`; answer `Cleaned` or `CleanUpFailed`."""

    intent: Intent
    epoch: Epoch


@attrs.frozen
class Acknowledge:
    """Answer ok: a register request with its binding, a heartbeat with the roster, a goodbye."""

    request: Request
    instance: str
    generation: Generation
    binding: Binding = NOTHING_BOUND
    roster: tuple[str, ...] = ()


@attrs.frozen
class Reject:
    """Answer not ok, to a request that was taken first. `held`: another live process has the profile."""

    request: Request
    instance: str
    generation: Generation
    held: bool = False
    error: str = ""


@attrs.frozen
class Gone:
    """This registration is over: nothing is routed to it any more."""

    instance: str
    generation: Generation


@attrs.frozen
class Perform:
    """Do what the follower asked for, as its current registration."""

    instance: str
    generation: Generation | None
    number: int


@attrs.frozen
class Send:
    """Send the work to the follower, under this registration."""

    instance: str
    generation: Generation | None
    number: int


Output = (
    Provision | PersistIntent | DropIntent | CleanUp | Acknowledge | Reject | Gone | Perform | Send
)  # fmt: skip
