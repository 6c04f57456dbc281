"""The leader's routes as values: who gets one, who gives way, what is deleted, and what is late (bus.md b)."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower_messages import Binding
from tenure.machines.routes import ROUTES
from tenure.machines.routes_messages import (
    SILENT_MS,
    Acknowledge,
    Ask,
    Cleaned,
    CleanUp,
    CleanUpFailed,
    Close,
    Disconnect,
    DropIntent,
    Forward,
    Gone,
    Happening,
    Heartbeat,
    Intent,
    Open,
    Output,
    Perform,
    PersistIntent,
    Provision,
    Provisioned,
    ProvisionFailed,
    Prune,
    Reclaim,
    Register,
    Reject,
    Replay,
    Routes,
    Send,
)

EPOCH = 7
THREAD = Binding("1/4", "C", "api")
ASKED = Register("a", "g1", "manual:sh", "birth a", Binding(), EPOCH, authenticated=True, compatible=True)
DONE = Provisioned("a", "g1", THREAD, EPOCH, now=100)
SERVING = (Open(EPOCH), ASKED, DONE)
INTENT = Intent("a", "g1", "manual:sh", "1/4")


def told(*messages: Happening) -> Step[Routes, Output]:
    """What routes that were closed answer to the last of the messages; all must be taken."""

    def one(before: Step[Routes, Output], message: Happening) -> Step[Routes, Output]:
        after = step(ROUTES, before.phase, before.data, message)
        assert isinstance(after, Step), after
        return after

    return reduce(one, messages, Step(ROUTES.initial, Routes(), ()))


def refused(message: Happening, *before: Happening) -> tuple[str, ...]:
    """The guards that refuse `message` after the others."""
    here = told(*before)
    answer = step(ROUTES, here.phase, here.data, message)
    assert isinstance(answer, Refused), answer
    return answer.guards


def registered(instance: str, generation: str, **changes: object) -> tuple[Happening, ...]:
    """A register request of another instance and the end of its provisioning."""
    asked = attrs.evolve(ASKED, instance=instance, generation=generation, **changes)  # type: ignore[arg-type]
    binding = asked.binding if asked.binding.target else Binding(f"1/{generation}")
    return asked, Provisioned(instance, generation, binding, EPOCH, 200, asked.dead)


def instances(*messages: Happening) -> list[str]:
    """Who has a route after the messages."""
    return [entry.instance for entry in told(*messages).data.entries]


def test_a_route_is_there_after_its_provisioning() -> None:
    """First the port, then the entry, then the acknowledgement."""
    assert told(Open(EPOCH), ASKED).outputs == (Provision("a", "g1", "manual:sh", Binding(), EPOCH),)
    assert instances(Open(EPOCH), ASKED) == []
    assert told(*SERVING).outputs == (Acknowledge("register", "a", "g1", THREAD),)


@pytest.mark.parametrize(
    ("request_", "guard"),
    [
        (attrs.evolve(ASKED, authenticated=False), "authenticated"),
        (attrs.evolve(ASKED, compatible=False), "compatible"),
        (attrs.evolve(ASKED, generation=None), "generation_named"),
        (attrs.evolve(ASKED, epoch=None), "leads_here"),
        (attrs.evolve(ASKED, epoch=8), "leads_here"),
    ],
)
def test_b29_nothing_is_provisioned_before_all_is_judged(request_: Register, guard: str) -> None:
    """B29, I9, I3: a refusal leaves nothing behind."""
    assert refused(request_, Open(EPOCH)) == (guard,)


@pytest.mark.parametrize("generation", ["g0", None])
@pytest.mark.parametrize("kind", [Heartbeat, Ask, Forward, Disconnect])
def test_b08_b10_an_old_generation_and_none_are_refused_whatever_the_kind(
    kind: type[Heartbeat | Ask | Forward | Disconnect], generation: str | None
) -> None:
    """B08, B10, M1a, M1b: also from an instance that has a route, and from one that has none."""
    fields = {"instance": "a", "generation": generation, "epoch": EPOCH, "now": 1, "number": 1}
    message = kind(**{f.name: fields[f.name] for f in attrs.fields(kind)})  # type: ignore[arg-type]
    guard = "generation_named" if generation is None else "generation_is_current"

    assert refused(message, *SERVING) == (guard,)
    assert refused(attrs.evolve(message, instance="x"), *SERVING) == (guard,)


def test_what_stands_is_served() -> None:
    """Heartbeats get the roster, asks are performed, work is sent on, each under the generation that stands."""
    assert told(*SERVING, Heartbeat("a", "g1", EPOCH, 300)).outputs == (
        Acknowledge("heartbeat", "a", "g1", roster=("C",)),
    )
    assert told(*SERVING, Ask("a", "g1", EPOCH, 300, 5)).outputs == (Perform("a", "g1", 5),)
    assert told(*SERVING, Forward("a", "g1", EPOCH, 300, 5)).outputs == (Send("a", "g1", 5),)


def test_the_roster_is_of_those_who_live_and_can() -> None:
    """Annex A: sorted slots of live, capable followers."""
    others = (
        *registered("b", "g2", key="b", process="b", binding=Binding("1/5", "A")),
        *registered("c", "g3", key="c", process="c", binding=Binding("1/6", "B"), capable=False),
    )
    late = Heartbeat("a", "g1", EPOCH, 200 + SILENT_MS)

    assert told(*SERVING, *others, late).outputs == (Acknowledge("heartbeat", "a", "g1", roster=("A", "C")),)
    later = attrs.evolve(late, now=late.now + 1)
    assert told(*SERVING, *others, later).outputs == (Acknowledge("heartbeat", "a", "g1", roster=("C",)),)


def test_b17_a_deposed_leader_acknowledges_nothing() -> None:
    """B17, I3: the epoch after the provisioning is the one before it, or there is no route."""
    for epoch in (None, 8):
        after = told(Open(EPOCH), ASKED, attrs.evolve(DONE, epoch=epoch))
        assert isinstance(after.outputs[0], Reject)
        assert after.data.entries == after.data.mutations == ()
    for message in (Heartbeat("a", "g1", None, 1), Ask("a", "g1", 8, 1, 1), Disconnect("a", "g1", 8)):
        assert refused(message, *SERVING) == ("leads_here",)


def test_b14_the_time_of_a_registration_begins_when_it_is_written() -> None:
    """B14, L12, I10: neither a slow provisioning nor an old entry of the same instance makes it look silent."""
    again = (attrs.evolve(ASKED, generation="g2"), attrs.evolve(DONE, generation="g2", now=90_000))

    assert refused(Prune("a", 90_000 + SILENT_MS), *SERVING, *again) == ("silent_too_long",)
    assert instances(*SERVING, *again, Prune("a", 90_001 + SILENT_MS)) == []


def test_silence_ends_a_route_and_deletes_nothing() -> None:
    """V3, annex I: a heartbeat keeps it; beyond the bound it goes, and its thread stays."""
    quiet = Prune("a", 101 + SILENT_MS)

    assert told(*SERVING, quiet).outputs == (Gone("a", "g1"),)
    assert refused(quiet, *SERVING, Heartbeat("a", "g1", EPOCH, 200)) == ("silent_too_long",)
    claim = Reclaim(INTENT, EPOCH, dead=False, held_by="a", held_as="g1")
    assert told(*SERVING, quiet, claim).outputs == ()
    assert told(*SERVING, quiet, attrs.evolve(claim, dead=True)).outputs == (
        PersistIntent(INTENT),
        CleanUp(INTENT, EPOCH),
    )


def test_b26_a_reload_replaces_the_instance_before_it() -> None:
    """B26, B22, I2: the same process, by pid and birth; the old instance has no route any more."""
    reload = registered("a2", "g2", binding=THREAD)

    assert told(*SERVING, *reload).outputs == (Gone("a", "g1"), Acknowledge("register", "a2", "g2", THREAD))
    assert instances(*SERVING, *reload) == ["a2"]


def test_l24_a_live_process_of_the_same_shell_is_not_put_out() -> None:
    """L24: the newcomer is refused, until the other one is proven dead."""
    newcomer = attrs.evolve(ASKED, instance="b", generation="g2", process="birth b")

    assert refused(newcomer, *SERVING) == ("profile_not_held",)
    assert refused(attrs.evolve(newcomer, process=""), *SERVING) == ("profile_not_held",)
    assert instances(*SERVING, *registered("b", "g2", process="birth b", dead=frozenset({"a"}))) == ["b"]


def test_a_route_gives_way_to_the_process_that_it_is_proven_to_be_of() -> None:
    """Whatever word it has, of the profile or of the thread; the proof is asked for again when the route is written."""
    mine = attrs.evolve(ASKED, generation="g2", process="its own word")
    assert refused(mine, *SERVING) == ("profile_not_held",)
    assert refused(attrs.evolve(mine, same=frozenset({"b"})), *SERVING) == ("profile_not_held",)
    proven = attrs.evolve(mine, same=frozenset({"a"}))
    done = Provisioned("a", "g2", THREAD, EPOCH, now=200)
    late = told(*SERVING, proven, done)
    assert late.outputs == (Reject("register", "a", "g2", held=True),)
    taken = told(*SERVING, proven, attrs.evolve(done, same=frozenset({"a"})))
    assert [(e.instance, e.generation, e.process) for e in taken.data.entries] == [("a", "g2", "its own word")]
    other = attrs.evolve(proven, instance="b", key="manual:other", binding=THREAD)
    assert told(*SERVING, other).outputs == (Provision("b", "g2", "manual:other", THREAD, EPOCH),)


def test_two_processes_that_name_no_birth_are_not_one() -> None:
    """An empty birth is nobody's: only the very same instance comes back under it."""
    unknown = (attrs.evolve(ASKED, process=""), DONE)

    assert refused(attrs.evolve(ASKED, instance="b", process=""), Open(EPOCH), *unknown) == ("profile_not_held",)
    assert instances(Open(EPOCH), *unknown, attrs.evolve(ASKED, process="", generation="g2")) == ["a"]


def test_l16_naming_somebody_elses_thread_or_instance_takes_nothing() -> None:
    """L16: a thread that is held is not kept for who names it, and an instance is not its name alone."""
    thief = attrs.evolve(ASKED, instance="b", generation="g2", key="b", process="birth b", binding=THREAD)

    assert told(*SERVING, thief).outputs == (Provision("b", "g2", "b", Binding(None, "C", "api"), EPOCH),)
    late = told(*SERVING, thief, Provisioned("b", "g2", THREAD, EPOCH, 200))
    assert late.outputs == (Reject("register", "b", "g2", False, "superseded while it was provisioned"),)
    assert [e.instance for e in late.data.entries] == ["a"]
    impostor = attrs.evolve(ASKED, generation="g2", key="b", process="birth b")
    assert refused(impostor, *SERVING) == ("profile_not_held",)


def test_two_who_were_promised_the_same_thread() -> None:
    """L26's half of I2: whether it is free is asked when the route is written."""
    both = (
        attrs.evolve(ASKED, binding=THREAD),
        attrs.evolve(ASKED, instance="b", generation="g2", key="b", process="birth b", binding=THREAD),
        DONE,
    )

    after = told(Open(EPOCH), *both, Provisioned("b", "g2", THREAD, EPOCH, 200))
    assert isinstance(after.outputs[0], Reject)
    assert [e.instance for e in after.data.entries] == ["a"]


def test_b62_one_change_of_a_profile_at_a_time() -> None:
    """I4, M4a, M4b, B62: by profile and not by instance; and a thread that is deleted is nobody's to register with."""
    leaving = (*SERVING, Disconnect("a", "g1", EPOCH))
    reload = attrs.evolve(ASKED, instance="a2", generation="g2")
    named = attrs.evolve(reload, key="b", process="birth a", binding=THREAD)

    for waits in (reload, named, attrs.evolve(ASKED, generation="g2")):
        assert refused(waits, *leaving) == ("nobody_mutates_profile",)
    assert refused(reload, Open(EPOCH), ASKED) == ("nobody_mutates_profile",)
    assert instances(
        *leaving, Cleaned("a", "g1", EPOCH), reload, attrs.evolve(DONE, instance="a2", generation="g2")
    ) == ["a2"]


def test_b19_a_goodbye_is_acknowledged_after_the_thread_is_gone() -> None:
    """Intent, clean-up, route, acknowledgement; a failure keeps the route and the intent."""
    leaving = (*SERVING, Disconnect("a", "g1", EPOCH))

    assert told(*leaving).outputs == (PersistIntent(INTENT), CleanUp(INTENT, EPOCH))
    assert told(*leaving, Cleaned("a", "g1", EPOCH)).outputs == (
        DropIntent(INTENT),
        Gone("a", "g1"),
        Acknowledge("disconnect", "a", "g1"),
    )
    failed = told(*leaving, CleanUpFailed("a", "g1", "502"))
    assert failed.outputs == (Reject("disconnect", "a", "g1", False, "502"),)
    assert (failed.data.intents, len(failed.data.entries), failed.data.mutations) == ((INTENT,), 1, ())


def test_a_clean_up_that_ends_under_another_epoch_changes_nothing() -> None:
    """I3, M4c: the intent stays for whoever leads now."""
    after = told(*SERVING, Disconnect("a", "g1", EPOCH), Cleaned("a", "g1", 8))

    assert (after.data.intents, len(after.data.entries)) == ((INTENT,), 1)
    assert isinstance(after.outputs[0], Reject)


@pytest.mark.parametrize(("held_by", "held_as", "due"), [
    (None, None, True), ("a", "g1", True), ("a", "g2", False), ("a2", "g9", False),
])  # fmt: skip
def test_l0_an_intent_is_void_when_another_registration_has_the_thread(
    held_by: str | None, held_as: str | None, due: bool
) -> None:
    """L0: another instance, or the same one under another generation, since the goodbye that failed."""
    after = told(Open(EPOCH, (INTENT,)), Reclaim(INTENT, EPOCH, False, held_by, held_as))

    assert after.outputs == ((CleanUp(INTENT, EPOCH),) if due else (DropIntent(INTENT),))
    assert after.data.intents == ((INTENT,) if due else ())


def test_l14_an_acknowledgement_is_repeated_while_it_stands() -> None:
    """L14: not after a prune, and not for another generation."""
    assert told(*SERVING, Replay("a", "g1")).outputs == ()
    assert refused(Replay("a", "g0"), *SERVING) == ("still_stands",)
    assert refused(Replay("a", "g1"), *SERVING, Prune("a", 101 + SILENT_MS)) == ("still_stands",)


def test_b64_whoever_is_closed_has_no_routes() -> None:
    """Stop: those who wait are told, the routes are gone, and a provisioning that ends later ends nothing."""
    closed = told(*SERVING, attrs.evolve(ASKED, instance="b", generation="g2", key="b"), Close())

    assert closed.outputs == (Reject("register", "b", "g2", False, "the leader ends"), Gone("a", "g1"))
    assert closed == Step("closed", Routes(), closed.outputs)
    assert refused(DONE, *SERVING, Close()) == ()
    again = told(*SERVING, Close(), Open(8), attrs.evolve(DONE, epoch=8))
    assert (again.data.entries, again.outputs) == ((), ())


def test_a_provisioning_that_fails_frees_the_profile() -> None:
    """The follower is told, and the next one may try."""
    failed = (Open(EPOCH), ASKED, ProvisionFailed("a", "g1", "429"))

    assert told(*failed).outputs == (Reject("register", "a", "g1", False, "429"),)
    assert instances(*failed, attrs.evolve(ASKED, generation="g2"), attrs.evolve(DONE, generation="g2")) == ["a"]


NAMES = ("a", "b")
GENERATIONS = ("g1", "g2", "g3")


@given(st.lists(st.one_of(
    st.builds(
        Register, st.sampled_from(NAMES), st.sampled_from((None, *GENERATIONS)), st.sampled_from(("k", "l")),
        st.sampled_from(("p", "q", "")), st.builds(Binding, st.sampled_from((None, "1/1", "1/2"))),
        st.just(EPOCH), st.just(True), st.just(True), st.just(True), st.frozensets(st.sampled_from(NAMES)),
    ),
    st.builds(
        Provisioned, st.sampled_from(NAMES), st.sampled_from(GENERATIONS),
        st.builds(Binding, st.sampled_from(("1/1", "1/2"))), st.sampled_from((EPOCH, None)), st.integers(0, 9),
    ),
    st.builds(Disconnect, st.sampled_from(NAMES), st.sampled_from(GENERATIONS), st.just(EPOCH)),
    st.builds(Cleaned, st.sampled_from(NAMES), st.sampled_from(GENERATIONS), st.just(EPOCH)),
), max_size=25))  # fmt: skip
def test_one_route_for_each_member_and_thread(messages: list[Happening]) -> None:
    """I2, whatever comes: never two of one instance, profile or thread; never two changes of one profile."""
    phase, data = "serving", Routes(epoch=EPOCH)
    for message in messages:
        answer = step(ROUTES, phase, data, message)
        if isinstance(answer, Step):
            data = answer.data
        for values in (
            [e.instance for e in data.entries],
            [e.key for e in data.entries],
            [e.binding.target for e in data.entries if e.binding.target is not None],
            [m.key for m in data.mutations],
        ):
            assert len(values) == len(set(values)), data
