"""The lines of a trace (DESIGN 8): one JSON object per protocol event, in a file per process.

| member | what it says | absent |
|---|---|---|
| `module` | the twin that the event belongs to | never |
| `action` | the twin's action that was taken | never |
| `node` | who took it: ``PROCESS/NAME``, with ``@RESOURCE`` behind it where a module guards several things | never |
| `seq` | 1, 2, 3... in the order of the file; a gap is a lost line | never |
| `number` | the transaction inside which it was taken, as `Recorder.order` gave it out | outside of any |
| `at` | the last transaction that had been entered when the event was recorded | it is `number` |
| `t` | when it was recorded, in microseconds of the monotonic clock; a guide, outside of transactions | not said |
| `args` | parameters of the action beside the node, by name | none |
| `observed` | what the participant saw of the model's variables; `phase` is its machine's after the step | nothing |
| `tenure` | the identity under which it acted: a guard's generation, a leader's epoch | none |

PROCESS is the same for all participants of one process and for no other process: ``PID-TICKS``. What each module's
events say in `args` and `observed` stands in the file that instantiates its twin.

The last line of a process that was killed may be torn: `Trace.torn` counts those. Unused space behind it is NULs.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.errors import TenureError

_NOTHING: Final[Mapping[str, object]] = {}
_MEMBERS: Final = frozenset({"module", "action", "node", "seq", "number", "at", "t", "args", "observed", "tenure"})


class BadTrace(TenureError):
    """A file that is no trace, or a line in it that is no event."""


class Event:
    """One protocol event, and where it stands. Not frozen and not attrs: fifty thousand are made in a second."""

    __slots__ = ("action", "args", "at", "file", "line", "module", "node", "number", "observed", "seq", "t", "tenure")

    def __init__(
        self,
        file: str,
        line: int,
        module: str,
        action: str,
        node: str,
        seq: int,
        number: int = 0,
        at: int = 0,
        args: Mapping[str, object] = _NOTHING,
        observed: Mapping[str, object] = _NOTHING,
        tenure: str | int | None = None,
        t: int = 0,
    ) -> None:
        self.file = file
        self.line = line
        self.module = module
        self.action = action
        self.node = node
        self.seq = seq
        self.number = number
        self.at = at
        self.args = args
        self.observed = observed
        self.tenure = tenure
        self.t = t

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}:{self.line}"

    @property
    def process(self) -> str:
        """The process of the participant."""
        name, slash, _ = self.node.partition("/")
        return name if slash else self.file

    @property
    def resource(self) -> str:
        """Which of several guarded things it is about; empty where there is one."""
        return self.node.partition("@")[2]

    def __str__(self) -> str:
        more = "".join(f" {name}={json.dumps(value)}" for name, value in (*self.args.items(), *self.observed.items()))
        tenure = "" if self.tenure is None else f" tenure={json.dumps(self.tenure)}"
        number = f" in transaction {self.number}" if self.number else ""
        return f"{self.module} {self.action} by {self.node}{more}{tenure}{number}"

    def text(self) -> str:
        """The line, as a recorder writes it."""
        value: dict[str, object] = {
            "module": self.module, "action": self.action, "node": self.node, "seq": self.seq,
        }  # fmt: skip
        if self.number:
            value["number"] = self.number
        if self.at != self.number:
            value["at"] = self.at
        if self.t:
            value["t"] = self.t
        if self.tenure is not None:
            value["tenure"] = self.tenure
        if self.args:
            value["args"] = dict(self.args)
        if self.observed:
            value["observed"] = dict(self.observed)
        return json.dumps(value, separators=(",", ":"))


@attrs.frozen
class Trace:
    """What was read. `torn`: how many files end in a line that was not finished. `files`: for messages."""

    events: Sequence[Event]
    torn: int = 0
    files: Sequence[str] = ()


def read(paths: Iterable[str | os.PathLike[str]]) -> Trace:
    """The events of all files; a directory stands for the trace files in it.

    Raises `BadTrace` for a file that is not there or cannot be read, and for a line that is no event, unless it is the
    last of its file.
    """
    with collector_paused():
        return _read(paths)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cycle collector, which would look through all events again and again: there are no cycles here."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read(paths: Iterable[str | os.PathLike[str]]) -> Trace:
    events: list[Event] = []
    torn = 0
    files = list(_files(paths))
    if not files:
        raise BadTrace("no trace files; name the files that a recorder wrote, or their directory")
    for path in files:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadTrace(f"{path}: {error.strerror}; name a file that a recorder wrote") from error
        found, unfinished = parse(data, str(path))
        events += found
        torn += unfinished
    return Trace(events, torn, [str(path) for path in files])


def _files(paths: Iterable[str | os.PathLike[str]]) -> Iterable[Path]:
    for name in paths:
        path = Path(name)
        if path.is_dir():
            found = sorted(path.glob("*.trace"))
            if not found:
                raise BadTrace(f"{path}: no *.trace file in it; name the directory that was recorded into")
            yield from found
        else:
            yield path


def parse(data: bytes, name: str) -> tuple[list[Event], bool]:
    """The events of one file called `name`, and whether its last line is torn. Raises `BadTrace`."""
    lines = data.rstrip(b"\0").decode("utf-8", "replace").split("\n")
    events: list[Event] = []
    finished = lines[-1] == ""
    if finished:
        lines.pop()
    loads = json.JSONDecoder().decode
    last = len(lines)
    for number, line in enumerate(lines, 1):
        try:
            value = loads(line)
        except (ValueError, RecursionError):
            if number == last and not finished and (events or line[:1] == "{"):
                return events, True
            raise BadTrace(f"{name}:{number}: not a JSON line; a trace has one event in each line") from None
        events.append(_event(value, name, number))
    return events, False


def _event(value: object, name: str, line: int) -> Event:
    if type(value) is not dict:
        raise BadTrace(f"{name}:{line}: not a JSON object; a trace has one event in each line")
    get = value.get
    module, action, node, seq = get("module"), get("action"), get("node"), get("seq")
    number, args, observed = get("number", 0), get("args", _NOTHING), get("observed", _NOTHING)
    at, tenure, t = get("at", number), get("tenure"), get("t", 0)
    if not (
        type(module) is str
        and type(action) is str
        and type(node) is str
        and type(seq) is int
        and type(number) is int
        and type(at) is int
        and type(t) is int
        and (args is _NOTHING or type(args) is dict)
        and (observed is _NOTHING or type(observed) is dict)
        and (tenure is None or type(tenure) is str or type(tenure) is int)
        and value.keys() <= _MEMBERS
    ):
        raise BadTrace(f"{name}:{line}: {_fault(value)}")
    return Event(name, line, module, action, node, seq, number, at, args, observed, tenure, t)


def _fault(value: Mapping[str, object]) -> str:
    wanted: dict[str, tuple[type, str]] = {
        "module": (str, "a string"), "action": (str, "a string"), "node": (str, "a string"),
        "seq": (int, "an integer"), "number": (int, "an integer"), "at": (int, "an integer"), "t": (int, "an integer"),
        "args": (dict, "an object"), "observed": (dict, "an object"),
    }  # fmt: skip
    for member, (kind, words) in wanted.items():
        if member not in value:
            if member in ("module", "action", "node", "seq"):
                return f"an event without {member}"
        elif type(value[member]) is not kind:
            return f"{member} is not {words}"
    if type(value.get("tenure")) not in (str, int, type(None)):
        return "tenure is neither a string nor an integer"
    return f"unknown member {', '.join(sorted(value.keys() - _MEMBERS))}"
