"""A coverage-guided fuzz of the parser, by hand: no test runs it.

    pip install atheris
    python tests/adapters/bus/fuzz.py CORPUS -max_total_time=600

CORPUS is a directory; the lines of `fixtures/` are put into it first. Every other argument is libFuzzer's. A line that
breaks what is said here is written to ``crash-...`` in the current directory, and read again when it is named in
place of the corpus. Half of the mutations are of bytes, half are of members.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tomllib
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("fuzz.py needs atheris: pip install atheris")

with atheris.instrument_imports(include=["tenure.adapters.bus"]):
    from tenure.adapters.bus.messages import acks
    from tenure.adapters.bus.messages.envelopes import Ack, ground, identity, traffic_class
    from tenure.adapters.bus.messages.fields import Malformed
    from tenure.adapters.bus.messages.wire import encode, fingerprint, parse

FIXTURES = Path(__file__).parent / "fixtures"
ODD: list[object] = [
    None, True, False, 0, 1, -1, 1.5, 2**53, -(2**53), 10**30, "", " ", "A", "\ud800", "\ufeff", [], {}, [{}],
    "x" * 300,
]  # fmt: skip


def check(line: bytes) -> None:
    """What has to hold of every line."""
    found = parse(line)
    if isinstance(found, Malformed):
        assert found.field, line
        answer = acks.invalid(found)
        assert answer == parse(encode(answer)), line
        return
    again = encode(found)
    assert again.endswith(b"\n"), line
    assert b"\n" not in again[:-1], line
    assert found == parse(again), line
    assert again == encode(parse(again)), line  # type: ignore[arg-type]
    assert fingerprint(found) == fingerprint(parse(again)), line  # type: ignore[arg-type]
    assert identity(found) is not None, line
    assert traffic_class(found), line
    rests = None if isinstance(found, Ack) else ground(found)
    assert rests is None or rests.instance is not None, line


def mutate(data: bytes, size: int, seed: int) -> bytes:
    """Another line: by its bytes, or by one of its members."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        return atheris.Mutate(data, size)
    try:
        value = json.loads(data)
        places = list(within(value))
        if not places:
            return atheris.Mutate(data, size)
        holder, key = chance.choice(places)
        other, other_key = chance.choice(places)
        match chance.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = chance.choice(ODD)
            case 2:
                holder[key] = json.loads(json.dumps(other[other_key]))
            case 3:
                holder[key] = [holder[key]] * chance.randrange(1, 4)
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")[:size]
    except (ValueError, RecursionError, IndexError):
        return atheris.Mutate(data, size)


def within(value: object) -> list[tuple[dict | list, object]]:
    """Every place in a value, as its holder and its key."""
    found: list[tuple[dict | list, object]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            found += [(holder, key) for key in holder]
            waiting += holder.values()
        elif isinstance(holder, list):
            found += [(holder, n) for n in range(len(holder))]
            waiting += holder
    return found


def plant(corpus: Path) -> None:
    """The lines of the fixtures, as files named by what is in them."""
    corpus.mkdir(parents=True, exist_ok=True)
    for path in FIXTURES.glob("*.toml"):
        for section in tomllib.loads(path.read_text(encoding="utf-8")).values():
            for case in section:
                if "replace" not in case:
                    line = bytes.fromhex(case["hex"]) if "hex" in case else case["line"].encode()
                    (corpus / hashlib.sha256(line).hexdigest()[:16]).write_bytes(line)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: fuzz.py CORPUS [libFuzzer's arguments]")
    if not Path(sys.argv[1]).is_file():
        plant(Path(sys.argv[1]))
    atheris.Setup(sys.argv, check, custom_mutator=mutate)
    atheris.Fuzz()
