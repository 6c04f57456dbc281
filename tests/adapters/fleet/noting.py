"""A client that notes what it sends, and how long it waits for an answer."""

from __future__ import annotations

import json

import attrs

from tenure.adapters.bus.client import ONCE, Client, NoResponse, Reply, Retry


@attrs.frozen
class Noted(Client):
    """Notes what it is asked for; what `lost` names is not answered."""

    notes: list[tuple[str, float, Retry]] = attrs.field(factory=list)
    lines: list[bytes] = attrs.field(factory=list)
    lost: list[str] = attrs.field(factory=list)

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        kind = json.loads(line)["kind"]
        self.notes.append((kind, timeout_ms, retry))
        self.lines.append(line)
        if kind in self.lost:
            self.lost.remove(kind)
            return NoResponse()
        return await Client.request(self, path, line, timeout_ms=timeout_ms, retry=retry)

    def of(self, kind: str) -> set[tuple[float, Retry]]:
        return {(timeout, retry) for noted, timeout, retry in self.notes if noted == kind}
