"""Identities are hashes of compact JSON, byte for byte as the other system has them (bus.md c, d, e)."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.messages.json_values import dump_bytes
from tenure.machines.compact_json import Value, compact, digest
from tenure.machines.handoff_identity import RecipientOwner, handoff_id

TO = RecipientOwner("3:4", 3, "3:start:30", 2)
TOKEN = "0123456789abcdef0123456789abcdef"


def test_the_id_of_a_handoff_by_hand() -> None:
    """The text as it stands in the reference, and the first 32 hex digits of its hash."""
    text = (
        '{"version":1,"token":"0123456789abcdef0123456789abcdef","queueKind":"prompt",'
        '"receiptId":"telegram-prompt-v1-aa","sourceUpdateIds":[7001,7003],"donorAcquisitionId":"6f0c",'
        '"recipientOwner":{"instanceId":"3:4","processId":3,"processBirthId":"3:start:30","sessionGeneration":2}}'
    )
    expected = "handoff-" + hashlib.sha256(text.encode()).hexdigest()[:32]
    assert expected == handoff_id(TOKEN, "prompt", "telegram-prompt-v1-aa", (7001, 7003), "6f0c", TO)
    assert 40 == len(expected)


@pytest.mark.parametrize(
    "changed",
    [
        handoff_id(TOKEN + "0", "prompt", "r", (1,), "a", TO),
        handoff_id(TOKEN, "control", "r", (1,), "a", TO),
        handoff_id(TOKEN, "prompt", "s", (1,), "a", TO),
        handoff_id(TOKEN, "prompt", "r", (1, 2), "a", TO),
        handoff_id(TOKEN, "prompt", "r", (1,), "b", TO),
        handoff_id(TOKEN, "prompt", "r", (1,), "a", attrs.evolve(TO, instance="3:5")),
        handoff_id(TOKEN, "prompt", "r", (1,), "a", attrs.evolve(TO, pid=4)),
        handoff_id(TOKEN, "prompt", "r", (1,), "a", attrs.evolve(TO, birth="3:start:31")),
        handoff_id(TOKEN, "prompt", "r", (1,), "a", attrs.evolve(TO, session=3)),
    ],
)
def test_nothing_of_an_offer_can_be_exchanged(changed: str) -> None:
    """Token, receipt, its updates, the donor's acquisition, the recipient: each is in the id (I27)."""
    assert changed != handoff_id(TOKEN, "prompt", "r", (1,), "a", TO)


texts = st.text(st.characters(codec=None, categories=None), max_size=8)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), texts)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@given(values)
def test_it_is_the_json_of_the_bus(value: Value) -> None:
    """The same bytes as the lines of the bus; read as JSON it is the value again."""
    assert compact(value) == dump_bytes(value)  # type: ignore[arg-type]
    assert digest(value) == hashlib.sha256(compact(value)).hexdigest()


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ('"\\\b\f\n\r\t\x00\x1f', b'"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f"'),
        ("\x7f\u2028é🌲", b'"\x7f\xe2\x80\xa8\xc3\xa9\xf0\x9f\x8c\xb2"'),
        ("\ud800", b'"\\ud800"'),
        ([True, False, None, -1, 2**53 - 1], b"[true,false,null,-1,9007199254740991]"),
        ({"b": [], "a": {}}, b'{"b":[],"a":{}}'),
    ],
)
def test_as_javascript_spells_it(value: Value, spelled: bytes) -> None:
    """Members stay in their order; half a character is escaped."""
    assert spelled == compact(value)
    assert json.loads(spelled) == value
