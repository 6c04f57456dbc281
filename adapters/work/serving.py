"""Which bindings are this process's, as its role changes, and the journal told of it (bus.md c, d).

    serving = Serving(journal, me)
    serving.follows(key, epoch, heard)          # or leads(...), or, when that role has ended, ends()
    await serving.tell()                        # before anything is taken, and again until it is told

What is told late is told to a journal that compares it: who leads with its fence, who is registered with who stands
there (`tenure.adapters.journal.servers`). What could not be told while a role lasted is dropped when it ends. What was
told stays: a process serves what it served until another one does, or it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from tenure.adapters.journal.rows import ServerRow
from tenure.adapters.journal.threaded import ThreadedJournal
from tenure.machines.receipt_messages import Party

BEATS: Final = 2
"""When the leader has heard so many heartbeats since a row was read, the last of them was sent after that."""


@attrs.define(eq=False)
class Registered:
    """To be told: this process is registered for `binding` under the leader of epoch `under`, which has heard so many
    heartbeats of it as `heard` says."""

    binding: str
    under: int | None
    heard: Callable[[], int]
    over: ServerRow | None = None
    """Who stood in the way, alive. He does not any more where this registration is confirmed after that was read."""
    since: int = 0
    """So many heartbeats were heard by then."""

    async def tell(self, journal: ThreadedJournal, me: Party) -> bool:
        """Whether it is done."""
        over = self.over if self.heard() >= self.since + BEATS else None
        answer = await journal.call(lambda j: j.serve(self.binding, me, under=self.under, over=over))
        if isinstance(answer, ServerRow) and answer != self.over:
            self.over, self.since = answer, self.heard()
        return answer is None


@attrs.define(eq=False)
class Leads:
    """To be told: this process leads under `epoch`, so that `binding` is its own, and what is left of `adopted`."""

    binding: str
    epoch: int
    adopted: Sequence[str] = ()
    over: ServerRow | None = attrs.field(default=None, init=False)
    """Nobody stands in its way."""

    async def tell(self, journal: ThreadedJournal, me: Party) -> bool:
        """Whether it is done."""
        answer = await journal.call(lambda j: j.serve_leading(self.binding, me, self.epoch, self.adopted))
        return answer is None


class Serving:
    """The bindings of one process."""

    def __init__(self, journal: ThreadedJournal, me: Party) -> None:
        self.served: list[str] = []
        """Those that it has served and has not left, the newest first."""
        self.untold: list[Registered | Leads] = []
        self._journal = journal
        self._me = me
        self._registered: str | None = None
        self._left: list[str] = []
        """Those that others have now, where that is not told yet."""

    def leads(self, binding: str, epoch: int, adopted: Sequence[str] = ()) -> None:
        """From now on this process leads under `epoch`, and `binding` is the leader's. `adopted`: what is left of
        these is its own as well, where nobody has ever served them."""
        self._begins(Leads(binding, epoch, adopted))

    def follows(self, binding: str, under: int | None = None, heard: Callable[[], int] = lambda: 0) -> None:
        """From now on this process is registered for `binding`, under the leader of that epoch (None: it says none).
        `heard`: how many heartbeats the leader has heard so far. What it was registered for before is another's."""
        if self._registered not in (None, binding):
            self.gone([str(self._registered)])
        self._registered = binding
        self._begins(Registered(binding, under, heard))

    def ends(self) -> None:
        """It neither leads nor follows now: what was to be told of that is over."""
        self.untold.clear()

    def gone(self, bindings: Iterable[str]) -> None:
        """Others are registered for these by now: what of them this process has served it leaves."""
        for binding in set(bindings) & set(self.served):
            self.served.remove(binding)
            self._left.append(binding)

    async def tell(self) -> None:
        """Tell the journal what it has not been told. Raises TenureError where that failed; it may be repeated."""
        if self._left:
            left, me = tuple(self._left), self._me
            await self._journal.call(lambda j: j.leave(me, left))
            self._left = [binding for binding in self._left if binding not in left]
        for news in tuple(self.untold):
            if await news.tell(self._journal, self._me) and news in self.untold:
                self.untold.remove(news)

    async def leave(self) -> None:
        """This process serves nothing any more. Raises as `tell` does."""
        self.untold.clear()
        await self._journal.call(lambda j: j.leave(self._me))

    def _begins(self, news: Registered | Leads) -> None:
        if news.binding in self.served:
            self.served.remove(news.binding)
        self.served.insert(0, news.binding)
        self.untold[:] = [news]
