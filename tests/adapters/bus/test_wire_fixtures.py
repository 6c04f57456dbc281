"""Every line of `fixtures/` is read, and answered, as it says there (bus.md a)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tenure.adapters.bus.messages.acks import INVALID, invalid
from tenure.adapters.bus.messages.envelopes import Ack as AckEnvelope
from tenure.adapters.bus.messages.envelopes import Envelope, Request
from tenure.adapters.bus.messages.wire import Malformed, encode, parse

FILES = sorted((Path(__file__).parent / "fixtures").glob("*.toml"))
KINDS = {kind.KIND for kind in (*Request.__args__, AckEnvelope)}


def cases(section: str) -> list[object]:
    """The cases of all files, as parameters: the line, and what is expected."""
    found: list[object] = []
    for path in FILES:
        contents = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in contents.get(section, ()):
            if "hex" in case:
                line = bytes.fromhex(case["hex"])
            elif "replace" in case:
                old, new = case["replace"]
                first = contents["valid"][0]["line"]
                assert 1 == first.count(old), (path.name, case["name"])
                line = first.replace(old, new).encode()
            else:
                line = case["line"].encode()
            expected = case["reason"] if section == "malformed" else case.get("reads", case["line"])
            found.append(pytest.param(line, expected, id=f"{path.stem}: {case['name']}"))
    return found


def read(line: bytes) -> Envelope:
    """The envelope that it has to be."""
    envelope = parse(line)
    assert not isinstance(envelope, Malformed), envelope.reason
    return envelope


@pytest.mark.parametrize(("line", "reads"), cases("valid"))
def test_a_valid_line_is_read(line: bytes, reads: str) -> None:
    """What is kept is written again in our order, byte for byte; and it is the same with its line feed."""
    assert f"{reads}\n".encode() == encode(read(line))
    assert read(line) == read(line + b"\n") == read(reads.encode())


@pytest.mark.parametrize(("line", "reason"), cases("malformed"))
def test_a_malformed_line_is_refused(line: bytes, reason: str) -> None:
    """The reason names the member, and the answer is the one acknowledgement that belongs to no request."""
    malformed = parse(line)
    assert isinstance(malformed, Malformed)
    assert reason == malformed.reason or (reason == "line is not JSON" and malformed.reason.startswith(reason))
    answer = invalid(malformed)
    assert (INVALID, False) == (answer.request_id, answer.ok)
    assert answer == parse(encode(answer))


def test_every_kind_has_its_file() -> None:
    """A kind without lines is a kind without a format."""
    assert KINDS | {"line"} == {path.stem for path in FILES}
