"""What is offered of a receipt is an item that anybody of this bus reads, or nothing is offered (bus.md a, e)."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.adapters.bus.messages.envelopes_handoff import (
    PAYLOAD_LIMIT,
    ControlPayload,
    LeaderOfferQueueHandoff,
    PromptPayload,
    QueueOwner,
    TextContent,
)
from tenure.adapters.bus.messages.envelopes_shared import Target
from tenure.adapters.bus.messages.json_values import Json, JsonValue, dump_bytes
from tenure.adapters.bus.messages.rendering import render_payload
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.errors import TenureError
from tenure.adapters.handoff.parties import donor_of, holder_of, on_the_bus, party_of, queue_owner, recipient_owner
from tenure.adapters.handoff.payload import Parcel, journal_key, payload_of, receipt_in
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.journal.liveness import process_name
from tenure.machines.handoff_identity import RecipientOwner
from tenure.machines.identity import Birth, Process
from tenure.machines.receipt_messages import Holder
from tests.adapters.bus.wires import json_values

HERE = Process(50, Birth(500, "boot", 4026))
THERE = Process(101, Birth(1010, "boot", 4026))
BOT = BotIdentity(7, "a" * 64)


def message(number: int, text: str, **more: JsonValue) -> Json:
    """An update with a message in thread 42 of chat -7."""
    inner: dict[str, JsonValue] = {"message_id": number, "chat": {"id": -7}, "message_thread_id": 42, "text": text}
    return Json({"update_id": 9000 + number, "message": {**inner, **more}})


def offered(payload: PromptPayload | ControlPayload) -> LeaderOfferQueueHandoff:
    return LeaderOfferQueueHandoff(
        request_id="q", donor_instance_id="50:1", recipient_instance_id="101:1",
        recipient_registration_generation="101:1:1", donor_process_id=50, donor_process_birth_id="50:start:500",
        donor_session_generation=2, donor_acquisition_id="a", donor_acquired_at_ms=9, donor_handoff_id="h",
        handoff_token="t" * 43, payload=payload, sent_at_ms=1,
    )  # fmt: skip


def test_a_prompt_is_what_was_written(tmp_path: Path) -> None:
    """Text, thread and messages of the updates, in their order; the receipt with all of its ids."""
    key = journal_key(str(tmp_path / "journal.db"), "default", BOT)
    found = payload_of(Parcel("r", "prompt", (message(1, "Fix it"), message(2, "please"))), key)
    assert isinstance(found, PromptPayload)
    assert (-7, Target(-7, 42), 2) == (found.chat_id, found.target, found.reply_to_message_id)
    assert ("Fix it\n\nplease", (1, 2)) == (found.history_text, found.source_message_ids)
    assert ((TextContent(text="Fix it\n\nplease"),), "default") == (found.content, found.queue_lane)
    receipt = receipt_in(found)
    assert ("r", "prompt", (9001, 9002), key) == (
        receipt.receipt_id, receipt.queue_kind, receipt.source_update_ids, receipt.journal_binding_key,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("update", "text"),
    [
        ({"edited_message": {"message_id": 1, "chat": {"id": 7}, "caption": "see"}}, "see"),
        ({"callback_query": {"data": "yes", "message": {"message_id": 1, "chat": {"id": 7}}}}, "yes"),
        ({"message_reaction": {"message_id": 1, "chat": {"id": 7}, "new_reaction": []}}, ""),
    ],
)
def test_whatever_carries_an_update_can_be_offered(update: dict[str, JsonValue], text: str) -> None:
    """An edit, a pressed button, a reaction: without a thread, and perhaps without a word."""
    found = payload_of(Parcel("r", "prompt", (Json({"update_id": 5, **update}),)), "j")
    assert isinstance(found, PromptPayload)
    assert (7, None, text, (1,)) == (found.chat_id, found.target, found.history_text, found.source_message_ids)


def test_a_control_names_what_it_does() -> None:
    """By the command; one that the bus has no word for is not offered."""
    found = payload_of(Parcel("r", "control", (message(1, "/model@bot gpt"),)), "j")
    assert isinstance(found, ControlPayload)
    assert ("model", "control") == (found.control_type, found.queue_lane)
    with pytest.raises(TenureError, match=r"r: a control that is neither /status nor /model cannot be offered"):
        payload_of(Parcel("r", "control", (message(1, "/stop"),)), "j")


def test_F20_what_is_too_long_is_not_offered() -> None:
    """Exactly the limit is; a byte more is not, and says how much it is."""
    empty = len(dump_bytes(render_payload(payload_of(Parcel("r", "prompt", (message(1, "x"),)), "j"))))
    room = PAYLOAD_LIMIT - empty
    each = room // 2  # the text stands there twice, and its beginning as a summary
    fits = "x" * (each - 39)
    found = payload_of(Parcel("r", "prompt", (message(1, fits),)), "j")
    assert PAYLOAD_LIMIT - 4 <= len(dump_bytes(render_payload(found))) <= PAYLOAD_LIMIT
    with pytest.raises(TenureError, match=r"^r: 8\d+ bytes are more than the 8388608 of an offer; it stays"):
        payload_of(Parcel("r", "prompt", (message(1, fits + "xxxx"),)), "j")


@pytest.mark.parametrize("updates", [(), (Json({"message": {}}),), (Json(None),), (Json({"update_id": True}),)])
def test_a_row_that_makes_no_sense_is_not_offered(updates: tuple[Json, ...]) -> None:
    """One line that names the receipt."""
    with pytest.raises(TenureError, match=r"^r: "):
        payload_of(Parcel("r", "prompt", updates), "j")


@given(st.lists(json_values, min_size=1, max_size=3))
def test_what_is_offered_is_always_read(bodies: list[JsonValue]) -> None:
    """Whatever somebody wrote: either the line of the offer is read as it was written, or there is none."""
    updates = tuple(Json({"update_id": n, "message": body}) for n, body in enumerate(bodies))
    try:
        payload = payload_of(Parcel("r", "prompt", updates), "j")
    except TenureError:
        return
    offer = offered(payload)
    assert offer == parse(encode(offer))


def test_only_an_item_of_one_receipt_moves() -> None:
    """Of several nothing is taken (annex G)."""
    payload = payload_of(Parcel("r", "prompt", (message(1, "x"),)), "j")
    receipt = receipt_in(payload)
    with pytest.raises(TenureError, match=r"2 receipts in one item"):
        receipt_in(attrs.evolve(payload, admission_receipts=(receipt, receipt)))


def test_the_same_journal_has_one_key(tmp_path: Path) -> None:
    """By whatever path it is opened; another bot's, another profile's and another file's are other journals."""
    real, link = tmp_path / "a", tmp_path / "b"
    real.mkdir()
    link.symlink_to(real)
    key = journal_key(str(real / "journal.db"), "default", BOT)
    assert key == journal_key(str(link / "journal.db"), "default", BOT)
    others = [
        journal_key(str(real / "journal.x.db"), "default", BOT),
        journal_key(str(real / "journal.db"), "x", BOT),
        journal_key(str(real / "journal.db"), "default", BotIdentity(8, "a" * 64)),
        journal_key(str(real / "journal.db"), "default", BotIdentity(None, "a" * 64)),
        journal_key(str(real / "journal.db"), "default", None),
    ]
    assert 6 == len({key, *others})
    scope = json.loads(json.loads(key)["receiptScope"])
    assert {"version": 1, "profile": "default", "bot": {"botId": 7}} == scope


def test_a_process_has_one_name_on_each_side() -> None:
    """The journal's is made of the bus's again, where both are of one machine's boot."""
    party = party_of(THERE, "101:1", 3)
    assert process_name(THERE) == party.process
    assert (101, "101:start:1010") == on_the_bus(party.process)
    assert RecipientOwner("101:1", 101, "101:start:1010", 3) == recipient_owner(party)
    holder = Holder("101:1", process_name(THERE), 3, "acq", "handoff-1")
    owner = queue_owner(holder, 77)
    assert 77 == owner.acquired_at_ms
    assert holder == holder_of(owner, HERE)
    donor = donor_of(offered(payload_of(Parcel("r", "prompt", (message(1, "x"),)), "j")), HERE)
    assert Holder("50:1", process_name(HERE), 2, "a", "h") == donor


@pytest.mark.parametrize("birth", ["101:generation:x", "102:start:1010", "nonsense", "101:start:00ab00ab00ab00ab"])
def test_a_birth_of_another_kind_is_nobody_of_ours(birth: str) -> None:
    """It is kept as it was said, and equals no process of the journal."""
    owner = QueueOwner(
        instance_id="101:1", process_id=101, process_birth_id=birth, session_generation=1, acquisition_id="a",
        acquired_at_ms=1,
    )  # fmt: skip
    assert birth == holder_of(owner, HERE).process
    with pytest.raises(TenureError, match="none of this program's"):
        on_the_bus(birth)
