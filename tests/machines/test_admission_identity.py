"""Ids of deliveries and receipts, against the text that the reference says they are hashes of (bus.md c, d; I14)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tenure.machines.admission_identity import delivery_id, receipt_id

KEY = "manual:1101:start:70"
SCOPE = '{"version":1,"profile":null,"bot":{"botId":7}}'


def test_a_delivery_is_its_kind_its_binding_and_its_update() -> None:
    """Compact, and the members in this order."""
    text = (
        '{"version":1,"kind":"leader.forwardMessage","recipientBindingKey":"manual:1101:start:70","sourceUpdateId":17}'
    )
    expected = "telegram-follower-v1-" + sha256(text.encode()).hexdigest()

    assert expected == delivery_id("leader.forwardMessage", KEY, 17)


def test_letters_are_hashed_as_utf_8() -> None:
    """As JavaScript spells them: not escaped."""
    text = '{"version":1,"kind":"leader.forwardCallback","recipientBindingKey":"cwd:/tmp/Überfluß","sourceUpdateId":0}'
    expected = "telegram-follower-v1-" + sha256(text.encode("utf-8")).hexdigest()

    assert expected == delivery_id("leader.forwardCallback", "cwd:/tmp/Überfluß", 0)


def test_another_kind_binding_or_update_is_another_delivery() -> None:
    """A message and its edited form have one update id each, or the same: they are two."""
    ids = {
        delivery_id(kind, binding, update)
        for kind in ("leader.forwardMessage", "leader.forwardEditedMessage")
        for binding in (KEY, "cwd:/")
        for update in (1, 2)
    }

    assert 8 == len(ids)


@pytest.mark.parametrize("kind", ["prompt", "control"])
def test_a_receipt_is_its_scope_its_queue_and_its_updates(kind: str) -> None:
    """Ascending and each once, whatever was asked for."""
    escaped = SCOPE.replace('"', '\\"')
    text = f'{{"scope":"{escaped}","queueKind":"{kind}","sourceUpdateIds":[7,11]}}'
    expected = f"telegram-{kind}-v1-" + sha256(text.encode()).hexdigest()

    assert expected == receipt_id(kind, SCOPE, (7, 11))  # type: ignore[arg-type]
    assert expected == receipt_id(kind, SCOPE, (11, 7, 11))  # type: ignore[arg-type]


def test_a_receipt_for_nothing_is_none() -> None:
    """There would be one for every scope."""
    with pytest.raises(ValueError, match="at least one update"):
        receipt_id("prompt", SCOPE, ())
