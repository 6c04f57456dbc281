"""Inboxes of the other system: read to their end or not at all, and led over never while they hold work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.directory import AgentDirectory, agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.fleet.member import Member
from tenure.adapters.fleet.roles import Leading, Role
from tenure.adapters.journal.foreign import ForeignWork, inboxes, refuse_foreign_work
from tenure.adapters.journal.foreign_inbox import ForeignInboxDamaged, Inbox, SnapshotMissing, read_inbox
from tests.adapters.commands.foreign import BOT, Inboxes, birth_of, entry, follower_name, plain, update


@pytest.fixture
def room(tmp_path: Path) -> Inboxes:
    return Inboxes(tmp_path)


@pytest.fixture
def directory(tmp_path: Path) -> AgentDirectory:
    return agent_directory(tmp_path)


def read(path: Path, key: str = "default") -> Inbox:
    found = read_inbox(PosixFiles(), str(path), key)
    assert found is not None
    return found


def test_a_snapshot_and_the_segments_above_it(room: Inboxes) -> None:
    path = room.snapshot(entry(5), entry(7, "retry-wait"), revision=2)
    room.segment(1, [entry(1)])  # older than the snapshot: it was not deleted in time
    room.segment(2, [entry(5)])
    room.segment(3, [entry(8), entry(9, "failed")], [5])
    room.segment(4, [entry(7)])
    (path.parent / "inbox.json.segments" / "0000000000000005.json.77.x.tmp").touch()
    found = read(path)
    assert 4 == found.revision
    assert [(7, "pending"), (8, "pending"), (9, "failed")] == [(one.update, one.state) for one in found.entries]
    assert [plain(7), plain(8), plain(9)] == [one.raw for one in found.entries]
    assert 7 == found.bot.bot_id


def test_where_there_is_none_there_is_none(room: Inboxes) -> None:
    assert read_inbox(PosixFiles(), str(room.place / "inbox.json"), "default") is None


def test_segments_without_their_snapshot_are_no_empty_inbox(room: Inboxes) -> None:
    """B73."""
    room.segment(3, [entry(1)])
    with pytest.raises(SnapshotMissing, match=r"inbox\.json: it has gone") as missing:
        read(room.place / "inbox.json")
    assert 3 == missing.value.revision


def nested(depth: int) -> list[Any]:
    """So deep a list."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "another version"),
    ({"version": True}, "another version"),
    ({"surprise": 1}, "'surprise' does not belong there"),
    ({"profile": "play"}, "profile is 'play'"),
    ({"botIdentity": {}}, "tokenSha256 is missing"),
    ({"botIdentity": {"tokenSha256": "no"}}, "64 hex digits"),
    ({"botIdentity": {**BOT, "botId": "7"}}, "botId is no integer"),
    ({"botIdentity": {**BOT, "name": "x"}}, "'name' does not belong there"),
    ({"revision": -1}, "revision is missing, or no integer"),
    ({"entries": {}}, "entries is no list"),
    ({"entries": [1]}, "entries[0]: it is no object"),
    ({"entries": [entry(2), entry(1)]}, "entries[1]: updateId does not ascend"),
    ({"entries": [entry(2), entry(2)]}, "entries[1]: updateId does not ascend"),
    ({"entries": [entry(1, update=update(2))]}, "update.update_id is not its updateId"),
    ({"entries": [entry(1, update={**update(1), "x": nested(200)})]}, "update is nested deeper than 128"),
    ({"entries": [entry(1, admittedAtMs=None)]}, "admittedAtMs is missing"),
    ({"entries": [entry(1, "sleeping")]}, "state 'sleeping' is none"),
    ({"entries": [entry(1, color="red")]}, "'color' does not belong there"),
    ({"entries": [entry(1, "retry-wait", failure=None)]}, "failure is missing, or no object"),
    ({"entries": [{k: v for k, v in entry(1, "retry-wait").items() if k != "nextRetryAtMs"}]}, "nextRetryAtMs"),
    ({"entries": [entry(1, "queued", owner=(5, "x"), queueKind="dance")]}, "queueKind is neither"),
    ({"entries": [entry(1, "queued", owner=(5, ""))]}, "processBirthId is missing"),
    (
        {
            "entries": [
                entry(1, "queued", owner=(5, "x"), queueReceiptId="r"),
                entry(2, "queued", owner=(6, "x"), queueReceiptId="r"),
            ]
        },
        "receipt r has two owners",
    ),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG, ids=[says[:30] for _, says in WRONG])
def test_what_does_not_belong_there_fails_closed(room: Inboxes, wrong: dict[str, Any], says: str) -> None:
    path = room.snapshot(**wrong)
    before = path.read_bytes()
    with pytest.raises(ForeignInboxDamaged) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert before == path.read_bytes()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": NaN}', "\ufeff{}", "{" * 5_000])
def test_what_is_no_json_fails_closed(room: Inboxes, text: str) -> None:
    path = room.place / "inbox.json"
    path.write_text(text)
    with pytest.raises(ForeignInboxDamaged, match="nothing was changed"):
        read(path)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"revision": 3}, "revision does not follow"),
        ({"previousRevision": 0}, "revision does not follow"),
        ({"botIdentity": {**BOT, "botId": 8}}, "another bot"),
        ({"profile": "play"}, "profile is"),
        ({"removedUpdateIds": [1, 1]}, "has one twice"),
        ({"removedUpdateIds": [True]}, "no list of integers"),
        ({"upsertedEntries": [entry(9)], "removedUpdateIds": [9]}, "both upserted and removed"),
        ({"entries": []}, "'entries' does not belong there"),
    ],
)
def test_a_segment_that_does_not_follow_fails_closed(room: Inboxes, more: dict[str, Any], says: str) -> None:
    path = room.snapshot(entry(5), revision=1)
    segment = room.segment(2, **more)
    with pytest.raises(ForeignInboxDamaged, match=says) as refused:
        read(path)
    assert str(refused.value).startswith(f"{segment}: ")


def test_a_gap_and_a_stranger_fail_closed(room: Inboxes) -> None:
    path = room.snapshot(entry(5), revision=1)
    room.segment(3)
    with pytest.raises(ForeignInboxDamaged, match="revision does not follow 1"):
        read(path)
    (path.parent / "inbox.json.segments" / "notes.txt").touch()
    with pytest.raises(ForeignInboxDamaged, match="which is no segment"):
        read(path)


# -- leading over them ------------------------------------------------------------------------------------------------


def test_which_files_are_inboxes_of_a_profile(room: Inboxes, directory: AgentDirectory) -> None:
    room.snapshot()
    room.snapshot(name=follower_name())
    room.snapshot(name="inbox.play.json", profile="play")
    room.snapshot(name=follower_name("manual:z", ".play"), profile="play")
    room.segment(1, name="inbox.idle.json", profile="idle")
    for name in (
        "inbox.json.77.x.tmp",
        "inbox.json.transaction",
        "inbox2.json",
        "follower-inbox-x.json",
        "owners.json",
    ):
        (room.place / name).touch()
    files = PosixFiles()
    for key, names in (
        ("default", ["inbox.json", follower_name()]),
        ("play", ["inbox.play.json", follower_name("manual:z", ".play")]),
        ("idle", ["inbox.idle.json"]),
        ("none", []),
    ):
        assert [str(room.place / name) for name in names] == list(inboxes(files, directory, key))
    assert () == inboxes(files, AgentDirectory("/nowhere"), "default")


@pytest.mark.parametrize("name", ["inbox.json", follower_name()])
def test_work_is_not_led_over(room: Inboxes, directory: AgentDirectory, name: str) -> None:
    path = room.snapshot(entry(5), entry(6), name=name)
    with pytest.raises(ForeignWork) as refused:
        refuse_foreign_work(real_ports(), directory, "default")
    assert str(refused.value) == (
        f"{path}: the other system left 2 updates there, and nobody of ours leads over that; let it finish, or run "
        f"tenure import {directory.root}"
    )
    refuse_foreign_work(real_ports(), directory, "play")
    room.segment(1, [], [5, 6], name=name)
    refuse_foreign_work(real_ports(), directory, "default")
    path.write_text("{")
    with pytest.raises(ForeignInboxDamaged):
        refuse_foreign_work(real_ports(), directory, "default")


def test_an_empty_inbox_is_led_over(room: Inboxes, directory: AgentDirectory) -> None:
    refuse_foreign_work(real_ports(), directory, "default")
    room.snapshot()
    refuse_foreign_work(real_ports(), directory, "default")


def test_what_a_living_follower_has_queued_was_not_left(room: Inboxes, directory: AgentDirectory) -> None:
    mine = (os.getpid(), birth_of(os.getpid()))
    room.snapshot(entry(5, "queued", owner=mine), name=follower_name())
    refuse_foreign_work(real_ports(), directory, "default")
    for owner in ((os.getpid(), f"{os.getpid()}:start:1"), (os.getpid(), f"{os.getpid()}:generation:x")):
        room.snapshot(entry(5, "queued", owner=owner), name=follower_name())
        with pytest.raises(ForeignWork):
            refuse_foreign_work(real_ports(), directory, "default")
    room.snapshot(entry(5, "queued", owner=mine))
    with pytest.raises(ForeignWork):
        refuse_foreign_work(real_ports(), directory, "default")


async def _joined(directory: AgentDirectory) -> tuple[Role, str]:
    """What a member becomes first that is more than on its way, or what a person has to mend."""
    import asyncio

    roles: asyncio.Queue[Role] = asyncio.Queue()
    async with Member(directory, on_role=roles.put_nowait) as member:
        joining = asyncio.ensure_future(member.join())
        while True:
            role = await asyncio.wait_for(roles.get(), 30)
            error = str(getattr(role, "error", ""))
            if isinstance(role, Leading) or error:
                await member.leave()
                joining.cancel()
                await asyncio.wait([joining])
                return role, error


def test_a_member_leads_when_the_work_is_gone(room: Inboxes, directory: AgentDirectory) -> None:
    import asyncio

    path = room.snapshot(entry(5))
    role, error = asyncio.run(_joined(directory))
    assert not isinstance(role, Leading)
    assert f"{path}: the other system left 1 update there" in error
    assert not (room.place / "owners.json").exists() or "default" not in json.loads(
        (room.place / "owners.json").read_text()
    )
    room.snapshot()
    role, error = asyncio.run(_joined(directory))
    assert isinstance(role, Leading)


def test_a_directory_that_cannot_be_looked_into_is_not_led(room: Inboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: PosixFiles, path: str) -> tuple[str, ...]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(PosixFiles, "entries", denied)
    with pytest.raises(TenureError, match="give this user the right to read it"):
        refuse_foreign_work(real_ports(), agent_directory(room.place.parent.parent), "default")
