"""What a bus server bears (DESIGN 10, Bus): bounds on lines, connections, requests, memory and time.

Everybody who may connect has our user, so a fair share is counted by process: whatever one process does, connect a
thousand times, send half lines, never read, the others' heartbeats still find a connection, memory and a turn.
"""

from __future__ import annotations

from typing import Final

import attrs

LINE_BYTES: Final = 16 * 2**20
"""The longest line in either direction, its newline not counted."""


@attrs.frozen
class Limits:
    """Bytes, counts, and durations in ms. A *process* is what the kernel names as the peer of a connection."""

    line_bytes: int = LINE_BYTES
    tiny_bytes: int = 4 * 1024
    """A line up to here needs no share of `room_bytes`. A heartbeat has 300 bytes."""
    loop_bytes: int = 32 * 1024
    """A line up to here is parsed on the loop, and counts once more for every `tiny_bytes` of it; longer ones in a
    thread. Parsing takes up to a millisecond for 4 KiB, the way to a thread and back a fifth of one."""
    small_bytes: int = 64 * 1024
    """What each connection may have received of a line without a share of `room_bytes`."""
    structure_bytes: int = 2**20
    """How many bytes of a line may stand outside of strings. Parsing holds the interpreter for about a second per
    16 MiB of ``[{},{},`` and takes twenty times the memory; text and images are strings, and cost next to nothing."""
    room_bytes: int = 72 * 2**20
    """For all lines beyond `tiny_bytes` together, while they are received or answered; one process has half of it.
    While a long line is received it takes `line_bytes`: four of them leave some for those of ordinary length."""
    owed_bytes: int = 64 * 2**20
    """For all answers that are not read yet, together. Beyond it the connection that owes most is cut."""
    connections: int = 512
    silent_ms: float = 1_000
    """Where all places are taken, whoever has asked nothing for so long gives up its own."""
    connections_of_one: int = 128
    """Of one process. A client opens one per request."""
    requests_of_connection: int = 16
    """Requests being answered. Beyond it nothing more is read from this connection."""
    requests_of_one: int = 256
    hung_ms: float = 30_000
    """A request that is answered for longer counts among these two no more: whoever asks seldom waits longer, and
    handlers that never return would shut their askers out for good. How many there may be, is for the ledger to say."""
    spares: int = 16
    """Connections beyond the bounds, for what is urgent alone (heartbeats): each has `silent_ms` to ask it, and is
    closed when it asks anything else. So nobody's heartbeat finds all places taken by what hangs."""
    spares_of_one: int = 2
    lines_of_turn: int = 8
    """Lines of one process that are begun before everybody else has had a turn, however many connections it has."""
    idle_ms: float = 60_000
    """A connection on which nothing is asked, answered or under way for so long is closed."""
    line_ms: float = 10_000
    """From the first byte of a line to its last."""
    write_ms: float = 10_000
    """How long an answer may wait to be read."""
    linger_ms: float = 2_000
    """How long what follows an over-long line is thrown away, so that its sender reads why it is refused."""
    sweep_ms: float = 1_000
    """How often these durations are looked at."""
    stop_ms: float = 1_000
    """How long `stop` waits for cancelled requests."""
    backlog: int = 1024

    def within(self, descriptors: int) -> Limits:
        """These, for a process that may have so many descriptors: at most half are for connections, and a quarter for
        those of one process. Else whoever connects often enough leaves none for the lease, and that passes."""
        most = max(2, descriptors // 2)
        return attrs.evolve(
            self,
            connections=min(self.connections, most),
            connections_of_one=min(self.connections_of_one, most // 2),
            spares=min(self.spares, most // 4),
        )

    def __attrs_post_init__(self) -> None:
        if self.line_bytes > self.room_bytes // 2:
            raise ValueError("room_bytes: a line must fit into half of it, or it is never received")
        if not self.tiny_bytes <= self.loop_bytes <= self.small_bytes <= self.line_bytes:
            raise ValueError("tiny_bytes <= loop_bytes <= small_bytes <= line_bytes is what the names promise")
