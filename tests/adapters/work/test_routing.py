"""Whose an update is, and the envelope that carries it there and back into the update that it was."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tenure.adapters.bus.messages.envelopes import Forward
from tenure.adapters.bus.messages.json_values import SAFE, Json
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.work.routing import Address, Fleet, Whose, address, forward, received, thread_of
from tenure.machines.admission_identity import SOURCE_FIELD, delivery_id
from tenure.machines.follower_messages import Binding
from tenure.machines.routes_messages import Entry


def route(name: str, target: str) -> Route:
    return Route(Entry(f"1:{name}", f"g-{name}", f"manual:{name}", "", Binding(target), 0), None)


A, B = route("a", "-100/7"), route("b", "-100/8")
FLEET = Fleet((A, B), "-100/6", ("cwd:/agent", "manual:before"))


def update(number: int = 5, **body: Any) -> Json:
    return Json({"update_id": number, **body})


def text(thread: int | None = None, message: int = 3, chat: int = -100) -> dict[str, Any]:
    inner: dict[str, Any] = {"message_id": message, "chat": {"id": chat}, "text": "hello"}
    if thread is not None:
        inner["message_thread_id"] = thread
    return inner


UPDATES = {
    "message": update(message=text(7)),
    "edited_message": update(edited_message=text(7)),
    "callback_query": update(callback_query={"id": "1", "data": "x", "message": text(7)}),
    "message_reaction": update(message_reaction={"chat": {"id": -100}, "message_id": 3, "new_reaction": []}),
}


def found(body: Json) -> Address:
    place = address(body)
    assert place is not None
    return place


@pytest.mark.parametrize("member", UPDATES)
def test_each_kind_says_which_message_it_is_about(member: str) -> None:
    place = found(UPDATES[member])
    assert place.member == member
    assert place.message == (-100, 3)
    assert place.target == (None if member == "message_reaction" else "-100/7")
    assert place.kind.startswith("leader.forward")


@pytest.mark.parametrize(
    "body",
    [
        Json(None),
        Json([1]),
        update(),
        update(poll={"id": "1"}),
        update(message=None),
        update(message="hello"),
        update(my_chat_member={"chat": {"id": 1}}),
    ],
)
def test_what_is_forwarded_to_nobody(body: Json) -> None:
    assert address(body) is None


@pytest.mark.parametrize(
    "carrier",
    [{}, {"chat": 7}, {"chat": {"id": "7"}}, {"chat": {"id": True}, "message_id": 1}, {"chat": {}, "message_id": 1}],
)
def test_a_message_without_a_chat_names_no_place(carrier: dict[str, Any]) -> None:
    place = found(update(message=carrier))
    assert (place.target, place.message) == (None, None)


def test_a_button_of_an_inline_message_names_no_place() -> None:
    assert found(update(callback_query={"id": "1", "inline_message_id": "x"})).target is None


def test_an_update_is_whose_the_thread_is() -> None:
    assert FLEET.whose(found(update(message=text(7))), None) == Whose("manual:a", A)
    assert FLEET.whose(found(update(message=text(8))), "manual:a") == Whose("manual:b", B)  # what is now comes first
    assert FLEET.whose(found(update(message=text(6))), None) == Whose("cwd:/agent", own=True)


def test_a_thread_that_nobody_has_waits_for_who_had_it() -> None:
    lost = found(update(message=text(9)))
    assert FLEET.whose(lost, None) is None
    assert FLEET.whose(lost, "manual:gone") == Whose("manual:gone")
    assert FLEET.whose(lost, "manual:b") == Whose("manual:b", B)
    assert FLEET.whose(lost, "manual:before") == Whose("manual:before", own=True)


def test_an_update_about_a_message_is_whose_that_is_and_else_the_leaders() -> None:
    reaction = found(UPDATES["message_reaction"])
    assert FLEET.whose(reaction, "manual:b") == Whose("manual:b", B)
    assert FLEET.whose(reaction, None) == Whose("cwd:/agent", own=True)


@pytest.mark.parametrize("member", UPDATES)
def test_a_forward_carries_the_update_and_the_follower_has_it_as_it_was(member: str) -> None:
    body = UPDATES[member]
    place = found(body)
    identity = delivery_id(place.kind, "manual:a", 5)
    request = forward(place, 5, identity, Whose("manual:a", A), request_id="1:x:1", sent_at_ms=17)
    assert request.KIND == place.kind
    assert (request.recipient_instance_id, request.recipient_registration_generation) == ("1:a", "g-a")
    heard = parse(encode(request))
    assert heard == request
    assert isinstance(heard, Forward)
    assert received(heard) == body
    assert SOURCE_FIELD not in body.text


def test_what_is_not_of_its_delivery_is_none() -> None:
    place = found(UPDATES["message"])
    request = forward(place, 5, "d", Whose("manual:a", A), request_id="1", sent_at_ms=1)
    for carrier in (None, Json(None), Json("x"), Json({}), Json({SOURCE_FIELD: 6}), Json({SOURCE_FIELD: "5"})):
        assert received(evolve(request, message=carrier)) is None


def test_threads_of_targets() -> None:
    assert thread_of("-100/7") == (-100, 7)
    assert [thread_of(target) for target in (None, "-100", "x")] == [None, None, None]


def test_a_binding_of_this_process_is_whose_who_is_registered_for_it() -> None:
    """It was this process's before it led; somebody else serves it by now."""
    fleet = Fleet((A,), None, ("cwd:/agent", "manual:a"))

    assert fleet.serves("manual:a") == Whose("manual:a", A, own=False)
    assert Fleet((), None, fleet.own).serves("manual:a") == Whose("manual:a", None, own=True)


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63, 10**400, 1.5, True, "7", None, [7]])
@pytest.mark.parametrize("name", ["chat", "message_thread_id", "message_id"])
def test_an_id_that_is_none_is_as_if_it_were_not_there(name: str, number: Any) -> None:
    """Telegram's have at most 52 bits, a double holds 53, and the journal keeps 64."""
    body = text(7)
    body[name] = {"id": number} if name == "chat" else number
    found = address(update(message=body))
    assert found is not None
    if name == "chat":
        assert (found.target, found.message) == (None, None)
    elif name == "message_id":
        assert (found.target, found.message) == ("-100/7", None)
    else:
        assert (found.target, found.message) == (None, (-100, 3))


def test_an_id_that_a_double_holds_is_one() -> None:
    found = address(update(message=text(SAFE, message=-SAFE, chat=-SAFE)))

    assert found is not None
    assert thread_of(found.target) == (-SAFE, SAFE)
    assert found.message == (-SAFE, -SAFE)
