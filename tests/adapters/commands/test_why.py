"""``tenure why``: each decision with its guards, gaps, and what would move it now."""

from __future__ import annotations

import os
import sqlite3

import pytest

from tenure.adapters.journal.capacity import Limits
from tenure.adapters.looking.journal_story import meanings
from tenure.machines.delivery import DELIVERY
from tenure.machines.forwarding import FORWARDING
from tenure.machines.receipt import RECEIPT
from tests.adapters.commands.desk import EPOCH, MINE, THEIRS, Desk, Tenure, dead

STORY = ["id", "path", "atMs", "decisions", "missing", "untold", "waits", "servers", "update", "deliveries", "receipts"]
DECISION = ["seq", "nth", "atMs", "subject", "action", "by", "pid", "person", "tenure", "refused", "detail", "guards"]
DECISION += ["missingBefore"]


def words(tenure: Tenure, desk: Desk, name: str) -> str:
    """What is said, as one line."""
    said = tenure("why", desk.root, name)
    assert (0, "") == (said.status, said.err)
    return " ".join(said.out.split())


def now(tenure: Tenure, desk: Desk, name: str) -> str:
    """What is said of now, as one line."""
    return words(tenure, desk, name).rpartition(" now ")[2]


def test_a_life_from_the_poll_to_the_end(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    found = tenure("why", desk.root, "11", "--json").json
    assert STORY == list(found)
    told = found["decisions"]
    assert [DECISION] * len(told) == [list(row) for row in told]
    assert ["admit", "keep", "admit", "take", "start", "complete", "settle"] == [row["action"] for row in told]
    assert sorted(row["seq"] for row in told) == [row["seq"] for row in told]
    assert {os.getpid()} == {row["pid"] for row in told}
    assert ["absent -> journaled", f"journaled -> delivered: for {MINE}"] == [row["detail"] for row in told[:2]]
    assert (0, [], False) == (found["missing"], found["untold"], any(row["refused"] for row in told))
    (guard, *_) = told[0]["guards"]
    assert ["guard", "law", "says"] == list(guard)
    assert ("epoch_current", "Fence") == (guard["guard"], guard["law"])
    assert guard["says"] == meanings("11")["epoch_current"][1]
    # The same life, whichever of its ids is asked for.
    for name in (receipts["done"], told[2]["subject"]):
        assert told == tenure("why", desk.root, name, "--json").json["decisions"]
    text = words(tenure, desk, "11")
    assert f"update 11 admit: absent -> journaled; by {os.getpid()}:17 (pid {os.getpid()}), epoch 3" in text
    assert "done" in now(tenure, desk, "11")


def test_every_guard_has_a_law_and_says_something() -> None:
    """Of each machine, by a subject of its own."""
    for subject, table in (("7", FORWARDING), ("telegram-follower-v1-0", DELIVERY), ("telegram-prompt-v1-0", RECEIPT)):
        known = meanings(subject)
        assert set(table.guards) == set(known)
        for name, (law, says) in known.items():
            assert law == table.guards[name].law.value
            assert says.endswith(".")
            assert not says.startswith(law)
            assert "Without it" not in says


def test_lines_fit_a_page(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    for name in (*receipts.values(), "20", "21", "22"):
        for line in tenure("why", desk.root, name).out.splitlines()[1:]:
            assert len(line) <= 100 or " tenure " in line, line


def test_a_guard_says_what_it_means_once_and_of_every_refusal(desk: Desk, tenure: Tenure) -> None:
    with desk.open() as journal:
        receipt = desk.kept(journal, 1)
        holder = desk.taken(journal, receipt)
        late = desk.me.__class__("5:5", "p", 1)
        journal.take(receipt, late)
        journal.start(receipt, holder)
        journal.complete(receipt, holder)
        journal.complete(receipt, holder)
    text = words(tenure, desk, receipt)
    assert 1 == text.count(f"process_owns: {meanings(receipt)['process_owns'][1]}")
    assert 2 <= text.count("process_owns")
    assert "take: refused in queued" in text
    assert f"Fence, taker_has_it: {meanings(receipt)['taker_has_it'][1]}" in text
    assert "complete: refused in done" in text
    assert "no row of the machine takes this event there" in text
    told = tenure("why", desk.root, receipt, "--json").json["decisions"]
    assert [("take", ["taker_has_it"]), ("complete", [])] == [
        (row["action"], [guard["guard"] for guard in row["guards"]]) for row in told if row["refused"]
    ]


def test_a_person_is_named(desk: Desk, tenure: Tenure) -> None:
    receipt = desk.full()["interrupted"]
    assert 0 == tenure("journal", "retry", desk.root, receipt, "--yes").status
    assert f"retry: interrupted -> pending; by a person, {'root' if os.getuid() == 0 else ''}" in words(
        tenure, desk, receipt
    )


def test_what_is_missing_is_said(desk: Desk, tenure: Tenure) -> None:
    """Of many decisions the first and the last are kept."""
    with desk.open(Limits(decisions_of_one=4)) as journal:
        desk.append(journal, 1)
        for _ in range(5):
            journal.forward(1, EPOCH, THEIRS, desk.me.instance)
            journal.failed(1, EPOCH, "transport-failed", desk.me.instance)
    found = tenure("why", desk.root, "1", "--json").json
    numbers = [row["nth"] for row in found["decisions"]]
    assert [1, 2] == numbers[:2]
    missing = numbers[-1] - len(numbers)
    assert missing > 0
    assert missing == found["missing"] == sum(row["missingBefore"] for row in found["decisions"])
    assert f"... {missing} decisions are not kept here, about update 1" in words(tenure, desk, "1")


def test_where_nothing_is_told_any_more_that_is_said(desk: Desk, tenure: Tenure) -> None:
    receipts = desk.full()
    with sqlite3.connect(desk.path) as database:
        database.execute("DELETE FROM decisions WHERE subject = ?", (receipts["queued"],))
    database.close()
    assert [receipts["queued"]] == tenure("why", desk.root, "13", "--json").json["untold"]
    assert "what was decided about receipt" in words(tenure, desk, "13")


def test_what_nobody_has_taken_yet_lacks_nothing(desk: Desk, tenure: Tenure) -> None:
    """It was admitted with its delivery, and waits for whom it is said: nothing that was decided is missing."""
    receipt = desk.full()["pending"]
    for name in (receipt, str(tenure("why", desk.root, receipt, "--json").json["update"]["update"])):
        found = tenure("why", desk.root, name, "--json").json
        assert (0, [], "pending") == (found["missing"], found["untold"], found["receipts"][0]["state"])
        assert "pending, admitted" in found["waits"][0]
        assert "nothing was decided about receipt" in words(tenure, desk, name)
        assert "not kept" not in words(tenure, desk, name)
    # Where that is not certain it is not said.
    with sqlite3.connect(desk.path) as database:
        database.execute("DELETE FROM decisions WHERE subject LIKE 'telegram-follower-%'")
    database.close()
    assert receipt in tenure("why", desk.root, receipt, "--json").json["untold"]


def test_decisions_that_outlive_their_row_are_told(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    with sqlite3.connect(desk.path) as database:
        database.execute("DELETE FROM updates WHERE update_id = 22")
    database.close()
    assert "nothing of it is kept but these decisions" in now(tenure, desk, "22")


# -- now --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("pending", f"ago: nobody has it {MINE} is served by {os.getpid()}:17, pid {os.getpid()} (running"),
        ("queued", "its owner executes it when its turn has come"),
        ("started", "attempt 1 of 5 it is being executed"),
        ("interrupted", "nobody knows what came of it; done again it may be done twice to do it again: tenure journal"),
        ("failed", "failed: it failed each time to do it again: tenure journal retry"),
        ("done", "done"),
    ],
)
def test_what_a_receipt_waits_for(desk: Desk, tenure: Tenure, state: str, says: str) -> None:
    assert says in now(tenure, desk, desk.full()[state])


def test_an_update_that_is_sent_in_vain_waits_for_a_person(desk: Desk, tenure: Tenure) -> None:
    """V5: those behind it go on; whether it is wanted, a person says."""
    with desk.open() as journal:
        desk.append(journal, 30, 31)
        for _ in range(3):
            journal.forward(30, EPOCH, THEIRS, desk.me.instance)
            journal.failed(30, EPOCH, "acknowledgement-missing", desk.me.instance)
        journal.forward(31, EPOCH, THEIRS, desk.me.instance)
        journal.failed(31, EPOCH, "not-carriable", desk.me.instance)
    for number in ("30", "31"):
        said = now(tenure, desk, number)
        assert "those behind it go on without it" in said
        assert f"to give it up: tenure journal discard {desk.root} {number}" in said
    assert "it is delivered only where the leader itself serves that binding" in now(tenure, desk, "31")
    shown = " ".join(tenure("journal", "list", desk.root).out.split())
    assert "update 30 sent 3 times in vain; those behind it go on" in shown
    assert "update 31 no line of the bus can hold it; those behind it go on" in shown
    assert f"to give it up: tenure journal discard {desk.root} 31" in shown


def test_what_an_update_waits_for(desk: Desk, tenure: Tenure) -> None:
    desk.full()
    bound = now(tenure, desk, "20")
    assert f"an instance that serves {THEIRS} takes it; none ever has" in bound
    assert f"if that binding is gone for ever: tenure journal release {desk.root} 20" in bound
    assert "it is sent as soon as an instance is registered for whom it is" in now(tenure, desk, "21")
    assert f"to try it now: tenure journal retry {desk.root} 21" in now(tenure, desk, "21")
    assert "a person did not want it executed" in now(tenure, desk, "22")
    with desk.open() as journal:
        desk.append(journal, 23)
        assert "the leader brings it to whose it is" in now(tenure, desk, "23")
        journal.forward(23, EPOCH, THEIRS, desk.me.instance)
        assert "an answer is awaited" in now(tenure, desk, "23")


def test_what_the_dead_have_left_is_said(desk: Desk, tenure: Tenure) -> None:
    gone = dead()
    with desk.open() as journal:
        queued, started, pending = (desk.kept(journal, update) for update in (1, 2, 3))
        desk.taken(journal, queued, gone)
        journal.start(started, desk.taken(journal, started, gone))
    assert "its owner is dead: whoever looks next makes it pending again" in now(tenure, desk, queued)
    assert "its owner is dead: whoever looks next makes it interrupted" in now(tenure, desk, started)
    assert f"{MINE} was served by {gone.instance}" in now(tenure, desk, pending)
    with desk.open() as journal:
        journal.unserve(MINE, desk.me)
    assert "which has left it" in now(tenure, desk, pending)


def test_offers_and_wishes_are_told(desk: Desk, tenure: Tenure) -> None:
    gone = dead()
    with desk.open() as journal:
        receipt = desk.kept(journal, 1)
        journal.offer(receipt, desk.taken(journal, receipt), "handoff-1", gone)
        journal.ask_move(receipt, gone.instance)
        assert f"frozen until {gone.instance} accepts the offer" in now(tenure, desk, receipt)
        assert "nobody has answered yet" in now(tenure, desk, receipt)
        journal.answer_move(receipt, "it is not here")
    assert "ago: it is not here" in now(tenure, desk, receipt)


def test_a_profile_stands_in_the_commands(desk: Desk, tenure: Tenure) -> None:
    play = Desk(desk.root, "play")
    with play.open() as journal:
        receipt = play.interrupted(journal, 1)
    said = " ".join(tenure("why", desk.root, receipt, "--profile", "play").out.split())
    assert f"tenure journal retry {desk.root} {receipt.rpartition('-')[2][:10]} --profile play" in said
