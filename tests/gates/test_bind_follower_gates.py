"""Mutated drivers of the fleet turn the stage `bind` red, with a story that ends where the twin cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tenure.adapters.bus.messages.envelopes import Ack
from tenure.adapters.bus.serving.ledger import Done
from tenure.adapters.fleet.follower import deliveries, steps
from tenure.adapters.fleet.follower import follower as verbs
from tenure.adapters.fleet.follower.follower import Follower
from tenure.adapters.fleet.leader import requests, routing, routing_steps
from tenure.adapters.fleet.leader.book import Book
from tenure.adapters.fleet.leader.routing import Routing
from tenure.adapters.fleet.threads.projection import Snapshot
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.follower_registration import BOUND
from tenure.adapters.verify.bind.situations import Limits
from tenure.machines import follower_messages as own
from tenure.machines import routes_messages as lead
from tenure.machines.chart import Refused
from tenure.machines.follower import FOLLOWER
from tenure.machines.routes import ROUTES

Patch = pytest.MonkeyPatch
LIMITS = Limits(20_000, 60)


def _without(name: str) -> Callable[[Patch], None]:
    """The follower's machine has not this guard or permit; the twin's has."""

    def mutate(patch: Patch) -> None:
        weak = FOLLOWER.without(name)
        patch.setattr(steps, "FOLLOWER", weak)
        patch.setattr(deliveries, "FOLLOWER", weak)

    return mutate


def _keeps_calls(patch: Patch) -> None:
    """What is given up is waited for all the same."""
    patch.setattr(Follower, "_end_calls", lambda self, generation: None)


def _abandons_in_silence(patch: Patch) -> None:
    """The machine is not told that a call that was given up is over."""
    original = Follower._perform

    def perform(self: Follower, output: own.Output) -> None:
        if isinstance(output, own.Abandon):
            self._end_calls(output.generation)
        else:
            original(self, output)

    patch.setattr(Follower, "_perform", perform)


def _skips(output: type) -> Callable[[Patch], None]:
    """What the machine asks for is not done."""

    def mutate(patch: Patch) -> None:
        original = Follower._perform

        def perform(self: Follower, asked: own.Output) -> None:
            if not isinstance(asked, output):
                original(self, asked)

        patch.setattr(Follower, "_perform", perform)

    return mutate


def _says(**more: Any) -> Callable[[Patch], None]:
    """A registration that says something else of its follower."""

    def mutate(patch: Patch) -> None:
        original = Follower._registration
        patch.setattr(Follower, "_registration", lambda self, *args: attrs.evolve(original(self, *args), **more))

    return mutate


def _mints_anew(patch: Patch) -> None:
    """The request of a registration has another name than its generation."""
    original = verbs.acknowledged

    async def acknowledged(client: Any, path: str, request: Any, **more: Any) -> Any:
        named = attrs.evolve(request, request_id="another") if isinstance(request, verbs.Register) else request
        return await original(client, path, named, **more)

    patch.setattr(verbs, "acknowledged", acknowledged)


def _gives_up_once_held(patch: Patch) -> None:
    """A profile that is held is not asked for under a key of its own."""

    async def register(self: Follower, owner: Any, binding: Any, *, previous: Any = None) -> Any:
        return await self._attempt(owner, binding, previous)

    patch.setattr(Follower, "register", register)


def _answers_at_once(patch: Patch) -> None:
    """Registered, before the leader has heard of it."""

    async def first_beat(self: Follower, generation: Any) -> Any:
        self._answered_for = generation
        return verbs.Accepted(generation, attrs.evolve(self.data.binding, target="0/9"))

    patch.setattr(Follower, "_first_beat", first_beat)


def _takes_all_work(patch: Patch) -> None:
    """Work is taken without asking the machine."""
    original = deliveries.step

    def step(table: Any, phase: str, data: Any, message: Any) -> Any:
        if isinstance(message, own.Deliver):
            message = attrs.evolve(message, instance=data.instance, generation=data.generation)
        return original(table, phase, data, message)

    patch.setattr(deliveries, "step", step)


def _takes_no_work(patch: Patch) -> None:
    """Work for the registration that stands is refused."""

    async def take(self: Follower, request: Any, peer: Any) -> Any:
        return deliveries._refused(Ack(request_id=request.request_id, ok=False))

    patch.setattr(Follower, "_take", take)


def _forgets_the_thread(patch: Patch) -> None:
    """A registration carries nothing."""
    original = Follower._asked
    patch.setattr(Follower, "_asked", lambda self, link, b, p: original(self, link, own.NOTHING_BOUND, p))


def _tells_no_loss(patch: Patch) -> None:
    """Who had a registration is not told that it is over."""
    original = Follower._call_back
    patch.setattr(
        Follower, "_call_back", lambda self, what, call: None if what == "lost" else original(self, what, call)
    )


def _says_goodbye_of_another(patch: Patch) -> None:
    """A goodbye that names no registration."""
    original = Follower._say_goodbye
    patch.setattr(Follower, "_say_goodbye", lambda self, link: original(self, attrs.evolve(link, generation="7")))


def _asks_for_another(patch: Patch) -> None:
    """An ask under a registration of its own making."""
    original = Follower.ask
    patch.setattr(Follower, "ask", lambda self, build, **more: original(self, lambda generation: build("7"), **more))


def _says_gone(patch: Patch) -> None:
    """A goodbye that is refused, or has no answer, counts as confirmed."""
    original = Follower.disconnect

    async def disconnect(self: Follower) -> Any:
        answer = await original(self)
        await asyncio.sleep(0)
        return answer if answer == "there is no registration to end" else True

    patch.setattr(Follower, "disconnect", disconnect)


def _hangs_on(patch: Patch) -> None:
    """A stop ends nothing."""

    async def stop(self: Follower) -> None:
        await self._receiver.stop()

    patch.setattr(Follower, "stop", stop)


def _ignores(verb: str) -> Callable[[Patch], None]:
    """A verb that does nothing."""
    return lambda patch: patch.setattr(Follower, verb, lambda self, *args: None)


def _ignores_cancellation(patch: Patch) -> None:
    """An attempt that is cancelled is not given up."""
    original = Follower._attempt

    async def attempt(self: Follower, *args: Any) -> Any:
        return await asyncio.shield(asyncio.ensure_future(original(self, *args)))

    patch.setattr(Follower, "_attempt", attempt)


def _offers_not(kind: type) -> Callable[[Patch], None]:
    """The machine is never told that."""

    def mutate(patch: Patch) -> None:
        original = Follower._offer

        def offer(self: Follower, message: Any, link: Any = None) -> Any:
            return Refused("x", "x", ()) if isinstance(message, kind) else original(self, message, link)

        patch.setattr(Follower, "_offer", offer)

    return mutate


# An answer that is late has no connection that it could come through, so that `answer_is_mine` and its like are a
# second line of defence here; that they matter is what the red twins show.
FOLLOWERS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "takes two registrations at a time": (_abandons_in_silence, "ends"),
    "keeps calls that it gave up": (_keeps_calls, "ends"),
    "keeps calls beyond a goodbye": (_keeps_calls, "stops"),
    "does not beat": (_skips(own.SendHeartbeat), "channel"),
    "tells no loss": (_tells_no_loss, "channel"),
    "works with whom it does not understand": (_without("leader_compatible"), "foreign"),
    "is registered by a refusal": (_without("accepted"), "strangers"),
    "piles up heartbeats": (_without("one_beat_at_a_time"), "channel"),
    "is registered when a heartbeat is refused": (_without("beat_accepted"), "channel"),
    "is gone when nobody confirmed it": (_without("goodbye_confirmed"), "channel"),
    "registers a session that is over": (_without("session_ends_registration"), "asks"),
    "takes what another registration was sent": (_without("route_is_mine"), "asks"),
    "takes work that nobody is there to do": (_without("host_serves"), "host"),
    "has no key of its own": (_without("own_key_when_held"), "shell"),
    "does not use its own key": (_gives_up_once_held, "shell"),
    "asks for its shell's key again": (_says(profile_key="manual:1:start:1"), "shell"),
    "names another generation": (_says(registration_generation="7"), "ends"),
    "names another session": (_says(session_generation=9), "ends"),
    "mints a request anew": (_mints_anew, "ends"),
    "is registered before it is heard": (_answers_at_once, "ends"),
    "takes all work": (_takes_all_work, "asks"),
    "takes no work": (_takes_no_work, "asks"),
    "forgets its thread": (_forgets_the_thread, "channel"),
    "says goodbye of another registration": (_says_goodbye_of_another, "channel"),
    "asks as another registration": (_asks_for_another, "asks"),
    "says that it is gone": (_says_gone, "channel"),
    "stays when it is to leave": (_ignores("leave"), "goodbyes"),
    "keeps a registration that nobody waits for": (_ignores_cancellation, "goodbyes"),
    "keeps a goodbye that nobody waits for": (_offers_not(own.DisconnectFailed), "goodbyes"),
    "does not hear of sessions": (_ignores("set_session"), "goodbyes"),
    "does not tick": (_offers_not(own.Tick), "channel"),
    "does not say goodbye": (_offers_not(own.Disconnect), "channel"),
    "does not register": (_offers_not(own.Register), "channel"),
    "does not stop": (_hangs_on, "reload"),
}


def _routes_without(*names: str) -> Callable[[Patch], None]:
    """The leader's machine has not these guards; the twin's has."""

    def mutate(patch: Patch) -> None:
        patch.setattr(routing_steps, "ROUTES", ROUTES.without(*names))

    return mutate


def _leads_always(patch: Patch) -> None:
    """Whether this process leads yet is not asked."""

    async def owned(self: Routing) -> Any:
        return self.data.epoch

    patch.setattr(Routing, "_owned", owned)


def _owns_for_ever(patch: Patch) -> None:
    """The transaction is not waited for."""

    async def owned(self: Book) -> Any:
        return self._epoch

    patch.setattr(Book, "owned", owned)


def _publishes_nothing(patch: Patch) -> None:
    """A thread is deleted, and a registration acknowledged, before anything of it is on the disk."""

    async def published(self: Routing) -> None:
        return

    patch.setattr(Routing, "_published", published)


def _routes_are_offered(change: Callable[[Routing, Any], Any]) -> Callable[[Patch], None]:
    """What the machine is told is another thing; nothing, where that is None."""

    def mutate(patch: Patch) -> None:
        original = Routing.offer

        def offer(self: Routing, message: Any, **more: Any) -> Any:
            changed = change(self, message)
            return Refused("x", "x", ()) if changed is None else original(self, changed, **more)

        patch.setattr(Routing, "offer", offer)

    return mutate


def _not_told(kind: type) -> Callable[[Patch], None]:
    return _routes_are_offered(lambda self, message: None if isinstance(message, kind) else message)


def _as_it_stands(*kinds: type) -> Callable[[Patch], None]:
    """A request acts for the registration that stands, whichever it names."""

    def change(self: Routing, message: Any) -> Any:
        entry = self.data.entry(message.instance) if isinstance(message, kinds) else None
        return message if entry is None else attrs.evolve(message, generation=entry.generation)

    return _routes_are_offered(change)


def _stamps(now: int) -> Callable[[Patch], None]:
    """A registration, once written, is as old as its request."""

    def change(self: Routing, message: Any) -> Any:
        return attrs.evolve(message, now=now) if isinstance(message, lead.Provisioned) else message

    return _routes_are_offered(change)


def _believes(dead: frozenset[str]) -> Callable[[Patch], None]:
    """Whose processes are dead is not looked at."""

    async def found(self: Routing, instance: str, key: str, place: Any) -> frozenset[str]:
        return dead

    return lambda patch: patch.setattr(Routing, "_dead", found)


def _repeats_always(patch: Patch) -> None:
    """A registration that was acknowledged once is acknowledged again, whatever became of it."""

    def stands(self: Routing, instance: str, request_id: str) -> bool:
        return True

    patch.setattr(Routing, "stands", stands)


def _knows_no_holder(patch: Patch) -> None:
    """Who has a thread now is not looked at before it is deleted."""
    patch.setattr(Routing, "_holder", lambda self, intent: None)


def _forgets_intents(patch: Patch) -> None:
    """A leader begins without the intents of the one before."""
    original = Routing.open
    patch.setattr(Routing, "open", lambda self, epoch, snapshot: original(self, epoch, Snapshot()))


def _says_nobody_holds(patch: Patch) -> None:
    """Who is refused since another process lives is not told that."""
    patch.setattr(requests, "_words", lambda answer: "refused")


def _confirms_all(patch: Patch) -> None:
    """A goodbye is confirmed though the thread may be there."""
    original = requests.Requests._disconnect

    async def disconnect(self: Any, *args: Any) -> Any:
        done = await original(self, *args)
        return attrs.evolve(done, ack=attrs.evolve(done.ack, ok=True))

    patch.setattr(requests.Requests, "_disconnect", disconnect)


def _accepts_all(patch: Patch) -> None:
    """A registration is acknowledged whatever came of it."""
    original = requests.Requests._register

    async def register(self: Any, *args: Any) -> Any:
        done = await original(self, *args)
        return attrs.evolve(done, ack=attrs.evolve(done.ack, ok=True, result=None))

    patch.setattr(requests.Requests, "_register", register)


def _asks_unasked(patch: Patch) -> None:
    """What is asked for is done without a look at who asks."""

    async def ask(self: Any, request: Any, peer: Any) -> Any:
        self._routing.ask(request.instance_id, request.registration_generation)
        return Done(await self._serve(request, None), "done")

    patch.setattr(requests.Requests, "_ask", ask)


def _cleans_at_once(patch: Patch) -> None:
    """The route goes before its thread does."""
    original = Routing._clean_up

    async def clean_up(self: Routing, asked: Any) -> Any:
        epoch = await self._owned()
        self.offer(lead.Cleaned(asked.intent.instance, asked.intent.generation, epoch))
        return await original(self, asked)

    patch.setattr(Routing, "_clean_up", clean_up)


def _carries_nothing(patch: Patch) -> None:
    """Provisioning is not told which thread the follower has."""
    original = routing._request
    patch.setattr(routing, "_request", lambda *args: attrs.evolve(original(*args), target=None))


LEADERS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "provisions for whom it does not understand": (_routes_without("compatible"), "strangers"),
    "serves requests without a generation": (_routes_without("generation_named"), "asks"),
    "serves old registrations": (_routes_without("generation_is_current"), "channel"),
    "acts though it does not lead": (_routes_without("leads_here"), "deposed"),
    "changes a profile twice at a time": (_routes_without("nobody_mutates_profile"), "intents"),
    "evicts the living": (_routes_without("profile_not_held"), "shell"),
    "promises a thread that is held": (_routes_without("target_may_be_kept"), "claim"),
    "gives a thread that is held": (_routes_without("target_not_held"), "claim"),
    "writes under another epoch": (_routes_without("epoch_still_held"), "deposed"),
    "keeps a route that was displaced": (_routes_without("replaces_nobody"), "reload"),
    "deletes the thread of another instance": (_routes_without("no_other_instance_holds"), "reload"),
    "deletes the thread of another registration": (_routes_without("no_other_generation_holds"), "intents"),
    "deletes for silence": (_routes_without("death_is_proven"), "successor"),
    "ends a registration by an old goodbye": (_routes_without("clean_up_is_current"), "deposed"),
    "cuts off who beats": (_routes_without("silent_too_long"), "channel"),
    "does not ask whether it leads": (_leads_always, "deposed"),
    "believes what it once knew": (_owns_for_ever, "deposed"),
    "writes no intent": (_publishes_nothing, "intents"),
    "keeps a change that has failed": (_not_told(lead.ProvisionFailed), "intents"),
    "keeps a clean-up that has failed": (_not_told(lead.CleanUpFailed), "intents"),
    "serves on when it is deposed": (_not_told(lead.Close), "deposed"),
    "prunes nobody": (_not_told(lead.Prune), "asks"),
    "hears any heartbeat": (_as_it_stands(lead.Heartbeat), "channel"),
    "hears any goodbye": (_as_it_stands(lead.Disconnect), "intents"),
    "sends work to whoever is there": (_as_it_stands(lead.Forward), "shell"),
    "stamps a route when it was asked for": (_stamps(0), "channel"),
    "sees no death": (_believes(frozenset()), "successor"),
    "sees death everywhere": (_believes(frozenset({"a", "b"})), "shell"),
    "repeats whatever it said": (_repeats_always, "channel"),
    "knows no holder": (_knows_no_holder, "intents"),
    "forgets the intents": (_forgets_intents, "deposed"),
    "does not say that a profile is held": (_says_nobody_holds, "shell"),
    "confirms every goodbye": (_confirms_all, "intents"),
    "accepts everybody": (_accepts_all, "intents"),
    "does what nobody may ask": (_asks_unasked, "asks"),
    "forgets the route first": (_cleans_at_once, "intents"),
    "carries no thread": (_carries_nothing, "claim"),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_follower_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `FollowerSteps` does not have, or tells somebody what is not so."""
    mutate, config = FOLLOWERS[name]
    mutate(monkeypatch)

    found = explore(BOUND[f"follower-{config}"].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


@pytest.mark.parametrize("name", LEADERS)
def test_a_leader_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `LeaderRoutes` does not have, or not durable, or for nobody."""
    mutate, config = LEADERS[name]
    mutate(monkeypatch)

    found = explore(BOUND[f"leader-{config}"].binding(), LIMITS)

    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"


SMALL = [name for name, bound in BOUND.items() if not bound.thorough and bound.least < 5_000]


@pytest.mark.parametrize("config", SMALL)
def test_the_drivers_as_they_are_are_green(config: str) -> None:
    """The same without a mutation, with as many situations as the stage asks for."""
    found = explore(BOUND[config].binding(), LIMITS)

    assert ((), "") == (found.story, found.limit)
    assert BOUND[config].least <= found.situations
