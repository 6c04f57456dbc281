"""What a member of the fleet is at a moment, and what it has done so far: values for callbacks and for people."""

from __future__ import annotations

import attrs


@attrs.frozen
class Leading:
    """This process leads: its endpoint is published, its work runs. `slot` and `name` are those of its own thread."""

    epoch: int
    slot: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return f"leading with epoch {self.epoch}{place(self.slot, self.name)}"


@attrs.frozen
class Following:
    """This process is registered with the leader `pid` under `generation`: work for it comes by that alone."""

    pid: int
    epoch: int | float | str | None
    generation: int | str | None
    slot: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        epoch = "" if self.epoch is None else f", epoch {self.epoch}"
        return f"following pid {self.pid}{epoch}{place(self.slot, self.name)}, generation {self.generation}"


@attrs.frozen
class Seeking:
    """Neither: on the way to a leader, to lead, or out. `phase` is that of the succession machine; `error` is what
    failed last, "" if nothing did, or if that is no matter any more; `mend`: that stays so until a person mends it. It
    is tried again all the same."""

    phase: str
    error: str = ""
    mend: bool = False

    def __str__(self) -> str:
        doing = {
            "idle": "not joined",
            "registering": "registering",
            "following": "lost its registration",
            "leading": "leads no more",
            "ended": "leaving",
            "grace": "waiting for the leader to answer",
            "deferring": "letting smaller slots go first",
            "electing": "standing for election",
            "starting": "starting to lead",
            "waiting": "waiting to try again",
        }.get(self.phase, self.phase)
        if self.phase == "registering" and self.error:
            return f"{doing} (last: {self.error})"  # what failed before it, and no reason for it
        return f"{doing}: {self.error}" if self.error else doing


@attrs.frozen
class Left:
    """This process has left the fleet."""

    def __str__(self) -> str:
        return "left"


Role = Leading | Following | Seeking | Left


@attrs.frozen
class MemberStatistics:
    """What a member has done since it was made. Counts."""

    phase: str
    """Of `tenure.machines.succession`."""
    available: bool
    """It leads or follows."""
    registrations: int
    """Registrations that a leader acknowledged."""
    refused_registrations: int
    """Registrations that ended in a refusal or without an answer."""
    abandoned_registrations: int
    """Registrations that were given up since the lease was seen to have passed, or another leader was (K3)."""
    losses: int
    """Registrations that were lost while they were held."""
    deferrals: int
    """Graces in which smaller slots were let go first."""
    elections: int
    """Elections stood for."""
    promotions: int
    """Elections won whose start was complete."""
    defeats: int
    """Elections that another process won."""
    failed_promotions: int
    """Elections that raised, or whose start did; each is tried again (K4)."""
    depositions: int
    """Times that leading ended without being asked to."""
    looks: int
    """Looks at the registry."""
    callback_errors: int


def place(slot: str | None, name: str | None) -> str:
    """`, slot B (Beech)`, as far as it is known."""
    if slot is None:
        return "" if name is None else f", named {name}"
    return f", slot {slot}" + ("" if name is None else f" ({name})")
