"""What two sides compare before they work together: version, build and capabilities (bus.md a, PROTOCOL IDENTITY)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import attrs

from tenure.adapters.bus.messages.js_text import trimmed, utf16_length
from tenure.adapters.errors import TenureError

VERSION: Final = 1
"""The wire protocol spoken here."""
DURABLE_FOLLOWER_ADMISSION: Final = "durable-follower-admission-v1"
"""A follower journals what is forwarded to it before it acknowledges. Who advertises it requires it."""
QUEUE_HANDOFF: Final = "queue-handoff-v1"
"""Checked per handoff for leader, donor and recipient, never at registration."""
QUEUE_HANDOFF_AGAIN: Final = "queue-handoff-v2"
"""Ours: an offer may say by which handoff its donor got the item (``donorHandoffId``), without which it cannot move a
second time (L6). Checked where queue-handoff-v1 is, for such an offer only: who lacks it would drop the member, and
compare an owner that is not the donor's."""
TENURE_STATUS: Final = "tenure-status-v1"
"""Ours: answers ``tenure.status``. Required by nobody."""

BUILD_LIMIT: Final = 128
"""UTF-16 units of a build."""
CAPABILITIES_LIMIT: Final = 32
CAPABILITY_LENGTH_LIMIT: Final = 128
_CAPABILITY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")

IncompatibleCode = Literal["missing-identity", "version-mismatch", "missing-capability"]


@attrs.frozen
class ProtocolIdentity:
    """What a side says of itself. `runtime_build`: trimmed, 1 to 128 UTF-16 units, decides nothing. `capabilities`:
    strictly ascending. Make one's own with `protocol_identity`."""

    protocol_version: int
    runtime_build: str
    capabilities: tuple[str, ...] = ()

    def has(self, capability: str) -> bool:
        """Whether it is advertised."""
        return capability in self.capabilities


@attrs.frozen
class Compatible:
    """They may work together."""


@attrs.frozen
class Incompatible:
    """They may not. `missing`: the capabilities that the peer lacks."""

    code: IncompatibleCode
    missing: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """In words, for one line."""
        match self.code:
            case "missing-identity":
                return "the peer names no readable protocol identity"
            case "version-mismatch":
                return "the peer speaks another protocol version"
        return f"the peer lacks {', '.join(self.missing)}"


def compatible(local: ProtocolIdentity, peer: ProtocolIdentity | None) -> Compatible | Incompatible:
    """Whether `peer` (None: absent, or malformed and so dropped) may be worked with: the same version, and durable
    admission if we advertise it. It is asked before an acknowledgement's `ok`, and before anything is provisioned
    (I9)."""
    if peer is None:
        return Incompatible("missing-identity")
    if peer.protocol_version != local.protocol_version:
        return Incompatible("version-mismatch")
    if local.has(DURABLE_FOLLOWER_ADMISSION) and not peer.has(DURABLE_FOLLOWER_ADMISSION):
        return Incompatible("missing-capability", (DURABLE_FOLLOWER_ADMISSION,))
    return Compatible()


def protocol_identity(runtime_build: str, capabilities: Iterable[str] = ()) -> ProtocolIdentity:
    """One's own identity: the build trimmed, the capabilities in order. Raises TenureError for what a peer would
    drop."""
    build = trimmed(runtime_build)
    ordered = tuple(sorted(set(capabilities)))
    if not 0 < utf16_length(build) <= BUILD_LIMIT:
        raise TenureError(f"the runtime build {build[:40]!r} is empty or longer than {BUILD_LIMIT}: shorten it")
    for capability in ordered:
        if not is_capability(capability):
            raise TenureError(f"the capability {capability[:40]!r} is none: use a to z, 0 to 9, dot, dash, underscore")
    if len(ordered) > CAPABILITIES_LIMIT:
        raise TenureError(f"{len(ordered)} capabilities are more than {CAPABILITIES_LIMIT}: advertise fewer")
    return ProtocolIdentity(VERSION, build, ordered)


def is_capability(name: str) -> bool:
    """Whether `name` can be a capability."""
    return len(name) <= CAPABILITY_LENGTH_LIMIT and _CAPABILITY.fullmatch(name) is not None
