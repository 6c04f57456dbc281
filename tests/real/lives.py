"""What `tenure why --json` tells of an update, and whether that is complete: from the poll to what it came to, every
decision in its place, each phase where the last one left it, every right to execute where somebody got it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters import cli
from tenure.adapters.files.host import real_ports
from tenure.adapters.journal.transaction import Transaction
from tenure.adapters.looking import journal_look, journal_place
from tenure.adapters.looking.journal_story import Story, story
from tenure.adapters.looking.journal_telling import story_json
from tenure.adapters.testing.history import Execution, State

SEEN = 20
"""Of so many lives is seen that the command prints the same."""
BEGINS = {"update": "absent", "delivery": "absent", "receipt": "pending"}
ENDS: dict[str, State] = {
    "done": "done",
    "interrupted": "interrupted",
    "failed": "failed",
    "discarded": "discarded",
}


def said(*words: str) -> str:
    """What a command prints that does what it is told, in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert not ended.value.code, (words, out.getvalue(), errors.getvalue())
    return out.getvalue()


def why(directory: Path, name: str) -> dict[str, Any]:
    """The object that the command prints."""
    return dict(json.loads(said("why", str(directory), name, "--json")))


def whole_lives(directory: Path, updates: Sequence[int]) -> dict[int, Told]:
    """The life of each update, as of one moment: what the command prints, which is seen of some of them."""
    place, ports = journal_place.place_to_read(str(directory), None), real_ports()

    def read(transaction: Transaction) -> list[Story]:
        return [story(str(update))(transaction) for update in updates]

    stories = journal_look.look(ports, place.path, read)
    processes = frozenset(process for found in stories for process in found.processes)
    seen = journal_look.lives(ports, processes)
    found = {
        n: Told(n, json.loads(json.dumps(story_json(s, place, seen)))) for n, s in zip(updates, stories, strict=True)
    }
    for number in updates[:: max(1, len(updates) // SEEN)]:
        told = found[number].told["decisions"]
        assert why(directory, str(number))["decisions"][: len(told)] == told  # more may have happened meanwhile
    return found


def _sort(subject: str) -> str:
    if subject.isdecimal():
        return "update"
    return "delivery" if subject.startswith("telegram-follower-v1-") else "receipt"


@attrs.frozen
class Told:
    """One life as it is told."""

    update: int
    told: dict[str, Any]

    @property
    def state(self) -> State:
        """What the journal says of it."""
        phases = {row["state"] for row in self.told["receipts"]}
        return ENDS.get(phases.pop(), "waiting") if len(phases) == 1 else "waiting"

    @property
    def decisions(self) -> int:
        """How many."""
        return len(self.told["decisions"])

    @property
    def moved(self) -> int:
        """How often it was handed over."""
        return sum(row["action"] == "accept" for row in self._passed)

    @property
    def _passed(self) -> list[dict[str, Any]]:
        return [row for row in self.told["decisions"] if not row["refused"]]

    def faults(self, executions: Iterable[Execution]) -> list[str]:
        """What is wrong with how it is told. `executions`: what all handlers have written."""
        told = self.told
        found = [f"{told['missing']} decisions are missing"] * bool(told["missing"])
        found += [f"nothing is told of {name}" for name in told["untold"]]
        counts = (told["update"] is not None, len(told["deliveries"]), len(told["receipts"]))
        if counts != (True, 1, 1):
            return [*found, f"there is not one update, delivery and receipt: {counts}"]
        seqs = [row["seq"] for row in told["decisions"]]
        found += ["the decisions are out of order"] * (seqs != sorted(set(seqs)))
        rows = {
            str(self.update): told["update"]["state"],
            told["deliveries"][0]["delivery"]: told["deliveries"][0]["state"],
            told["receipts"][0]["receipt"]: told["receipts"][0]["state"],
        }
        strangers = {row["subject"] for row in told["decisions"]} - rows.keys()
        found += [f"{name} has nothing to do with it" for name in strangers]
        for subject, state in rows.items():
            found += [f"{subject[:40]}: {fault}" for fault in self._chain(subject, state)]
        found += self._order(*rows)
        found += self._rights()
        mine = [line for line in executions if line.update == self.update]
        found += self._executed([line for line in mine if line.what == "began"])
        return found

    def _chain(self, subject: str, state: str) -> list[str]:
        """Each phase begins where the one before has ended, and the last one is the row's."""
        found = []
        at = BEGINS[_sort(subject)]
        rows = [row for row in self.told["decisions"] if row["subject"] == subject]
        nths = [row["nth"] for row in rows]
        if nths != list(range(1, len(rows) + 1)):
            found.append(f"decisions {nths}")
        for row in rows:
            what = row["detail"].partition(": ")[0]
            if row["refused"]:
                came, goes = what.removeprefix("refused in "), at
            elif what.startswith("still "):
                came = goes = what.removeprefix("still ")
            else:
                came, _, goes = what.partition(" -> ")
            if came != at and not (row["refused"] and came == "absent"):
                found.append(f"{row['action']} in {came}, and it was {at}")
            if not row["by"] or (row["refused"] and row["guards"] and not all(g["law"] for g in row["guards"])):
                found.append(f"{row['action']}: nobody, or a guard without a law")
            at = goes
        return found if at == state else [*found, f"it ends {at}, and its row says {state}"]

    def _order(self, update: str, delivery: str, receipt: str) -> list[str]:
        """Polled, then admitted, then taken; delivered when it was admitted, not before; settled with its receipt."""

        def first(subject: str, *actions: str) -> int:
            return next(
                (row["seq"] for row in self._passed if row["subject"] == subject and row["action"] in actions), -1
            )

        polled, admitted = first(update, "admit"), first(delivery, "admit")
        ended = [r["seq"] for r in self._passed if r["subject"] == update and "-> delivered" in r["detail"]]
        kept = first(update, "keep")
        found = []
        if not 0 < polled < admitted or not ended:
            found.append(f"polled {polled}, admitted {admitted}, delivered {ended}")
        elif kept < 0 and ended[0] < admitted:
            found.append("it was delivered before it was admitted")
        taken = first(receipt, "take")
        if 0 <= taken < admitted:
            found.append("it was taken before it was admitted")
        done, settled = first(receipt, "complete"), first(delivery, "settle")
        if (done < 0) != (settled < 0):
            found.append(f"done {done}, and settled {settled}")
        return found

    def _rights(self) -> list[str]:
        """Who begins, ends or offers has the acquisition that was given last."""
        found = []
        current: str | None = None
        for row in self._passed:
            if _sort(row["subject"]) != "receipt":
                continue
            if row["action"] in ("take", "accept") and not row["detail"].startswith("still queued: right"):
                current = row["tenure"]
            elif row["action"] in ("start", "complete", "fail", "release", "offerTo", "offer_to", "cancel"):
                if row["tenure"] != current:
                    found.append(f"{row['action']} under {row['tenure']}, and {current} has it")
            elif row["action"] in ("recover", "reclaim"):
                current = None
        return found

    def _executed(self, began: list[Execution]) -> list[str]:
        """Nobody has begun without a start, in that process and under that acquisition."""
        starts = [(row["tenure"], str(row["pid"])) for row in self._passed if row["action"] == "start"]
        left = list(starts)
        found = []
        for line in began:
            if (line.tenure, line.process) in left:
                left.remove((line.tenure, line.process))
            else:
                found.append(f"{line.process} began under {line.tenure}, and that is not told: {starts}")
        attempts = self.told["receipts"][0]["attempts"]
        if len(starts) < attempts:  # one that a person has repeated begins to count anew
            found.append(f"{attempts} attempts, and {len(starts)} are told")
        return found
