"""The world of `FollowerRegistration` under the names of a trace: each action is told which registration it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Final

import attrs

from tenure.adapters.trace.registration_followers import Followers, Said
from tenure.adapters.trace.registry import LETS_GO, TAKES
from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.chart import Refused, Step
from tenure.machines.follower_messages import Binding
from tenure.models.follower_registration_state import (
    BOUND_MS,
    NONE,
    Change,
    Draft,
    Entry,
    Intent,
    Msg,
    State,
    Thread,
)

LEADING: Final = frozenset(
    {
        "Succeed", "HearRegister", "Provisioned", "ProvisionFails", "Refresh", "Perform", "Forward", "HearGoodbye",
        "Resume", "Bury", "Delete", "Cleaned", "CleanUpFails", "Prune", "Close",
    }
)  # fmt: skip
"""What a leader does."""


class World(Followers):
    """Followers, and leaders as the trace shows them."""

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
                    self.proven_same(p, said),
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
        same = self.proven_same(said.who, said)
        for u in self._change(state, x, "register", said):
            epochs = dict.fromkeys((*self._epochs(state, x, said), None))
            for epoch, dead in product(epochs, self._proofs(state)):
                message = lead.Provisioned(u.who, u.gen, Binding(said.target or None), epoch, 1, dead, same)
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
