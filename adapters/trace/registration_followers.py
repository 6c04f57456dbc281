"""The followers of `FollowerRegistration` under the names of a trace: what each asks for, hears and takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from tenure.adapters.trace.instance import BUDGET
from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.follower_messages import Binding
from tenure.models.follower_registration import FollowerRegistration
from tenure.models.follower_registration_state import (
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
)
from tenure.models.world import FrozenMap

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
    """What an event says of the step. Generations and threads are the numbers of `Followers`."""

    gen: int
    who: str
    lead: str
    ok: bool
    held: bool
    compatible: bool
    call: str
    key: str
    word: str
    same: frozenset[str]
    target: int
    session: int
    guards: frozenset[str]
    intents: frozenset[Intent]


class Followers(FollowerRegistration):
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

    def worded(self, who: str, gen: int, word: str, begun: bool) -> None:
        """A leader heard that from that registration; what it heard when it began it, its route has."""
        if begun:
            self.words[who, gen] = word
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
        # An instance that does not record is of the process whose pid it names.
        return self.process.get(p) or p.partition(":")[0]

    def proven_same(self, p: str, said: Said) -> frozenset[str]:
        """The instances that a leader took for the same process: they are."""
        return frozenset(other for other in said.same if self._process(other) == self._process(p))

    def _entry(self, e: Entry) -> lead.Entry:
        return attrs.evolve(super()._entry(e), process=self.words.get((e.who, e.gen), self._process(e.who)))

    def _mutation(self, u: Change, x: str) -> lead.Mutation:
        found = super()._mutation(u, x)
        return attrs.evolve(found, process=self.words.get((u.who, u.gen), found.process)) if found.process else found

    # -- a follower ---------------------------------------------------------------------------------------------------

    def does(self, state: State, p: str, message: own.Happening) -> Iterable[State]:
        """It takes `message`; what it sends is on its way."""
        draft = Draft(state)
        return (draft.state(),) if self._take(draft, p, message) else ()

    def registers(self, state: State, p: str, said: Said) -> Iterable[State]:
        """It asks a leader, perhaps before that one listens. What thread it carries is believed."""
        draft = Draft(state)
        draft.epoch = said.lead
        if not self._take(draft, p, own.Register(said.gen, Binding(said.target or None))):
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


def _heard(action: str, said: Said) -> own.Happening:
    if action == "HearAnswer":
        bound = Binding(said.target or None) if said.ok else own.NOTHING_BOUND
        return own.Answered(said.gen, said.compatible, said.ok, said.held, bound)
    return own.BeatAnswered(said.gen, said.ok) if action == "HearBeat" else own.DisconnectAnswered(said.gen, said.ok)
