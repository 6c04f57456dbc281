"""``tenure import``: all of it or nothing, once, also when it is killed on the way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.journal.foreign import refuse_foreign_work
from tenure.adapters.journal.identity import identity_of_token
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.looking import foreign_import
from tenure.adapters.looking.quarantine import Quarantine
from tests.adapters.commands.desk import EPOCH, Desk, Tenure, dead
from tests.adapters.commands.foreign import BOT, FOLLOWER, Inboxes, birth_of, entry, follower_name, plain


@pytest.fixture
def room(desk: Desk) -> Inboxes:
    return Inboxes(desk.root)


def gone() -> tuple[int, str]:
    """A process that is dead, as the other system names it."""
    pid = int(dead().instance.partition(":")[0])
    return pid, f"{pid}:start:1"


def updates(desk: Desk) -> dict[int, tuple[str, str]]:
    """State and body of what the journal has."""
    with Journal.open(real_ports(), agent_directory(desk.root), create=False) as journal:
        rows = {n: journal.update(n) for n in range(1, 30)}
        return {n: (row.phase, row.raw) for n, row in rows.items() if row is not None}


def recovered(desk: Desk) -> list[str]:
    """The names of what was moved aside."""
    return sorted(path.name for path in (desk.root / "tmp/telegram/recovery").glob("*/*"))


def test_everything_is_taken_over_in_one_go(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5), entry(6, "retry-wait"), entry(8, "queued", owner=gone()), revision=1)
    room.segment(2, [entry(9)], [5])
    room.snapshot(entry(7), entry(9), name=follower_name())
    before = desk.bytes()
    dry = tenure("import", desk.root, "--dry-run")
    assert (0, "") == (dry.status, dry.err)
    assert "inbox.json: of bot 7, revision 2: 1 pending, 1 queued, 1 retry-wait" in dry.out
    assert "would take over 4 updates" in dry.out
    assert before == desk.bytes()
    said = tenure("import", desk.root)
    assert (0, "") == (said.status, said.err)
    assert "took over 4 updates\n" in said.out
    assert {n: ("journaled", plain(n)) for n in (6, 7, 8, 9)} == updates(desk)
    assert sorted(["inbox.json", "inbox.json.segments", follower_name()]) == recovered(desk)
    assert [] == [path.name for path in room.place.iterdir() if "inbox" in path.name]
    refuse_foreign_work(real_ports(), agent_directory(desk.root), "default")
    with desk.open() as journal:
        assert (True, 9) == (journal.state().opened, journal.state().passed)
        assert [6, 7, 8, 9] == [row.data.update for row in journal.outgoing(-1, 10)]
    again = tenure("import", desk.root)
    assert (0, f"{room.place}: the other system has left no inbox there\n") == (again.status, again.out)


def test_where_nothing_was_left_nothing_is_made(desk: Desk, tenure: Tenure) -> None:
    assert 0 == tenure("import", desk.root).status
    assert [] == list(desk.root.iterdir())


def test_an_empty_inbox_is_moved_aside(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot()
    assert "took over 0 updates" in tenure("import", desk.root).out
    assert ["inbox.json"] == recovered(desk)
    with desk.open() as journal:
        assert -1 == journal.state().passed


def test_what_has_failed_for_good_is_for_a_person(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5), entry(6, "failed"))
    before = desk.bytes()
    line = tenure.refused("import", desk.root)
    assert "1 update of the other system's have failed for good (6): say --failed retry" in line
    assert before == desk.bytes()
    assert 2 == tenure("import", desk.root, "--failed", "perhaps").status
    assert "1 of them given up" not in tenure("import", desk.root, "--failed", "retry", "--dry-run").out
    assert "took over 2 updates, 1 of them given up" in tenure("import", desk.root, "--failed", "discard").out
    assert {5: ("journaled", plain(5)), 6: ("discarded", "")} == updates(desk)
    last = tenure("why", desk.root, "6", "--json").json["decisions"][-1]
    assert ("discard", True) == (last["action"], last["person"])


def test_a_failed_one_is_executed_if_that_is_said(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(6, "failed"))
    assert 0 == tenure("import", desk.root, "--failed", "retry").status
    assert {6: ("journaled", plain(6))} == updates(desk)


def test_a_profile_has_its_own(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    room.snapshot(entry(6), name="inbox.play.json", profile="play")
    assert "took over 1 update\n" in tenure("import", desk.root, "--profile", "play").out
    assert ["inbox.play.json"] == recovered(desk)
    assert (room.place / "inbox.json").exists()
    assert not desk.path.exists()


def test_threads_that_were_left_are_named(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    (room.place / "state.json").write_text(json.dumps({"version": 1, "threads": [{"threadId": 1}]}))
    said = tenure("import", desk.root)
    assert 0 == said.status
    assert f"note: {room.place}/state.json: the other system left threads there" in said.out
    assert "took over 1 update\n" in said.out


# -- refused, as a whole ----------------------------------------------------------------------------------------------


def refused(desk: Desk, tenure: Tenure, *says: str) -> None:
    """It is, and nothing of the files was changed; if there is a journal nothing is in it."""
    before = {path: data for path, data in desk.bytes().items() if "inbox" in path}
    line = tenure.refused("import", desk.root)
    for words in says:
        assert words in line
    assert before == {path: data for path, data in desk.bytes().items() if "inbox" in path}
    if desk.path.exists():
        assert {} == updates(desk)


def test_what_a_living_process_has_queued_is_not_taken(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5), entry(6, "queued", owner=(os.getpid(), birth_of(os.getpid()))))
    refused(desk, tenure, f"update 6 is queued by pid {os.getpid()}", "is running; end it first")
    room.snapshot(entry(6, "queued", owner=(os.getpid(), f"{os.getpid()}:generation:x")))
    refused(desk, tenure, "may be running; end it first")


def test_what_a_living_follower_works_off_is_not_taken(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5), name=follower_name())
    follower = {"instanceId": "5:1", "pid": os.getpid(), "profileKey": FOLLOWER}
    (room.place / "state.json").write_text(json.dumps({"version": 1, "liveRoster": {"busFollowers": [follower]}}))
    refused(desk, tenure, follower_name(), f"pid {os.getpid()} of the other system, which works it off, is running")
    (room.place / "state.json").write_text(
        json.dumps({"version": 1, "liveRoster": {"busFollowers": [{**follower, "pid": gone()[0]}]}})
    )
    assert 0 == tenure("import", desk.root).status


def test_a_damaged_one_keeps_all(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    (room.place / follower_name()).write_text("{")
    refused(desk, tenure, follower_name(), "bad JSON")


def test_two_bots_are_not_mixed(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    room.snapshot(entry(6), name=follower_name(), botIdentity={**BOT, "botId": 8})
    refused(desk, tenure, "it is of bot 8", "of bot 7")


def test_two_bodies_are_not_mixed(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    room.snapshot(entry(5, update={"update_id": 5, "message": {}}), name=follower_name())
    refused(desk, tenure, "update 5 stands in another inbox with another body")


def test_another_bots_work_is_not_mixed_with_ours(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    with desk.open() as journal:
        desk.append(journal, 5)
    room.snapshot(entry(6), botIdentity={**BOT, "botId": 8})
    assert "the journal belongs to bot 7" in tenure.refused("import", desk.root)
    assert [5] == list(updates(desk))
    assert (room.place / "inbox.json").exists()


def test_what_our_journal_has_with_another_body_is_refused(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    with desk.open() as journal:
        desk.append(journal, 5)
    for _ in range(EPOCH):  # who led under that epoch had it from here
        lease = LeaseRuntime(real_ports(), agent_directory(desk.root), "default", cwd="/")
        lease.acquire("plain")
        lease.release()
    room.snapshot(entry(5), entry(6))
    assert "update 5 is in" in tenure.refused("import", desk.root)
    assert [5] == list(updates(desk))
    assert (room.place / "inbox.json").exists()


def test_what_our_journal_has_given_away_is_refused(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    """It led over followers of the other system, one of which died with what it was given."""
    with desk.open() as journal:
        journal.append([Incoming(5, plain(5), "k"), Incoming(9, plain(9), "k")], 3, desk.me.instance)
        found = journal.forward(5, 3, FOLLOWER, desk.me.instance)
        journal.acknowledged(5, 3, True, getattr(found, "delivery", None), 5, desk.me.instance)
    room.snapshot(entry(5), entry(7), name=follower_name())
    line = tenure.refused("import", desk.root)
    assert "update 5 was passed by" in line
    assert [5, 9] == list(updates(desk))
    assert (room.place / follower_name()).exists()


LEADER = """
import sys
from tenure.adapters.files.directory import AgentDirectory, agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.lease import LeaseRuntime

LeaseRuntime(real_ports(), agent_directory(sys.argv[1]), "default", cwd="/").acquire("plain")
print("leads", flush=True)
sys.stdin.read()
"""


def test_while_somebody_leads_nothing_is_taken(desk: Desk, room: Inboxes, tenure: Tenure) -> None:
    room.snapshot(entry(5))
    leader = subprocess.Popen(
        [sys.executable, "-c", LEADER, str(desk.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert leader.stdout is not None
    assert "leads\n" == leader.stdout.readline()
    try:
        refused(desk, tenure, f"pid {leader.pid} leads default; end that process first")
    finally:
        leader.kill()
        leader.communicate()
    assert 0 == tenure("import", desk.root).status


# -- killed on the way ------------------------------------------------------------------------------------------------


STEPS = (
    (Journal, ("raise_fence", "append", "discard_update", "end_first_start", "add_evidence")),
    (Quarantine, ("move",)),
    (LeaseRuntime, ("release",)),
)
"""What changes something."""
NEVER = 99
KILLED = 9


def cut_short(where: AgentDirectory, before: int) -> tuple[int, list[str]]:
    """Take over in a process of its own, which is killed before it begins so many-th step; its exit status, and what it
    has done."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        left = before

        def plugged(real: Callable[..., object], name: str) -> Callable[..., object]:
            def call(*given: object, **more: object) -> object:
                nonlocal left
                if left == 0:
                    os._exit(KILLED)
                left -= 1
                answer = real(*given, **more)
                os.write(writing, f"{name}\n".encode())
                return answer

            return call

        try:
            for place, names in STEPS:
                for name in names:
                    setattr(place, name, plugged(getattr(place, name), name))
            foreign_import.take_over(real_ports(), where, "default", "discard", "me (uid 1)")
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        done = said.read().split()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), done


def test_killed_anywhere_it_is_begun_again_and_ends_at_the_same(tmp_path: Path) -> None:
    reached: set[str] = set()
    for number in range(NEVER):
        desk = Desk(tmp_path / f"agent{number}")
        room = Inboxes(desk.root)
        room.snapshot(entry(5), entry(6, "failed"), revision=1)
        room.segment(2, [entry(8)], [5])
        room.snapshot(entry(7), name=follower_name())
        where = agent_directory(desk.root)
        status, done = cut_short(where, number)
        assert status in (0, KILLED)
        if [path for path in room.place.iterdir() if re.fullmatch(r"(inbox|follower).*(json|segments)", path.name)]:
            # Whatever was done of it, nobody leads over what is left.
            with pytest.raises(TenureError):
                refuse_foreign_work(real_ports(), where, "default")
            assert (0, True) == (cut_short(where, NEVER)[0], status == KILLED)
        assert {6: "discarded", 7: "journaled", 8: "journaled"} == {n: row[0] for n, row in updates(desk).items()}
        assert sorted(["inbox.json", "inbox.json.segments", follower_name()]) == recovered(desk)
        with desk.open() as journal:
            assert (True, 8) == (journal.state().opened, journal.state().passed)
        if status == 0:
            break
        reached |= set(done[-1:])
    assert {"raise_fence", "append", "discard_update", "end_first_start", "add_evidence", "move"} == reached


def test_segments_whose_snapshot_somebody_lost_are_not_taken_for_ours(
    desk: Desk, room: Inboxes, tenure: Tenure
) -> None:
    room.segment(2, [entry(8)])
    refused(desk, tenure, "inbox.json: it has gone")
    with Journal.open(real_ports(), agent_directory(desk.root), bot=identity_of_token("7:secret")) as journal:
        journal.add_evidence(foreign_import.TAKEN, str(room.place / "inbox.json"), "1")
    refused(desk, tenure, "inbox.json: it has gone")
    with Journal.open(real_ports(), agent_directory(desk.root), create=False) as journal:
        journal.add_evidence(foreign_import.TAKEN, str(room.place / "inbox.json"), "2")
    assert "only segments of it were there" in tenure("import", desk.root).out
    assert ["inbox.json.segments"] == recovered(desk)


def test_a_rename_that_fails_says_that_it_can_be_begun_again(
    desk: Desk, room: Inboxes, tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.snapshot(entry(5))

    def full(self: Quarantine, path: str) -> None:
        raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as patch:
        patch.setattr(Quarantine, "move", full)
        said = tenure("import", desk.root)
    assert 2 == said.status
    assert "the updates are in the journal, and the other system's files were not all moved: run this again" in said.err
    assert [5] == list(updates(desk))
    again = tenure("import", desk.root)
    assert "took over 0 updates, 1 were there already" in again.out
    assert ["inbox.json"] == recovered(desk)
