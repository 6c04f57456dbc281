"""The world of `FollowerRegistration` under the names of a trace: each action is told which registration it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Final

import attrs

from tenure.adapters.trace.instance import BUDGET
from tenure.adapters.trace.registry import LETS_GO, TAKES
from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.chart import Refused, Step
from tenure.machines.follower_messages import Binding
from tenure.models.follower_registration import FollowerRegistration
from tenure.models.follower_registration_state import (
    BOUND_MS,
    NONE,
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
)
from tenure.models.world import FrozenMap

LEADING: Final = frozenset(
    {
        "Succeed", "HearRegister", "Provisioned", "ProvisionFails", "Refresh", "Perform", "Forward", "HearGoodbye",
        "Resume", "Bury", "Delete", "Cleaned", "CleanUpFails", "Prune", "Close",
    }
)  # fmt: skip
"""What a leader does."""
_FAILED: Final[Mapping[str, Callable[[int], own.Happening]]] = {
    "register": own.RegisterFailed,
    "beat": own.BeatFailed,
    "goodbye": own.DisconnectFailed,
}
_ASKS: Final[Mapping[str, str]] = {"HearAnswer": "registered", "HearBeat": "beaten", "HearGone": "gone"}
_CALLS: Final[Mapping[str, str]] = {"registered": "register", "beaten": "beat", "gone": "goodbye"}
_CLOSED: Final = Route("closed", frozenset(), frozenset())


@attrs.frozen(cache_hash=True)
class Said:
    """What an event says of the step. Generations and threads are the numbers of `World`."""

    gen: int
    who: str
    lead: str
    ok: bool
    held: bool
    compatible: bool
    call: str
    key: str
    word: str
    target: int
    session: int
    guards: frozenset[str]
    intents: frozenset[Intent]


class World(FollowerRegistration):
    """The twin; instances, leaders, generations and threads as the trace shows them."""

    def __init__(self, nodes: Mapping[str, str], watched: bool) -> None:
        """`nodes`: the process of each recorded instance. `watched`: who owns is recorded."""
        self.process = dict(nodes)
        self.watched = watched
        self.everybody = list(nodes)
        self.follows: set[str] = set()
        self.generations: dict[str, int] = {}
        self.threads: dict[str, int] = {}
        self.words: dict[tuple[str, int], str] = {}
        """Of each registration, what its leader took for the word of its process; that is believed."""
        self.speaks: dict[str, str] = {}
        """Whose word it is: no two processes have one."""
        each = frozenset(nodes)
        super().__init__(Config(tuple(nodes), "apart", frozenset(), BUDGET, beating=each))

    def meet(self, name: str) -> None:
        """Somebody who does not record."""
        if name not in self.everybody:
            self.everybody.append(name)

    def generation(self, said: object) -> int:
        """The number of a registration; 0 for none."""
        return 0 if said in (None, "") else self.generations.setdefault(str(said), len(self.generations) + 1)

    def thread(self, said: object) -> int:
        """The number of a thread; 0 for none."""
        return 0 if said is None else self.threads.setdefault(str(said), len(self.threads) + 1)

    def worded(self, who: str, gen: int, word: str) -> None:
        """A leader heard that from that registration."""
        self.words.setdefault((who, gen), word)
        if word:
            self.speaks.setdefault(word, self._process(who))

    def initial(self) -> Iterable[State]:
        each = self.everybody
        node = {p: Node("idle", 1, 0, False, False, 0, False, 0) for p in each}
        outside = {p: Outside("yes", NONE, 1, frozenset()) for p in each}
        yield State(
            FrozenMap(node), FrozenMap(outside), frozenset(), FrozenMap(dict.fromkeys(each, _CLOSED)), frozenset(),
            frozenset(), NONE, frozenset(), BUDGET,
        )  # fmt: skip

    def _process(self, p: str) -> str:
        return self.process.get(p, p)

    def _entry(self, e: Entry) -> lead.Entry:
        return attrs.evolve(super()._entry(e), process=self.words.get((e.who, e.gen), self._process(e.who)))

    def _mutation(self, u: Change, x: str) -> lead.Mutation:
        found = super()._mutation(u, x)
        return attrs.evolve(found, process=self.words.get((u.who, u.gen), found.process)) if found.process else found

    def bodies(self) -> Mapping[str, Callable[..., Iterable[State]]]:
        """All actions, by name."""
        return {
            "Register": self.registers, "HearAnswer": self.hears("HearAnswer"), "HearBeat": self.hears("HearBeat"),
            "HearGone": self.hears("HearGone"), "Return": self.returns, "Deliver": self.delivers,
            "Beat": lambda s, p, said: self.does(s, p, own.Tick()),
            "Disconnect": lambda s, p, said: self.does(s, p, own.Disconnect()),
            "Leave": lambda s, p, said: self.does(s, p, own.Leave()),
            "Session": lambda s, p, said: self.does(s, p, own.SessionChanged(said.session)),
            "Ask": lambda s, p, said: self.does(s, p, own.Ask(0)),
            "Succeed": self.succeeds, "Close": self.closes,
            "HearRegister": self.hears_register, "Provisioned": self.provisioned,
            "ProvisionFails": lambda s, x, said: self.routed(s, x, lead.ProvisionFailed(said.who, said.gen)),
            "Refresh": self.asked("beat"), "Perform": self.asked("ask"), "HearGoodbye": self.asked("goodbye"),
            "Forward": self.forwards, "Resume": self.reclaims, "Bury": self.reclaims, "Delete": self.deletes,
            "Cleaned": self.cleans,
            "CleanUpFails": lambda s, x, said: self.routed(s, x, lead.CleanUpFailed(said.who, said.gen)),
            "Prune": lambda s, x, said: self.routed(s, x, lead.Prune(said.who, BOUND_MS + 1)),
            TAKES: self.takes, LETS_GO: self.lets_go, "Die": self.dies, "Fall": self.falls_silent,
        }  # fmt: skip

    # -- a follower ---------------------------------------------------------------------------------------------------

    def does(self, state: State, p: str, message: own.Happening) -> Iterable[State]:
        """It takes `message`; what it sends is on its way."""
        draft = Draft(state)
        return (draft.state(),) if self._take(draft, p, message) else ()

    def registers(self, state: State, p: str, said: Said) -> Iterable[State]:
        """It asks a leader, perhaps before that one listens."""
        draft = Draft(state)
        draft.epoch = said.lead
        if not self._take(draft, p, own.Register(said.gen)):
            return
        draft.epoch = state.epoch
        node = draft.node[p]
        draft.net = draft.net | {Msg("register", p, said.gen, said.lead, node.session, node.own_key, node.target)}
        yield draft.state()

    def hears(self, action: str) -> Callable[..., Iterable[State]]:
        """An answer comes. One with ok its leader has given."""
        kind = _ASKS[action]

        def body(state: State, p: str, said: Said) -> Iterable[State]:
            for answer in self._to(state, p, kind, said):
                draft = Draft(state)
                if answer is not None:
                    draft.net = state.net - {answer}
                draft.calls(p, state.outside[p].calls - {Call(_CALLS[kind], said.gen)})
                if self._take(draft, p, _heard(action, said)):
                    yield draft.state()

        return body

    def _to(self, state: State, p: str, kind: str, said: Said) -> Iterable[Msg | None]:
        """The answers that this may be; None for one that nobody recorded."""
        for m in state.net:
            same = (m.kind, m.who, m.gen, m.ok) == (kind, p, said.gen, said.ok) and said.held in (m.held, False)
            if same and not (kind == "registered" and said.ok and m.target not in (0, said.target)):
                yield m
        if not said.ok or said.lead not in self.process:
            yield None

    def returns(self, state: State, p: str, said: Said) -> Iterable[State]:
        """A call comes to its end without an answer."""
        draft = Draft(state)
        draft.calls(p, state.outside[p].calls - {Call(said.call, said.gen)})
        if said.call in _FAILED and self._take(draft, p, _FAILED[said.call](said.gen)):
            yield draft.state()

    def delivers(self, state: State, p: str, said: Said) -> Iterable[State]:
        """It takes work, which its leader has sent to this registration."""
        found = [m for m in state.net if (m.kind, m.who, m.gen) == ("work", p, said.gen)]
        if not found and state.outside[p].lead in self.process:
            return
        draft = Draft(state)
        draft.net = state.net - frozenset(found)
        for message in (own.Deliver(p, said.gen, 0), own.ReplaceTarget(p, said.gen, said.target)):
            if self._take(draft, p, message):
                yield draft.state()
                if said.target == state.node[p].target:
                    return

    # -- a leader -----------------------------------------------------------------------------------------------------

    def routed(self, state: State, x: str, message: lead.Happening) -> Iterable[State]:
        """The leader's routes take `message`."""
        draft = Draft(state)
        return () if isinstance(self._hear(draft, x, message), Refused) else (draft.state(),)

    def succeeds(self, state: State, x: str, said: Said) -> Iterable[State]:
        """It opens, with the intents that it found."""
        draft = Draft(state)
        draft.intents = said.intents
        if not self.watched:
            draft.epoch = x
        elif state.epoch != x and _unaware(x) not in state.harm:
            return
        opened = lead.Open(x, tuple(lead.Intent(i.who, i.gen, i.key, i.target) for i in said.intents))
        if not isinstance(self._hear(draft, x, opened), Refused):
            yield draft.state()

    def closes(self, state: State, x: str, said: Said) -> Iterable[State]:
        """It serves no more."""
        for after in self.routed(state, x, lead.Close()):
            yield attrs.evolve(after, harm=after.harm - {_unaware(x)})

    def _epochs(self, state: State, x: str, said: Said) -> Iterable[str | None]:
        """Under which epoch the leader may take itself to be: that of now; or still its own, if it owned since it
        opened, and looked then."""
        if "leads_here" in said.guards:
            return (None,)
        now = None if state.epoch == NONE else state.epoch
        return (now, x) if _unaware(x) in state.harm else (now,)

    def _proofs(self, state: State) -> Iterable[frozenset[str]]:
        """Whose death the leader may have proof of: it has none of a process that it never saw alive."""
        return dict.fromkeys((self._dead(state), frozenset()))

    def _requests_of(self, state: State, x: str, kind: str, said: Said) -> Iterable[Msg | None]:
        if not self._serving(state, x):
            return
        for m in state.net:
            if (m.kind, m.who, m.gen, m.lead) == (kind, said.who, said.gen, x):
                yield m
        if said.who not in self.process:
            yield None

    def hears_register(self, state: State, x: str, said: Said) -> Iterable[State]:
        """A registration is asked for, and begun, refused, or has to wait."""
        p = said.who
        if self.speaks.get(said.word, self._process(p)) != self._process(p):
            return
        for m in self._requests_of(state, x, "register", said):
            for epoch, dead in product(self._epochs(state, x, said), self._proofs(state)):
                message = lead.Register(
                    p, said.gen or None, said.key, said.word, Binding(said.target or None), epoch,
                    "authenticated" not in said.guards, "compatible" not in said.guards, True, dead,
                )  # fmt: skip
                draft = Draft(state)
                done = self._hear(draft, x, message, 0 if m is None else m.session)
                if isinstance(done, Step) is not said.ok:
                    continue
                if isinstance(done, Refused):
                    if frozenset(done.guards) != said.guards:
                        continue
                    if "nobody_mutates_profile" in said.guards:
                        yield state
                        continue
                    draft.told(Msg("registered", p, said.gen, x, held="profile_not_held" in said.guards))
                if m is not None:
                    draft.net = draft.net - {m}
                yield draft.state()

    def _change(self, state: State, x: str, kind: str, said: Said) -> Iterable[Change]:
        return (u for u in self._changes(state, x, said.who, kind) if u.gen == said.gen)

    def provisioned(self, state: State, x: str, said: Said) -> Iterable[State]:
        """A thread is there: the route is written, or the registration is refused at its end. What somebody writes
        who does not know yet that another owns is not acknowledged."""
        for u in self._change(state, x, "register", said):
            epochs = dict.fromkeys((*self._epochs(state, x, said), None))
            for epoch, dead in product(epochs, self._proofs(state)):
                message = lead.Provisioned(u.who, u.gen, Binding(said.target or None), epoch, 1, dead)
                draft = Draft(state)
                done = self._hear(draft, x, message)
                if isinstance(done, Refused):
                    continue
                if any(isinstance(output, lead.Acknowledge) for output in done.outputs):
                    others = frozenset(t for t in state.threads if t.target != said.target)
                    draft.threads = others | {Thread(said.target, u.who, u.gen, u.key)}
                if epoch != state.epoch:
                    draft.net = draft.net - {m for m in draft.net - state.net if m.ok}
                yield draft.state()

    def asked(self, kind: str) -> Callable[..., Iterable[State]]:
        """A request of a registration that stands, or does not."""
        answer = {"beat": "beaten", "goodbye": "gone"}.get(kind)

        def body(state: State, x: str, said: Said) -> Iterable[State]:
            p, gen = said.who, said.gen or None
            for m in self._requests_of(state, x, kind, said):
                for epoch in self._epochs(state, x, said) if kind == "goodbye" else (_claimed(x, said),):
                    message: lead.Happening = (
                        lead.Heartbeat(p, gen, epoch, 1)
                        if kind == "beat"
                        else lead.Ask(p, gen, epoch, 1, 0)
                        if kind == "ask"
                        else lead.Disconnect(p, gen, epoch)
                    )
                    draft = Draft(state)
                    done = self._hear(draft, x, message)
                    if isinstance(done, Step) is not said.ok:
                        continue
                    if isinstance(done, Refused):
                        if "nobody_mutates_profile" in done.guards:
                            yield state
                            continue
                        if answer is not None:
                            draft.told(Msg(answer, p, said.gen, x))
                    if m is not None:
                        draft.net = draft.net - {m}
                    yield draft.state()

        return body

    def forwards(self, state: State, x: str, said: Said) -> Iterable[State]:
        """It sends work to a registration that stands."""
        draft = Draft(state)
        message = lead.Forward(said.who, said.gen or None, x, 1, 0)
        if not isinstance(self._hear(draft, x, message), Refused):
            draft.net = draft.net | {Msg("work", said.who, said.gen, x)}
            yield draft.state()

    def reclaims(self, state: State, x: str, said: Said) -> Iterable[State]:
        """What is left of a registration that is over is to be deleted, or is forgotten."""
        intent = Intent(said.who, said.gen, said.key, said.target)
        return self._reclaim(state, x, intent, state.budget)

    def deletes(self, state: State, x: str, said: Said) -> Iterable[State]:
        """The thread is gone. Only the owner deletes."""
        return self._delete(state, x, said.who)

    def cleans(self, state: State, x: str, said: Said) -> Iterable[State]:
        """What the leader makes of it, as far as it knows that it leads."""
        for u in self._change(state, x, "clean_up", said):
            for epoch in dict.fromkeys((*self._epochs(state, x, said), None)):
                for after in self.routed(state, x, lead.Cleaned(u.who, u.gen, epoch)):
                    told = frozenset(m for m in after.net - state.net if m.ok and epoch != state.epoch)
                    yield attrs.evolve(after, net=after.net - told)

    # -- the world ----------------------------------------------------------------------------------------------------

    def takes(self, state: State, x: str) -> Iterable[State]:
        """It owns the lease, and who did may not know it yet."""
        yield attrs.evolve(state, epoch=x, harm=state.harm | {_unaware(state.epoch)})

    def lets_go(self, state: State, x: str) -> Iterable[State]:
        """Nobody does."""
        if state.epoch == x:
            yield attrs.evolve(state, epoch=NONE, harm=state.harm | {_unaware(x)})

    def dies(self, state: State, p: str) -> Iterable[State]:
        """Its process is gone."""
        around = state.outside[p]
        yield attrs.evolve(state, outside=state.outside.set(p, attrs.evolve(around, up="dead")))

    def falls_silent(self, state: State, x: str, p: str) -> Iterable[State]:
        """Nothing was heard of that route for longer than the bound."""
        route = state.route[x]
        for e in route.entries:
            if e.who == p and not e.silent:
                entries: frozenset[Entry] = (route.entries - {e}) | {attrs.evolve(e, heard=0, silent=True)}
                yield attrs.evolve(state, route=state.route.set(x, attrs.evolve(route, entries=entries)))


def _unaware(x: str) -> str:
    return f"{x} has not looked since"


def _claimed(x: str, said: Said) -> str | None:
    """What a leader believes of itself without a file; believed."""
    return None if "leads_here" in said.guards else x


def _heard(action: str, said: Said) -> own.Happening:
    if action == "HearAnswer":
        bound = Binding(said.target or None) if said.ok else own.NOTHING_BOUND
        return own.Answered(said.gen, said.compatible, said.ok, said.held, bound)
    return own.BeatAnswered(said.gen, said.ok) if action == "HearBeat" else own.DisconnectAnswered(said.gen, said.ok)
