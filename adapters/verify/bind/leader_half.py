"""The leaders' half: `Requests` and `Routing` against `spec/LeaderRoutes.tla`; followers and channel are the world's.

Threads, processes and the owner registry are the world's as well. A request that waits for its turn is on its way yet,
in the twin's words; so nothing of it is lost meanwhile. Evidence is answered at once, and so are transactions, but for
the one after a clean-up: what the driver does in two steps there, the twin does in one (that nothing is acknowledged
under an epoch that ended between the two is said by the transaction that publishes, and has tests of its own).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.fleet.leader.requests import Requests
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.verify.bind.binding import Move, Participant, World
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.leader_desk import LeaderDesk
from tenure.adapters.verify.bind.leader_steps import Does, Looks
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.registration import Around, RegistrationBinding
from tenure.adapters.verify.bind.replay import Replay
from tenure.models.follower_registration import FollowerRegistration
from tenure.models.follower_registration_state import (
    LEADERS,
    NONE,
    REQUESTS,
    Change,
    Config,
    Draft,
    Entry,
    Intent,
    Msg,
    Route,
    State,
    Thread,
    current,
    unheard,
)

PIDS: Final = {"L1": 50, "L2": 51}
NOBODY: Final = 99
"""A generation that nobody has."""

Choice = tuple[tuple[Any, ...], State, int]


class LeaderBinding(RegistrationBinding):
    """The leaders of one configuration: the first one, and its successor."""

    constants: ClassVar[tuple[type, ...]] = (LeaderDesk, FollowerRegistration, Config, Requests, Routing)
    ours: ClassVar[frozenset[str]] = frozenset(
        {"HearRegister", "Provisioned", "ProvisionFails", "Refresh", "Perform", "Forward", "HearGoodbye", "Resume"}
        | {"Bury", "Delete", "Cleaned", "CleanUpFails", "Prune", "Silence", "Depose", "Succeed", "Close"}
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(config, off)
        leaders = LEADERS if config.causes & {"depose", "kill"} else LEADERS[:1]
        self.participants = tuple(Participant(x, PIDS[x], self._program(x)) for x in leaders)

    def _program(self, name: str) -> Program:
        config, process = self.config, self.priced.process

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = LeaderDesk(config, name, process, controlled.ports())
            if name == LEADERS[0]:
                desk.do(True, frozenset(), (), "open", frozenset())
                desk.steps = ()
            while not desk.closed:
                happens = replay.ask("choose", desk.looks())
                desk.do(*happens)
                del happens
                while desk.steps:
                    replay.ask("told", *desk.steps, desk.looks())
                    desk.steps = desk.steps[1:]
            return None

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def choices(self, name: str, seen: Any, state: State) -> Iterable[Choice]:
        assert isinstance(seen, Looks)
        dead = self.priced.dead(state)
        threads = tuple(sorted((t.target, t.who, t.gen, t.key) for t in state.threads))
        for what, after, cost in self._happens(name, seen, state):
            yield (state.epoch == name, dead, threads, *what), after, cost

    def _happens(self, x: str, looks: Looks, state: State) -> Iterable[Choice]:
        causes = self.config.causes
        owns = state.epoch == x
        if not looks.opened:
            deposes = state.epoch == LEADERS[0] and "depose" in causes
            if state.epoch == NONE or deposes:
                yield ("open", state.intents), attrs.evolve(state, epoch=x), int(deposes)
            return
        if state.route[x].phase != "serving":
            return
        yield from self._requests(x, looks, state)
        yield from self._calls(x, looks, state, owns)
        yield from self._reclaims(x, looks, state)
        for e in sorted(state.route[x].entries, key=str):
            if "work" in causes:
                yield ("forward", e.who, e.gen), state, 1
            yield ("forward", e.who, NOBODY), state, 0
            for silent in self.priced.silence(attrs.evolve(state, budget=NOBODY), x, e.who):
                yield ("silence", e.who), attrs.evolve(silent, budget=state.budget), NOBODY - silent.budget
        if state.route[x].entries:
            yield ("prune",), state, 0
        if not owns:
            yield ("close",), attrs.evolve(state, net=unheard(state.net, x)), 0

    def _requests(self, x: str, looks: Looks, state: State) -> Iterable[Choice]:
        """A register request is taken once, whatever copies of it there are: the ledger joins them."""
        begun = {(w.kind, w.who, w.gen) for w, *_ in looks.asked if isinstance(w, Msg)}
        for m in sorted((m for m in state.net if m.lead == x and m.kind in REQUESTS), key=str):
            key = self.priced.key(m.who, m.own)
            for again in (False, True) if m.kind == "register" and "repeat" in self.config.causes else (False,):
                if m.kind == "register" and m.ok:
                    yield ("replay", m, again), state, int(again)
                elif m.kind == "register" and m.who in self.config.outsiders:
                    draft = Draft(attrs.evolve(state, net=state.net if again else state.net - {m}))
                    draft.told(Msg("registered", m.who, m.gen, x, m.session))
                    yield ("nothing",), draft.state(), int(again)
                elif (m.kind, m.who, m.gen) not in begun:
                    yield ("hear", m, again, key), state, int(again)

    def _calls(self, x: str, looks: Looks, state: State, owns: bool) -> Iterable[Choice]:
        """What becomes of calls of the port, and of the transaction after a clean-up."""
        fails = "fail" in self.config.causes
        for kind, who, gen, key, target in looks.calls:
            if looks.unsure is not None and (kind == "register" or owns):
                continue  # its own transaction comes after the one that is under way
            if kind == "register":
                yield ("provisioned", who, gen, self.priced.given(state, x, who, target, key)), state, 0
            elif owns:
                asked = {u.target for u in state.route[x].mutations if (u.kind, u.who, u.gen) == (kind, who, gen)}
                harm = frozenset() if target in asked else frozenset({"elsewhere"})
                yield ("deleted", who, gen), attrs.evolve(state, harm=state.harm | harm), 0
            if fails or (kind == "clean_up" and not owns):
                yield ("fails", kind, who, gen), state, int(kind == "register" or owns)
        if fails and looks.calls:
            yield ("hangs",), state, 1
        if looks.unsure is not None:
            yield ("sure",), state, 0

    def _reclaims(self, x: str, looks: Looks, state: State) -> Iterable[Choice]:
        """Intents on the disk, and threads of those that are out of the routes. Who is not dead is asked for as well,
        for the machine's refusal."""
        found = set(state.intents)
        if "bury" in self.config.causes:
            found |= {Intent(t.who, t.gen, t.key, t.target) for t in state.threads}
        pending = {w for w, *_ in looks.asked if isinstance(w, Intent)}
        dead = self.priced.dead(state)
        for i in sorted(found - pending, key=str):
            under_way = any((u.kind, u.who, u.gen) == ("clean_up", i.who, i.gen) for u in state.route[x].mutations)
            if not under_way and not current(state, x, i.who, i.gen):
                yield ("reclaim", i, i.who in dead), state, 0

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around = world.extra
        assert isinstance(around, Around)
        for move in super().moves(world, left):
            after = move.after.extra
            assert isinstance(after, Around)
            name = move.twin[0][0]
            if name == "Lose" and not around.queued <= after.state.net:
                continue
            kept = attrs.evolve(after, queued=frozenset() if name == "Kill" else around.queued)
            changed = attrs.evolve(move.after, extra=kept)
            ends = frozenset({PIDS["L1"]}) if name == "Kill" else frozenset[int]()
            yield attrs.evolve(move, after=changed, ends=ends)

    def told(self, name: str, step: Any, state: State) -> State:
        assert isinstance(step, Does)
        draft = Draft(state)
        was = state.route[name]
        draft.route = state.route.set(name, _registry(was, step))
        if step.heard is not None and not step.again:
            draft.net = draft.net - {step.heard}
        for answer in step.answers:
            draft.told(answer)
        if step.wrote is not None:
            self._written(draft, name, *step.wrote)
        if step.deleted is not None:
            targets = {u.target for u in was.mutations if u.kind == "clean_up" and (u.who, u.gen) == step.deleted}
            draft.threads = frozenset(t for t in draft.threads if t.target not in targets)
        if step.intents is not None:
            draft.intents = step.intents
        draft.net = draft.net | set(step.posts)
        draft.harm = draft.harm | step.harm
        draft.harmed("acted", step.acted is not None and not current(state, name, *step.acted))
        return draft.state()

    @staticmethod
    def _written(draft: Draft, name: str, who: str, gen: int) -> None:
        """The thread is that registration's now, and a copy of its request is answered by the ledger."""
        for e in draft.route[name].entries:
            if (e.who, e.gen) == (who, gen):
                others = frozenset(t for t in draft.threads if t.target != e.target)
                draft.threads = others | {Thread(e.target, who, gen, e.key)}
                draft.net = frozenset(
                    attrs.evolve(m, ok=True, target=e.target) if m.kind == "register" and m.gen == gen else m
                    for m in draft.net
                )


def _registry(was: Route, step: Does) -> Route:
    """The driver's routes, with what the world alone knows: who is silent, whose session, what is deleted."""
    silent = {(e.who, e.gen, e.heard): e.silent for e in was.entries}
    before = {(u.kind, u.who, u.gen, u.asked): u for u in was.mutations}

    def entry(e: Entry) -> Entry:
        return attrs.evolve(e, silent=silent.get((e.who, e.gen, e.heard), False))

    def change(u: Change) -> Change:
        known = before.get((u.kind, u.who, u.gen, u.asked))
        session = 0 if step.heard is None or u.kind != "register" else step.heard.session
        done = u.kind == "clean_up" and (u.who, u.gen) == step.deleted
        if known is None:
            return attrs.evolve(u, session=session)
        return attrs.evolve(u, session=known.session, done=known.done or done)

    routes = step.routes
    return Route(routes.phase, frozenset(map(entry, routes.entries)), frozenset(map(change, routes.mutations)))
