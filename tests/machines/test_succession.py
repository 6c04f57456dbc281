"""One process's succession, event by event (locks.md 12; A49-A62, B01-B05, K3, K4)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.machines.chart import Refused, Step, step
from tenure.machines.follower_messages import NOTHING_BOUND, Binding
from tenure.machines.succession import SUCCESSION, rank
from tenure.machines.succession_messages import (
    Denied,
    Deposed,
    Elect,
    ElectFailed,
    Happening,
    Heard,
    Join,
    LeaseState,
    Look,
    Lost,
    Memory,
    MoveBinding,
    Output,
    Register,
    Registered,
    RegisterFailed,
    RestoreBinding,
    Saw,
    SessionChanged,
    Started,
    Stop,
    TimeUp,
    Won,
)

L, F = 1, 2
LIVE, STALE, NOBODY = Look("elsewhere", L, 7), Look("stale", L, 7), Look("inactive")
WINNER = Look("elsewhere", F, 8)
BINDING = Binding("1/5", "B", "work")
ROSTER = ("A", "B", "C")


class Process:
    """The machine, with what it answers."""

    def __init__(self, slot: str | None = "B", roster: tuple[str, ...] = ROSTER) -> None:
        """It follows L."""
        self.phase, self.data = SUCCESSION.initial, Memory()
        self.binding = attrs.evolve(BINDING, slot=slot)
        self.hear(Join(LIVE), Registered(L, self.binding), Heard(roster, self.binding))

    def hear(self, *messages: Happening) -> tuple[Output, ...]:
        """What it answers to the last of the messages; all must be taken."""
        for message in messages:
            done = step(SUCCESSION, self.phase, self.data, message)
            assert isinstance(done, Step), done
            self.phase, self.data = done.phase, done.data
        return done.outputs

    def refuses(self, message: Happening) -> tuple[str, ...]:
        """The guards that refuse it."""
        done = step(SUCCESSION, self.phase, self.data, message)
        assert isinstance(done, Refused), done
        return done.guards

    def asks(self, leader: int, session: int = 1) -> Register:
        """A registration with what it carries."""
        return Register(leader, session, self.binding)


# -- following, and re-registering ------------------------------------------------------------------------------------


def test_a_heartbeat_that_failed_under_a_live_lease_is_answered_by_registering() -> None:
    """B01, S31: first at once, then once a grace, for as long as the lease lives; nobody is elected."""
    process = Process()

    assert ("leave", process.asks(L)) == process.hear(Lost(LIVE))
    for _ in range(5):
        assert ("wait",) == process.hear(RegisterFailed(L))
        assert "grace" == process.phase
        assert (process.asks(L),) == process.hear(TimeUp(LIVE))


def test_a_look_in_between_is_no_retry() -> None:
    """The leader that refused is not asked again before its grace is over, whatever is seen meanwhile."""
    process = Process()
    process.hear(Lost(LIVE), RegisterFailed(L))

    assert "something_new" in process.refuses(Saw(LIVE))
    assert "something_new" in process.refuses(Saw(Look("elsewhere", L, 0)))
    assert () != process.refuses(Saw(Look("unknown")))


def test_a_reloaded_endpoint_ends_the_grace() -> None:
    """V8, A61: a leader with a live lease has published its endpoint again."""
    process = Process()
    process.hear(Lost(Look("elsewhere", L, 0)), RegisterFailed(L))

    assert (process.asks(L),) == process.hear(Saw(LIVE))


def test_a_call_that_went_to_the_endpoint_of_one_that_hangs() -> None:
    """K3, V7: a winner was seen before it had published its endpoint; what hung before it still accepted the call. The
    look that shows the winner's endpoint gives that call up."""
    process = Process()
    process.hear(Saw(Look("elsewhere", F, 1)))
    assert "registering" == process.phase

    assert "something_new" in process.refuses(Saw(Look("elsewhere", F, 1)))
    assert "something_new" in process.refuses(Saw(Look("elsewhere", F, 0)))
    assert ("leave", process.asks(F)) == process.hear(Saw(Look("elsewhere", F, 2)))
    assert "something_new" in process.refuses(Saw(Look("elsewhere", F, 2)))


def test_a_newcomer_registers_with_who_leads() -> None:
    """And carries nothing yet."""
    process = Process()
    process.phase, process.data = SUCCESSION.initial, Memory()

    assert (Register(L, 1, NOTHING_BOUND),) == process.hear(Join(LIVE))
    assert () == process.hear(Registered(L, BINDING))
    assert ("following", BINDING) == (process.phase, process.data.binding)


@pytest.mark.parametrize("look", [NOBODY, STALE])
def test_a_newcomer_leads_where_nobody_does(look: Look) -> None:
    """It knows no roster, and waits for nobody; the election is exact."""
    process = Process()
    process.phase, process.data = SUCCESSION.initial, Memory()

    assert (Elect(look.owner, 1),) == process.hear(Join(look))


@pytest.mark.parametrize("look", [Look("unknown"), Look("here", F)])
def test_a_look_that_says_nothing_is_made_again(look: Look) -> None:
    """An unreadable registry, or a lease of this process that cannot be released, is no reason to do anything else."""
    process = Process()
    process.phase, process.data = SUCCESSION.initial, Memory()

    assert ("wait",) == process.hear(Join(look))
    assert ("wait",) == process.hear(TimeUp(look))
    assert (Register(L, 1, NOTHING_BOUND),) == process.hear(TimeUp(LIVE))


def test_a_leader_that_hangs_holds_nobody_up() -> None:
    """K3, V5: the call hangs with it, the look that finds the lease over ends it."""
    process = Process(slot="A")
    process.hear(Lost(LIVE))

    assert "registering" == process.phase
    assert () != process.refuses(Saw(LIVE))
    assert ("leave", Elect(L, 1)) == process.hear(Saw(STALE))


def test_a_call_to_a_leader_that_was_replaced_is_given_up() -> None:
    """And the winner is asked."""
    process = Process()
    process.hear(Lost(LIVE))

    assert ("leave", process.asks(F)) == process.hear(Saw(WINNER))
    assert ("asked_of_this_leader",) == process.refuses(Registered(L, BINDING))
    assert ("asked_of_this_leader",) == process.refuses(RegisterFailed(L))
    process.hear(Registered(F, BINDING))


def test_a_healthy_registration_is_left_alone() -> None:
    """A look that shows the same leader, published anew or not, changes nothing."""
    process = Process()

    for look in (LIVE, Look("elsewhere", L, 0), Look("elsewhere", L, 9), Look("unknown")):
        assert process.refuses(Saw(look))


# -- election ---------------------------------------------------------------------------------------------------------


def test_the_smallest_slot_stands_at_once_and_the_others_after_a_grace() -> None:
    """A56, B05, V6."""
    first, second, none = Process(slot="A"), Process(slot="B"), Process(slot=None)

    assert ("leave", Elect(L, 1)) == first.hear(Saw(STALE))
    for other in (second, none):
        assert ("leave", "wait") == other.hear(Saw(STALE))
        assert "deferring" == other.phase
        assert other.refuses(Saw(STALE))
        assert (Elect(L, 1),) == other.hear(TimeUp(STALE))


def test_a_process_without_a_slot_ranks_after_z() -> None:
    """It defers to any slot; among those without one, the election decides."""
    assert rank("Z") < rank(None)
    alone = Process(slot=None, roster=())
    assert ("leave", Elect(0, 1)) == alone.hear(Lost(NOBODY))


def test_a_winner_that_is_seen_ends_the_deferral() -> None:
    """B02: it is registered with, carrying the thread."""
    process = Process(slot="C")
    process.hear(Lost(STALE))

    assert (process.asks(F),) == process.hear(Saw(WINNER))


def test_a_leader_that_comes_back_ends_the_deferral() -> None:
    """It refreshed before anybody replaced it."""
    process = Process(slot="C")
    process.hear(Lost(STALE))

    assert (process.asks(L),) == process.hear(TimeUp(LIVE))


def test_one_recovery_defers_once() -> None:
    """V6: a favourite that is dead is waited for once, not once an election."""
    process = Process(slot="C")
    process.hear(Lost(STALE), TimeUp(STALE), ElectFailed())

    assert (Elect(L, 1),) == process.hear(TimeUp(STALE))


def test_the_next_recovery_defers_again() -> None:
    """With the winner there is a new roster, and a new order."""
    process = Process(slot="C")
    process.hear(Lost(STALE), TimeUp(STALE), Denied(), Saw(WINNER), Registered(F, process.binding))

    assert ("leave", "wait") == process.hear(Lost(Look("stale", F)))


@pytest.mark.parametrize(("look", "observed"), [(STALE, L), (NOBODY, 0), (Look("stale", F), F)])
def test_an_election_is_against_what_was_seen(look: Look, observed: int) -> None:
    """A49, A50, I8: exactly that entry, or nobody where there was none."""
    process = Process(slot="A")

    assert Elect(observed, 1) == process.hear(Lost(look))[-1]


def test_a_loser_comes_back_with_what_it_carried() -> None:
    """A52, B02, V7: it registers with the winner as soon as that is seen, at the latest after one grace."""
    for told in (Saw(WINNER), TimeUp(WINNER)):
        process = Process(slot="A")
        assert ("wait",) == process.hear(Lost(STALE), Denied())
        assert (process.asks(F),) == process.hear(told)


def test_who_was_denied_since_the_leader_refreshed_registers_after_a_grace() -> None:
    """A49: the same leader is nothing new."""
    process = Process(slot="A")
    process.hear(Lost(STALE), Denied())

    assert ("something_new",) == process.refuses(Saw(LIVE))
    assert (process.asks(L),) == process.hear(TimeUp(LIVE))


# -- promotion --------------------------------------------------------------------------------------------------------


def test_the_binding_moves_under_the_lease_that_was_won() -> None:
    """S32, B04: not before, and not where it was lost meanwhile."""
    process = Process(slot="A")
    process.hear(Lost(STALE))

    assert ("won_first",) == process.refuses(Won(owned=False))
    assert (MoveBinding(process.binding),) == process.hear(Won(owned=True))
    assert () == process.hear(Started())
    assert "leading" == process.phase


def test_a_promotion_that_fails_is_retried() -> None:
    """K4, V14: the record is a follower's again, and after a grace it stands once more, or follows whoever leads."""
    process = Process(slot="A")

    assert (RestoreBinding(process.binding), "wait") == process.hear(Lost(STALE), Won(owned=True), ElectFailed())
    assert (Elect(0, 1),) == process.hear(TimeUp(NOBODY))
    assert ("wait",) == process.hear(ElectFailed())
    assert (process.asks(F),) == process.hear(TimeUp(WINNER))


def test_a_leader_that_was_deposed_becomes_a_follower() -> None:
    """With its own thread, of the new leader."""
    process = Process(slot="A")
    process.hear(Lost(STALE), Won(owned=True), Started())

    assert (RestoreBinding(process.binding), "wait") == process.hear(Deposed())
    assert (process.asks(F),) == process.hear(Saw(WINNER))


# -- session and binding ----------------------------------------------------------------------------------------------


def test_a_retry_serves_the_session_of_then() -> None:
    """A53: and where there is none, it waits for one."""
    process = Process()
    process.hear(Lost(LIVE), RegisterFailed(L), SessionChanged(0))

    assert ("wait",) == process.hear(TimeUp(LIVE))
    assert () == process.hear(SessionChanged(4))
    assert (process.asks(L, session=4),) == process.hear(TimeUp(LIVE))


def test_a_registration_ends_with_its_session() -> None:
    """L25: and begins anew for the next one."""
    process = Process()
    process.hear(Lost(LIVE))

    assert ("leave", process.asks(L, session=2)) == process.hear(SessionChanged(2))
    assert ("leave", "wait") == process.hear(SessionChanged(0))
    assert ("session_is_live",) == process.refuses(Saw(WINNER))
    process.hear(SessionChanged(3))
    assert (process.asks(F, session=3),) == process.hear(Saw(WINNER))


def test_a_cleared_registration_takes_no_binding_away() -> None:
    """A55: what is remembered is the last thread that was known."""
    process = Process()

    assert () == process.hear(Heard(("B",), NOTHING_BOUND))
    assert (process.binding, ("B",)) == (process.data.binding, process.data.roster)
    moved = attrs.evolve(process.binding, target="1/9")
    process.hear(Heard(ROSTER, moved))
    assert Register(L, 1, moved) == process.hear(Lost(LIVE))[-1]


@pytest.mark.parametrize(
    ("told", "output"),
    [
        ((), "leave"),
        ((Lost(LIVE),), "leave"),
        ((Lost(LIVE), RegisterFailed(L)), "leave"),
        ((Lost(STALE),), "resign"),
        ((Lost(STALE), Won(owned=True)), "resign"),
        ((Lost(STALE), Won(owned=True), Started()), "resign"),
        ((Lost(STALE), Denied()), "leave"),
    ],
)
def test_a_person_leaves_from_everywhere(told: tuple[Happening, ...], output: Output) -> None:
    """And nothing that comes later is anything."""
    process = Process(slot="A")

    assert (output,) == process.hear(*told, Stop())
    for late in (Registered(L, BINDING), Won(owned=True), Denied(), TimeUp(STALE), Saw(STALE), SessionChanged(1)):
        assert () == process.refuses(late)


# -- whatever it is told ----------------------------------------------------------------------------------------------

STATES: list[LeaseState] = ["elsewhere", "stale", "inactive", "here", "unknown"]
LOOKS = st.builds(Look, st.sampled_from(STATES), st.integers(0, 2), st.integers(0, 2))
BINDINGS = st.sampled_from([NOTHING_BOUND, BINDING, attrs.evolve(BINDING, slot=None)])
MESSAGES: st.SearchStrategy[Happening] = st.one_of(
    st.builds(Join, LOOKS),
    st.builds(Lost, LOOKS),
    st.builds(Saw, LOOKS),
    st.builds(TimeUp, LOOKS),
    st.builds(Heard, st.sampled_from([(), ("A",), ROSTER]), BINDINGS),
    st.builds(Registered, st.integers(0, 2), BINDINGS),
    st.builds(RegisterFailed, st.integers(0, 2)),
    st.builds(Won, st.booleans()),
    st.builds(SessionChanged, st.integers(0, 2)),
    st.sampled_from([Started(), Denied(), ElectFailed(), Deposed()]),
)


@given(st.lists(MESSAGES, max_size=60))
def test_orders_fit_together(told: list[Happening]) -> None:
    """One call at a time, given up before the next one is begun; elections only where the last look said that the lease
    is over; the binding is moved and restored in turn; a wait exactly in the phases that wait."""
    phase, data, calling, moved = SUCCESSION.initial, Memory(), "", False
    for message in told:
        done = step(SUCCESSION, phase, data, message)
        if isinstance(done, Refused):
            continue
        if message.event in ("registered", "register_failed", "denied", "elect_failed"):
            calling = ""
        if message.event == "started":
            assert moved
            calling = ""
        for output in done.outputs:
            if output == "leave":
                calling = ""
            elif isinstance(output, Register | Elect):
                assert "" == calling
                calling = output.__class__.__name__
                assert output.session != 0
                if isinstance(output, Elect):
                    assert isinstance(message, Join | Lost | Saw | TimeUp)
                    assert message.look.state in ("stale", "inactive")
                    assert output.observed == message.look.owner
            elif isinstance(output, MoveBinding | RestoreBinding):
                assert moved == isinstance(output, RestoreBinding)
                assert output.binding == data.binding
                moved = not moved
        if done.phase in ("grace", "deferring", "waiting") and done.phase != phase:
            assert "wait" in done.outputs
        assert (calling == "Register") == (done.phase == "registering")
        assert (calling == "Elect") == (done.phase in ("electing", "starting"))
        assert moved == (done.phase in ("starting", "leading"))
        phase, data = done.phase, done.data
