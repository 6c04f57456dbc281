"""What the guards and effects of `tenure.machines.routes` share: pure functions of the routes and a message."""

from __future__ import annotations

import attrs

from tenure.machines.follower_messages import Binding, Generation
from tenure.machines.identity import Epoch
from tenure.machines.routes_messages import (
    Acknowledge,
    Ask,
    Cleaned,
    CleanUp,
    CleanUpFailed,
    Disconnect,
    DropIntent,
    Entry,
    Forward,
    Gone,
    Heartbeat,
    Intent,
    Kind,
    Mutation,
    Output,
    PersistIntent,
    Provision,
    Provisioned,
    ProvisionFailed,
    Reclaim,
    Register,
    Reject,
    Request,
    Routes,
)

Effect = tuple[Routes, tuple[Output, ...]]


def roster(data: Routes, now: int) -> tuple[str, ...]:
    """The slots that may stand for election: of those who can and were heard within the bound, sorted."""
    return tuple(
        sorted(
            e.binding.slot
            for e in data.entries
            if e.capable and e.binding.slot is not None and now - e.heard <= data.silent_ms
        )
    )


def gives_way(entry: Entry, asked: Register | Mutation, evidence: Register | Provisioned) -> bool:
    """Whether this entry makes room: for its own process, or because its process is dead. A process that names no
    birth is the same one only as the same instance."""
    if entry.instance in evidence.dead or entry.instance in evidence.same:
        return True
    return entry.process == asked.process and (entry.process != "" or entry.instance == asked.instance)


def rivals(entry: Entry, asked: Register | Mutation) -> bool:
    return entry.key == asked.key or entry.instance == asked.instance


def profile_is_free(data: Routes, message: Register | Provisioned) -> bool:
    asked: Register | Mutation | None = message if isinstance(message, Register) else asked_for(data, message)
    return asked is None or all(gives_way(e, asked, message) for e in data.entries if rivals(e, asked))


def target_is_free(data: Routes, message: Register | Provisioned) -> bool:
    asked, target = message if isinstance(message, Register) else asked_for(data, message), message.binding.target
    if asked is None or target is None:
        return True
    return all(gives_way(e, asked, message) for e in data.entries if e.binding.target == target)


def displaced(data: Routes, message: Provisioned) -> tuple[Entry, ...]:
    """The routes of other instances that have the profile or the thread of this one."""
    asked, target = asked_for(data, message), message.binding.target
    if asked is None:
        return ()
    return tuple(
        e
        for e in data.entries
        if e.instance != asked.instance and (e.key == asked.key or (target is not None and e.binding.target == target))
    )


def in_the_way(data: Routes, message: Register | Disconnect | Reclaim) -> bool:
    """Whether a change of this profile is under way, or one of this thread of which either deletes it."""
    cleans = not isinstance(message, Register)
    key: str | None
    if isinstance(message, Register):
        key, target = message.key, message.binding.target
    elif isinstance(message, Reclaim):
        key, target = message.intent.key, message.intent.target
    else:
        entry = data.entry(message.instance)
        key, target = (None, None) if entry is None else (entry.key, entry.binding.target)
    return any(
        m.key == key or (target is not None and m.binding.target == target and (cleans or m.kind == "clean_up"))
        for m in data.mutations
    )


def asked_for(data: Routes, message: Provisioned) -> Mutation | None:
    return under_way(data, "register", message.instance, message.generation)


def under_way(data: Routes, kind: Kind, instance: str, generation: Generation) -> Mutation | None:
    """The change of that name; asked for if any of that name is."""
    found = [m for m in data.mutations if (m.kind, m.instance, m.generation) == (kind, instance, generation)]
    if not found:
        return None
    return found[0] if len(found) == 1 else attrs.evolve(found[0], asked=any(m.asked for m in found))


def begun(data: Routes, message: Register, binding: Binding) -> Effect:
    generation, epoch = message.generation, message.epoch
    if generation is None or epoch is None:
        return data, ()
    mutation = Mutation(
        "register", message.instance, generation, message.key, message.process, binding, epoch, message.capable
    )
    after = attrs.evolve(data, mutations=in_order((*data.mutations, mutation)))
    return after, (Provision(message.instance, generation, message.key, binding, epoch),)


def written(data: Routes, message: Provisioned, gone: tuple[Entry, ...]) -> Effect:
    asked = asked_for(data, message)
    if asked is None:
        return data, ()
    entry = Entry(
        asked.instance, asked.generation, asked.key, asked.process, message.binding, message.now, asked.capable
    )
    left = [e for e in data.entries if e.instance != asked.instance and e not in gone]
    after = attrs.evolve(without_mutation(data, asked), entries=tuple(sorted((*left, entry), key=lambda e: e.instance)))
    over = [Gone(e.instance, e.generation) for e in data.entries if e not in left]
    return after, (*over, Acknowledge("register", entry.instance, entry.generation, entry.binding))


def heard(data: Routes, message: Heartbeat | Ask | Forward) -> Routes:
    return attrs.evolve(
        data,
        entries=tuple(
            attrs.evolve(e, heard=message.now) if e.instance == message.instance else e for e in data.entries
        ),
    )


def clean_up(data: Routes, intent: Intent, epoch: Epoch | None, *, asked: bool) -> Effect:
    if epoch is None:
        return data, ()
    mutation = Mutation(
        "clean_up", intent.instance, intent.generation, intent.key, "", Binding(intent.target), epoch, asked=asked
    )
    known = intent in data.intents
    after = attrs.evolve(
        data,
        mutations=in_order((*data.mutations, mutation)),
        intents=data.intents if known else intents_in_order((*data.intents, intent)),
    )
    return after, (*(() if known else (PersistIntent(intent),)), CleanUp(intent, epoch))


def without_mutation(data: Routes, mutation: Mutation) -> Routes:
    """What is said of one is said of all with its kind, instance and generation: a call's answer names no more."""
    name = (mutation.kind, mutation.instance, mutation.generation)
    return attrs.evolve(data, mutations=tuple(m for m in data.mutations if (m.kind, m.instance, m.generation) != name))


def without_intent(data: Routes, intent: Intent) -> Effect:
    if intent not in data.intents:
        return data, ()
    return attrs.evolve(data, intents=tuple(i for i in data.intents if i != intent)), (DropIntent(intent),)


def intent_of(mutation: Mutation) -> Intent:
    return Intent(mutation.instance, mutation.generation, mutation.key, mutation.binding.target)


def end_mutation(
    data: Routes, kind: Kind, message: Provisioned | ProvisionFailed | Cleaned | CleanUpFailed, held: bool, error: str
) -> Effect:
    mutation = under_way(data, kind, message.instance, message.generation)
    if mutation is None:
        return data, ()
    told = (rejected(mutation, error, held=held),) if mutation.asked else ()
    return without_mutation(data, mutation), told


def rejected(mutation: Mutation, error: str, *, held: bool = False) -> Reject:
    request: Request = "register" if mutation.kind == "register" else "disconnect"
    return Reject(request, mutation.instance, mutation.generation, held, error)


def in_order(mutations: tuple[Mutation, ...]) -> tuple[Mutation, ...]:
    return tuple(sorted(mutations, key=lambda m: (m.kind, m.instance, str(m.generation))))


def intents_in_order(intents: tuple[Intent, ...]) -> tuple[Intent, ...]:
    return tuple(sorted(intents, key=lambda i: (i.instance, str(i.generation))))
