"""The leader's registry of live routes: one for each member, changed in one order for each profile (bus.md b).

The leader's half of `spec/FollowerRegistration.tla` (I1-I4, I9, I10); `tenure.machines.follower` is the other one. A
route is written after its provisioning, under the epoch that began it; a thread is deleted for a goodbye or a proven
death, never for silence, and never under a registration that holds it now.

* An output that is a *call* (`Provision`, `CleanUp`) is answered once, with the instance and generation that it named.
* A `Refused` is a negative acknowledgement; its guards say why. But what is refused by `nobody_mutates_profile` alone
  waits: the adapter offers it again when a change of that profile has ended.
* Outputs are performed in their order: an intent is on disk before the clean-up begins.
"""

from __future__ import annotations

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.laws import Law, guard
from tenure.machines.routes_messages import (
    Acknowledge,
    Ask,
    Cleaned,
    CleanUpFailed,
    Close,
    Disconnect,
    Forward,
    Gone,
    Happening,
    Heartbeat,
    Intent,
    Open,
    Output,
    Perform,
    Provisioned,
    ProvisionFailed,
    Prune,
    Reclaim,
    Register,
    Replay,
    Routes,
    Send,
)
from tenure.machines.routes_rules import (
    Effect,
    begun,
    clean_up,
    displaced,
    end_mutation,
    heard,
    in_the_way,
    intent_of,
    profile_is_free,
    rejected,
    roster,
    target_is_free,
    under_way,
    without_intent,
    without_mutation,
    written,
)


class RoutesChart(StateMachine):
    """Closed, or serving under one epoch."""

    closed = State(initial=True)
    serving = State()

    open = closed.to(serving, on="serve")
    close = serving.to(closed, on="end")

    register = (
        serving.to(
            serving,
            cond=["authenticated", "compatible", "generation_named", "leads_here", "nobody_mutates_profile",
                  "profile_not_held", "target_may_be_kept"],
            on="provision",
        )
        | serving.to(
            serving,
            cond=["authenticated", "compatible", "generation_named", "leads_here", "nobody_mutates_profile",
                  "profile_not_held"],
            on="provision_anew",
        )
    )  # fmt: skip
    provisioned = (
        serving.to(
            serving, cond=["epoch_still_held", "profile_not_held", "target_not_held", "replaces_nobody"], on="write"
        )
        | serving.to(serving, cond=["epoch_still_held", "profile_not_held", "target_not_held"], on="replace")
        | serving.to(serving, on="give_up")
    )
    provision_failed = serving.to(serving, on="fail")
    replay = serving.to(serving, cond=["still_stands"])

    heartbeat = serving.to(serving, cond=["leads_here", "generation_named", "generation_is_current"], on="refresh")
    ask = serving.to(serving, cond=["leads_here", "generation_named", "generation_is_current"], on="perform")
    forward = serving.to(serving, cond=["leads_here", "generation_named", "generation_is_current"], on="send_on")

    disconnect = serving.to(
        serving,
        cond=["leads_here", "generation_named", "generation_is_current", "nobody_mutates_profile"],
        on="say_goodbye",
    )
    reclaim = (
        serving.to(
            serving,
            cond=["leads_here", "nobody_mutates_profile", "no_other_instance_holds", "no_other_generation_holds",
                  "death_is_proven"],
            on="reclaim_thread",
        )
        | serving.to(serving, cond=["leads_here", "nobody_mutates_profile"], on="forget_intent")
    )  # fmt: skip
    cleaned = (
        serving.to(serving, cond=["clean_up_is_current"], on="remove")
        | serving.to(serving, on="keep")
    )  # fmt: skip
    clean_up_failed = serving.to(serving, on="keep")
    prune = serving.to(serving, cond=["silent_too_long"], on="drop")

    # -- guards -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.PROOF)
    def authenticated(data: Routes, message: Register) -> bool:
        """Proof: a member knows the leader's secret. Without it anybody who reaches the socket gets work."""
        return message.authenticated

    @staticmethod
    @guard(Law.PROOF)
    def compatible(data: Routes, message: Register) -> bool:
        """Proof: nothing is provisioned for a peer that cannot do its part. Without it a thread is made for one that
        is then refused, or loses work (I9)."""
        return message.compatible

    @staticmethod
    @guard(Law.FENCE)
    def generation_named(data: Routes, message: Register | Heartbeat | Ask | Forward | Disconnect) -> bool:
        """Fence: a request names its registration. Without it one that names none passes for the current one (M1b,
        B10)."""
        return message.generation is not None

    @staticmethod
    @guard(Law.FENCE)
    def leads_here(data: Routes, message: Register | Heartbeat | Ask | Forward | Disconnect | Reclaim) -> bool:
        """Fence: only the leader of this moment changes anything. Without it a deposed one makes and deletes threads
        beside its successor (I3)."""
        return message.epoch is not None and message.epoch == data.epoch

    @staticmethod
    @guard(Law.FENCE)
    def nobody_mutates_profile(data: Routes, message: Register | Disconnect | Reclaim) -> bool:
        """Fence: one change of a profile at a time, whatever instance asks, and none of a thread that is deleted.
        Without it an old goodbye deletes the thread that the replacement was just given (I4, M4a; an order by instance
        is none: M4b)."""
        return not in_the_way(data, message)

    @staticmethod
    @guard(Law.PROOF)
    def profile_not_held(data: Routes, message: Register | Provisioned) -> bool:
        """Proof: a route gives way to the same process, or when its own is proven dead. Without it two live processes
        of one shell evict each other for ever (L24)."""
        return profile_is_free(data, message)

    @staticmethod
    @guard(Law.PROOF)
    def target_may_be_kept(data: Routes, message: Register) -> bool:
        """Proof: a thread that a live process holds is nobody else's to carry. Without it one who names it waits for
        a provisioning that is refused at its end, again and again (L16)."""
        return target_is_free(data, message)

    @staticmethod
    @guard(Law.FENCE)
    def target_not_held(data: Routes, message: Provisioned) -> bool:
        """Fence: whether a thread is free is asked when the route is written. Without it two who were promised the
        same one take it from each other (I2, L16)."""
        return target_is_free(data, message)

    @staticmethod
    @guard(Law.FENCE)
    def epoch_still_held(data: Routes, message: Provisioned) -> bool:
        """Fence: a route is written under the epoch that began it. Without it a deposed leader acknowledges a follower
        that its successor does not know (I3, B17)."""
        asked = under_way(data, "register", message.instance, message.generation)
        return asked is not None and message.epoch == asked.epoch

    @staticmethod
    @guard(Law.FENCE)
    def replaces_nobody(data: Routes, message: Provisioned) -> bool:
        """Fence: a member has one route, a thread has one holder. Without it the replaced instance stays routable
        beside its successor (I2, B26)."""
        return not displaced(data, message)

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def still_stands(data: Routes, message: Replay) -> bool:
        """Late is nothing: an acknowledgement is repeated while what it says is true. Without it a follower that was
        pruned is told that it is registered (L14)."""
        entry = data.entry(message.instance)
        return entry is not None and entry.generation == message.generation

    @staticmethod
    @guard(Law.FENCE)
    def generation_is_current(data: Routes, message: Heartbeat | Ask | Forward | Disconnect) -> bool:
        """Fence: a request acts under the registration that stands. Without it a replaced follower goes on acting
        (I1, M1a, B08)."""
        entry = data.entry(message.instance)
        return entry is not None and message.generation in (None, entry.generation)

    @staticmethod
    @guard(Law.FENCE)
    def no_other_instance_holds(data: Routes, message: Reclaim) -> bool:
        """Fence: a thread that another instance has by now is not deleted. Without it an old intent deletes the
        thread of the replacement."""
        return message.held_by in (None, message.intent.instance)

    @staticmethod
    @guard(Law.FENCE)
    def no_other_generation_holds(data: Routes, message: Reclaim) -> bool:
        """Fence: nor one that the same instance has under another registration. Without it an old intent deletes the
        thread of an instance that came back (L0)."""
        same = message.held_by is None or message.held_by == message.intent.instance
        return not same or message.held_as in (None, message.intent.generation)

    @staticmethod
    @guard(Law.PROOF)
    def death_is_proven(data: Routes, message: Reclaim) -> bool:
        """Proof: a thread is deleted for a goodbye or a proven death. Without it silence deletes it."""
        return message.dead or message.intent in data.intents

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def clean_up_is_current(data: Routes, message: Cleaned) -> bool:
        """Late is nothing: a clean-up ends under its epoch, and the registration that it began with. Without it an old
        goodbye removes its successor's route (I4, M4c)."""
        mutation = under_way(data, "clean_up", message.instance, message.generation)
        entry = data.entry(message.instance)
        held = mutation is not None and message.epoch == mutation.epoch
        return held and (entry is None or entry.generation == message.generation)

    @staticmethod
    @guard(Law.PROOF)
    def silent_too_long(data: Routes, message: Prune) -> bool:
        """Proof: a route ends for silence beyond the bound, and for no less. Without it one that beats is cut off
        (V3)."""
        entry = data.entry(message.instance)
        return entry is not None and message.now - entry.heard > data.silent_ms

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def serve(data: Routes, message: Open) -> Effect:
        return Routes(data.silent_ms, message.epoch, (), (), message.intents), ()

    @staticmethod
    def end(data: Routes, message: Close) -> Effect:
        waiting = [rejected(m, "the leader ends") for m in data.mutations if m.asked]
        return Routes(data.silent_ms), (*waiting, *(Gone(e.instance, e.generation) for e in data.entries))

    @staticmethod
    def provision(data: Routes, message: Register) -> Effect:
        return begun(data, message, message.binding)

    @staticmethod
    def provision_anew(data: Routes, message: Register) -> Effect:
        return begun(data, message, attrs.evolve(message.binding, target=None))

    @staticmethod
    def write(data: Routes, message: Provisioned) -> Effect:
        return written(data, message, ())

    @staticmethod
    def replace(data: Routes, message: Provisioned) -> Effect:
        return written(data, message, displaced(data, message))

    @staticmethod
    def give_up(data: Routes, message: Provisioned) -> Effect:
        held = not profile_is_free(data, message)
        return end_mutation(data, "register", message, held, "" if held else "superseded while it was provisioned")

    @staticmethod
    def fail(data: Routes, message: ProvisionFailed) -> Effect:
        return end_mutation(data, "register", message, False, message.error)

    @staticmethod
    def refresh(data: Routes, message: Heartbeat) -> Effect:
        now = heard(data, message)
        entry = now.entry(message.instance)
        if entry is None:
            return now, ()
        return now, (Acknowledge("heartbeat", entry.instance, entry.generation, roster=roster(now, message.now)),)

    @staticmethod
    def perform(data: Routes, message: Ask) -> Effect:
        return heard(data, message), (Perform(message.instance, message.generation, message.number),)

    @staticmethod
    def send_on(data: Routes, message: Forward) -> Effect:
        return heard(data, message), (Send(message.instance, message.generation, message.number),)

    @staticmethod
    def say_goodbye(data: Routes, message: Disconnect) -> Effect:
        entry = data.entry(message.instance)
        if entry is None:
            return data, ()
        intent = Intent(entry.instance, entry.generation, entry.key, entry.binding.target)
        return clean_up(data, intent, message.epoch, asked=True)

    @staticmethod
    def reclaim_thread(data: Routes, message: Reclaim) -> Effect:
        return clean_up(data, message.intent, message.epoch, asked=False)

    @staticmethod
    def forget_intent(data: Routes, message: Reclaim) -> Effect:
        return without_intent(data, message.intent)

    @staticmethod
    def remove(data: Routes, message: Cleaned) -> Effect:
        mutation = under_way(data, "clean_up", message.instance, message.generation)
        if mutation is None:
            return data, ()
        gone = [e for e in data.entries if e.instance == message.instance]
        left = tuple(e for e in data.entries if e.instance != message.instance)
        ended = attrs.evolve(without_mutation(data, mutation), entries=left)
        after, dropped = without_intent(ended, intent_of(mutation))
        told = [Acknowledge("disconnect", m.instance, m.generation) for m in [mutation] if m.asked]
        return after, (*dropped, *(Gone(e.instance, e.generation) for e in gone), *told)

    @staticmethod
    def keep(data: Routes, message: Cleaned | CleanUpFailed) -> Effect:
        error = message.error if isinstance(message, CleanUpFailed) else "superseded while it was cleaned up"
        return end_mutation(data, "clean_up", message, False, error)

    @staticmethod
    def drop(data: Routes, message: Prune) -> Effect:
        gone = [e for e in data.entries if e.instance == message.instance]
        left = tuple(e for e in data.entries if e.instance != message.instance)
        return attrs.evolve(data, entries=left), tuple(Gone(e.instance, e.generation) for e in gone)


ROUTES: Table[Routes, Happening, Output] = compile_chart(RoutesChart)
