"""What a bus server has seen."""

from __future__ import annotations

import attrs


@attrs.frozen
class Statistics:
    """What a server has now, and what it has seen since it was made."""

    processes: int
    """Of which anything is left: a connection, a request, room."""
    connections: int
    requests: int
    """Being answered."""
    hanging: int
    """Those of them that are not counted any more (`Limits.hung_ms`)."""
    room_used: int
    """Bytes of long lines."""
    accepted: int
    refused: int
    """Connections beyond a bound, closed at once."""
    foreign: int
    """Connections of other users, closed at once."""
    displaced: int
    """Connections closed for those of a process that has fewer."""
    exhausted: int
    """Connections closed because the process, or the system, has no descriptor left."""
    lines: int
    invalid: int
    """Lines that are no envelope."""
    too_long: int
    answers: int
    unread: int
    """Answers whose asker was gone."""
    hung: int
    """Requests that took longer than `Limits.hung_ms`."""
    failures: int
    """Requests whose handler raised."""
    idle: int
    """Connections closed after `Limits.idle_ms`."""
    stalled: int
    """Connections closed because a line took longer than `Limits.line_ms`."""
    cut: int
    """Connections cut because answers were not read."""


class Counters:
    """The counts of `Statistics`, while they change."""

    def __init__(self) -> None:
        self.accepted = self.refused = self.foreign = self.displaced = self.exhausted = 0
        self.lines = self.invalid = self.too_long = 0
        self.answers = self.unread = self.hung = self.failures = 0
        self.idle = self.stalled = self.cut = 0
