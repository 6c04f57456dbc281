"""One leader's `Requests` and `Routing` on a loop that is stepped by hand, with all that they ask replaced (bus.md b).

Provisioning, clean-ups and, after a clean-up, the ownership transaction wait until they are told what came of them;
other transactions and evidence are answered at once. What the leader does is told step by step, in the words of
`spec/LeaderRoutes.tla`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import attrs

from tenure.adapters.bus.client import ONCE, Answer, Client, Reply, Retry
from tenure.adapters.bus.messages import acks
from tenure.adapters.bus.messages.envelopes import Ack, ForwardMessage, Ground
from tenure.adapters.bus.messages.wire import encode, parse
from tenure.adapters.bus.peer import Peer
from tenure.adapters.bus.serving.ledger import Done
from tenure.adapters.files.timings import DEFAULT
from tenure.adapters.fleet.agreement import HELD, our_protocol
from tenure.adapters.fleet.leader.events import LeaderEvents
from tenure.adapters.fleet.leader.requests import Asked, Requests, Route
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.fleet.leader.turns import BUSY
from tenure.adapters.fleet.threads.projection import CleanUp, Snapshot
from tenure.adapters.ports import Ports
from tenure.adapters.verify.bind import follower_wire as wire
from tenure.adapters.verify.bind.follower_wire import number, thread
from tenure.adapters.verify.bind.leader_ports import (
    Noted,
    Notes,
    Office,
    Pages,
    Port,
    StillBook,
    Testimony,
    intents_of,
    routes_of,
)
from tenure.adapters.verify.bind.leader_steps import Does, Looks
from tenure.adapters.verify.bind.stepped_loop import stepped_loop, where
from tenure.machines import routes_messages as own
from tenure.machines.slot_board import Target
from tenure.models.follower_registration_state import ANSWER, BOUND_MS, Config, Intent, Msg
from tenure.models.follower_registration_state import Route as Registry

TIMES: Final = attrs.evolve(DEFAULT, prune_ms=BOUND_MS)
_PEER: Final = Peer(1, 0)
_ENDS: Final = {
    "register": ("Register", "Provisioned", "ProvisionFailed"),
    "beat": ("Heartbeat",),
    "goodbye": ("Disconnect", "Cleaned", "CleanUpFailed"),
}
"""Which events may end a request."""


class _Wire(Client):
    """The client: a follower takes what it is sent, and says so at once."""

    def __init__(self, desk: LeaderDesk) -> None:
        super().__init__()
        object.__setattr__(self, "desk", desk)

    async def request(self, path: str, line: bytes, *, timeout_ms: float, retry: Retry = ONCE) -> Reply:
        desk: LeaderDesk = self.desk  # type: ignore[attr-defined]
        work = parse(line)
        assert isinstance(work, ForwardMessage)
        to = work.recipient_instance_id if path == f"/{work.recipient_instance_id}" else "?"
        gen = number(work.recipient_registration_generation)
        desk.posts.append(Msg("work", to, gen, desk.name))
        return Answer(encode(acks.received(work, work.delivery)))


@attrs.define
class _Asker:
    """A request, or a clean-up that nobody asked for, that is not over. `taken`: the machine has taken it."""

    what: Msg | Intent
    again: bool
    task: asyncio.Task[Any]
    taken: bool = False


class LeaderDesk:
    """One leader."""

    def __init__(self, config: Config, name: str, process: Callable[[str], str], ports: Ports) -> None:
        self.config = config
        self.name = name
        self.epoch = int(name[1:])
        self.loop = stepped_loop()
        self.office = Office()
        self.port = Port(self.office)
        self.notes = Notes(self.office)
        self.posts: list[Msg] = []
        self.performed = 0
        self.askers: list[_Asker] = []
        self.opened = False
        self.closed = False
        self.steps: tuple[Does, ...] = ()
        timed = attrs.evolve(ports, clock=self.office)
        events: LeaderEvents = self.notes  # type: ignore[assignment]
        self.routing = Routing(
            timed, TIMES, self.port, events, epoch=lambda: self.epoch, own_key="the leader's", on_change=lambda: None
        )
        self.pages = Pages(self.office, self.routing, self.epoch)
        self.book = self.routing.book = StillBook(timed, self.pages, self.epoch, self.pages.page)
        self.routing.witness = Testimony(self.office, process)  # type: ignore[assignment]
        self.port.pages = self.pages
        self.notes.routing = self.routing
        self.requests = Requests(
            timed,
            self.routing,
            our_protocol(),
            view=lambda: None,  # type: ignore[arg-type, return-value]
            endpoint=f"/{name}",
            socket_of=lambda instance: f"/{instance}",
            leg_ms=1.0,
            serve=self._serve,
            client=_Wire(self),
        )

    # -- what happens -------------------------------------------------------------------------------------------------

    def do(self, owns: bool, dead: frozenset[str], threads: tuple[tuple[int, str, int, str], ...], *what: Any) -> None:
        """One thing happens, and all that follows: `steps`. `owns`: this leader leads; `dead`: whose processes are;
        `threads`: what is remembered of threads."""
        office = self.office
        office.owns, office.dead, office.threads = owns, dead, threads
        office.noted, office.harm, self.posts, self.performed = [], set(), [], 0
        self.loop.call_soon(lambda: getattr(self, f"_{what[0]}")(*what[1:]))
        self.loop.settle()
        assert not self.loop.errors, self.loop.errors
        self.steps = tuple(self._told())

    def _nothing(self) -> None:
        return

    def _open(self, intents: frozenset[Intent]) -> None:
        self.opened = True
        left = tuple(CleanUp(i.who, str(i.gen), Target(wire.CHAT, i.target), 0, key=i.key) for i in intents)
        self.pages.disk = intents
        self.routing.open(self.epoch, Snapshot(clean_ups=left))

    def _hear(self, m: Msg, again: bool, key: str) -> None:
        request = wire.request(self.config, m, key)
        self._begin(m, again, self.requests.handle(request, _PEER))

    def _replay(self, m: Msg, again: bool) -> None:
        """It was acknowledged before: the ledger asks whether that is true yet."""
        stands = self.routing.stands(Ground(m.who, str(m.gen)))
        said = Msg("registered", m.who, m.gen, self.name, m.session, target=m.target if stands else 0, ok=stands)
        self.notes.say(said, m, again)

    def _reclaim(self, intent: Intent, dead: bool) -> None:
        asked = own.Intent(intent.who, str(intent.gen), intent.key, thread(intent.target))
        self._begin(intent, False, self.routing.reclaim(asked, dead=dead))

    def _provisioned(self, who: str, gen: int, target: int) -> None:
        self.port.end("register", who, gen, target)

    def _fails(self, kind: str, who: str, gen: int) -> None:
        self.port.end(kind, who, gen, None)

    def _deleted(self, who: str, gen: int) -> None:
        """The thread is deleted; whether we lead yet is asked after that, and answered later."""
        self.pages.holds = who, gen
        self.port.end("clean_up", who, gen, 0)

    def _sure(self) -> None:
        self.pages.let_go()

    def _hangs(self) -> None:
        """All calls of the port take too long."""
        self.loop.ring()

    def _forward(self, who: str, gen: int) -> None:
        m = Msg("work", who, gen, self.name)
        stands = any((e.who, e.gen) == (who, gen) for e in self._routes().entries)
        task = self.loop.create_task(self.requests.send(wire.forward(m)))
        if stands:
            task.add_done_callback(lambda task: None if task.result().ok else self.office.harm.add("unsent"))

    def _silence(self, who: str) -> None:
        """Time goes by in which nothing of it is heard."""
        entries = tuple(attrs.evolve(e, heard=0) if e.instance == who else e for e in self.routing.data.entries)
        self.routing.data = attrs.evolve(self.routing.data, entries=entries)

    def _prune(self) -> None:
        self.office.now = BOUND_MS + 1
        self.routing.prune()
        if any(e.heard < BOUND_MS for e in self.routing.data.entries):
            self.office.harm.add("unpruned")
        self.office.now = BOUND_MS

    def _close(self) -> None:
        """What waits for its turn is cut off: `Leading` closes the connections in the same moment."""
        self.closed = True
        self.office.owns = False
        self.routing.close()
        self.pages.let_go()
        self.loop.create_task(self.book.close())

    def _begin(self, what: Msg | Intent, again: bool, call: Any) -> None:
        self.askers.append(_Asker(what, again, self.loop.create_task(call)))

    async def _serve(self, request: Asked, route: Route) -> Ack:
        self.performed += 1
        return acks.done(request)

    # -- what it does -------------------------------------------------------------------------------------------------

    def _told(self) -> list[Does]:
        steps: list[Does] = []
        asks = 0
        for noted in self.office.noted:
            step = self._step(noted)
            if step is not None:
                asks += step.acted is not None
                steps.append(step)
                if noted.event == "Close":
                    break
        if not steps:
            steps.append(Does(self._routes()))
        self._answers(steps)
        harm = set(self.office.harm)
        if self.office.owns and self.opened and self.pages.disk != intents_of(self.routing.data.intents):
            harm.add("unpublished")
        if self.performed != asks:
            harm.add("unasked")
        queued = frozenset(a.what for a in self.askers if not a.taken and isinstance(a.what, Msg))
        steps[-1] = attrs.evolve(steps[-1], harm=frozenset(harm), queued=queued, posts=tuple(self.posts))
        return steps

    def _step(self, noted: Noted) -> Does | None:
        """What one answer of the machine is to the twin; None for nothing."""
        intents = noted.intents if self.office.owns else None
        label = f"{noted.event} {noted.who}/{noted.gen}"
        made = Does(noted.routes, intents=intents, label=label if noted.taken else f"{label} refused")
        match noted.event:
            case "Register" | "Heartbeat" | "Ask" | "Disconnect":
                if noted.guards == (BUSY,):
                    return None
                asker = self._asker(noted)
                asker.taken = True
                assert isinstance(asker.what, Msg)
                acted = (noted.who, noted.gen) if noted.event == "Ask" and noted.taken else None
                return attrs.evolve(made, heard=asker.what, again=asker.again, acted=acted)
            case "Reclaim":
                if noted.guards == (BUSY,):
                    return None
                self._asker(noted).taken = True
                return made if noted.taken else None
            case "Deleted":
                return attrs.evolve(made, deleted=(noted.who, noted.gen))
            case "Replay":
                return attrs.evolve(made, heard=noted.heard, again=noted.again, answers=noted.said)
            case "Provisioned":
                wrote = (noted.who, noted.gen) if noted.acknowledged else None
                return attrs.evolve(made, wrote=wrote) if noted.taken else None
            case _:
                return made if noted.taken else None

    _KINDS: Final = {"Register": "register", "Heartbeat": "beat", "Ask": "ask", "Disconnect": "goodbye"}

    def _asker(self, noted: Noted) -> _Asker:
        """Whose request the machine has answered."""
        kind = self._KINDS.get(noted.event, "")
        for asker in self.askers:
            what = asker.what
            same = (what.who, what.gen) == (noted.who, noted.gen) and not asker.taken
            if same and (what.kind == kind if isinstance(what, Msg) else not kind):
                return asker
        raise AssertionError(f"nobody asked for {noted.event} of {noted.who}/{noted.gen}")

    def _answers(self, steps: list[Does]) -> None:
        """Acknowledgements belong to the last step of their registration."""
        for asker in [a for a in self.askers if a.task.done()]:
            self.askers.remove(asker)
            what, result = asker.what, asker.task.result()
            if isinstance(what, Intent) or what.kind == "ask" or (self.closed and not asker.taken):
                continue
            assert isinstance(result, Done)
            said = self._said(what, result.ack)
            if said.kind == "registered" and said.ok and (said.who, said.gen) not in self.pages.live:
                self.office.harm.add("unpublished")
            about = [f"{event} {what.who}/{what.gen}" for event in _ENDS[what.kind]]
            ends = [i for i, s in enumerate(steps) if s.label.removesuffix(" refused") in about] or [len(steps) - 1]
            at = 0 if self.closed else ends[-1]
            steps[at] = attrs.evolve(steps[at], answers=(*steps[at].answers, said))

    def _said(self, m: Msg, ack: Ack) -> Msg:
        kind, held = ANSWER[m.kind], HELD in (ack.message or "")
        if m.kind != "register":
            return Msg(kind, m.who, m.gen, self.name, ok=ack.ok)
        target = wire.target_of(ack)
        return Msg(kind, m.who, m.gen, self.name, m.session, target=target, ok=ack.ok, held=held)

    # -- what it is ---------------------------------------------------------------------------------------------------

    def _routes(self) -> Registry:
        return routes_of(self.routing.phase, self.routing.data)

    def looks(self) -> Looks:
        """Everything that the next step depends on."""
        return Looks(
            self._routes(),
            intents_of(self.routing.data.intents),
            self.port.calls(),
            None if self.pages.held is None else self.pages.held[0],
            tuple((a.what, a.again, a.taken, where(a.task)) for a in self.askers),
            self.opened,
        )
