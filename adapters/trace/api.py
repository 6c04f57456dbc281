"""Whether a recording is explained, for tests: `explained`, `assert_explained`, and a recorder that keeps events."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tenure.adapters.trace.check import Verdict, check
from tenure.adapters.trace.journal_rows import read
from tenure.adapters.trace.lines import Event, Trace
from tenure.adapters.trace.recorder import TraceRecorder
from tenure.adapters.trace.search import Limits

__all__ = ["Limits", "MemoryRecorder", "TraceRecorder", "Verdict", "assert_explained", "explained"]


class MemoryRecorder:
    """A `Recorder` that keeps the events of all participants of a test, in the order in which they came."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.last = 0

    def order(self) -> int:
        self.last += 1
        return self.last

    def event(
        self,
        module: str,
        action: str,
        node: str,
        number: int,
        args: Mapping[str, object] | None = None,
        observed: Mapping[str, object] | None = None,
        tenure: object = None,
    ) -> None:
        seq = len(self.events) + 1
        said = tenure if isinstance(tenure, (str, int)) else None
        self.events.append(
            Event(
                "memory",
                seq,
                module,
                action,
                node,
                seq,
                number,
                self.last,
                dict(args or {}),
                dict(observed or {}),
                said,
                seq,
            )
        )


Source = MemoryRecorder | Trace | str | os.PathLike[str]


def explained(*sources: Source, limits: Limits | None = None) -> Verdict:
    """Check files, directories, recorders and traces together; a journal among the files adds what was decided and not
    recorded. Raises `BadTrace` (see `lines.read`), and `JournalError` for a journal that cannot be read."""
    paths = [source for source in sources if not isinstance(source, MemoryRecorder | Trace)]
    traces = [read(paths)] if paths else []
    for source in sources:
        if isinstance(source, MemoryRecorder):
            traces.append(Trace(list(source.events)))
        elif isinstance(source, Trace):
            traces.append(source)
    events = [event for trace in traces for event in trace.events]
    files = [name for trace in traces for name in trace.files]
    return check(Trace(events, sum(trace.torn for trace in traces), files), limits)


def assert_explained(*sources: Source, limits: Limits | None = None) -> Verdict:
    """`explained`, or an AssertionError that says what is not."""
    verdict = explained(*sources, limits=limits)
    if not verdict:
        raise AssertionError(str(verdict))
    return verdict
