"""What is remembered over attempts, and what is not kept after them."""

from __future__ import annotations

import asyncio

import attrs

from tenure.adapters.bus.client import Client, Reply, Retry, Unreachable
from tenure.adapters.bus.serving.ledger import Done, Ledger, RequestKey


@attrs.frozen
class Scripted(Client):
    """Its attempts come to what they are told to."""

    replies: list[Reply] = attrs.field(factory=list)

    async def _attempt(self, path: str, data: bytes, timeout_ms: float) -> Reply:
        return self.replies.pop(0)


def test_what_was_sent_once_may_have_been_done() -> None:
    """Also where the last attempt reached nobody: the first one may have (law Unknown)."""
    first = Unreachable("timeout", retryable=True, sent=True)
    last = Unreachable("ENOENT", retryable=True, sent=False)
    client = Scripted(replies=[first, last])
    reply = asyncio.run(client.request("/nowhere", b"{}", timeout_ms=1, retry=Retry(2)))
    assert reply == Unreachable("ENOENT", retryable=True, sent=True, attempts=2)


def test_a_ledger_keeps_no_waits_that_are_over() -> None:
    """It remembers so many answers, and nothing of who waited for them."""

    async def story() -> None:
        ledger: Ledger[RequestKey, str] = Ledger(lambda key, why: why, lambda key: True)

        async def execute() -> Done[str]:
            return Done("done", "done")

        for number in range(3):
            assert await ledger.run(RequestKey(None, "1:1", str(number)), "body", "other", execute) == "done"
        assert ledger._waiting == {}

    asyncio.run(story())
