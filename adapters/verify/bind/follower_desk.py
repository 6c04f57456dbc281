"""A `Follower` on a loop that is stepped by hand, with its client and its own endpoint replaced (bus.md b).

A request waits until it is told what becomes of it: an answer, or none. What the follower does is told step by step, in
the words of `spec/FollowerSteps.tla`: what its machine has become, which requests it has sent, which of its calls are
over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import attrs

from tenure.adapters.bus.client import Answer, Reply, Unreachable
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Forward, Heartbeat
from tenure.adapters.bus.messages.wire import encode
from tenure.adapters.bus.peer import Peer
from tenure.adapters.files.directory import AgentDirectory
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.fleet.follower.outcomes import Accepted, RefusedBy
from tenure.adapters.fleet.identity import InstanceIdentity
from tenure.adapters.ports import Ports
from tenure.adapters.verify.bind import follower_wire as wire
from tenure.adapters.verify.bind.follower_ports import Door, Numbers, Seen, Told, Wire
from tenure.adapters.verify.bind.follower_wire import number, thread
from tenure.adapters.verify.bind.stepped_loop import stepped_loop, where
from tenure.machines import follower_messages as own
from tenure.machines.chart import Step
from tenure.machines.entry import Entry
from tenure.machines.follower_messages import Binding
from tenure.models.follower_registration_state import ASKED, Call, Config, Msg, Node

TIMES: Final = attrs.evolve(DEFAULT, register_delay_ms=0.0)
_PEER: Final = Peer(1, 0)
_NOTHING: Final = Unreachable("timeout", True, True)


_FAILED: Final[dict[type[own.Happening], str]] = {
    own.RegisterFailed: "register",
    own.BeatFailed: "beat",
    own.DisconnectFailed: "goodbye",
}
"""Which call has failed, or was given up."""


class _Steps:
    """Where the follower says what its machine has become: before anything follows from it."""

    def __init__(self, desk: FollowerDesk) -> None:
        self.desk = desk

    def taken(
        self, message: own.Happening, lead: str | None, before: own.Memory, answer: Step[own.Memory, own.Output]
    ) -> None:
        failed = own.RegisterFailed | own.BeatFailed | own.DisconnectFailed
        ended = frozenset[Call]()
        if isinstance(message, failed):
            ended = frozenset({Call(_FAILED[type(message)], number(message.generation))})
        self.desk.noted.append((self.desk.node_of(answer.phase, answer.data), ended))
        self.desk.recovered += [
            o for o in answer.outputs if isinstance(o, own.Recover) and number(o.generation) == self.desk.held
        ]


class FollowerDesk:
    """One follower, and what it waits for."""

    def __init__(self, config: Config, name: str, ports: Ports) -> None:
        self.config = config
        self.name = name
        self.loop = stepped_loop()
        self.waiting: list[tuple[Call, wire.Sent, asyncio.Future[Reply]]] = []
        self.failing: Call | None = None
        self.posts: list[Msg] = []
        self.noted: list[tuple[Node, frozenset[Call]]] = []
        self.harm: set[str] = set()
        self.verbs: list[tuple[str, asyncio.Task[Any]]] = []
        self.under_own_key = False
        self.given_up = False
        self.latest: asyncio.Task[Any] | None = None
        self.held = 0
        self.recovered: list[own.Recover] = []
        self.lost: list[Binding] = []
        self.taken = 0
        self.begun = False
        self.stopped = False
        self.steps: tuple[Told, ...] = ()
        birth = "1:start:1" if config.relation != "apart" else f"{ports.processes.me().pid}:start:1"
        self.identity = InstanceIdentity(ports.processes.me(), name, birth)
        self.follower = Follower(
            ports,
            AgentDirectory("/agent"),
            None,
            self.identity,
            TIMES,
            on_lost=lambda binding, why: self.lost.append(binding),
            deliver=self._delivered,
            client=Wire(self.requested),
            protocol=wire.protocol(config, name),
        )
        self.follower._receiver = Door()  # type: ignore[assignment]
        self.numbers = self.follower._ids = Numbers()  # type: ignore[assignment]
        self.follower._events = _Steps(self)  # type: ignore[assignment]

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, what: str, *args: Any) -> None:
        """One thing happens, and all that follows: `steps`."""
        before, calls = self.node(), self.calls()
        self.noted, self.posts, self.harm, self.lost, self.recovered = [], [], set(), [], []
        found = self._in_loop(lambda: getattr(self, f"_{what}")(*args))
        over: frozenset[Call] = found if isinstance(found, frozenset) else frozenset()
        self._judge()
        if not self._obeys(what, before):
            self.harm.add("disobeyed")
        self.steps = tuple(self._told(before, calls - over))
        self.failing, self.numbers.fresh = None, 0

    def _begin(self, target: int) -> None:
        """A reload carries on what the activation before it had."""
        self.begun = True
        self.follower.data = attrs.evolve(self.follower.data, binding=Binding(thread(target)))

    def _register(self, lead: str, fresh: int) -> None:
        self.numbers.fresh = fresh
        owner = Entry(1, instance_id=lead, bus_socket_path=f"/{lead}", bus_secret=wire.secret(lead))
        task = self._begins("register", self.follower.register(owner, None))
        if self.follower.phase == "idle":
            self.latest = task

    def _answer(self, m: Msg, fresh: int) -> frozenset[Call]:
        call = Call(ASKED[m.kind], m.gen)
        self.numbers.fresh = fresh
        request, future = next((r, f) for c, r, f in self.waiting if c == call)
        future.set_result(Answer(encode(wire.answer(self.config, request, m))))
        return frozenset({call})

    def _return(self, call: Call) -> frozenset[Call]:
        """A goodbye is sent three times in one call: as it returns, all three have."""
        self.failing = call
        next(f for c, _, f in self.waiting if c == call).set_result(_NOTHING)
        return frozenset({call})

    def _nothing(self) -> None:
        return

    def _tick(self) -> None:
        self.loop.ring()

    def _disconnect(self) -> None:
        self._begins("disconnect", self.follower.disconnect())

    def _leave(self) -> None:
        self.follower.leave()

    def _cancel(self, at: int) -> None:
        """Whoever asked for a registration, or for a goodbye, does not wait for it any more."""
        verb, task = self.verbs[at]
        self.given_up = task is self.latest or verb == "disconnect"
        task.cancel()

    def _session(self, session: int) -> None:
        self.follower.set_session(session)

    def _ask(self) -> None:
        self._begins("ask", self.follower.ask(lambda generation: wire.question(self.name, generation)))

    def _deliver(self, m: Msg, mine: bool) -> None:
        """Work, or news of another thread, as its endpoint passes it on: only with the secret of the leader that the
        registration is with. `mine`: it is for the registration that stands, and a session is served."""
        self.taken = 0
        if self.follower._active_secret() == wire.secret(m.lead):
            link = self.follower._link
            work = wire.work(m, "" if link is None else link.key)
            self._begins("deliver", self.follower._take(work, _PEER))
            self.loop.call_soon(self._passed_on, mine)
        elif mine:
            self.harm.add("refused")

    def _passed_on(self, mine: bool) -> None:
        self.loop.call_soon(lambda: self.harm.update(self._wrongly(mine)))

    def _wrongly(self, mine: bool) -> set[str]:
        if self.taken and not mine:
            return {"strayed"}
        return {"refused"} if mine and not self.taken else set()

    def _stop(self) -> None:
        self.stopped = True
        self._begins("stop", self.follower.stop())

    def _begins(self, verb: str, call: Any) -> asyncio.Task[Any]:
        task = self.loop.create_task(call)
        if verb in ("register", "disconnect"):
            self.verbs.append((verb, task))
        elif verb == "deliver":
            task.add_done_callback(self._answered)
        return task

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self.taken += int(task.result().ack.ok)

    async def _delivered(self, work: Forward) -> None:
        return

    def _in_loop(self, call: Callable[[], Any]) -> Any:
        found: list[Any] = []
        self.loop.call_soon(lambda: found.append(call()))
        self.loop.settle()
        assert found, self.loop.errors
        assert not self.loop.errors, self.loop.errors
        return found[0]

    # -- what it does -------------------------------------------------------------------------------------------------

    async def requested(self, path: str, line: bytes) -> Reply:
        """It sends something."""
        request = wire.read(line)
        m = wire.message(self.identity, request, path.strip("/"))
        call = Call(m.kind, m.gen)
        if m.kind == "register":
            self.under_own_key = m.own
        if m.kind == "beat" and self.name not in self.config.beating:
            assert isinstance(request, Heartbeat)
            return Answer(encode(acks.roster(request, ())))
        if call == self.failing:
            return _NOTHING
        self.posts.append(m)
        if m.kind == "ask":
            return _NOTHING
        others = [c for c, _, _ in self.waiting]
        self.harm |= {"piled"} if m.kind == "beat" and call in others else set()
        self.harm |= {"two calls"} if m.kind == "register" and any(c.kind == "register" for c in others) else set()
        entry = call, request, self.loop.create_future()
        self.waiting.append(entry)
        try:
            reply: Reply = await entry[2]
            return reply
        finally:
            self.waiting.remove(entry)

    def _judge(self) -> None:
        """What whoever asked is told, is true."""
        data, lost = self.follower.data, [o.binding for o in self.recovered]
        self.harm |= {"lost"} if self.lost != lost else set()
        for verb, task in [v for v in self.verbs if v[1].done()]:
            self.verbs.remove((verb, task))
            if task.cancelled():
                continue
            result = task.result()
            if verb == "register" and isinstance(result, Accepted):
                self.held = number(result.generation)
                heard = data.acknowledged and not data.beating and data.generation == result.generation
                self.harm |= set() if heard and result.binding == data.binding else {"accepted"}
            elif verb == "register":
                self.harm |= {"denied"} if task is self.latest and data.generation is not None else set()
                once = isinstance(result, RefusedBy) and result.code == "held" and not self.under_own_key
                self.harm |= {"gave up"} if once else set()
            elif result is True:
                self.harm |= {"said gone"} if data.generation is not None else set()
        if data.generation is None:
            self.held = 0

    def _obeys(self, what: str, before: Node) -> bool:
        """Whether it does what it is told to; the twin may leave a command alone."""
        now, idle = self.follower.phase, self.follower.data.generation is None
        match what:
            case "leave":
                return idle
            case "register":
                return before.phase != "idle" or now != "idle"
            case "disconnect":
                return before.phase != "registered" or now == "disconnecting"
            case "session":
                return now != "registering"
            case "tick":
                return before.phase != "registered" or self.follower.data.beating
            case "ask":
                return before.phase != "registered" or bool(self.posts)
            case "cancel" if self.given_up:
                return idle or (before.phase == "disconnecting" and now == "registered")
        return True

    def _told(self, before: Node, calls: frozenset[Call]) -> list[Told]:
        steps: list[Told] = []
        for node, ended in self.noted:
            if node != (steps[-1].node if steps else before) or ended & calls:
                steps.append(Told(node, ended))
        last, now = self.node(), self.calls()
        if not steps:
            steps.append(Told(last))
        steps[-1] = attrs.evolve(steps[-1], posts=tuple(self.posts), harm=frozenset(self.harm))
        given_up = calls - now - frozenset(c for step in steps for c in step.ended)
        steps += [Told(last, frozenset({c})) for c in sorted(given_up, key=str)]
        steps[-1] = attrs.evolve(steps[-1], calls=now)
        return steps

    # -- what it is ---------------------------------------------------------------------------------------------------

    def node_of(self, phase: str, data: own.Memory) -> Node:
        """A follower's machine in the twin's words. Where heartbeats are not looked at, the twin hears of none."""
        beating = data.beating if self.name in self.config.beating else data.acknowledged
        return Node(
            phase,
            data.session,
            number(data.generation),
            data.acknowledged,
            beating,
            number(data.abandoned),
            data.own_key,
            0 if phase == "stopped" else number(data.binding.target),
        )

    def node(self) -> Node:
        """Its machine now."""
        return self.node_of(self.follower.phase, self.follower.data)

    def calls(self) -> frozenset[Call]:
        """Its calls that have not returned."""
        return frozenset(c for c, _, _ in self.waiting)

    def seen(self) -> Seen:
        """Everything that the next step depends on."""
        link = self.follower._link
        return Seen(
            self.node(),
            tuple(sorted((c.kind, c.gen) for c, _, _ in self.waiting)),
            "" if link is None else f"{link.generation} {link.lead} {link.key}",
            self.loop.waits,
            tuple((verb, task is self.latest, where(task)) for verb, task in self.verbs),
            self.held,
            self.begun,
        )
