"""Inboxes as the other system writes them (bus.md d, FILES)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from tenure.adapters.files.host import real_ports
from tenure.machines.admission_identity import POSITION_FIELD, SOURCE_FIELD

BOT: Final = {"botId": 7, "tokenSha256": hashlib.sha256(b"7:secret").hexdigest()}
FOLLOWER: Final = "manual:x"


def follower_name(binding: str = FOLLOWER, profile: str = "") -> str:
    """What a follower's inbox is called."""
    return f"follower-inbox-{hashlib.sha256(binding.encode()).hexdigest()[:16]}{profile}.json"


def update(number: int, **more: Any) -> dict[str, Any]:
    """An update, with what a leader and a follower write into it on its way."""
    message = {"message_id": number, "text": f"hello {number}", SOURCE_FIELD: number}
    return {"update_id": number, "message": message, POSITION_FIELD: {"index": 0}, **more}


def plain(number: int) -> str:
    """The same, as Telegram answered it."""
    found = {"update_id": number, "message": {"message_id": number, "text": f"hello {number}"}}
    return json.dumps(found, separators=(",", ":"))


FAILURE: Final = {"attemptCount": 1, "failedAtMs": 1, "failureClass": "x", "summary": "no"}


def entry(number: int, state: str = "pending", **more: Any) -> dict[str, Any]:
    """An entry; of a queued one `owner` is (pid, birth id)."""
    found: dict[str, Any] = {"updateId": number, "update": update(number), "admittedAtMs": 1, "state": state}
    if state == "retry-wait":
        found |= {"failure": FAILURE, "nextRetryAtMs": 2}
    if state == "failed":
        found |= {"failure": FAILURE, "terminalAtMs": 2, "terminalReason": "too often"}
    if state == "queued":
        pid, birth = more.pop("owner")
        owner = {"instanceId": f"{pid}:1", "processId": pid, "processBirthId": birth, "sessionGeneration": 1}
        owner |= {"acquisitionId": "a", "acquiredAtMs": 1}
        found |= {"queueKind": "prompt", "queueReceiptId": f"telegram-prompt-v1-{number}", "queueOwner": owner}
    return found | more


def birth_of(pid: int) -> str:
    """The birth id of a process that lives."""
    return f"{pid}:start:{real_ports().processes.sighting(pid).ticks}"


class Inboxes:
    """Those of one directory."""

    def __init__(self, root: Path) -> None:
        self.place = root / "tmp" / "telegram"
        self.place.mkdir(parents=True, exist_ok=True)

    def snapshot(self, *entries: dict[str, Any], name: str = "inbox.json", **more: Any) -> Path:
        """A snapshot of these entries."""
        value: dict[str, Any] = {"version": 1, "profile": "default", "botIdentity": BOT, "entries": list(entries)}
        path = self.place / name
        path.write_text(json.dumps({name: member for name, member in (value | more).items() if member is not ...}))
        return path

    def segment(
        self,
        number: int,
        upserted: list[dict[str, Any]] | None = None,
        removed: list[int] | None = None,
        *,
        name: str = "inbox.json",
        **more: Any,
    ) -> Path:
        """One mutation."""
        value: dict[str, Any] = {"version": 1, "revision": number, "previousRevision": number - 1}
        value |= {"profile": "default", "botIdentity": BOT}
        value |= {"upsertedEntries": upserted or [], "removedUpdateIds": removed or []}
        path = self.place / f"{name}.segments" / f"{number:016}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value | more))
        return path
