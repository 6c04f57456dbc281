"""What became of work, from what every process of a run says that it executed and from what the journal says.

    verdict = judge(admitted, read_executions(path), states)
    assert not verdict.faults, verdict.faults
    assert verdict.executed + verdict.interrupted == len(admitted)

A handler writes one line before it does anything (`began`), and one when it has done it (`ended`) or when certainly
nothing has come of it (`failed`), to one file that all processes append to (`O_APPEND`): its order is that of the
writes. A process that is killed leaves a `began` alone, or half a line.

It is judged from outside, by nothing that the journal's own guards use. Only a person repeats what was begun and not
known to have failed; each of such repetitions is named by the one who asked for it (`repeated`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import attrs

What = Literal["began", "ended", "failed"]
State = Literal["done", "interrupted", "failed", "discarded", "waiting"]
"""What the journal says of an update. waiting: anything that is not over."""

_WHAT: Final[tuple[What, ...]] = ("began", "ended", "failed")


@attrs.frozen
class Execution:
    """One line. `tenure`: the acquisition under which it is executed; `process`: who wrote it."""

    update: int
    receipt: str
    what: What
    tenure: str
    process: str


@attrs.frozen
class Fault:
    """What must not be."""

    update: int
    what: str

    def __str__(self) -> str:
        return f"update {self.update}: {self.what}"


@attrs.frozen
class Verdict:
    """How many updates have come to what, and what is wrong. They sum up to what was admitted."""

    executed: int
    interrupted: int
    failed: int
    discarded: int
    waiting: int
    faults: tuple[Fault, ...]
    """Executed twice, lost, unaccounted for, executed without having been admitted."""

    def __str__(self) -> str:
        names = ("executed", "interrupted", "failed", "discarded", "waiting")
        return ", ".join(f"{getattr(self, name)} {name}" for name in names) + f", {len(self.faults)} faults"


@attrs.frozen
class Record:
    """The lines of a file. `torn`: lines that were cut off by the death of who wrote them."""

    executions: tuple[Execution, ...]
    torn: int


def written(execution: Execution) -> bytes:
    """The line of an execution, to be appended with one write. It begins with a newline as well, so that what somebody
    left half written spoils no other line."""
    return b"\n" + json.dumps(attrs.asdict(execution), separators=(",", ":")).encode() + b"\n"


def read_executions(path: Path) -> Record:
    """What was written to `path`, in its order. Raises ValueError for a whole line that is none of ours."""
    found, torn = [], 0
    for line in path.read_bytes().split(b"\n"):
        if not line:
            continue
        try:
            members = json.loads(line)
        except ValueError:
            torn += 1
            continue
        if not isinstance(members, dict) or members.get("what") not in _WHAT:
            raise ValueError(f"{path}: no execution: {line[:200]!r}")
        found.append(Execution(**members))
    return Record(tuple(found), torn)


def judge(
    admitted: Collection[int],
    executions: Iterable[Execution],
    states: Mapping[int, State],
    repeated: Mapping[int, int] | None = None,
) -> Verdict:
    """What has become of the `admitted` updates. `states`: the journal's word on each; `repeated`: how often a person
    had an update repeated."""
    known = frozenset(admitted)
    lines: defaultdict[int, list[Execution]] = defaultdict(list)
    for execution in executions:
        lines[execution.update].append(execution)
    faults = [Fault(update, "was executed and never admitted") for update in sorted(lines.keys() - known)]
    counts: Counter[State] = Counter()
    for update in sorted(known):
        state = states.get(update)
        if state is None:
            faults.append(Fault(update, "is lost: the journal does not know it"))
            continue
        counts[state] += 1
        faults += [Fault(update, why) for why in _wrong(lines[update], state, (repeated or {}).get(update, 0))]
    return Verdict(
        counts["done"],
        counts["interrupted"],
        counts["failed"],
        counts["discarded"],
        counts["waiting"],
        tuple(faults),
    )


def _wrong(lines: Sequence[Execution], state: State, repeated: int) -> list[str]:
    """What is wrong with the life of one update."""
    wrong = []
    open_ones: list[Execution] = []
    may_have_happened = effects = 0
    for line in lines:
        if line.what == "began":
            if may_have_happened > repeated:
                wrong.append(f"began again in {line.process}, and nobody had asked for that")
            open_ones.append(line)
            may_have_happened += 1
            continue
        mine = [o for o in open_ones if (o.tenure, o.process, o.receipt) == (line.tenure, line.process, line.receipt)]
        if not mine:
            wrong.append(f"{line.what} in {line.process} without having begun there under {line.tenure}")
            continue
        open_ones.remove(mine[0])
        if line.what == "failed":
            may_have_happened -= 1
        else:
            effects += 1
    if effects > 1 + repeated:
        wrong.append(f"was executed {effects} times")
    if state == "done" and not effects:
        wrong.append("is done, and nobody has executed it")
    if state in ("waiting", "failed") and may_have_happened > repeated:
        wrong.append(f"is {state}, and it was begun and not known to have failed")
    return wrong
