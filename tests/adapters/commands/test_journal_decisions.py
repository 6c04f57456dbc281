"""``tenure journal retry``, ``discard`` and ``release``: what a person decides; and ``backup``."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from tenure.adapters.commands import deciding
from tenure.adapters.looking.journal_story import meanings
from tests.adapters.commands.desk import EPOCH, MINE, THEIRS, Desk, Tenure

ME = f"{pwd.getpwuid(os.getuid()).pw_name} (uid {os.getuid()})"
DECIDED = ["id", "action", "by", "done", "state", "refused"]


def states(tenure: Tenure, desk: Desk) -> dict[str, str]:
    """By whole id of a receipt, and by update id, what state it is in."""
    found = tenure("journal", "list", desk.root, "--all", "--json").json
    said = {row["receipt"]: row["state"] for row in found["receipts"]}
    return said | {str(row["update"]): row["state"] for row in found["updates"]}


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_what_waits_for_a_person_is_done_again(desk: Desk, tenure: Tenure, state: str) -> None:
    receipt = desk.full()[state]
    short = receipt.rpartition("-")[2][:10]
    said = tenure("journal", "retry", desk.root, short, "--yes")
    assert (0, f"receipt {short}: {state} -> pending, by {ME}\n", "") == (said.status, said.out, said.err)
    assert "pending" == states(tenure, desk)[receipt]
    with desk.open() as journal:
        told = journal.life(receipt)[-1]
    assert ("retry", ME) == (told.action, told.party)


@pytest.mark.parametrize("state", ["pending", "interrupted", "failed"])
def test_what_is_given_up_is_discarded_with_its_delivery(desk: Desk, tenure: Tenure, state: str) -> None:
    receipt = desk.full()[state]
    assert 0 == tenure("journal", "discard", desk.root, receipt, "--yes").status
    assert "discarded" == states(tenure, desk)[receipt]
    (delivery,) = tenure("journal", "show", desk.root, receipt, "--json").json["deliveries"]
    assert ("discarded", "") == (delivery["state"], delivery["raw"])


def test_an_update_that_waits_is_tried_now(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    assert "update 20: waiting -> journaled" in tenure("journal", "retry", desk.root, "20", "--yes").out
    assert "journaled" == states(tenure, desk)["20"]


def test_an_update_is_given_up(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    assert "update 21: waiting -> discarded" in tenure("journal", "discard", desk.root, "21", "--yes").out
    assert "discarded" == states(tenure, desk)["21"]


def test_an_update_is_let_go_elsewhere(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    assert 0 == tenure("journal", "release", desk.root, "20", "--yes").status
    with desk.open() as journal:
        row = journal.update(20)
    assert row is not None
    assert ("journaled", None) == (row.phase, row.data.binding)


def test_an_update_id_means_its_receipt_once_an_instance_has_it(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    assert 0 == tenure("journal", "retry", desk.root, "14", "--yes").status
    assert "pending" == states(tenure, desk)[receipts["interrupted"]]


def test_an_update_with_two_receipts_is_asked_about(desk: Desk, tenure: Tenure) -> None:
    from tenure.adapters.journal.deliveries import Arrival
    from tenure.machines.admission_identity import delivery_id

    with desk.open() as journal:
        desk.append(journal, 1)
        journal.forward(1, EPOCH, THEIRS, desk.me.instance)
        for kind in ("leader.forwardMessage", "leader.forwardEdited"):
            journal.admit(Arrival(delivery_id(kind, THEIRS, 1), kind, THEIRS, 1, "{}"), THEIRS, "9:9")
        journal.acknowledged(1, EPOCH, True, delivery_id("leader.forwardMessage", THEIRS, 1), 1, desk.me.instance)
    line = tenure.refused("journal", "discard", desk.root, "1", "--yes")
    assert "it has several receipts" in line
    names = re.findall(r"\b[0-9a-f]{10}\b", line)
    assert 2 == len(names)
    assert 0 == tenure("journal", "discard", desk.root, names[0], "--yes").status
    # Of those that are left there is one.
    assert 0 == tenure("journal", "discard", desk.root, "1", "--yes").status


REFUSALS = [
    ("retry", "pending"),
    ("retry", "queued"),
    ("retry", "started"),
    ("retry", "done"),
    ("discard", "queued"),
    ("discard", "started"),
    ("discard", "done"),
]


@pytest.mark.parametrize(("action", "state"), REFUSALS, ids=lambda value: value)
def test_the_machine_refuses_what_runs_or_is_over(desk: Desk, tenure: Tenure, action: str, state: str) -> None:
    receipt = desk.full()[state]
    short = receipt.rpartition("-")[2][:10]
    said = tenure("journal", action, desk.root, short, "--yes")
    assert (1, "") == (said.status, said.out)
    assert f"tenure: receipt {short} is {state}: {action} is refused; nothing was changed" == said.err.splitlines()[0]
    assert state == states(tenure, desk)[receipt]
    found = tenure("journal", action, desk.root, short, "--yes", "--json")
    assert 1 == found.status
    assert DECIDED == list(found.json)
    assert (receipt, action, ME, False, state) == tuple(found.json[key] for key in DECIDED[:5])
    assert state == found.json["refused"]["state"]
    last = tenure("why", desk.root, short, "--json").json["decisions"][-1]
    assert (action, ME, True, True) == (last["action"], last["by"], last["person"], last["refused"])


def test_a_guard_that_refuses_is_told_with_its_law(desk: Desk, tenure: Tenure) -> None:
    """What an instance has admitted is discarded as a receipt, not as an update, whose answer was lost."""
    from tenure.adapters.journal.deliveries import Arrival
    from tenure.machines.admission_identity import delivery_id

    with desk.open() as journal:
        desk.append(journal, 1)
        journal.forward(1, EPOCH, THEIRS, desk.me.instance)
        kind = "leader.forwardMessage"
        journal.admit(Arrival(delivery_id(kind, THEIRS, 1), kind, THEIRS, 1, "{}"), THEIRS, "9:9")
    for action in ("discard", "release"):
        said = tenure("journal", action, desk.root, "1", "--yes")
        assert 1 == said.status
        assert f"update 1 is forwarding: {action} is refused" in said.err
    assert (
        f"  Fence, not_admitted: {meanings('1')['not_admitted'][1]}\n"
        in tenure("journal", "discard", desk.root, "1", "--yes").err
    )
    refused = tenure("journal", "discard", desk.root, "1", "--yes", "--json").json["refused"]
    assert [("not_admitted", "Fence")] == [(guard["guard"], guard["law"]) for guard in refused["guards"]]


def test_json_of_a_decision_stays(desk: Desk, tenure: Tenure) -> None:
    receipt = desk.full()["failed"]
    found = tenure("journal", "retry", desk.root, receipt, "--yes", "--json")
    assert 0 == found.status
    assert DECIDED == list(found.json)
    assert [receipt, "retry", ME, True, "pending", None] == list(found.json.values())


def test_only_an_update_is_released(desk: Desk, tenure: Tenure) -> None:
    """What an instance has is told as that, by whatever id it was named."""
    receipts = desk.full()
    short = receipts["pending"].rpartition("-")[2][:10]
    said = f"its receipt {short} is pending; only an update that no instance has is released"
    with desk.open() as journal:
        row = journal.receipt(receipts["pending"])
    assert row is not None
    for name in (receipts["pending"], str(row.first_update)):
        assert said in tenure.refused("journal", "release", desk.root, name, "--yes")


def test_where_nobody_can_be_asked_yes_has_to_be_said(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    before = desk.bytes()
    line = tenure.refused("journal", "retry", desk.root, receipts["interrupted"])
    assert "if its effect happened, it happens twice" in line
    assert "say --yes if that is meant; nothing was changed" in line
    assert before == desk.bytes()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_a_person_is_asked(
    desk: Desk, tenure: Tenure, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    receipts = desk.full()

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer + "\n"

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", lambda prompt="": answer)
    before = desk.bytes()
    said = tenure("journal", "discard", desk.root, receipts["failed"])
    assert status == said.status
    assert (before == desk.bytes()) == (status == 1)
    assert ("nothing was changed" in said.err) == (status == 1)


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)
    assert "a user without a name (uid 4000000001)" == deciding.person()


# -- a copy -----------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_journal(desk: Desk, tenure: Tenure, tmp_path: Path) -> None:
    receipts = desk.full()
    file = tmp_path / "monday.db"
    with desk.open() as journal:
        desk.append(journal, 30)
        said = tenure("journal", "backup", desk.root, file)
    assert (0, "") == (said.status, said.err)
    size = file.stat().st_size
    assert said.out.startswith(f"{file}: {size / 1024:.1f} KiB; updates 1 journaled, 2 waiting; receipts 1 pending,")
    assert 0o600 == file.stat().st_mode & 0o777
    copied, original = (tenure("journal", "list", place, "--json", "--all").json for place in (file, desk.root))
    for key in ("updates", "receipts", "servers", "totals", "bot", "passed"):
        assert original[key] == copied[key]
    assert (None, str(file)) == (copied["profile"], copied["path"])
    assert receipts["queued"] == tenure("journal", "show", file, "13", "--json").json["receipts"][0]["receipt"]
    assert (
        tenure("why", desk.root, "13", "--json").json["decisions"]
        == tenure("why", file, "13", "--json").json["decisions"]
    )
    text = tenure("journal", "list", file).out
    assert "backup, of bot 7" in text
    assert "decide" not in text
    assert [file] == [path for path in tmp_path.iterdir() if path != desk.root]
    assert "a file, not a directory" in tenure.refused("journal", "retry", file, "13", "--yes")


def test_a_backup_in_its_place_is_the_journal(desk: Desk, tenure: Tenure, tmp_path: Path) -> None:
    desk.full()
    file = tmp_path / "monday.db"
    found = tenure("journal", "backup", desk.root, file, "--json").json
    assert ["path", "bytes", "updates", "receipts", "tombstones", "decisions"] == list(found)
    assert (str(file), file.stat().st_size, 2, 5) == tuple(found.values())[:4]
    again = Desk(tmp_path / "again")
    again.path.parent.mkdir(parents=True)
    file.rename(again.path)
    with again.open() as journal:
        assert 5 == len(journal.listing().receipts)
        again.append(journal, 40)


def test_a_file_that_is_no_backup_is_told(tenure: Tenure, tmp_path: Path) -> None:
    """A mistyped name harms nothing, and says nothing of a journal that would have to be mended."""
    for name, body, said in (("empty", b"", "an empty file, and no journal"), ("notes", b"some text\n", "no journal")):
        file = tmp_path / name
        file.write_bytes(body)
        for words in (["journal", "list"], ["why"]):
            line = tenure.refused(*words, file, *(["1"] if words == ["why"] else []))
            assert f"{file}: {said}; name the agent's directory, or the file of a backup" in line
        assert body == file.read_bytes()


def test_a_backup_replaces_nothing(desk: Desk, tenure: Tenure, tmp_path: Path) -> None:
    desk.full()
    file = tmp_path / "there"
    file.write_text("mine")
    before = desk.bytes()
    assert f"{file}: something is there" in tenure.refused("journal", "backup", desk.root, file)
    assert "something is there" in tenure.refused("journal", "backup", desk.root, tmp_path)
    assert "there is no such directory" in tenure.refused("journal", "backup", desk.root, tmp_path / "no" / "file")
    assert "FILE is empty" in tenure.refused("journal", "backup", desk.root, "")
    assert "mine" == file.read_text()
    assert before == desk.bytes()
    assert {desk.root, file} == set(tmp_path.iterdir())


def test_a_relative_file_is_where_one_is(
    desk: Desk, tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.full()
    monkeypatch.chdir(tmp_path)
    assert 0 == tenure("journal", "backup", desk.root, "b.db").status
    assert f"{MINE}" in tenure("journal", "list", "b.db").out
