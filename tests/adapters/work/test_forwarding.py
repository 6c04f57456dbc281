"""A forwarder over updates in memory: to whom each goes, in which order, and what an answer settles."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import attrs
import pytest

from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, Forward
from tenure.adapters.bus.messages.json_values import Json
from tenure.adapters.errors import TenureError
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.asking import NoAck
from tenure.adapters.fleet.leader.requests import Route
from tenure.adapters.ports import Killed
from tenure.adapters.work.forwarding import Forwarder
from tenure.adapters.work.lanes import LANE
from tenure.adapters.work.routing import Fleet
from tenure.machines.follower_messages import Binding
from tenure.machines.routes_messages import Entry
from tests.adapters.work.outbox_room import MemoryOutbox
from tests.adapters.work.receipts_room import failing
from tests.adapters.work.work_room import message, run

OWN, A, B = -100, 7, 8


class Follower:
    """What answers a forward. `answers` come first, then receipts."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []
        """Update and generation of every request."""
        self.answers: list[Callable[[Forward], Ack | NoAck] | BaseException] = []
        self.gate: asyncio.Event | None = None
        self.at_once = 0
        self.most_at_once = 0

    async def take(self, request: Forward) -> Ack | NoAck:
        self.heard.append((request.delivery.source_update_id, request.recipient_registration_generation))
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.at_once -= 1
        answer = self.answers.pop(0) if self.answers else receipt
        if isinstance(answer, BaseException):
            raise answer
        return answer(request)

    @property
    def updates(self) -> list[int]:
        return [number for number, _ in self.heard]


def receipt(request: Forward) -> Ack:
    return acks.received(request, request.delivery)


def refusal(request: Forward) -> Ack:
    return acks.refused(request, "no session is served here now")


class Desk:
    """A forwarder, and the followers it sends to."""

    def __init__(self, *names: str) -> None:
        self.outbox = MemoryOutbox()
        self.followers: dict[str, Follower] = {}
        self.routes: dict[str, Route] = {}
        self.own = ("cwd:/agent",)
        self.kept = 0
        self._requests = 0
        self.forwarder = self.another()
        self.task: asyncio.Task[None] | None = None
        for name in names:
            self.register(name)

    def another(self) -> Forwarder:
        return Forwarder(
            self.outbox,
            fleet=lambda: Fleet(tuple(self.routes.values()), "-100/6", self.own),
            send=self._send,
            timings=DEFAULT,
            request_id=self._request_id,
            now_ms=lambda: 0,
            on_kept=self._keep,
        )

    def register(self, name: str, thread: int | None = None, generation: str = "g1") -> Follower:
        place = f"-100/{ {'a': A, 'b': B}.get(name) if thread is None else thread }"
        self.routes[name] = Route(Entry(f"1:{name}", generation, f"manual:{name}", "", Binding(place), 0), None)
        self.forwarder.rerouted()
        return self.followers.setdefault(name, Follower())

    def _keep(self) -> None:
        self.kept += 1

    def _request_id(self) -> str:
        self._requests += 1
        return f"1:x:{self._requests}"

    async def _send(self, request: Forward) -> Ack | NoAck:
        return await self.followers[request.recipient_instance_id.partition(":")[2]].take(request)

    def push(self, thread: int | None, *numbers: int) -> None:
        self.outbox.add(*(message(number, thread=thread) for number in numbers))
        self.forwarder.signal()

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.ensure_future(self.forwarder.run())
        return self.task

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task

    async def delivers(self, *numbers: int) -> None:
        while not all(self.outbox.phases()[number] == "delivered" for number in numbers):
            await asyncio.sleep(0.01)


def test_what_is_not_taken_here_is_told_until_it_is() -> None:
    """A journal that is full of deliveries: a leader that works alone would stand still without a word."""

    async def story() -> None:
        desk = Desk("a")
        desk.outbox.full = True
        desk.push(6, 1, 2)
        desk.start()
        while not desk.forwarder.trouble:
            await asyncio.sleep(0.01)
        assert desk.forwarder.trouble == "what is this process's own is not taken: the journal is full"
        assert desk.kept == 0
        desk.outbox.full = False
        await desk.delivers(1, 2)
        assert desk.forwarder.trouble == ""
        await desk.stop()

    run(story())


def test_a_failure_of_the_journal_that_is_over_is_no_trouble() -> None:
    """Also of a leader that sends nothing to anybody."""

    async def story() -> None:
        desk = Desk("a")
        desk.outbox.faults = failing("keep", "before", 1)
        desk.push(6, 1)
        desk.start()
        while not desk.forwarder.trouble:
            await asyncio.sleep(0.01)
        await desk.delivers(1)
        await asyncio.sleep(2)
        assert desk.forwarder.trouble == ""
        assert desk.forwarder.counts.troubles == 1
        await desk.stop()

    run(story())


def test_each_goes_where_its_thread_is_in_order() -> None:
    async def story() -> None:
        desk = Desk("a", "b")
        desk.push(A, 1, 4, 5)
        desk.push(B, 2, 6)
        desk.push(6, 3)
        desk.push(None, 7)
        desk.outbox.add(Json({"update_id": 8, "poll": {}}))
        desk.start()
        await desk.delivers(*range(1, 9))
        assert desk.followers["a"].updates == [1, 4, 5]
        assert desk.followers["b"].updates == [2, 6]
        assert desk.kept == 3
        assert desk.followers["a"].most_at_once == 1
        bindings = {number: row.data.binding for number, row in desk.outbox.rows.items()}
        assert bindings[3] == bindings[7] == bindings[8] == "cwd:/agent"
        await desk.stop()

    run(story())


def test_one_that_hangs_holds_up_nobody_else() -> None:
    async def story() -> None:
        desk = Desk("a", "b")
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        desk.push(A, 1, 3)
        desk.push(B, 2, 4)
        desk.push(6, 5)
        await desk.delivers(2, 4, 5)
        many = range(6, 700, 2)
        desk.push(A, *many)
        await asyncio.sleep(20)
        desk.push(B, 701)
        await desk.delivers(701)
        assert desk.followers["a"].updates == [1]
        desk.followers["a"].gate.set()
        await desk.delivers(1, 3, *many)
        assert desk.followers["a"].updates == [1, 3, *many]
        await desk.stop()

    run(story())


def test_what_nobody_has_waits_and_goes_when_somebody_comes() -> None:
    async def story() -> None:
        desk = Desk()
        desk.start()
        desk.push(A, 1)
        desk.push(9, 2)
        await asyncio.sleep(100)
        assert desk.outbox.phases() == {1: "waiting", 2: "waiting"}
        assert desk.outbox.calls.count("unserved") == 2  # not again and again
        desk.register("a")
        await asyncio.sleep(0.001)
        assert desk.followers["a"].updates == [1]
        await desk.delivers(1)
        assert desk.outbox.phases()[2] == "waiting"
        assert desk.outbox.rows[2].data.binding is None
        await desk.stop()

    run(story())


def test_what_was_offered_to_one_binding_goes_to_no_other() -> None:
    """The thread is another's by now; the binding comes back under another registration."""

    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [lambda request: NoAck("it broke off", sent=True)]
        desk.start()
        desk.push(A, 1)
        await asyncio.sleep(0.1)
        del desk.routes["a"]
        desk.register("b", A)
        desk.push(A, 2)
        await desk.delivers(2)
        await asyncio.sleep(100)
        assert desk.followers["b"].updates == [2]
        assert desk.outbox.phases()[1] == "waiting"
        desk.register("a", 10, generation="g2")
        await desk.delivers(1)
        assert desk.followers["a"].heard == [(1, "g1"), (1, "g2")]
        await desk.stop()

    run(story())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda request: NoAck("nobody listens", sent=False), "transport-failed"),
        (lambda request: NoAck("it broke off", sent=True), "acknowledgement-missing"),
        (refusal, "acknowledgement-rejected"),
        (acks.done, "durable-receipt-missing"),
        (lambda request: attrs.evolve(receipt(request), result=Json({"deliveryId": 5})), "durable-receipt-missing"),
        (
            lambda request: attrs.evolve(receipt(request), result=Json({"deliveryId": "x", "sourceUpdateId": 1})),
            "durable-receipt-mismatched",
        ),
        (
            lambda request: acks.received(request, attrs.evolve(request.delivery, source_update_id=2)),
            "durable-receipt-mismatched",
        ),
    ],
)
def test_only_the_exact_receipt_settles(answer: Callable[[Forward], Ack | NoAck], why: str) -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [answer]
        desk.start()
        desk.push(A, 1)
        await asyncio.sleep(0.5)
        assert desk.outbox.phases() == {1: "waiting"}
        assert desk.outbox.rows[1].data.failure == why
        await desk.delivers(1)
        assert desk.followers["a"].updates == [1, 1]
        assert (desk.forwarder.counts.failures, desk.forwarder.counts.forwarded) == (1, 1)
        await desk.stop()

    run(story())


def test_those_behind_one_that_failed_wait_with_it_and_not_for_ever() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [refusal] * 2
        desk.start()
        desk.push(A, 1, 2, 3)
        await desk.delivers(1, 2, 3)
        assert desk.followers["a"].updates == [1, 1, 1, 2, 3]  # in order, all of them

        poison = desk.followers["a"]

        class Poisoned(Follower):
            async def take(self, request: Forward) -> Ack | NoAck:
                poison.heard.append((request.delivery.source_update_id, ""))
                return refusal(request) if request.delivery.source_update_id == 4 else receipt(request)

        desk.followers["a"] = Poisoned()
        desk.push(A, 4, 5, 6)
        await desk.delivers(5, 6)
        assert desk.outbox.phases()[4] == "waiting"
        await asyncio.sleep(600)
        assert poison.updates.count(4) < 20
        assert poison.updates.count(5) == 1
        await desk.stop()

    run(story())


def test_a_registration_that_is_over_is_not_sent_to() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        desk.push(A, 1, 2)
        await asyncio.sleep(0.1)
        desk.register("a", generation="g2")
        desk.followers["a"].gate.set()
        await desk.delivers(1, 2)
        assert desk.followers["a"].heard == [(1, "g1"), (2, "g2")]
        await desk.stop()

    run(story())


def test_a_thread_that_somebody_had_is_his_when_he_comes_back_with_another() -> None:
    async def story() -> None:
        desk = Desk()
        desk.outbox.threads["-100/7"] = "manual:a"
        desk.start()
        desk.push(B, 9)
        desk.push(A, 1)
        await asyncio.sleep(20)
        assert desk.outbox.phases() == {1: "waiting", 9: "waiting"}
        desk.register("a", 10)
        await desk.delivers(1)
        assert desk.followers["a"].updates == [1]
        assert desk.outbox.phases()[9] == "waiting"  # nobody ever had that thread
        await desk.stop()

    run(story())


def test_a_binding_of_this_process_before_it_led_is_its_own() -> None:
    async def story() -> None:
        desk = Desk()
        desk.own = ("cwd:/agent", "manual:a")
        desk.push(A, 1)
        desk.outbox.rows[1].data = attrs.evolve(desk.outbox.rows[1].data, binding="manual:a", attempts=1)
        desk.start()
        await desk.delivers(1)
        assert desk.kept == 1
        assert desk.outbox.rows[1].data.binding == "manual:a"
        await desk.stop()

    run(story())


def test_the_next_leader_sends_what_was_being_sent() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        desk.push(A, 1)
        await asyncio.sleep(1)
        await desk.stop()
        assert desk.outbox.phases() == {1: "forwarding"}
        assert desk.followers["a"].at_once == 0
        desk.followers["a"].gate.set()
        desk.outbox.epoch = desk.outbox.fence = 2
        desk.forwarder = desk.another()
        desk.start()
        await desk.delivers(1)
        await desk.stop()

    run(story())


def test_who_is_displaced_writes_nothing_more() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        desk.push(A, 1)
        await asyncio.sleep(1)
        desk.outbox.fence = 2
        desk.push(A, 2)
        desk.push(6, 3)
        desk.followers["a"].gate.set()
        await asyncio.sleep(100)
        assert desk.outbox.phases() == {1: "forwarding", 2: "journaled", 3: "journaled"}
        assert desk.followers["a"].updates == [1]
        assert desk.kept == 0
        await desk.stop()

    run(story())


@pytest.mark.parametrize("name", ["forward", "keep", "unserved", "acknowledged", "resume", "failed", "retry"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 4])
def test_a_call_of_the_journal_that_fails_is_made_again(name: str, when: str, times: int) -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [lambda request: NoAck("it broke off", sent=True)]
        desk.outbox.faults = failing(name, when, times)
        desk.push(A, 1, 2)
        desk.outbox.rows[1].phase = "forwarding"
        desk.outbox.rows[1].data = attrs.evolve(desk.outbox.rows[1].data, kind="leader.forwardMessage", attempts=1)
        desk.outbox.rows[1].data = attrs.evolve(desk.outbox.rows[1].data, binding="manual:a")
        desk.push(6, 3)
        desk.push(B, 4)
        desk.start()
        await desk.delivers(1, 2, 3)
        desk.register("b")
        await desk.delivers(4)
        await desk.stop()

    run(story())


def test_who_is_killed_while_it_sends_does_nothing_more() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.followers["a"].answers = [Killed()]
        desk.push(A, 1)
        with pytest.raises(Killed):
            await desk.start()
        assert desk.outbox.phases() == {1: "forwarding"}

    run(story())


def test_many_are_not_all_in_memory() -> None:
    async def story() -> None:
        desk = Desk("a")
        desk.push(A, *range(1, 701))
        desk.followers["a"].gate = asyncio.Event()
        desk.start()
        await asyncio.sleep(10)
        assert desk.forwarder.under_way == LANE
        desk.followers["a"].gate.set()
        await desk.delivers(*range(1, 701))
        assert desk.followers["a"].updates == list(range(1, 701))
        await desk.stop()

    run(story())


class Unreliable(Follower):
    """It refuses, does not answer, or answers late, as chance has it."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.well = False
        self.has: list[int] = []

    async def take(self, request: Forward) -> Ack | NoAck:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            await asyncio.sleep(self.chance.random())
            if self.well or self.chance.random() < 0.6:
                number = request.delivery.source_update_id
                if number not in self.has:
                    self.has.append(number)
                if self.well or self.chance.random() < 0.7:
                    return receipt(request)
                return NoAck("the answer was lost", sent=True)
            return self.chance.choice((refusal(request), NoAck("nobody listens", sent=False), acks.done(request)))
        finally:
            self.at_once -= 1


@pytest.mark.parametrize("seed", range(25))
def test_whatever_fails_each_is_delivered_to_its_binding_in_the_end(seed: int) -> None:
    async def story() -> None:
        chance = random.Random(seed)
        desk = Desk()
        desk.followers = {name: Unreliable(chance) for name in "abc"}
        threads = {"a": A, "b": B, "c": 10}
        bad = [True]

        def fault(name: str, when: str) -> None:
            if bad[0] and chance.random() < 0.1:
                raise TenureError(f"{name} failed {when}")

        desk.outbox.faults = fault
        desk.start()
        whose: dict[int, str] = {}
        for number in range(1, 61):
            name = chance.choice("abc")
            whose[number] = name
            desk.push(threads[name], number)
            if chance.random() < 0.3:
                other = chance.choice("abc")
                if desk.routes.pop(other, None) is None:
                    desk.register(other, threads[other], f"g{number}")
                desk.forwarder.rerouted()
            await asyncio.sleep(chance.random())
        bad[0] = False
        for name in "abc":
            follower = desk.followers[name]
            assert isinstance(follower, Unreliable)
            follower.well = True
            desk.register(name, threads[name], "last")
        begun = asyncio.get_running_loop().time()
        await desk.delivers(*whose)
        assert asyncio.get_running_loop().time() - begun < 200
        for name in "abc":
            follower = desk.followers[name]
            assert isinstance(follower, Unreliable)
            assert sorted(follower.has) == [number for number, owner in whose.items() if owner == name]
            assert follower.most_at_once <= 1
        await desk.stop()

    run(story())
