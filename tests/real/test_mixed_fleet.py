"""Fleets of both systems on one directory: what becomes of them when the leader goes, hangs, or cannot be reached.

The other system's side is `other_fleet.py`, which knows nothing of ours.
"""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.real.conftest import stop
from tests.real.others import Mixed

WAYS = [
    (leader, followers, how)
    for leader in ("theirs", "ours")
    for followers in ("ours theirs", "theirs ours")
    for how in ("killed", "ended", "stopped")
    if (leader, followers, how)
    not in (
        ("theirs", "theirs ours", "ended"),
        ("ours", "theirs ours", "ended"),
        ("theirs", "theirs ours", "stopped"),
        ("ours", "ours theirs", "stopped"),
    )
]


@pytest.mark.parametrize(("leader", "followers", "how"), WAYS)
def test_a_leader_goes(mixed: Mixed, leader: str, followers: str, how: str) -> None:
    """The smaller slot leads, and never two do; the other follows it, with its place where the new leader knows it.
    Their follower waits for a leader that hangs for minutes (K3), so that then ours leads whatever its slot."""
    first = mixed.other() if leader == "theirs" else mixed.start()
    mixed.leads(first)
    both = []
    for which in followers.split():
        both.append(mixed.other() if which == "theirs" else mixed.start())
        mixed.follows(both[-1], first)
    ours = both[0] if followers.startswith("ours") else both[1]
    theirs = both[1] if ours is both[0] else both[0]
    rosters = (lambda: theirs.heard("roster", slots=["B", "C"]), lambda: mixed.live(first) == 2)
    mixed.until(lambda: all(roster() for roster in rosters))
    winner, loser = both
    if how == "stopped":
        stop(first.pid, mixed.registry)
        winner, loser = ours, theirs
    else:
        first.kill(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    mixed.leads(winner)
    assert mixed.entry()["pid"] == winner.pid
    if how == "stopped":
        os.kill(first.pid, signal.SIGCONT)
        mixed.follows(first, winner)
    mixed.follows(loser, winner)
    assert mixed.entry()["pid"] == winner.pid
    if winner is theirs:
        assert not mixed.leading()
    else:
        assert theirs.role == "following"
        assert len(mixed.leading()) == 1


@pytest.mark.parametrize("ours_first", [True, False])
def test_their_threads_are_no_base_of_ours(mixed: Mixed, ours_first: bool) -> None:
    """Their leader left threads in the state file: nobody of ours leads over them. Theirs does, whatever its slot."""
    leader = mixed.other(threads=True)
    mixed.leads(leader)
    if ours_first:
        ours = mixed.start()
        mixed.follows(ours, leader)
    theirs = mixed.other(threads=True)
    mixed.follows(theirs, leader)
    if not ours_first:
        ours = mixed.start()
        mixed.follows(ours, leader)
    place = (ours.slot, ours.name)
    leader.kill()
    mixed.leads(theirs)
    mixed.follows(ours, theirs)
    assert (ours.slot, ours.name) == place
    assert not any(role.startswith("leading") for role in ours.roles)
    assert [t["slot"] for t in mixed.state()["threads"] if t["instanceId"].startswith(f"{ours.pid}:")] == [ours.slot]


@pytest.mark.parametrize(
    ("leader", "what"),
    [
        ("theirs", "unlinked"),
        ("theirs", "plain file"),
        ("ours", "unlinked"),
        ("ours", "dangling"),
        ("ours", "plain file"),
        ("ours", "directory"),
    ],
)
def test_the_endpoint_is_damaged(mixed: Mixed, leader: str, what: str) -> None:
    """Nobody is promoted over a leader that lives. Where its path has vanished it is published again, by both; what
    else stands there only ours replaces, and it never loses anything by it."""
    first = mixed.other() if leader == "theirs" else mixed.start()
    mixed.leads(first)
    second = mixed.start() if leader == "theirs" else mixed.other()
    mixed.follows(second, first)
    path = mixed.endpoint
    path.unlink()
    if what == "dangling":
        path.symlink_to(".pt-0000000000000000.sock")
    elif what == "plain file":
        path.write_text("")
    elif what == "directory":
        path.mkdir()
    asked = mixed.entry()["heartbeatMs"]
    mixed.until(lambda: mixed.entry()["heartbeatMs"] > asked)
    if what in ("plain file", "directory"):
        mixed.until(lambda: mixed.entry()["heartbeatMs"] > asked + 1200)
        if path.is_dir():
            path.rmdir()
        elif not path.is_symlink():
            path.unlink()
    mixed.until(lambda: path.is_symlink() and path.is_socket())
    mixed.follows(second, first)
    third = mixed.other()
    mixed.follows(third, first)
    assert mixed.entry()["pid"] == first.pid


def test_the_state_file_is_removed(mixed: Mixed) -> None:
    """Without it nobody of the other system registers: our leader publishes it again, as it does its endpoint."""
    leader = mixed.start()
    mixed.leads(leader)
    first = mixed.other()
    mixed.follows(first, leader)
    mixed.registry.with_name("state.json").unlink()
    second = mixed.other()
    mixed.follows(second, leader)
    assert mixed.live(leader) == 2


# -- entries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [True, False])
def test_a_leader_that_accepts_and_never_answers(mixed: Mixed, silent: bool) -> None:
    """As long as its lease is fresh nobody is promoted over it; once it is stale, ours is, within one grace (K3)."""
    leader = mixed.other()
    mixed.leads(leader)
    ours = mixed.start()
    mixed.follows(ours, leader)
    for kind in ("follower.heartbeat", "follower.register"):
        leader.ask("fault", kind=kind, how="hang")
    ours.becomes("registering")
    if silent:
        stop(leader.pid, mixed.registry)
        heartbeat = mixed.entry()["heartbeatMs"]
        ours.becomes("leading")
        waited = time.time() * 1000 - heartbeat
        assert 2000 < waited < 2000 + 625 + 1000
        os.kill(leader.pid, signal.SIGCONT)
        mixed.follows(leader, ours)
    else:
        heartbeat = mixed.entry()["heartbeatMs"]
        mixed.until(lambda: mixed.entry()["heartbeatMs"] > heartbeat + 2000 + 625)
        assert not mixed.leading()
        assert mixed.entry()["pid"] == leader.pid


@pytest.mark.parametrize("whose", ["dead", "reused", "elsewhere"])
def test_an_entry_of_theirs_that_nobody_keeps(mixed: Mixed, whose: str) -> None:
    """Without a birth a pid proves death, and nothing else: a process that has it now holds the lease until the
    heartbeat is too old. Where its endpoint is meant to be makes no difference."""
    sleeper = mixed.sleeper()
    if whose == "dead":
        sleeper.kill()
        sleeper.wait()
    entry = {"pid": sleeper.pid, "cwd": "/x", "instanceId": f"{sleeper.pid}:1", "heartbeatMs": time.time_ns() // 10**6}
    entry |= {"leaderEpoch": "7d9f3c1e-0000-4000-8000-000000000000", "runtimeGeneration": 1, "busSecret": "s" * 43}
    if whose == "elsewhere":
        entry["busSocketPath"] = str(mixed.root / "nowhere.sock")
    mixed.change(entry)
    ours = mixed.start()
    ours.becomes("leading")
    waited = time.time() * 1000 - entry["heartbeatMs"]
    assert waited < 2000 if whose == "dead" else waited > 2000
    assert mixed.entry()["pid"] == ours.pid
    assert json.dumps(mixed.state())


def test_both_refresh_one_registry(mixed: Mixed) -> None:
    """Two profiles, a leader of each system: neither loses the other's entry."""
    ours = mixed.start("--profile", "ours")
    theirs = mixed.other("--profile", "theirs")
    mixed.leads(ours)
    mixed.leads(theirs)

    def beats() -> list[int]:
        entries = json.loads(mixed.registry.read_text())
        return [entries["ours"]["heartbeatMs"], entries["theirs"]["heartbeatMs"]]

    before = beats()
    mixed.until(lambda: min(now - then for now, then in zip(beats(), before, strict=True)) > 1500)
    assert (ours.role[:7], theirs.role) == ("leading", "leading")
