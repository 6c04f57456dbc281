"""The twin of `spec/FollowerRegistration.tla`: followers, two successive leaders, and the channel between them.

The followers and the leaders' routes are the machines; their outputs are performed here on the channel, the calls and
the disk, so that a missing or a superfluous output is a different graph. What must not happen is noted in `harm`
where it would, from what is true and not from what a machine believes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar

import attrs

from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.chart import Refused, Step
from tenure.machines.follower import FOLLOWER
from tenure.machines.follower_messages import Binding, Memory
from tenure.machines.laws import Law
from tenure.machines.routes import ROUTES
from tenure.machines.routes_messages import Routes
from tenure.machines.routes_rules import in_order, intents_in_order
from tenure.models.follower_registration_state import (
    ASKED,
    BOUND_MS,
    CLOSED,
    FAILED,
    LEADERS,
    NONE,
    REQUEST_OF,
    Call,
    Change,
    Config,
    Draft,
    Entry,
    Intent,
    Msg,
    Node,
    Outside,
    Route,
    State,
    Thread,
    begun_under_its_epoch,
    change_of,
    current,
    entry_of,
    epoch,
    fresh,
    hopeless,
    intent_for,
    intent_of,
    least,
    node_of,
    number_of,
    one_route,
    post,
    routed,
    session_of,
    unheard,
)
from tenure.models.world import Action, Fair, FrozenMap, LeadsTo, Strength, World, prohibition


def _config(
    causes: str,
    budget: int,
    *instances: str,
    relation: str = "apart",
    beating: str = "",
    odd: str = "",
    out: str = "",
    claims: str = "",
) -> Config:
    sets = [frozenset(words.split()) for words in (causes, beating, odd, out, claims)]
    return Config(instances or ("a",), relation, sets[0], budget, *sets[1:])


CONFIGS: Mapping[str, Config] = {
    "channel": _config("lose late repeat goodbye", 2, beating="a"),
    "host": _config("host work move", 2),
    "asks": _config("session late leave ask bare work move", 2),
    "intents": _config("goodbye leave fail session", 3),
    "deposed": _config("depose goodbye leave", 3),
    "shell": _config("crash work astray", 2, "a", "b", relation="shell"),
    "pair": _config("kill", 1, "a", "b", relation="shell", beating="a b"),
    "claim": _config("", 0, "a", "b", claims="a b"),
    "strangers": _config("", 0, "a", "b", odd="a", out="b"),
    "foreign": _config("", 0, odd="L1"),
    "reload": _config("reload goodbye fail", 3, "a", "b", relation="reload"),
    "successor": _config("crash bury kill", 2, "a", "b", relation="successor", beating="a b"),
    "all": _config("lose late repeat silence session leave goodbye fail depose kill ask work bury", 1, beating="a"),
}
"""The configurations of the manifest by name; each equals `spec/FollowerRegistration_<name>.cfg`."""


class FollowerRegistration(World[State]):
    """Followers that want to be registered with whoever leads."""

    module: ClassVar[str] = "FollowerRegistration"
    tables = (FOLLOWER, ROUTES)
    environment = (
        prohibition("stamped_anew", Law.FRESH),
        prohibition("registered_first", Law.FENCE),
        prohibition("clean_up_is_fenced", Law.FENCE),
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(off)
        self.config = config
        self.follower = self.weakened(FOLLOWER)
        self.routes = self.weakened(ROUTES)
        self.heard: dict[tuple[str, Node, own.Happening], Step[Memory, own.Output] | Refused] = {}

    def initial(self) -> Iterable[State]:
        c = self.config
        later = c.relation in ("reload", "successor")
        node = {p: Node("idle", 1, 0, False, False, 0, False, 1 if p in c.claims else 0) for p in c.instances}
        outside = {p: Outside("no" if p == "b" and later else "yes", NONE, 1, frozenset()) for p in c.instances}
        threads = frozenset({Thread(1, "a", 0, self._key("a", False))} if c.claims else ())
        route = {"L1": attrs.evolve(CLOSED, phase="serving"), "L2": CLOSED}
        yield State(
            FrozenMap(node), FrozenMap(outside), frozenset(), FrozenMap(route), frozenset(), threads, "L1",
            frozenset(), c.budget,
        )  # fmt: skip

    def actions(self) -> tuple[Action[State], ...]:
        each = tuple((p,) for p in self.config.instances)
        both = tuple((p, b) for p in self.config.instances for b in (False, True))
        pairs = tuple((x, p) for x in LEADERS for p in self.config.instances)
        return (
            Action("Register", self._register, each),
            Action("HearAnswer", self._hear_answer, each),
            Action("Beat", self._beat, each),
            Action("HearBeat", self._hear_beat, each),
            Action("Disconnect", self._disconnect, each),
            Action("HearGone", self._hear_gone, each),
            Action("Return", self._return, each),
            Action("Session", self._session, each),
            Action("Host", self._host, each),
            Action("Leave", self._leave, each),
            Action("Ask", self._ask, both),
            Action("Deliver", self._deliver, each),
            Action("HearRegister", self._hear_register, tuple((*x, b) for x in pairs for b in (False, True))),
            Action("Provisioned", self._provisioned, pairs),
            Action("ProvisionFails", self._provision_fails, pairs),
            Action("Refresh", self._refresh, pairs),
            Action("Perform", self._perform, pairs),
            Action("Forward", self._forward, pairs),
            Action("Move", self._move, pairs),
            Action("HearGoodbye", self._hear_goodbye, pairs),
            Action("Resume", self._resume, pairs),
            Action("Bury", self._bury, pairs),
            Action("Delete", self._delete, pairs),
            Action("Cleaned", self._cleaned, pairs),
            Action("CleanUpFails", self._clean_up_fails, pairs),
            Action("Prune", self._prune, pairs),
            Action("Silence", self._silence, pairs),
            Action("Lose", self._lose),
            Action("Depose", self._depose),
            Action("Kill", self._kill),
            Action("Succeed", self._succeed),
            Action("Close", self._close, tuple((x,) for x in LEADERS)),
            Action("Crash", self._crash, each),
            Action("Restart", self._restart),
            Action("Reload", self._reload),
        )

    # -- what both halves need ----------------------------------------------------------------------------------------

    def _spend(self, state: State, cause: str) -> int | None:
        return state.budget - 1 if cause in self.config.causes and state.budget > 0 else None

    def _key(self, p: str, own_key: bool) -> str:
        return p if own_key or self.config.relation == "apart" else "shared"

    def _process(self, p: str) -> str:
        return "one" if self.config.relation == "reload" else p

    def _dead(self, state: State) -> frozenset[str]:
        return frozenset(p for p, around in state.outside.items() if around.up == "dead")

    def _up(self, state: State, p: str) -> bool:
        return state.outside[p].up == "yes"

    # -- a follower ---------------------------------------------------------------------------------------------------

    def _told(self, p: str, node: Node, message: own.Happening) -> Step[Memory, own.Output] | Refused:
        """What the follower answers to `message`. A machine is a function: its answer is remembered."""
        key = (p, node, message)
        found = self.heard.get(key)
        if found is None:
            memory = Memory(
                p, node.session, node.generation or None, node.acknowledged, node.beating, node.abandoned or None,
                node.own_key, Binding(node.target or None),
            )  # fmt: skip
            found = self.heard[key] = self.step(self.follower, node.phase, memory, message)
        return found

    def _take(self, draft: Draft, p: str, message: own.Happening) -> bool:
        """Offer `message` to the follower and perform what it answers; False, and no change, when it refuses."""
        done = self._told(p, draft.node[p], message)
        if isinstance(done, Refused):
            return False
        after = node_of(done)
        draft.node = draft.node.set(p, after)
        for output in done.outputs:
            if isinstance(output, own.SendRegister):
                call, leader = Call("register", number_of(output.generation)), draft.epoch
                target = number_of(output.binding.target)
                request = Msg("register", p, call.gen, leader, output.session, output.own_key, target)
                around = draft.outside[p]
                draft.outside = draft.outside.set(p, Outside("yes", leader, around.session, around.calls | {call}))
            elif isinstance(output, own.SendHeartbeat | own.SendDisconnect):
                kind = "beat" if isinstance(output, own.SendHeartbeat) else "goodbye"
                if kind == "beat" and p not in self.config.beating:
                    continue
                call = Call(kind, number_of(output.generation))
                request = Msg(kind, p, call.gen, draft.outside[p].lead)
                draft.harmed("piled", kind == "beat" and call in draft.outside[p].calls)
                draft.calls(p, draft.outside[p].calls | {call})
            elif isinstance(output, own.SendAsk):
                request = Msg("ask", p, number_of(output.generation), draft.outside[p].lead)
            else:
                continue
            post(draft, request)
        return True

    def _register(self, state: State, p: str) -> Iterable[State]:
        message = own.Register(fresh(state))
        draft = Draft(state)
        if not self._up_for(state, p, message) or state.epoch == NONE or not self._take(draft, p, message):
            return ()
        draft.harmed("two calls", any(c.kind == "register" for c in state.outside[p].calls))
        return (draft.state(),)

    def _up_for(self, state: State, p: str, probe: own.Happening) -> bool:
        """Whether p is there to hear anything. Who is not is asked as well, for its machine's refusal."""
        if state.outside[p].up == "yes":
            return True
        self._told(p, state.node[p], probe)
        return False

    def _answers(self, state: State, p: str, kind: str) -> Iterable[tuple[Msg, Draft]]:
        """Each answer that this follower can hear now, and the draft in which it does."""
        for answer in state.net:
            if answer.kind == kind and answer.who == p:
                draft = Draft(state)
                draft.net = state.net - {answer}
                draft.calls(p, state.outside[p].calls - {Call(ASKED[kind], answer.gen)})
                yield answer, draft

    def _hear_answer(self, state: State, p: str) -> Iterable[State]:
        before = state.node[p]
        if not self._up_for(state, p, own.Answered(1, True, True)):
            return
        for a, draft in self._answers(state, p, "registered"):
            fits = a.lead not in self.config.odd
            self._take(draft, p, own.Answered(a.gen, fits, a.ok, a.held, Binding(a.target or None)))
            after = draft.node[p]
            held = after.phase == "registered" and before.phase != "registered"
            draft.harmed("late", after != before and a.gen not in (before.generation, before.abandoned))
            draft.harmed("dead session", held and a.session != state.outside[p].session)
            yield draft.state()

    def _beat(self, state: State, p: str) -> Iterable[State]:
        draft = Draft(state)
        if not self._up_for(state, p, own.Tick()) or p not in self.config.beating:
            return ()
        if not self._take(draft, p, own.Tick()):
            return ()
        after = draft.state()
        same = (after.node, after.outside, after.net) == (state.node, state.outside, state.net)
        return () if same else (after,)

    def _hear_beat(self, state: State, p: str) -> Iterable[State]:
        before = state.node[p]
        if not self._up_for(state, p, own.BeatAnswered(1, True)):
            return
        for a, draft in self._answers(state, p, "beaten"):
            self._take(draft, p, own.BeatAnswered(a.gen, a.ok))
            draft.harmed("late", draft.node[p] != before and a.gen != before.generation)
            yield draft.state()

    def _disconnect(self, state: State, p: str) -> Iterable[State]:
        return self._command(state, p, "goodbye", own.Disconnect())

    def _hear_gone(self, state: State, p: str) -> Iterable[State]:
        before = state.node[p]
        if not self._up_for(state, p, own.DisconnectAnswered(1, True)):
            return
        for a, draft in self._answers(state, p, "gone"):
            self._take(draft, p, own.DisconnectAnswered(a.gen, a.ok))
            after = draft.node[p]
            draft.harmed("late", after != before and a.gen != before.generation)
            draft.harmed("ghost", after.phase == "idle" and before.phase != "idle" and routed(state, p))
            yield draft.state()

    def _return(self, state: State, p: str) -> Iterable[State]:
        before = state.node[p]
        for kind, failed in FAILED.items():
            if not self._up_for(state, p, failed(1)):
                continue
            for call in state.outside[p].calls:
                if call.kind != kind:
                    continue
                budget: int | None = state.budget if hopeless(state, p, call) else self._spend(state, "late")
                if budget is None:
                    continue
                draft = Draft(state, budget)
                draft.calls(p, state.outside[p].calls - {call})
                self._take(draft, p, failed(call.gen))
                late = draft.node[p] != before and call.gen not in (before.generation, before.abandoned)
                draft.harmed("late", late)
                yield draft.state()

    def _session(self, state: State, p: str) -> Iterable[State]:
        session = state.outside[p].session
        return () if session == 0 else self._serves(state, p, "session", 3 - session)

    def _host(self, state: State, p: str) -> Iterable[State]:
        return self._serves(state, p, "host", int(state.outside[p].session == 0))

    def _serves(self, state: State, p: str, cause: str, session: int) -> Iterable[State]:
        message = own.SessionChanged(session)
        budget = self._spend(state, cause)
        if not self._up_for(state, p, message) or budget is None:
            return ()
        draft = Draft(state, budget)
        self._take(draft, p, message)
        around = draft.outside[p]
        draft.outside = draft.outside.set(p, Outside(around.up, around.lead, session, around.calls))
        return (draft.state(),)

    def _leave(self, state: State, p: str) -> Iterable[State]:
        return self._command(state, p, "leave", own.Leave())

    def _command(self, state: State, p: str, cause: str, message: own.Happening) -> Iterable[State]:
        budget = self._spend(state, cause)
        draft = Draft(state, budget)
        if not self._up_for(state, p, message) or budget is None or not self._take(draft, p, message):
            return ()
        return (draft.state(),)

    def _ask(self, state: State, p: str, bare: bool) -> Iterable[State]:
        budget = self._spend(state, "bare" if bare else "ask")
        draft = Draft(state, budget)
        if not self._up_for(state, p, own.Ask(0)) or budget is None or state.outside[p].lead == NONE:
            return ()
        if bare:
            post(draft, Msg("ask", p, 0, state.outside[p].lead))
        elif not self._take(draft, p, own.Ask(0)):
            return ()
        return () if draft.net == state.net else (draft.state(),)

    def _deliver(self, state: State, p: str) -> Iterable[State]:
        node = state.node[p]
        probes = (own.Deliver(p, 1, 0), own.ReplaceTarget(p, 1, 1))
        if not all([self._up_for(state, p, probe) for probe in probes]):
            return
        for m in state.net:
            if m.kind not in ("work", "moved"):
                continue
            budget = state.budget if m.who == p else self._spend(state, "astray")
            if budget is None:
                continue
            draft = Draft(state, budget)
            draft.net = state.net - {m}
            message: own.Happening = own.Deliver(m.who, m.gen, 0)
            if m.kind == "moved":
                message = own.ReplaceTarget(m.who, m.gen, m.target)
            takes = self._take(draft, p, message)
            if m.kind == "work" and self.guard("registered_first", False) and node.phase != "stopped":
                takes = isinstance(self._told(p, attrs.evolve(node, phase="registered"), message), Step)
            current = m.who == p and node.phase == "registered" and m.gen == node.generation
            draft.harmed("strayed", takes and not current)
            draft.harmed("nobody home", takes and state.outside[p].session == 0)
            yield draft.state()

    # -- a leader -----------------------------------------------------------------------------------------------------

    def _hear(
        self, draft: Draft, x: str, message: lead.Happening, session: int = 0
    ) -> Step[Routes, lead.Output] | Refused:
        """Offer `message` to the routes of leader `x`, and make true what they answer."""
        before = draft.route[x]
        data = Routes(
            BOUND_MS, None if before.phase == "closed" else x,
            tuple(sorted((self._entry(e) for e in before.entries), key=lambda e: e.instance)),
            in_order(tuple(self._mutation(u, x) for u in before.mutations)),
            intents_in_order(tuple(intent_for(i) for i in draft.intents)),
        )  # fmt: skip
        done = self.step(self.routes, before.phase, data, message)
        if isinstance(done, Refused):
            return done
        silent = {(e.who, e.gen): e for e in before.entries}
        was = {(u.kind, u.who, u.gen, u.asked): u for u in before.mutations}
        sessions = {(u.who, u.gen): u.session for u in before.mutations if u.kind == "register"}
        entries = frozenset(entry_of(e, silent.get((e.instance, number_of(e.generation)))) for e in done.data.entries)
        mutations = frozenset(change_of(u, was, session) for u in done.data.mutations)
        draft.route = draft.route.set(x, Route(done.phase, entries, mutations))
        for output in done.outputs:
            if isinstance(output, lead.PersistIntent):
                draft.intents = draft.intents | {intent_of(output.intent)}
            elif isinstance(output, lead.DropIntent):
                draft.intents = draft.intents - {intent_of(output.intent)}
            elif isinstance(output, lead.Acknowledge):
                kind, gen = REQUEST_OF[output.request], number_of(output.generation)
                target, told = number_of(output.binding.target), session_of(kind, output.instance, gen, sessions)
                draft.told(Msg(kind, output.instance, gen, x, told, target=target, ok=True))
            elif isinstance(output, lead.Reject):
                kind, gen = REQUEST_OF[output.request], number_of(output.generation)
                told = session_of(kind, output.instance, gen, sessions)
                draft.told(Msg(kind, output.instance, gen, x, told, held=output.held))
        return done

    def _entry(self, e: Entry) -> lead.Entry:
        return lead.Entry(e.who, e.gen, e.key, self._process(e.who), Binding(e.target), e.heard)

    def _mutation(self, u: Change, x: str) -> lead.Mutation:
        process = self._process(u.who) if u.kind == "register" else ""
        kind: lead.Kind = "register" if u.kind == "register" else "clean_up"
        return lead.Mutation(kind, u.who, u.gen, u.key, process, Binding(u.target or None), x, True, u.asked)

    def _serving(self, state: State, x: str) -> bool:
        return state.route[x].phase == "serving"

    def _requests(self, state: State, x: str, p: str, kind: str) -> Iterable[Msg]:
        if self._serving(state, x):
            for m in state.net:
                if m.kind == kind and m.who == p and m.lead == x:
                    yield m

    def _hear_register(self, state: State, x: str, p: str, again: bool) -> Iterable[State]:
        budget = self._spend(state, "repeat") if again else state.budget
        if budget is None:
            return
        for m in self._requests(state, x, p, "register"):
            draft = Draft(state, budget)
            if not again:
                draft.net = state.net - {m}
            if m.ok:
                stands = isinstance(self._hear(draft, x, lead.Replay(p, m.gen)), Step)
                draft.told(Msg("registered", p, m.gen, x, m.session, target=m.target if stands else 0, ok=stands))
                draft.harmed("echo", stands and not current(state, x, p, m.gen))
            else:
                message = lead.Register(
                    p, m.gen, self._key(p, m.own), self._process(p), Binding(m.target or None), epoch(state),
                    p not in self.config.outsiders, p not in self.config.odd, True, self._dead(state),
                )  # fmt: skip
                done = self._hear(draft, x, message, m.session)
                if isinstance(done, Refused):
                    if "nobody_mutates_profile" in done.guards:
                        continue
                    draft.told(Msg("registered", p, m.gen, x, m.session, held="profile_not_held" in done.guards))
            if draft.net != state.net or draft.route != state.route:
                yield draft.state()

    def _given(self, state: State, x: str, p: str, target: int, key: str) -> int:
        """The provisioning port: the thread that is asked for, else that of the profile if free, else a new one."""
        if any(t.target == target for t in state.threads):
            return target
        held = {e.target for e in state.route[x].entries if not self._gives_way(state, e, p)}
        mine = [t.target for t in state.threads if t.key == key and t.target not in held]
        if mine:
            return min(mine)
        used = {0, *(t.target for t in state.threads), *(i.target for i in state.intents)}
        used |= {m.target for m in state.net} | {n.target for n in state.node.values()}
        for route in state.route.values():
            used |= {e.target for e in route.entries} | {c.target for c in route.mutations}
        return least(used)

    def _changes(self, state: State, x: str, p: str, kind: str) -> Iterable[Change]:
        if self._serving(state, x):
            for u in state.route[x].mutations:
                if u.kind == kind and u.who == p:
                    yield u

    def _provisioned(self, state: State, x: str, p: str) -> Iterable[State]:
        for u in self._changes(state, x, p, "register"):
            target = self._given(state, x, p, u.target, u.key)
            now = 0 if self.guard("stamped_anew", False) else 1
            message = lead.Provisioned(p, u.gen, Binding(target), epoch(state), now, self._dead(state))
            draft = Draft(state)
            done = self._hear(draft, x, message)
            if isinstance(done, Step) and any(isinstance(o, lead.Acknowledge) for o in done.outputs):
                draft.threads = frozenset(t for t in state.threads if t.target != target) | {
                    Thread(target, p, u.gen, u.key)
                }
                draft.net = frozenset(
                    attrs.evolve(m, ok=True, target=target) if m.kind == "register" and m.gen == u.gen else m
                    for m in draft.net
                )
            yield draft.state()

    def _provision_fails(self, state: State, x: str, p: str) -> Iterable[State]:
        budget = self._spend(state, "fail")
        if budget is None:
            return
        for u in self._changes(state, x, p, "register"):
            draft = Draft(state, budget)
            self._hear(draft, x, lead.ProvisionFailed(p, u.gen))
            yield draft.state()

    def _refresh(self, state: State, x: str, p: str) -> Iterable[State]:
        for m in self._requests(state, x, p, "beat"):
            draft = Draft(state)
            draft.net = state.net - {m}
            done = self._hear(draft, x, lead.Heartbeat(p, m.gen or None, x, 1))
            if isinstance(done, Refused):
                draft.told(Msg("beaten", p, m.gen, x))
            elif not done.outputs:
                draft.told(Msg("beaten", p, m.gen, x, ok=True))
            yield draft.state()

    def _perform(self, state: State, x: str, p: str) -> Iterable[State]:
        for m in self._requests(state, x, p, "ask"):
            draft = Draft(state)
            draft.net = state.net - {m}
            done = self._hear(draft, x, lead.Ask(p, m.gen or None, x, 1, 0))
            draft.harmed("acted", isinstance(done, Step) and not current(state, x, p, m.gen))
            yield draft.state()

    def _forward(self, state: State, x: str, p: str) -> Iterable[State]:
        budget = self._spend(state, "work")
        if budget is None or not self._serving(state, x):
            return
        for e in state.route[x].entries:
            if e.who == p:
                draft = Draft(state, budget)
                self._hear(draft, x, lead.Forward(p, e.gen, x, 1, 0))
                draft.net = state.net | {Msg("work", p, e.gen, x)}
                yield draft.state()

    def _move(self, state: State, x: str, p: str) -> Iterable[State]:
        budget, route = self._spend(state, "move"), state.route[x]
        if budget is None or not self._serving(state, x) or state.epoch != x or route.mutations:
            return
        for e in route.entries:
            if e.who != p:
                continue
            target = self._given(state, x, p, 0, "")
            draft = Draft(state, budget)
            entries = (route.entries - {e}) | {attrs.evolve(e, target=target)}
            draft.route = state.route.set(x, Route(route.phase, entries, route.mutations))
            draft.net = state.net | {Msg("moved", p, e.gen, x, target=target)}
            draft.threads = frozenset(
                attrs.evolve(t, target=target) if t.target == e.target else t for t in state.threads
            )
            yield draft.state()

    def _hear_goodbye(self, state: State, x: str, p: str) -> Iterable[State]:
        for m in self._requests(state, x, p, "goodbye"):
            draft = Draft(state)
            draft.net = state.net - {m}
            done = self._hear(draft, x, lead.Disconnect(p, m.gen or None, epoch(state)))
            if isinstance(done, Refused):
                if "nobody_mutates_profile" in done.guards:
                    continue
                draft.told(Msg("gone", p, m.gen, x))
            elif not done.outputs:
                draft.told(Msg("gone", p, m.gen, x))
            yield draft.state()

    def _resume(self, state: State, x: str, p: str) -> Iterable[State]:
        for i in state.intents:
            if i.who == p and not current(state, x, p, i.gen):
                yield from self._reclaim(state, x, i, state.budget)

    def _bury(self, state: State, x: str, p: str) -> Iterable[State]:
        if "bury" in self.config.causes:
            for t in state.threads:
                if t.who == p and not current(state, x, p, t.gen):
                    yield from self._reclaim(state, x, Intent(p, t.gen, t.key, t.target), state.budget)

    def _reclaim(self, state: State, x: str, i: Intent, budget: int) -> Iterable[State]:
        if any(u.gen == i.gen for u in self._changes(state, x, i.who, "clean_up")) or not self._serving(state, x):
            return
        now = next((t for t in state.threads if t.target == i.target), None)
        dead = i.who in self._dead(state)
        held_by, held_as = (None, None) if now is None else (now.who, now.gen)
        draft = Draft(state, budget)
        done = self._hear(draft, x, lead.Reclaim(intent_for(i), epoch(state), dead, held_by, held_as))
        if isinstance(done, Refused) or (draft.route == state.route and draft.intents == state.intents):
            return
        due = any(isinstance(o, lead.CleanUp) for o in done.outputs)
        draft.harmed("silenced", due and i not in state.intents and not dead)
        yield draft.state()

    def _delete(self, state: State, x: str, p: str) -> Iterable[State]:
        for u in self._changes(state, x, p, "clean_up"):
            if u.done or not self.guard("clean_up_is_fenced", state.epoch == x):
                continue
            draft = Draft(state)
            draft.threads = frozenset(t for t in state.threads if t.target != u.target)
            route = state.route[x]
            mutations = (route.mutations - {u}) | {attrs.evolve(u, done=True)}
            draft.route = state.route.set(x, Route(route.phase, route.entries, mutations))
            taken = any(t.target == u.target and (t.who, t.gen) != (p, u.gen) for t in state.threads)
            draft.harmed("taken", taken)
            yield draft.state()

    def _cleaned(self, state: State, x: str, p: str) -> Iterable[State]:
        for u in self._changes(state, x, p, "clean_up"):
            if not u.done:
                continue
            draft = Draft(state)
            done = self._hear(draft, x, lead.Cleaned(p, u.gen, epoch(state)))
            outputs = () if isinstance(done, Refused) else done.outputs
            ends = any(isinstance(o, lead.DropIntent | lead.Acknowledge) for o in outputs)
            gone = state.route[x].entries - draft.route[x].entries
            other = state.epoch != x or any(e.who == p and e.gen != u.gen for e in gone)
            draft.harmed("removed", ends and other)
            yield draft.state()

    def _clean_up_fails(self, state: State, x: str, p: str) -> Iterable[State]:
        budget = self._spend(state, "fail") if state.epoch == x else state.budget
        if budget is None:
            return
        for u in self._changes(state, x, p, "clean_up"):
            if not u.done:
                draft = Draft(state, budget)
                self._hear(draft, x, lead.CleanUpFailed(p, u.gen))
                yield draft.state()

    def _prune(self, state: State, x: str, p: str) -> Iterable[State]:
        if not self._serving(state, x):
            return
        for e in state.route[x].entries:
            draft = Draft(state)
            if e.who == p and isinstance(self._hear(draft, x, lead.Prune(p, BOUND_MS + 1)), Step):
                draft.harmed("cut", self._beats(state, p, e) and not e.silent)
                yield draft.state()

    def _beats(self, state: State, p: str, e: Entry) -> bool:
        return self._up(state, p) and state.node[p].generation == e.gen

    # -- the world ----------------------------------------------------------------------------------------------------

    def _silence(self, state: State, x: str, p: str) -> Iterable[State]:
        if not self._serving(state, x):
            return
        route = state.route[x]
        for e in route.entries:
            if e.who != p or e.silent:
                continue
            budget = self._spend(state, "silence") if self._beats(state, p, e) else state.budget
            if budget is not None:
                entries = (route.entries - {e}) | {attrs.evolve(e, heard=0, silent=True)}
                after = state.route.set(x, Route(route.phase, entries, route.mutations))
                yield attrs.evolve(state, route=after, budget=budget)

    def _lose(self, state: State) -> Iterable[State]:
        budget = self._spend(state, "lose")
        if budget is not None:
            for m in state.net:
                yield attrs.evolve(state, net=state.net - {m}, budget=budget)

    def _open(self, draft: Draft) -> None:
        draft.epoch = "L2"
        self._hear(draft, "L2", lead.Open("L2", tuple(intent_for(i) for i in draft.intents)))

    def _depose(self, state: State) -> Iterable[State]:
        budget = self._spend(state, "depose")
        if budget is None or state.epoch != "L1":
            return ()
        draft = Draft(state, budget)
        self._open(draft)
        return (draft.state(),)

    def _kill(self, state: State) -> Iterable[State]:
        budget = self._spend(state, "kill")
        if budget is None or state.epoch != "L1":
            return ()
        net = unheard(state.net, "L1")
        return (attrs.evolve(state, route=state.route.set("L1", CLOSED), net=net, epoch=NONE, budget=budget),)

    def _succeed(self, state: State) -> Iterable[State]:
        if state.epoch != NONE:
            return ()
        draft = Draft(state)
        self._open(draft)
        return (draft.state(),)

    def _close(self, state: State, x: str) -> Iterable[State]:
        if not self._serving(state, x) or state.epoch == x:
            return ()
        draft = Draft(state)
        draft.net = unheard(state.net, x)
        self._hear(draft, x, lead.Close())
        return (draft.state(),)

    def _ends(self, draft: Draft, p: str, up: str) -> None:
        self._take(draft, p, own.Stop())
        draft.node = draft.node.set(p, attrs.evolve(draft.node[p], target=0))
        draft.outside = draft.outside.set(p, Outside(up, NONE, draft.outside[p].session, frozenset()))
        draft.net = frozenset(m for m in draft.net if not (m.who == p and m.kind in ASKED))

    def _crash(self, state: State, p: str) -> Iterable[State]:
        budget = self._spend(state, "crash")
        if budget is None or not self._up(state, p):
            return ()
        draft = Draft(state, budget)
        self._ends(draft, p, "dead")
        return (draft.state(),)

    def _restart(self, state: State) -> Iterable[State]:
        if self.config.relation != "successor" or state.outside["b"].up != "no" or state.outside["a"].up != "dead":
            return ()
        return (attrs.evolve(state, outside=state.outside.set("b", Outside("yes", NONE, 1, frozenset()))),)

    def _reload(self, state: State) -> Iterable[State]:
        budget = self._spend(state, "reload")
        if budget is None or self.config.relation != "reload":
            return ()
        if state.outside["b"].up != "no" or not self._up(state, "a"):
            return ()
        draft = Draft(state, budget)
        draft.node = draft.node.set("b", attrs.evolve(draft.node["b"], target=state.node["a"].target))
        draft.outside = draft.outside.set("b", Outside("yes", NONE, 1, frozenset()))
        self._ends(draft, "a", "gone")
        return (draft.state(),)

    # -- properties ---------------------------------------------------------------------------------------------------

    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        return {
            "RouteIsCurrent_I1": lambda s: "strayed" not in s.harm,
            "RouteIsCurrent_I1_asked": lambda s: "acted" not in s.harm,
            "RouteIsCurrent_I9": self._fits,
            "RouteIsCurrent_V3_I10": lambda s: "cut" not in s.harm,
            "RouteIsCurrent_L14": lambda s: "echo" not in s.harm,
            "RouteIsCurrent_L0": lambda s: "taken" not in s.harm,
            "RouteIsCurrent_Silence": lambda s: "silenced" not in s.harm,
            "OneRoutePerProfile_I2": one_route,
            "LateIsInert_I4": lambda s: "removed" not in s.harm,
            "LateIsInert_I5": lambda s: "late" not in s.harm,
            "LateIsInert_I6": lambda s: "piled" not in s.harm,
            "LateIsInert_I12": lambda s: "two calls" not in s.harm,
            "RouteIsCurrent_Host": lambda s: "nobody home" not in s.harm,
            "LateIsInert_L25": lambda s: "dead session" not in s.harm,
            "LateIsInert_B19": lambda s: "ghost" not in s.harm,
        }

    def steps(self) -> Mapping[str, Callable[[State, State], bool]]:
        return {"RouteIsCurrent_I3": begun_under_its_epoch, "OneRoutePerProfile_L24": self._nobody_is_put_out}

    def eventually(self) -> Mapping[str, LeadsTo[State] | tuple[LeadsTo[State], ...]]:
        return {
            "EventuallyRegistered_V1": tuple(self._registered(p) for p in self.config.instances),
        }

    def fairness(self) -> tuple[Fair, ...]:
        weak = Strength.WEAK
        own_steps = ("Register", "HearAnswer", "Beat", "HearBeat", "HearGone", "Return")
        theirs = ("Refresh", "HearGoodbye", "Provisioned", "Delete", "Cleaned")
        return (
            Fair(weak, frozenset({("Succeed", ())})),
            *(Fair(weak, frozenset({("Close", (x,))})) for x in LEADERS),
            *(Fair(weak, frozenset({(name, (p,))})) for p in self.config.instances for name in own_steps),
            *(
                Fair(weak, frozenset({(name, (x, p))}))
                for p in self.config.instances
                for x in LEADERS
                for name in theirs
            ),
            *(Fair(weak, frozenset({("HearRegister", (x, p, False))})) for p in self.config.instances for x in LEADERS),
        )

    def _fits(self, s: State) -> bool:
        strangers = self.config.odd | self.config.outsiders
        routes = s.route.values()
        known = not any(e.who in strangers for r in routes for e in r.entries)
        known = known and not any(u.who in strangers for r in routes for u in r.mutations)
        return known and not any(
            n.phase == "registered" and s.outside[p].lead in self.config.odd for p, n in s.node.items()
        )

    def _nobody_is_put_out(self, before: State, after: State) -> bool:
        for x, route in after.route.items():
            gone = before.route[x].entries - route.entries
            for f in route.entries if gone else ():
                if current(before, x, f.who, f.gen):
                    continue
                if any(e.who != f.who and not self._gives_way(before, e, f.who) for e in gone):
                    return False
        return True

    def _gives_way(self, state: State, e: Entry, p: str) -> bool:
        return e.who == p or self.config.relation == "reload" or state.outside[e.who].up == "dead"

    def _registered(self, p: str) -> LeadsTo[State]:
        strangers = self.config.odd | self.config.outsiders

        def wants(s: State) -> bool:
            return s.outside[p].up == "yes" and p not in strangers and s.epoch not in strangers

        return LeadsTo(wants, lambda s: not wants(s) or (s.node[p].phase == "registered" and routed(s, p)))
