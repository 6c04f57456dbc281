"""``tenure journal list`` and ``show``: what is said, the shape of JSON, and what they do where something is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.adapters.files.directory import agent_directory
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.journal import Journal
from tenure.adapters.journal.updates import Incoming
from tenure.adapters.looking import journal_look
from tenure.adapters.ports import Ports
from tests.adapters.commands.desk import MINE, THEIRS, Desk, Tenure, body, dead

LIST = ["profile", "path", "exists", "atMs", "bot", "fence", "passed", "opened", "totals", "servers", "updates"]
LIST += ["receipts", "waitsForPerson", "more"]
TOTALS = ["updates", "receipts", "updateBytes", "receiptBytes", "tombstones", "decisions"]
UPDATE = ["update", "state", "kind", "binding", "delivery", "attempts", "failure", "admittedAtMs", "nextAtMs"]
UPDATE += ["settledAtMs"]
DELIVERY = ["delivery", "state", "kind", "binding", "update", "receipt", "position", "digest", "admittedAtMs"]
DELIVERY += ["settledAtMs"]
RECEIPT = ["receipt", "state", "kind", "binding", "updates", "owner", "ownedSinceMs", "offer", "fallen", "attempts"]
RECEIPT += ["attemptLimit", "admittedAtMs", "notBeforeMs", "settledAtMs", "move"]
OWNER = ["instance", "pid", "process", "life", "provenDead", "session", "acquisition", "handoff"]
SERVER = ["binding", "instance", "pid", "process", "life", "provenDead", "sinceMs", "leftAtMs"]


def short(receipt: str) -> str:
    return receipt.rpartition("-")[2][:10]


# -- a list -----------------------------------------------------------------------------------------------------------


def test_everything_that_is_unsettled_is_there(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    said = tenure("journal", "list", desk.root)
    assert (0, "") == (said.status, said.err)
    pid = os.getpid()
    for words in (
        "profile default, of bot 7, epoch fence 3, up to update 22",
        "updates      2 waiting",
        "receipts     1 pending, 1 queued, 1 started, 1 interrupted, 1 failed",
        f"{MINE}: {pid}:17, pid {pid} (running",
        f"update 20    waiting, bound to {THEIRS}",
        "it could not be sent",
        "(recipient-generation-missing)",
        f"{short(receipts['pending'])}   prompt of update 10 for {MINE}: pending",
        f"{short(receipts['queued'])}   prompt of update 13 for {MINE}: queued at {pid}:17",
        f"{short(receipts['started'])}   prompt of update 12 for {MINE}: started by {pid}:17",
        f"{short(receipts['interrupted'])}   prompt of update 14 for {MINE}: interrupted in attempt 1 of 5",
        f"{short(receipts['failed'])}   prompt of update 15 for {MINE}: failed 5 times",
        f"tenure journal retry {desk.root} {short(receipts['interrupted'])}\n",
        f"tenure journal discard {desk.root} {short(receipts['failed'])}\n",
    ):
        assert words in said.out, words
    assert short(receipts["done"]) not in said.out
    assert "update 11" not in said.out


def test_what_is_settled_comes_with_all(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    said = tenure("journal", "list", desk.root, "--all").out
    assert f"{short(receipts['done'])}   prompt of update 11 for {MINE}: done" in said
    assert "update 22    discarded" in said
    assert f"update 11    delivered to {MINE}" in said


def test_no_line_is_wider_than_a_page_but_for_commands(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    for line in tenure("journal", "list", desk.root, "--all").out.splitlines():
        assert len(line) <= 100 or " tenure journal " in line or line.startswith("/"), line


def test_a_list_has_so_many_rows(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    assert "there is more; see --limit" in tenure("journal", "list", desk.root, "--limit", "1").out
    few = tenure("journal", "list", desk.root, "--limit", "1", "--json").json
    assert ([20], True) == ([row["update"] for row in few["updates"]], few["more"])
    assert [10] == [row["updates"][0] for row in few["receipts"]]
    assert 5 == sum(few["totals"]["receipts"].values())
    for options in (["--limit", "5"], ["--all"]):
        assert tenure("journal", "list", desk.root, *options, "--json").json["more"] is False
    assert tenure("journal", "list", desk.root, "--all", "--limit", "6", "--json").json["more"] is True


def test_the_shape_of_a_list_stays(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    found = tenure("journal", "list", desk.root, "--json", "--all").json
    assert LIST == list(found)
    assert TOTALS == list(found["totals"])
    assert {"pending": 1, "queued": 1, "started": 1, "interrupted": 1, "failed": 1} == found["totals"]["receipts"]
    assert {"journaled": 0, "forwarding": 0, "waiting": 2} == found["totals"]["updates"]
    assert 7 == found["bot"]["botId"]
    assert ["botId", "tokenSha256"] == list(found["bot"])
    for row in found["updates"]:
        assert UPDATE == list(row)
    by_id = {row["receipt"]: row for row in found["receipts"]}
    assert set(receipts.values()) == set(by_id)
    for state, receipt in receipts.items():
        assert RECEIPT == list(by_id[receipt])
        assert state == by_id[receipt]["state"]
    owner = by_id[receipts["queued"]]["owner"]
    assert OWNER == list(owner)
    assert (os.getpid(), "running", False) == (owner["pid"], owner["life"], owner["provenDead"])
    assert by_id[receipts["pending"]]["owner"] is None
    (server,) = found["servers"]
    assert SERVER == list(server)
    assert {"interrupted", "failed"} == {row["state"] for row in found["waitsForPerson"]}
    assert ["receipt", "state", "retry", "discard"] == list(found["waitsForPerson"][0])


def test_offers_and_wishes_are_said(desk: Desk, tenure: Tenure) -> None:
    gone = dead()
    with desk.open() as journal:
        receipt = desk.kept(journal, 1)
        journal.offer(receipt, desk.taken(journal, receipt), "handoff-1", gone)
        assert journal.ask_move(receipt, gone.instance)
        fell = desk.kept(journal, 2)
        journal.offer(fell, desk.taken(journal, fell, gone), "handoff-2", desk.me)
        journal.recover_all(desk.me)
    said = " ".join(tenure("journal", "list", desk.root).out.split())
    assert f"offered to {gone.instance}; wanted at {gone.instance}" in said
    assert f"an offer to {desk.me.instance} fell with its owner" in said
    by_update = {row["updates"][0]: row for row in tenure("journal", "list", desk.root, "--json").json["receipts"]}
    assert {"handoff": "handoff-1", "instance": gone.instance, "pid": int(gone.instance.partition(":")[0])} == {
        key: value for key, value in by_update[1]["offer"].items() if key != "process"
    }
    assert "handoff-2" == by_update[2]["fallen"]["handoff"]
    assert [gone.instance, None] == [by_update[1]["move"]["instance"], by_update[1]["move"]["outcome"]]


def test_a_directory_without_a_journal_says_so(desk: Desk, tenure: Tenure) -> None:
    said = tenure("journal", "list", desk.root)
    assert 0 == said.status
    assert f"there is none yet at {desk.path}" in " ".join(said.out.split())
    found = tenure("journal", "list", desk.root, "--json").json
    assert LIST == list(found)
    assert (False, []) == (found["exists"], found["receipts"])
    assert {} == desk.bytes()
    assert [] == list(desk.root.iterdir())


def test_an_empty_file_is_no_journal_yet_and_stays_empty(desk: Desk, tenure: Tenure) -> None:
    desk.path.parent.mkdir(parents=True)
    desk.path.touch()
    assert "there is none yet" in tenure("journal", "list", desk.root).out
    assert "there is no journal yet" in tenure.refused("journal", "retry", desk.root, "1", "--yes")
    assert "there is no journal yet" in tenure.refused("why", desk.root, "1")
    assert b"" == desk.path.read_bytes()


def test_profiles_have_journals_of_their_own(desk: Desk, tenure: Tenure, tmp_path: Path) -> None:
    play = Desk(desk.root, "play")
    with desk.open() as journal, play.open() as other:
        desk.append(journal, 1)
        play.append(other, 2)
    said = tenure("journal", "list", desk.root, "--profile", "play")
    assert "profile play" in said.out
    assert "update 2 " in said.out
    assert "update 1 " not in said.out
    assert "journals of other profiles: the default" in said.out
    assert "journals of other profiles: --profile play" in tenure("journal", "list", desk.root).out
    assert "a name has 1 to 32" in tenure.refused("journal", "list", desk.root, "--profile", "No")
    assert "a file; --profile says" in tenure.refused("journal", "list", play.path, "--profile", "play")


# -- reading changes nothing ------------------------------------------------------------------------------------------


def test_looking_changes_no_byte(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    before = desk.bytes()
    for options in ([], ["--all"], ["--all", "--json"]):
        assert 0 == tenure("journal", "list", desk.root, *options).status
    for name in ("20", receipts["done"], receipts["queued"]):
        assert 0 == tenure("journal", "show", desk.root, name).status
        assert 0 == tenure("why", desk.root, name).status
    assert 0 == tenure("status", desk.root).status
    assert before == desk.bytes()


def test_it_is_read_while_a_writer_has_begun(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    writer = sqlite3.connect(desk.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE meta SET fence = 99")
    try:
        said = tenure("journal", "list", desk.root)
    finally:
        writer.close()
    assert "epoch fence 3" in said.out


def test_who_is_inside_for_long_is_told_of(desk: Desk, tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_look, "TRIES", 1)
    desk.full()
    writer = sqlite3.connect(desk.path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        assert "another process is inside the journal" in tenure.refused("journal", "list", desk.root)
    finally:
        writer.close()


def torn(desk: Desk, copy: Path) -> None:
    """Copy the directory while a process is in the middle of a transaction that has begun to overwrite the file."""
    writer = sqlite3.connect(desk.path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = TRUNCATE")
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE updates SET raw = printf('%.20000c', 'x')")
    writer.execute("UPDATE meta SET fence = 99")
    shutil.copytree(desk.root, copy)
    writer.close()
    assert (copy / "tmp/telegram/journal.db-journal").stat().st_size > 0


def test_a_copy_with_an_unfinished_transaction_reads_as_before_it(desk: Desk, tenure: Tenure, tmp_path: Path) -> None:
    desk.full()
    copy = tmp_path / "copy"
    torn(desk, copy)
    before = Desk(copy).bytes()
    status = tenure("status", copy)
    assert "a process died in the middle of a transaction; whoever opens the journal next undoes that" in status.out
    assert before == Desk(copy).bytes()
    assert 0 == tenure("journal", "show", copy, "20").status
    assert [20, 21] == [row["update"] for row in tenure("journal", "list", copy, "--json").json["updates"]]
    assert 3 == tenure("journal", "list", copy, "--json").json["fence"]
    assert body(20) == tenure("journal", "show", copy, "20", "--json").json["update"]["raw"]


# -- bad input --------------------------------------------------------------------------------------------------------

COMMANDS = (
    ["journal", "list"],
    ["journal", "show", "20"],
    ["why", "20"],
    ["journal", "retry", "20", "--yes"],
    ["journal", "discard", "20", "--yes"],
    ["journal", "release", "20", "--yes"],
    ["handoff", "20", "--to", "A"],
    ["journal", "backup", "copy.db"],
)


def typed(command: list[str], directory: Path) -> list[str | Path]:
    """A command with DIR in its place."""
    words = 2 if command[0] == "journal" else 1
    return [*command[:words], directory, *command[words:]]


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def stranger(path: Path) -> None:
    path.unlink()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE notes (text)")
    database.commit()
    database.close()


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, but it is long enough to be looked at" * 20)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def gone(path: Path) -> None:
    path.unlink()
    Path(f"{path}-journal").write_bytes(b"x" * 600)


def gone_without_a_trace(path: Path) -> None:
    """But the mark that there was one."""
    path.unlink()
    Path(f"{path}-journal").unlink()


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def emptied(path: Path) -> None:
    path.write_bytes(b"")
    Path(f"{path}-journal").write_bytes(b"x" * 600)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (newer, "a newer version of tenure has written it"),
        (stranger, "this database belongs to another program"),
        (garbage, "this is no database"),
        (cut, "the journal is damaged"),
        (directory, "a directory stands where the journal belongs"),
        (gone, "the journal has gone"),
        (gone_without_a_trace, "the journal has gone"),
        (cut_to_nothing, "the journal is empty"),
        (emptied, "the journal is empty"),
    ],
)
def test_a_journal_that_is_none_is_one_line_and_stays(
    desk: Desk,
    tenure: Tenure,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    harm: Callable[[Path], None],
    says: str,
) -> None:
    desk.full()
    harm(desk.path)
    monkeypatch.chdir(tmp_path)
    before = desk.bytes()
    line = tenure.refused(*typed(command, desk.root))
    assert line.startswith(f"{desk.path}: ")
    assert says in line
    assert before == desk.bytes()
    assert [desk.root] == list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS[1:], ids=lambda command: " ".join(command[:2]))
def test_where_there_is_no_journal_nothing_is_made(
    desk: Desk, tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no journal yet" in tenure.refused(*typed(command, desk.root))
    assert [] == list(desk.root.iterdir())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_dir_is_one_that_exists(
    tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no such directory" in tenure.refused(*typed(command, tmp_path / "nowhere"))
    assert "DIR is empty" in tenure.refused(*("" if word == Path("x") else word for word in typed(command, Path("x"))))
    assert [] == list(tmp_path.iterdir())


def test_status_names_a_damaged_journal(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    garbage(desk.path)
    said = tenure("status", desk.root)
    assert 0 == said.status
    assert f"journal      {desk.path}: this is no database" in said.out
    found = json.loads(tenure("status", desk.root, "--json").out)
    assert found["problems"] == [found["journals"][0]["problem"]]


def test_status_says_what_is_unsettled(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    said = tenure("status", desk.root).out
    assert "journal      updates 2 waiting; receipts 1 pending, 1 queued, 1 started, 1 interrupted, 1 failed" in said
    assert f"tenure journal list {desk.root}" in said
    (journal,) = tenure("status", desk.root, "--json").json["journals"]
    assert ["key", "path", "problem", "unfinished", "updates", "receipts"] == list(journal)
    assert 2 == journal["updates"]["waiting"]


@pytest.mark.parametrize("harm", [gone_without_a_trace, cut_to_nothing])
def test_status_tells_of_a_journal_that_is_lost(desk: Desk, tenure: Tenure, harm: Callable[[Path], None]) -> None:
    """And how to go on."""
    play = Desk(desk.root, "play")
    desk.full()
    play.open().close()
    harm(play.path)
    said = " ".join(tenure("status", desk.root, "--profile", "play").out.split())
    assert f"{play.path}: the journal {'is empty' if harm is cut_to_nothing else 'has gone'}, though" in said
    assert "put a backup in its place, or remove journal.play.made" in said


# -- one --------------------------------------------------------------------------------------------------------------


def test_one_is_shown_whole(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    said = tenure("journal", "show", desk.root, "13").out
    assert receipts["queued"] in said
    assert body(13) in said
    assert "acquisition" in said
    found = tenure("journal", "show", desk.root, "13", "--json").json
    assert ["id", "update", "deliveries", "receipts"] == list(found)
    assert [*UPDATE, "raw"] == list(found["update"])
    (delivery,), (receipt,) = found["deliveries"], found["receipts"]
    assert [*DELIVERY, "raw"] == list(delivery)
    assert [*RECEIPT, "payload"] == list(receipt)
    assert body(13) == delivery["raw"]
    assert [13] == receipt["updates"]
    by_delivery = tenure("journal", "show", desk.root, delivery["delivery"], "--json").json
    assert (delivery, receipt) == (by_delivery["deliveries"][0], by_delivery["receipts"][0])


def test_what_is_long_is_cut_for_people_and_whole_in_json(desk: Desk, tenure: Tenure) -> None:
    text = json.dumps({"update_id": 5, "message": {"text": "x" * 9_000 + "the end"}})
    with desk.open() as journal:
        journal.append([Incoming(5, text, "leader.forwardMessage")], 3, desk.me.instance)
    said = tenure("journal", "show", desk.root, "5").out
    assert "the end" not in said
    assert "(8.8 KiB in all; --json has everything)" in " ".join(said.split())
    assert text == tenure("journal", "show", desk.root, "5", "--json").json["update"]["raw"]


def test_what_others_wrote_does_not_steer_the_terminal(desk: Desk, tenure: Tenure) -> None:
    with desk.open() as journal:
        desk.append(journal, 1)
        journal.forward(1, 3, "cwd:/a\n\x1b[31mb", desk.me.instance)
    root = str(desk.root)
    for command in (["journal", "list", root], ["journal", "show", root, "1"], ["why", root, "1"]):
        said = tenure(*command)
        assert "\x1b" not in said.out
        assert "cwd:/a\\n\\x1b[31mb" in said.out


def test_ids_are_called_by_their_first_digits(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    whole = receipts["queued"]
    digits = whole.rpartition("-")[2]
    for name in (whole, digits, digits[:6], digits[:12].upper(), f"telegram-prompt-v1-{digits[:8]}"):
        assert whole == tenure("journal", "show", desk.root, name, "--json").json["id"], name
    assert "give at least 6 digits" in tenure.refused("journal", "show", desk.root, "abc")
    assert "is called so" in tenure.refused("journal", "show", desk.root, "2\N{FULLWIDTH DIGIT ZERO}")
    assert "no update, delivery or receipt" in tenure.refused("journal", "show", desk.root, "9" * 8)
    assert "no update, delivery or receipt" in tenure.refused("journal", "show", desk.root, "no such thing")
    assert "no update, delivery or receipt" in tenure.refused("journal", "show", desk.root, "")
    assert "no update, delivery or receipt" in tenure.refused("journal", "show", desk.root, "9" * 30)
    assert "20" == tenure("journal", "show", desk.root, "0020", "--json").json["id"]


def test_digits_that_several_begin_with_are_refused(desk: Desk, tenure: Tenure) -> None:
    with desk.open() as journal:
        receipt = desk.kept(journal, 1)
    twin = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    with sqlite3.connect(desk.path) as database:
        database.execute("UPDATE deliveries SET receipt_id = ?", (twin,))
        columns = [row[1] for row in database.execute("PRAGMA table_info(receipts)")]
        rest = ", ".join(columns[1:])
        database.execute(f"INSERT INTO receipts (receipt_id, {rest}) SELECT '{twin}', {rest} FROM receipts")
    database.close()
    line = tenure.refused("journal", "discard", desk.root, receipt.rpartition("-")[2][:8], "--yes")
    assert "several begin so" in line
    assert receipt in line
    assert twin in line


@pytest.mark.parametrize("seed", range(12))
def test_a_file_with_wrong_bytes_is_read_or_refused_in_one_line(
    desk: Desk, tenure: Tenure, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever the bytes: an answer, or one line about the file; and looking changes none of them."""
    monkeypatch.setattr(journal_look, "TRIES", 1)
    desk.full()
    chance = random.Random(seed)
    data = bytearray(desk.path.read_bytes())
    for _ in range(chance.choice([1, 20, 300])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if seed % 3 == 0:
        page = 4_096 * chance.randrange(len(data) // 4_096)
        data[page : page + 4_096] = bytes(4_096)
    desk.path.write_bytes(data)
    before = desk.bytes()
    for command in COMMANDS[:3]:
        said = tenure(*typed(command, desk.root))
        assert said.status in (0, 2)
        assert said.status == 0 or (1, True) == (len(said.err.splitlines()), str(desk.path) in said.err)
        assert "a fault of the program" not in said.err
    assert 0 == tenure("status", desk.root).status
    assert before == desk.bytes()
    for command in COMMANDS[3:6]:
        assert tenure(*typed(command, desk.root)).status in (0, 1, 2)


def test_what_somebody_else_has_undone_meanwhile_is_read(
    desk: Desk, tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look that was refused and the look why, another process opens the journal."""
    desk.full()
    copy = tmp_path / "copy"
    torn(desk, copy)
    real = journal_look._look
    undone: list[bool] = []

    def refused(ports: Ports, path: str, *rest: Any) -> Any:
        try:
            return real(ports, path, *rest)
        finally:
            if not undone:
                undone.append(True)
                with Journal.open(real_ports(), agent_directory(copy), create=False) as journal:
                    journal.state()

    monkeypatch.setattr(journal_look, "_look", refused)
    assert 3 == tenure("journal", "list", copy, "--json").json["fence"]
    assert [True] == undone
