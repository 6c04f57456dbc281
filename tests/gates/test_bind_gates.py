"""A mutated adapter turns the stage `bind` red, each with a story that ends where the twin cannot follow (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files import high_water, lease_steps, passage, replacing, standing
from tenure.adapters.files.lease import LeaseRuntime
from tenure.adapters.files.lease_steps import Transaction
from tenure.adapters.files.passage import Passage
from tenure.adapters.files.replacing import WriteFailed, replace_file
from tenure.adapters.files.timings import Timings
from tenure.adapters.ports import Ports
from tenure.adapters.runtime import polling_steps
from tenure.adapters.runtime.polling import Polling
from tenure.adapters.verify.bind import guard, lease, polling
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.situations import Found, Limits
from tenure.machines import poller
from tenure.machines import polling_messages as own
from tenure.machines.file_calls import Call, Claimed, Looked, Moved, MovedAway, Observed, Published, Report, Reread
from tenure.machines.file_transaction import FRESH_ATTEMPT
from tenure.machines.guard_name import marker, render_name
from tenure.machines.leader_election import LEADER_ELECTION
from tenure.machines.leader_messages import Outcome

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]
Calls = tuple[Call, ...]


def _calls(patch: Patch, call: str, method: Callable[..., Calls]) -> None:
    """Passages do `method` for the machine's output of that name."""
    found = next(kind for kind in passage._CALLS if kind.__name__ == call)
    patch.setitem(passage._CALLS, found, method)


# -- the guard --------------------------------------------------------------------------------------------------------


def _skips_the_look(patch: Patch) -> None:
    """S2 is not made: an empty directory at the path is replaced."""
    _calls(patch, "LookAtPath", lambda self, call: self._tell(Looked(False), "Look"))


def _claims_whatever_is_there(patch: Patch) -> None:
    """R4 renames the entry that is there now, not the one that was judged."""

    def claim(self: Passage[None], call: Call) -> Calls:
        mine = marker(self.me.pid, self.me.birth, self.ports.identities.bits(60))
        self.reclaim = mine.uuid
        with suppress(OSError):
            self.name = self.ports.files.entries(self.path)[0]
            self.ports.files.rename(f"{self.path}/{self.name}", f"{self.path}/{render_name(mine)}")
            self.name = render_name(mine)
            return self._tell(Claimed(self._number(mine.uuid)), "Claim")
        return Passage._claim(self, call)

    _calls(patch, "ClaimEntry", claim)


def _deletes_in_place(patch: Patch) -> None:
    """X2 empties the guard where it stands."""

    def move_away(self: Passage[None], call: Call) -> Calls:
        self.ports.files.unlink(f"{self.path}/{self._mine()}")
        self.ports.files.remove_directory(self.path)
        return self._tell(MovedAway(), "MoveAway")

    _calls(patch, "MoveAway", move_away)


def _publishes_by_mkdir(patch: Patch) -> None:
    """S3 makes the directory and then writes into it."""

    def publish(self: Passage[None], call: Call) -> Calls:
        with suppress(FileExistsError):
            self.ports.files.make_directory(self.path)
            self.ports.files.create(f"{self.path}/{self._mine()}", self.text)
            return self._tell(Published(), "Publish")
        return Passage._publish(self, call)

    _calls(patch, "PublishGuard", publish)


def _releases_unread(patch: Patch) -> None:
    """X1 is not made: what stands there is taken for the own guard."""
    original = Passage._read

    def read(self: Passage[None], call: Call) -> Calls:
        return self._tell(Reread(0), "Verify") if self.phase == "verifying" else original(self, call)

    _calls(patch, "ReadGuard", read)


def _takes_a_live_one_for_dead(patch: Patch) -> None:
    """R1 probes nobody."""
    original = Passage._observe

    def observe(self: Passage[None]) -> Calls:
        seen = standing.observe(self.ports, self.path, self.me)
        if not seen.verifiable:
            return original(self)
        self._drop_staged()
        return self._tell(Observed(True, self._number(seen.generation), False, 0, 0), "Observe")

    patch.setattr(Passage, "_observe", observe)


def _moves_unclaimed(patch: Patch) -> None:
    """R5 without R4."""

    def claim(self: Passage[None], call: Call) -> Calls:
        self.aside = f"{self.path}.stale.{self.me.pid}.{self.ports.identities.uuid()}"
        self.ports.files.rename(self.path, self.aside)
        self._tell(Claimed(self._number(self.aside)), "Claim")
        return self._tell(Moved(), "Move")

    _calls(patch, "ClaimEntry", claim)


def _leaks_when_tidying_fails(patch: Patch) -> None:
    """R8 failed, and the guard that was won stays."""
    original = standing.neighbour_alive

    def tidy(self: Passage[None], call: Call) -> Calls:
        try:
            original(self.ports, f"{self.path}.recovery", self.me)
        except OSError as error:
            self.phase, self.data = "idle", FRESH_ATTEMPT
            self.report, self.error = Report(True, ""), TenureError(str(error))
            return ()
        return Passage._tidy(self, call)

    _calls(patch, "TidyNeighbour", tidy)


GUARD: dict[str, tuple[Mutation, guard.Setting]] = {
    "skips the look": (_skips_the_look, guard.Setting(0, start="empty", attempts=1)),
    "claims whatever is there": (_claims_whatever_is_there, guard.Setting(0, start="abandoned", attempts=1)),
    "deletes in place": (_deletes_in_place, guard.Setting(0, attempts=1)),
    "publishes by mkdir": (_publishes_by_mkdir, guard.Setting(0, attempts=1)),
    "releases unread": (_releases_unread, guard.Setting(0, attempts=1)),
    "takes a live one for dead": (_takes_a_live_one_for_dead, guard.Setting(0, attempts=1)),
    "leaks when tidying fails": (
        _leaks_when_tidying_fails,
        guard.Setting(1, start="abandoned", attempts=1, errors=1),
    ),
    "moves unclaimed": (_moves_unclaimed, guard.Setting(0, start="abandoned", attempts=1)),
}


@pytest.mark.parametrize("name", GUARD)
def test_a_guard_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each step of locks.md 3.1, done otherwise, is a behaviour that `FileTransaction` does not have."""
    mutate, setting = GUARD[name]
    mutate(monkeypatch)
    _is_red(explore(guard.GuardBinding(setting), Limits(60_000, 60)))


def test_the_guard_as_it_is_is_green() -> None:
    """The same without a mutation: what is red above is red for the mutation."""
    for setting in {setting for _, setting in GUARD.values()}:
        found = explore(guard.GuardBinding(setting), Limits(60_000, 60))
        assert ((), "") == (found.story, found.limit)


# -- the lease --------------------------------------------------------------------------------------------------------


def _swallows_the_sync(patch: Patch) -> None:
    """A mark that could not be synced is taken for durable."""
    original = high_water.raise_mark

    def raise_mark(ports: Ports, path: str, epoch: int, known: int, timings: Timings) -> None:
        with suppress(WriteFailed):
            original(ports, path, epoch, known, timings)

    patch.setattr(lease_steps, "raise_mark", raise_mark)


def _takes_unknown_for_done(patch: Patch) -> None:
    """A write of which nobody knows how it went counts as done."""

    def replace(ports: Ports, path: str, data: bytes, timings: Timings, *, durable: bool = False) -> None:
        try:
            replace_file(ports, path, data, timings, durable=durable)
        except WriteFailed as error:
            if error.outcome is not Outcome.UNKNOWN:
                raise

    patch.setattr(lease_steps, "replace_file", replace)


def _takes_unknown_for_failed(patch: Patch) -> None:
    """... or as not done."""
    patch.setattr(replacing, "_after", lambda files, temporary, error: Outcome.FAILED)


def _writes_in_place(patch: Patch) -> None:
    """The registry is removed and written anew."""

    def replace(ports: Ports, path: str, data: bytes, timings: Timings, *, durable: bool = False) -> None:
        with suppress(FileNotFoundError):
            ports.files.unlink(path)
        ports.files.create(path, data[: len(data) // 2])
        ports.files.unlink(path)
        ports.files.create(path, data)

    patch.setattr(lease_steps, "replace_file", replace)


def _reads_outside(patch: Patch) -> None:
    """Decides on a registry that was read before it entered."""
    original = LeaseRuntime._begin

    def begin(self: LeaseRuntime, transaction: Transaction) -> None:
        before = getattr(self, "_before", None)
        original(self, transaction)
        if before is not None:
            transaction.registry, transaction.sight = before

    def ensure(self: LeaseRuntime, *made: object) -> None:
        self._before = self._read(inside=True)  # type: ignore[attr-defined]

    patch.setattr(LeaseRuntime, "_begin", begin)
    patch.setattr(LeaseRuntime, "_ensure_parent", ensure)


def _releases_without_asking(patch: Patch) -> None:
    """Deletes the entry, whoever owns it."""

    def release(self: LeaseRuntime, *, attempts: int | None = None) -> None:
        def inside(transaction: Transaction) -> None:
            data = transaction.registry.without(self.key)
            replace_file(self.ports, self.directory.registry, data, self.timings)

        self._run(inside, attempts)

    patch.setattr(LeaseRuntime, "release", release)


def _resumes_without_comparing(patch: Patch) -> None:
    """Takes what is over, whether it is what was seen or not (S33)."""
    patch.setattr(lease_steps, "LEADER_ELECTION", LEADER_ELECTION.without("still_the_one_left"))


_PLAIN = (("acquire", "refresh"), ("acquire",))
LEASE: dict[str, tuple[Mutation, lease.Setting]] = {
    "swallows the sync": (_swallows_the_sync, lease.Setting(1, _PLAIN, (1, 1))),
    "takes unknown for done": (_takes_unknown_for_done, lease.Setting(1, _PLAIN, (1, 1))),
    "takes unknown for failed": (_takes_unknown_for_failed, lease.Setting(1, _PLAIN, (1, 1))),
    "writes in place": (_writes_in_place, lease.Setting(0, _PLAIN, (2, 1))),
    "reads outside": (_reads_outside, lease.Setting(0, _PLAIN, (1, 1))),
    "releases without asking": (
        _releases_without_asking,
        lease.Setting(1, (("acquire",), ("release",)), (1, 1)),
    ),
    "resumes without comparing": (
        _resumes_without_comparing,
        lease.Setting(2, (("acquire",), ("resume",)), (1, 1)),
    ),
}


@pytest.mark.parametrize("name", LEASE)
def test_a_lease_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `LeaderElection` does not have."""
    mutate, setting = LEASE[name]
    mutate(monkeypatch)
    _is_red(explore(lease.LeaseBinding(setting), Limits(60_000, 60)))


def test_the_lease_as_it_is_is_green() -> None:
    """The same without a mutation."""
    for setting in {setting for _, setting in LEASE.values()}:
        found = explore(lease.LeaseBinding(setting), Limits(60_000, 60))
        assert ((), "") == (found.story, found.limit)


# -- polling ----------------------------------------------------------------------------------------------------------


def _starts_without_the_lease(patch: Patch) -> None:
    """A loop begins outside of the transaction that finds the lease still ours (S25)."""

    def begin(self: Polling, call: polling_steps.Call) -> None:
        if self.loop_phase == "pending" and self.loops.live == 0:
            self._turn_loop(poller.Begin(True))
            self.work.start(1)
            self._answer(own.Launched(), own.Returned(False), "Begin")

    patch.setattr(Polling, "_begin", begin)


def _takes_every_look_for_mine(patch: Patch) -> None:
    """A look that shows another owner counts as one that shows the own entry (S26)."""
    original = Polling._looked

    def looked(self: Polling, message: own.Refreshed | own.Checked, action: str, **args: object) -> None:
        original(self, attrs.evolve(message, saw="mine", passed=False), action, **args)

    patch.setattr(Polling, "_looked", looked)


def _takes_a_failed_acquire_for_denied(patch: Patch) -> None:
    """An acquire that raised counts as refused, though the entry may be there (K9)."""

    def acquire(self: Polling, call: polling_steps.Call) -> None:
        with suppress(TenureError):
            original(self, call)

    def failed(self: Polling, message: own.Happening, late: own.Returned, action: str, **args: object) -> object:
        told = own.Denied(0) if isinstance(message, own.AcquireFailed) else message
        return answer(self, told, late, action, **args)

    original, answer = Polling._acquire, Polling._answer
    patch.setattr(Polling, "_answer", failed)
    patch.setattr(Polling, "_acquire", acquire)


def _forgets_to_stop_watching(patch: Patch) -> None:
    """The watchers go on when the run is over."""
    original = Polling._perform

    def perform(self: Polling, output: own.Output) -> None:
        if output != "stop_watchers":
            original(self, output)

    patch.setattr(Polling, "_perform", perform)


POLLING: dict[str, tuple[Mutation, polling.Setting]] = {
    "starts without the lease": (_starts_without_the_lease, polling.Setting(2, "start force")),
    "takes every look for mine": (_takes_every_look_for_mine, polling.Setting(2, "start force")),
    "takes a failed acquire for denied": (_takes_a_failed_acquire_for_denied, polling.Setting(2, "start busy")),
    "forgets to stop watching": (_forgets_to_stop_watching, polling.Setting(2, "start stop")),
}


@pytest.mark.parametrize("name", POLLING)
def test_polling_that_does_otherwise_is_found(name: str, monkeypatch: Patch) -> None:
    """Each is a behaviour that `PollingOwnership` does not have."""
    mutate, setting = POLLING[name]
    mutate(monkeypatch)
    _is_red(explore(polling.PollingBinding(setting), Limits(60_000, 60)))


def test_polling_as_it_is_is_green() -> None:
    """The same without a mutation."""
    for setting in {setting for _, setting in POLLING.values()}:
        found = explore(polling.PollingBinding(setting), Limits(60_000, 60))
        assert ((), "") == (found.story, found.limit)


def _is_red(found: Found) -> None:
    """It fails with a story: calls with their answers, then what the twin has instead."""
    assert found.story, f"nothing was found in {found.situations} situations ({found.limit})"
    text = "\n".join(found.story)
    assert "->" in text
    assert "no behaviour of the twin" in text or "the twin has no" in text, text
