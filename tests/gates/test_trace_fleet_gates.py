"""``tenure trace check`` turns red on a fleet's recording that was doctored, and names the event and the guard.

The recording is one of the real drivers (`tests/adapters/trace/fleet_recorded.py`), explained as it is. Where who owns
is doctored, `LeaderElection` is passed over: that it would object as well is another gate's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tenure.adapters.trace.check import Verdict, check
from tenure.adapters.trace.lines import Event, read

from ..adapters.trace.fleet_recorded import FIRST, SECOND, THIRD, fleet
from ..adapters.trace.recorded import write

SUCCESSION, REGISTRATION = "Succession", "FollowerRegistration"
OWNERS = ("LeaderElection", "FileTransaction", "PollingOwnership")


def checked(events: list[Event], room: Path, *passed_over: str) -> Verdict:
    """The verdict on the doctored events, which are consistent as files."""
    return check(read(write(events, room)), passed_over=passed_over)


def find(events: list[Event], module: str, action: str, pid: int, which: int = 0) -> int:
    """The index of the event number `which` of its kind; negative ones from the end."""
    found = [
        i for i, e in enumerate(events) if e.module == module and e.action == action and e.process.startswith(f"{pid}-")
    ]
    return found[which]


def unexplained(verdict: Verdict, module: str, action: str, *said: str) -> None:
    """It names this event, and says this."""
    assert not verdict, str(verdict)
    assert verdict.limit == ""
    assert verdict.first is not None
    assert (module, action) == (verdict.first.module, verdict.first.action), str(verdict)
    for text in said:
        assert text in str(verdict)


def again(event: Event, **changes: object) -> Event:
    """An event like that one, a moment later."""
    copy = Event(
        event.file, event.line, event.module, event.action, event.node, event.seq, event.number, event.at,
        event.args, event.observed, event.tenure, event.t,
    )  # fmt: skip
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


def test_the_recording_is_explained(tmp_path: Path) -> None:
    """As it is, it is, and there is something of everything in it."""
    verdict = checked(fleet(), tmp_path)
    assert verdict, str(verdict)
    seen = {(e.module, e.action) for e in fleet()}
    assert {(SUCCESSION, a) for a in ("Join", "Answered", "Hear", "Prepare", "Lead", "Stop")} <= seen
    told = ("Register", "HearRegister", "Provisioned", "HearAnswer", "Refresh", "HearBeat", "Forward", "Deliver")
    assert {(REGISTRATION, a) for a in (*told, "Disconnect", "HearGoodbye", "Delete", "Cleaned", "HearGone")} <= seen


# -- succession -------------------------------------------------------------------------------------------------------


def test_an_election_over_a_live_leader(tmp_path: Path) -> None:
    """The second stands for election when the first one's lease is live by its own look."""
    events = fleet()
    place = find(events, SUCCESSION, "Hear", SECOND)
    sees = _sees(events[place], "electing", "elsewhere")
    events.insert(place + 1, sees)
    unexplained(checked(events, tmp_path), SUCCESSION, "See", "leader_is_gone")


def _sees(event: Event, phase: str, lease: str) -> Event:
    """A look of that member at its leader, after that event."""
    seen = {**event.observed, "phase": phase, "lease": lease, "owner": event.observed["leader"], "published": 1}
    return again(event, action="See", args={}, observed=seen)


def test_an_election_that_was_not_won(tmp_path: Path) -> None:
    """The second took the lease of another entry than the one against which it stood."""
    events = fleet()
    stood = next(
        e
        for e in events
        if e.module == SUCCESSION and e.process.startswith(f"{SECOND}-") and e.observed["phase"] == "electing"
    )
    first = events[find(events, SUCCESSION, "Answered", SECOND)].args["leader"]
    stood.observed = {**stood.observed, "lease": "stale", "owner": f"{str(first).partition('#')[0]}#99"}
    unexplained(checked(events, tmp_path), SUCCESSION, stood.action)


def test_a_promotion_without_winning(tmp_path: Path) -> None:
    """The second begins to lead, and never wrote itself into the registry."""
    events = fleet()
    writes = [e for e in events if e.module == "LeaderElection" and e.process.startswith(f"{SECOND}-")]
    won = next(e for e in writes if e.action == "Write" and e.observed.get("phase") == "owner")
    events.remove(won)
    verdict = checked(events, tmp_path, *OWNERS, REGISTRATION)
    assert not verdict
    assert verdict.first is not None
    assert verdict.first.module == SUCCESSION


def test_two_leaders(tmp_path: Path) -> None:
    """The third takes the lease while the second leads, without standing for election."""
    events = fleet()
    node = events[find(events, SUCCESSION, "Join", THIRD)].node
    led = find(events, SUCCESSION, "Lead", SECOND)
    number = max(e.number for e in events[:led])
    takes = again(events[led], module="LeaderElection", action="Write", node=node, number=number, at=number)
    takes.observed, takes.args, takes.tenure = {"phase": "owner"}, {}, 9
    events.insert(led + 1, takes)
    unexplained(checked(events, tmp_path, *OWNERS, REGISTRATION), SUCCESSION, "Takes")


def test_a_thread_that_is_forgotten(tmp_path: Path) -> None:
    """The third has no slot any more when its leader is gone (A55)."""
    events = fleet()
    answered = events[find(events, SUCCESSION, "Answered", THIRD, -1)]
    asked = next(
        e
        for e in events
        if e.module == SUCCESSION and e.node == answered.node and e.observed["leader"] == answered.args["leader"]
    )
    asked.observed = {**asked.observed, "binding": [None, None, None]}
    unexplained(checked(events, tmp_path), SUCCESSION, asked.action)


def test_an_answer_of_the_leader_before(tmp_path: Path) -> None:
    """The third follows on the word of the first, which was not asked any more."""
    events = fleet()
    answered = events[find(events, SUCCESSION, "Answered", THIRD, -1)]
    old = events[find(events, SUCCESSION, "Answered", THIRD)].args["leader"]
    answered.args = {"leader": old}
    unexplained(checked(events, tmp_path), SUCCESSION, "Answered")


# -- registrations ----------------------------------------------------------------------------------------------------


def test_work_under_an_old_generation(tmp_path: Path) -> None:
    """The third takes work that names the registration it had with the leader before."""
    events = fleet()
    old = events[find(events, REGISTRATION, "Register", THIRD)].tenure
    delivered = events[find(events, REGISTRATION, "Deliver", THIRD, -1)]
    assert delivered.tenure != old
    delivered.tenure = old
    unexplained(checked(events, tmp_path), REGISTRATION, "Deliver")


def test_work_under_an_old_generation_that_was_sent_so(tmp_path: Path) -> None:
    """Its leader sent it so, which that leader's routes forbid."""
    events = fleet()
    old = events[find(events, REGISTRATION, "Register", THIRD)].tenure
    for action, pid in (("Deliver", THIRD), ("Forward", SECOND)):
        events[find(events, REGISTRATION, action, pid, -1)].tenure = old
    unexplained(checked(events, tmp_path), REGISTRATION, "Forward", "generation_is_current")


def test_a_heartbeat_of_a_route_that_was_replaced(tmp_path: Path) -> None:
    """The leader accepts a heartbeat that names the registration before."""
    events = fleet()
    old = events[find(events, REGISTRATION, "Register", THIRD)].tenure
    events[find(events, REGISTRATION, "Beat", THIRD, -1)].tenure = old
    refreshed = find(events, REGISTRATION, "Refresh", SECOND, -1)
    events[refreshed].tenure = old
    verdict = checked(events, tmp_path)
    unexplained(verdict, REGISTRATION, "Refresh")


def test_a_heartbeat_that_nobody_sent(tmp_path: Path) -> None:
    """The leader hears one twice."""
    events = fleet()
    place = find(events, REGISTRATION, "Refresh", SECOND)
    events.insert(place + 1, again(events[place]))
    unexplained(checked(events, tmp_path), REGISTRATION, "Refresh")


def test_an_acknowledgement_that_nobody_gave(tmp_path: Path) -> None:
    """The route was never written."""
    events = fleet()
    del events[find(events, REGISTRATION, "Provisioned", SECOND)]
    verdict = checked(events, tmp_path)
    assert not verdict
    assert verdict.first is not None
    assert verdict.first.module == REGISTRATION


def test_an_acknowledgement_by_a_deposed_leader(tmp_path: Path) -> None:
    """The first did not close, and registers the third after the second has taken the lease. It may write that,
    as one who does not know; it may not acknowledge it."""
    events = fleet()
    (first,) = {e.node for e in events if e.module == REGISTRATION and e.process.startswith(f"{FIRST}-")}
    closed = find(events, REGISTRATION, "Close", FIRST)
    routes = [e for e in events[:closed] if e.module == REGISTRATION and e.node == first and "entries" in e.observed]
    del events[closed]
    (second,) = {e.node for e in events if e.module == REGISTRATION and e.process.startswith(f"{SECOND}-")}
    for event in events:
        if event.module != REGISTRATION:
            continue
        if event.args.get("lead") == second.rpartition("/")[2]:
            event.args = {**event.args, "lead": first.rpartition("/")[2]}
        if event.node == second and event.action in ("HearRegister", "Provisioned", "ProvisionFails"):
            entries = {**_entries(routes[-1].observed), **_entries(event.observed)}
            event.node, event.observed = first, {**routes[-1].observed, "entries": entries}
    verdict = checked(events, tmp_path, *OWNERS, SUCCESSION)
    unexplained(verdict, REGISTRATION, "HearAnswer")


def _entries(routes: Mapping[str, object]) -> dict[str, object]:
    found = routes["entries"]
    assert isinstance(found, dict)
    return found


def test_a_thread_that_is_deleted_without_a_goodbye(tmp_path: Path) -> None:
    """Nobody asked for it."""
    events = fleet()
    deleted = events.pop(find(events, REGISTRATION, "Delete", SECOND))
    place = find(events, REGISTRATION, "Refresh", SECOND)
    events.insert(place + 1, again(deleted, at=events[place].at, t=events[place].t))
    unexplained(checked(events, tmp_path), REGISTRATION, "Delete")


def test_a_goodbye_that_was_not_done(tmp_path: Path) -> None:
    """The third hears that its thread is deleted, which it is not."""
    events = fleet()
    for action in ("Delete", "Cleaned"):
        del events[find(events, REGISTRATION, action, SECOND)]
    verdict = checked(events, tmp_path)
    unexplained(verdict, REGISTRATION, "HearGone")
