"""The owner registry of a test: read it, and put there what some other program would (locks.md 2)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenure.adapters.files.registry import parse_registry
from tenure.adapters.ports import Files
from tenure.machines.entry import Entry


class MemoryRegistry:
    """`owners.json` at `path`, past the guard: a test looks and tampers without asking anybody."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path

    @property
    def text(self) -> bytes | None:
        """Its bytes, None for no file."""
        return self.files.read(self.path) if self.files.kind(self.path) == "file" else None

    @property
    def problem(self) -> str:
        """Why it cannot be read; empty if it can."""
        return parse_registry(self.text).problem

    @property
    def keys(self) -> tuple[str, ...]:
        """The members."""
        return tuple(member.key for member in parse_registry(self.text).members)

    def entry(self, key: str = "default") -> Entry | None:
        """Who owns `key`."""
        return parse_registry(self.text).entry(key)

    def write(self, text: bytes | str) -> None:
        """Put any text there, also a torn one."""
        if self.files.kind(self.path) != "absent":
            self.files.unlink(self.path)
        self.files.create(self.path, text if isinstance(text, bytes) else text.encode())

    def put(self, key: str, value: Mapping[str, object] | None) -> None:
        """Set the member `key`, or delete it; other members keep their values."""
        members = {member.key: member.value for member in parse_registry(self.text).members}
        members.pop(key, None)
        if value is not None:
            members[key] = dict(value)
        self.write(json.dumps(members, indent=2) + "\n")
