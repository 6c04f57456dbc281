"""What a follower is told, remembers and answers: the vocabulary of `tenure.machines.follower` (bus.md b)."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

Generation = int | str
"""A registration generation: the request id of the register request. Minted fresh for each attempt, the same across
its transport retries. Models number them."""
Target = int | str
"""A chat thread as one value ("<chat>/<thread>"); the machines only compare it."""

Outcome = Literal[
    "registered", "held", "incompatible", "refused", "failed", "abandoned", "disconnected", "not_disconnected"
]
"""What became of a registration or of a goodbye. held: another live process has the profile; the next attempt uses a
key of its own. refused: the leader said no. failed: no answer. abandoned: the session changed meanwhile."""


@attrs.frozen(cache_hash=True)
class Binding:
    """What a follower carries from registration to registration: its thread, slot (A-Z) and name, once it has them.
    Where something else is to be told, None and a blank text say nothing."""

    target: Target | None = None
    slot: str | None = None
    name: str | None = None


NOTHING_BOUND = Binding()


@attrs.frozen(cache_hash=True)
class Memory:
    """What a follower remembers besides its phase."""

    instance: str
    """Who I am: one activation of a process ("<pid>:<ms>")."""
    session: int = 1
    """The session that is served now."""
    generation: Generation | None = None
    """The registration that is under way or held; None in idle and stopped."""
    acknowledged: bool = False
    """The leader has acknowledged it."""
    beating: bool = False
    """A heartbeat of it is in flight."""
    abandoned: Generation | None = None
    """A registration that was given up while its request was on its way; None once that call has returned."""
    own_key: bool = False
    """The shared profile key was held by another process: register under a key of our own (L24)."""
    binding: Binding = NOTHING_BOUND
    """Kept through recovery, failure and session changes (A55)."""
    roster: tuple[str, ...] = ()
    """Slots that may stand for election, as the leader said last; kept when it falls silent."""
    capabilities: tuple[str, ...] = ()
    """What the leader of this registration can do; a new target does not erase it (L22)."""


# -- messages ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Register:
    """Register with the leader, under a generation that was never used. `binding`: what is carried besides what is
    remembered; it counts where it says something, and is remembered from now on."""

    event: ClassVar[str] = "register"
    generation: Generation
    binding: Binding = NOTHING_BOUND


@attrs.frozen
class Answered:
    """The leader answered the register request of `generation`. `compatible`: by our own judgement of the protocol
    identity in the answer (none: not compatible), whatever `ok` says. `held`: refused since another live process has
    the profile. The rest counts when ok."""

    event: ClassVar[str] = "answered"
    generation: Generation
    compatible: bool
    ok: bool
    held: bool = False
    binding: Binding = NOTHING_BOUND
    capabilities: tuple[str, ...] = ()
    error: str = ""


@attrs.frozen
class RegisterFailed:
    """All attempts to send the register request of `generation` ended without an answer."""

    event: ClassVar[str] = "register_failed"
    generation: Generation
    error: str = ""


@attrs.frozen
class Tick:
    """It is time for a heartbeat."""

    event: ClassVar[str] = "tick"


@attrs.frozen
class BeatAnswered:
    """The heartbeat of `generation` was answered; `roster` counts when ok."""

    event: ClassVar[str] = "beat_answered"
    generation: Generation
    ok: bool
    roster: tuple[str, ...] = ()
    error: str = ""


@attrs.frozen
class BeatFailed:
    """The heartbeat of `generation` had no answer, or the death of the leader is proven."""

    event: ClassVar[str] = "beat_failed"
    generation: Generation
    error: str = ""


@attrs.frozen
class Disconnect:
    """A person disconnects: say goodbye to the leader, which deletes the thread."""

    event: ClassVar[str] = "disconnect"


@attrs.frozen
class DisconnectAnswered:
    """The goodbye of `generation` was answered."""

    event: ClassVar[str] = "disconnect_answered"
    generation: Generation
    ok: bool
    error: str = ""


@attrs.frozen
class DisconnectFailed:
    """The goodbye of `generation` had no answer: it is not known whether the leader acted on it."""

    event: ClassVar[str] = "disconnect_failed"
    generation: Generation
    error: str = ""


@attrs.frozen
class Leave:
    """Give the registration up without a word (an election is about to begin); the binding is kept."""

    event: ClassVar[str] = "leave"


@attrs.frozen
class SessionChanged:
    """The host context was replaced inside this process; `session` was never used here before."""

    event: ClassVar[str] = "session_changed"
    session: int


@attrs.frozen
class Ask:
    """Somebody here wants the leader to do something (call the API, pass a message on, hand work over)."""

    event: ClassVar[str] = "ask"
    number: int


@attrs.frozen
class Deliver:
    """Work from the leader for `instance` under `generation` (None: the envelope names none)."""

    event: ClassVar[str] = "deliver"
    instance: str
    generation: Generation | None
    number: int


@attrs.frozen
class ReplaceTarget:
    """The leader restored a thread: `instance` has another target now, under the same `generation`."""

    event: ClassVar[str] = "replace_target"
    instance: str
    generation: Generation | None
    target: Target


@attrs.frozen
class Stop:
    """This instance ends."""

    event: ClassVar[str] = "stop"


Happening = (
    Register | Answered | RegisterFailed | Tick | BeatAnswered | BeatFailed | Disconnect | DisconnectAnswered
    | DisconnectFailed | Leave | SessionChanged | Ask | Deliver | ReplaceTarget | Stop
)  # fmt: skip


# -- outputs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class SendRegister:
    """Send the register request (retried, same generation); answer `Answered` or `RegisterFailed`. `own_key`: under a
    profile key of this instance alone."""

    generation: Generation
    session: int
    own_key: bool
    binding: Binding


@attrs.frozen
class SendHeartbeat:
    """Send a heartbeat; answer `BeatAnswered` or `BeatFailed`."""

    generation: Generation


@attrs.frozen
class SendDisconnect:
    """Send the goodbye; answer `DisconnectAnswered` or `DisconnectFailed`."""

    generation: Generation


@attrs.frozen
class SendAsk:
    """Send what was asked, under the registration of this moment."""

    generation: Generation
    number: int


@attrs.frozen
class Admit:
    """Take this piece of work in."""

    number: int


@attrs.frozen
class Retarget:
    """The thread is another one now: persist it."""

    binding: Binding


@attrs.frozen
class Abandon:
    """Calls of `generation` are of no interest any more: cancel them, and say so by their `Failed` event. A late answer
    is nothing."""

    generation: Generation


@attrs.frozen
class Recover:
    """The registration of `generation` is lost; `tenure.machines.succession` decides what follows, with `binding`."""

    generation: Generation
    binding: Binding
    error: str = ""


@attrs.frozen
class Report:
    """Tell whoever asked for the registration or the goodbye."""

    outcome: Outcome
    error: str = ""


Output = (
    SendRegister | SendHeartbeat | SendDisconnect | SendAsk | Admit | Retarget | Abandon | Recover | Report
)  # fmt: skip
