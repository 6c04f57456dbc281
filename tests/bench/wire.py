"""What a line of the bus costs to read and to write, and what the worst ones cost: processor time, by hand.

python tests/bench/wire.py
"""

from __future__ import annotations

import statistics
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from tenure.adapters.bus.messages.json_values import LINE_LIMIT, VALUES_LIMIT
from tenure.adapters.bus.messages.wire import Malformed, encode, fingerprint, parse

FIXTURES = Path(__file__).parents[1] / "adapters" / "bus" / "fixtures"
KINDS = ["follower.heartbeat", "follower.register", "leader.forwardMessage", "leader.offerQueueHandoff", "bus.ack"]
BAR_US = 100
"""A heartbeat has to be read well below that."""

HEAD = b'{"kind":"follower.callApi","requestId":"r","instanceId":"i","method":"call","sentAtMs":1,"args":['
ROOM = LINE_LIMIT - len(HEAD) - 40
SOME = VALUES_LIMIT - 20


def hostile() -> dict[str, bytes]:
    """Lines that are long, or full, or both."""
    return {
        "one string": HEAD + b'"' + b"x" * ROOM + b'"]}',
        "one string of escapes": HEAD + b'"' + b"\\n" * (ROOM // 2) + b'"]}',
        "one string of half characters": HEAD + b'"' + b"\\ud800" * (ROOM // 6) + b'"]}',
        "one string of commas": HEAD + b'"' + b"," * ROOM + b'"]}',
        "one number": HEAD + b"1" * ROOM + b"]}",
        "one exponent": HEAD + b"1e" + b"1" * (ROOM - 2) + b"]}",
        "as many numbers as may be": HEAD + (b"1" * (ROOM // SOME - 2) + b",") * SOME + b"1]}",
        "as many fractions as may be": HEAD + b"1.12345678901234567," * SOME + b"1]}",
        "as many huge numbers as may be": HEAD + b"1e308," * SOME + b"1]}",
        "too many numbers": HEAD + b"1," * (ROOM // 2) + b"1]}",
        "too many empty strings": HEAD + b'"",' * (ROOM // 3) + b"1]}",
        "too many empty lists": HEAD + b"[]," * (ROOM // 3) + b"1]}",
        "nested": b"[" * LINE_LIMIT,
        "nested objects": b'{"":' * (LINE_LIMIT // 4),
        "closed, and never opened": b"]" * LINE_LIMIT,
        "quotes": b'"' * LINE_LIMIT,
        "a string that does not end": b'"' + b'\\"' * (LINE_LIMIT // 2 - 2),
        "blanks": b" " * LINE_LIMIT,
        "bad UTF-8 at the end": b" " * (LINE_LIMIT - 1) + b"\xff",
    }


def microseconds(call: Callable[[], object]) -> float:
    """Median of 50 rounds of 200 calls."""
    rounds = []
    for _ in range(50):
        began = time.thread_time()
        for _ in range(200):
            call()
        rounds.append((time.thread_time() - began) / 200 * 1e6)
    return statistics.median(rounds)


def main() -> None:
    """Print both tables."""
    print(f"{'kind':28}{'bytes':>7}{'parse us':>10}{'encode us':>11}{'fingerprint us':>16}")
    for kind in KINDS:
        contents = tomllib.loads((FIXTURES / f"{kind}.toml").read_text(encoding="utf-8"))
        line = contents["valid"][0]["line"].encode()
        envelope = parse(line)
        assert not isinstance(envelope, Malformed)
        read = microseconds(lambda line=line: parse(line))
        written = microseconds(lambda envelope=envelope: encode(envelope))
        told = microseconds(lambda envelope=envelope: fingerprint(envelope))
        verdict = "" if kind != KINDS[0] else ("  ok" if read < BAR_US / 2 else f"  TOO SLOW, the bar is {BAR_US}")
        print(f"{kind:28}{len(line):7}{read:10.1f}{written:11.1f}{told:16.1f}{verdict}")
    print(f"\n{'line':32}{'MiB':>6}{'ms':>8}  what it is")
    for name, line in hostile().items():
        began = time.thread_time()
        found = parse(line)
        took = (time.thread_time() - began) * 1e3
        what = found.reason if isinstance(found, Malformed) else type(found).__name__
        print(f"{name:32}{len(line) / 2**20:6.1f}{took:8.1f}  {what}")


if __name__ == "__main__":
    main()
