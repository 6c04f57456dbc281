"""What leader and follower have in common as servers: the order in which a line is looked at (bus.md a).

Parsed, no acknowledgement, authenticated, looked up in the request ledger, handled. The secret is compared before the
ledger is asked, and not after it as in the other system: nobody without it can fill the ledger, and no answer differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import (
    Ack,
    Envelope,
    Heartbeat,
    Register,
    Request,
    TenureStatus,
    ground,
    identity,
)
from tenure.adapters.bus.messages.fields import Malformed
from tenure.adapters.bus.messages.wire import encode, fingerprint, parse
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.counting import Statistics
from tenure.adapters.bus.serving.ledger import Done, Ledger, LedgerStatistics, RequestKey, Unexecuted
from tenure.adapters.bus.serving.limits import Limits
from tenure.adapters.bus.serving.server import BusServer
from tenure.adapters.fleet.identities import same_secret
from tenure.adapters.ports import Ports, tell
from tenure.machines.request_ledger import Kind

Handle = Callable[[Request, Peer], Awaitable[Done[Ack]]]
"""What becomes of an authenticated request that is not a repeated one."""


class Desk:
    """One server with its request ledger; from `server` to `close`, once."""

    def __init__(
        self,
        ports: Ports,
        *,
        secret: Callable[[], str | None],
        handle: Handle,
        stands: Callable[[RequestKey], bool] = lambda key: True,
        limits: Limits | None = None,
    ) -> None:
        """`secret` is what requests have to bring now; None: nobody has it. `stands`: as for the ledger, of what the
        key rests on."""
        self._ports = ports
        self._secret = secret
        self._handle = handle
        self._ledger: Ledger[RequestKey, bytes] = Ledger(
            lambda key, why: encode(_refusal(key, why)), stands, on_error=self._broke, size=len
        )
        self.server: BusServer[Envelope | Malformed] = BusServer(
            parse, self._answer, failed=self._failed, urgent=_urgent, limits=limits
        )

    def statistics(self) -> tuple[Statistics, LedgerStatistics]:
        """Of the server and of its ledger."""
        return self.server.statistics(), self._ledger.statistics()

    def close(self) -> None:
        """Forget all requests, and cancel what is executing: what it comes to is nothing any more. The endpoint stops
        the server."""
        for task in self._ledger.stop():
            task.cancel()

    async def _answer(self, envelope: Envelope | Malformed, peer: Peer) -> bytes:
        if isinstance(envelope, Malformed):
            return encode(acks.invalid(envelope))
        if isinstance(envelope, Ack):
            return encode(acks.response_as_request(envelope))
        if not same_secret(self._secret(), envelope.auth):
            tell(self._ports, "bus", "unauthorized", kind=envelope.KIND, peer=str(peer))
            return encode(acks.unauthorized(envelope))
        key = _key(envelope)
        request = envelope

        async def execute() -> Done[bytes]:
            done = await self._handle(request, peer)
            return Done(encode(done.ack), done.outcome)

        return await self._ledger.run(key, fingerprint(request), key.kind, execute)

    def _failed(self, envelope: Envelope | Malformed, error: BaseException) -> bytes:
        if not isinstance(error, asyncio.CancelledError):
            tell(self._ports, "bus", "handler", error=f"{type(error).__name__}: {error}")
        known = envelope.request_id if not isinstance(envelope, Malformed) else acks.INVALID
        return encode(acks.failed(_asked(known)))

    def _broke(self, key: RequestKey, error: Exception) -> None:
        tell(self._ports, "bus", "handler", request=key.request_id, error=f"{type(error).__name__}: {error}")


def _kind(request: Request) -> Kind:
    if isinstance(request, Register):
        return "register"
    return "heartbeat" if isinstance(request, Heartbeat) else "other"


def _key(request: Request) -> RequestKey:
    return RequestKey(request.auth, identity(request), request.request_id, ground(request), _kind(request))


def _urgent(envelope: Envelope | Malformed) -> bool:
    """A leader with much to do lives, and so do its followers: their heartbeats wait for nothing."""
    return isinstance(envelope, Heartbeat)


def _refusal(key: RequestKey, why: Unexecuted) -> Ack:
    request = _asked(key.request_id)
    match why:
        case "collision":
            return acks.collision(request)
        case "overloaded":
            return acks.overloaded(request)
        case "over":
            return acks.ground_gone(request) if key.kind == "other" else acks.stale_generation(request)
        case "stopped":
            return acks.refused(request, "this endpoint ends: read the owner registry again")
        case "broken":
            return acks.failed(request)
        case "dropped":
            return acks.answer_dropped(request)


def _asked(request_id: str) -> Request:
    """Any request with that id, where no more of it is needed."""
    return TenureStatus(request_id=request_id)
