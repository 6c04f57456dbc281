"""The follower's half: `Follower` against `spec/FollowerSteps.tla`; leaders, channel and threads are the world's.

A registration asks whoever leads at that moment. What is asked again under a key of its own, since the profile is held,
is asked of the same leader: where that one is over by then the driver finds nobody, and to the twin, which asks whoever
leads, it does not begin. So there is no configuration in which a profile is held and its leader ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Final

import attrs

from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.verify.bind.binding import Participant
from tenure.adapters.verify.bind.controlled import ControlledPorts
from tenure.adapters.verify.bind.follower_desk import FollowerDesk
from tenure.adapters.verify.bind.follower_ports import Seen, Told
from tenure.adapters.verify.bind.learner import Program
from tenure.adapters.verify.bind.registration import RegistrationBinding
from tenure.adapters.verify.bind.replay import Replay
from tenure.models.follower_registration import FollowerRegistration
from tenure.models.follower_registration_state import ASKED, NONE, Call, Config, Outside, State, fresh, hopeless

PIDS: Final = {"a": 100, "b": 101}


class FollowerBinding(RegistrationBinding):
    """The followers of one configuration."""

    constants: ClassVar[tuple[type, ...]] = (FollowerDesk, FollowerRegistration, Config, Follower)
    ours: ClassVar[frozenset[str]] = frozenset(
        {"Register", "HearAnswer", "Beat", "HearBeat", "Disconnect", "HearGone", "Return", "Session", "Leave", "Ask"}
        | {"Host", "Deliver", "Crash", "Reload"}
    )

    def __init__(self, config: Config, off: Collection[str] = ()) -> None:
        super().__init__(config, off)
        self.participants = tuple(Participant(p, PIDS[p], self._program(p)) for p in config.instances)

    def _program(self, name: str) -> Program:
        config = self.config

        def program(controlled: ControlledPorts, replay: Replay) -> object:
            desk = FollowerDesk(config, name, controlled.ports())
            while not desk.stopped:
                what, *args = replay.ask("choose", desk.seen())
                desk.do(what, *args)
                del what, args
                while desk.steps:
                    replay.ask("told", *desk.steps, desk.seen())
                    desk.steps = desk.steps[1:]
            return None

        return program

    # -- the world ----------------------------------------------------------------------------------------------------

    def choices(self, name: str, seen: Any, state: State) -> Iterable[tuple[tuple[Any, ...], State, int]]:
        assert isinstance(seen, Seen)
        around, node, causes = state.outside[name], state.node[name], self.config.causes
        if around.up != "yes":
            return
        if not seen.begun:
            yield ("begin", node.target), state, 0
            return
        yield from self._heard(name, state)
        yield from self._delivered(name, state)
        if state.epoch != NONE and node.phase in ("idle", "registering"):
            yield ("register", state.epoch, fresh(state)), state, 0
        for call in sorted(around.calls, key=str):
            no_hope = hopeless(state, name, call)
            if no_hope or "late" in causes:
                yield ("return", call), _calls(state, name, around.calls - {call}), int(not no_hope)
        if seen.ticks and name in self.config.beating:
            yield ("tick",), state, 0
        if "goodbye" in causes:
            yield ("disconnect",), state, 1
        if "leave" in causes:
            yield ("leave",), state, 1
            for at in range(len(seen.verbs)):
                yield ("cancel", at), state, 1
        if "ask" in causes:
            yield ("ask",), state, 1
        for cause, session in (("session", 3 - around.session), ("host", int(around.session == 0))):
            if cause in causes:
                changed = Outside(around.up, around.lead, session, around.calls)
                yield ("session", session), attrs.evolve(state, outside=state.outside.set(name, changed)), 1
        if "crash" in causes:
            yield ("stop",), _ended(state, name, "dead"), 1
        if "reload" in causes and name == "a" and state.outside["b"].up == "no":
            after = _ended(state, name, "gone")
            carried = attrs.evolve(state.node["b"], target=node.target)
            up = Outside("yes", NONE, 1, frozenset())
            yield (
                ("stop",),
                attrs.evolve(after, node=after.node.set("b", carried), outside=after.outside.set("b", up)),
                1,
            )

    def _heard(self, name: str, state: State) -> Iterable[tuple[tuple[Any, ...], State, int]]:
        """Answers. One whose call is over finds its connection closed."""
        calls = state.outside[name].calls
        for m in sorted((m for m in state.net if m.kind in ASKED and m.who == name), key=str):
            call = Call(ASKED[m.kind], m.gen)
            heard = _calls(attrs.evolve(state, net=state.net - {m}), name, calls - {call})
            if call in calls:
                # What is registered next under a key of its own begins when this is over.
                free = attrs.evolve(heard.node[name], generation=0)
                yield ("answer", m, fresh(attrs.evolve(heard, node=heard.node.set(name, free)))), heard, 0
            else:
                yield ("nothing",), heard, 0

    def _delivered(self, name: str, state: State) -> Iterable[tuple[tuple[Any, ...], State, int]]:
        node = state.node[name]
        for m in sorted((m for m in state.net if m.kind in ("work", "moved")), key=str):
            astray = m.who != name
            if astray and "astray" not in self.config.causes:
                continue
            serves = state.outside[name].session != 0
            mine = not astray and node.phase == "registered" and m.gen == node.generation and serves
            yield ("deliver", m, mine), attrs.evolve(state, net=state.net - {m}), int(astray)

    def told(self, name: str, step: Any, state: State) -> State:
        assert isinstance(step, Told)
        around, net, lead = state.outside[name], state.net, state.outside[name].lead
        calls = around.calls - step.ended
        for m in step.posts:
            if m.kind == "register":
                lead = m.lead
            if m.kind != "ask":
                calls = calls | {Call(m.kind, m.gen)}
            if m.lead not in state.route or state.route[m.lead].phase == "serving":
                net = net | {m}
        if step.calls is not None:
            calls = step.calls
        return attrs.evolve(
            state,
            node=state.node.set(name, step.node),
            outside=state.outside.set(name, Outside(around.up, lead, around.session, calls)),
            net=net,
            harm=state.harm | step.harm,
        )


def _calls(state: State, name: str, calls: frozenset[Call]) -> State:
    around = state.outside[name]
    return attrs.evolve(state, outside=state.outside.set(name, Outside(around.up, around.lead, around.session, calls)))


def _ended(state: State, name: str, up: str) -> State:
    """A process that is over takes its calls along, and hears no answer."""
    gone = Outside(up, NONE, state.outside[name].session, frozenset())
    net = frozenset(m for m in state.net if not (m.who == name and m.kind in ASKED))
    return attrs.evolve(state, outside=state.outside.set(name, gone), net=net)
