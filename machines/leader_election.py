"""One runtime of a process and its lease on one key of the owner registry (locks.md 6, 7 and 14.3).

The machine of `spec/LeaderElection.tla`. An adapter enters the file transaction, reads the registry once, feeds what
it saw as a `Sight`, performs the output, feeds how that went, and leaves. Nothing else decides:

* memory follows the file: the tenure changes when the write is known to have succeeded, and when nobody can say, the
  runtime is `doubtful` until it reads again (hole K9);
* an epoch is minted inside the transaction, above a mark that is raised durably before the entry is written;
* outside the transaction an owner goes by its own monotonic clock: past its lease it sends nothing (hole K11).

An effect that is sent carries its epoch, and the resource compares it (`tenure.machines.lease.admits`).
"""

from __future__ import annotations

from typing import Final

import attrs
from statemachine import State, StateMachine

from tenure.machines.chart import Table, compile_chart
from tenure.machines.entry import Entry
from tenure.machines.identity import Owner, proven_dead, same_owner, under_my_pid
from tenure.machines.laws import Law, guard, permit
from tenure.machines.leader_messages import (
    Acquire,
    Answer,
    Commit,
    Deciding,
    DeleteEntry,
    Die,
    Elect,
    Force,
    Happening,
    Look,
    Lost,
    Me,
    Mint,
    Outcome,
    Output,
    Owned,
    Raised,
    RaiseHighWater,
    Refresh,
    Release,
    Resolve,
    Resume,
    RunEffect,
    Runtime,
    Send,
    SendEffect,
    Settle,
    Start,
    Supersede,
    Switch,
    Tenure,
    WriteEntry,
)
from tenure.machines.lease import (
    STALE,
    Sight,
    classify,
    from_future,
    heartbeat_passed,
    ordered,
    passed,
    stamped,
    supersedes,
)

_READ: Final = ("inside", "strict_read")
_MINE: Final = ("inside", "strict_read", "same_key")


class LeaderElectionChart(StateMachine):
    """One runtime of a process, and its lease."""

    off = State(initial=True)
    idle = State()
    owner = State()
    doubtful = State()
    minting = State()
    raising = State()
    placing = State()
    renewing = State()
    deleting = State()
    committing = State()

    start = off.to(idle, cond=["after_previous"], on="begin")
    look = (
        idle.to(idle, cond=["strict_read"], on="remember")
        | owner.to(owner, cond=["mine_to_own"])
        | owner.to(idle, cond=["strict_read", "same_key"], on="lose")
    )
    acquire = (
        idle.to(minting, cond=[*_READ, "nobody_owns"], on="take_plain")
        | idle.to(minting, cond=[*_READ, "death_is_proof"], on="take_plain")
        | idle.to(minting, cond=[*_READ, "not_of_my_process", "expiry_frees", "lease_has_passed"], on="take_plain")
        | idle.to(
            minting,
            cond=[*_READ, "not_of_my_process", "expiry_frees", "only_without_stamp", "heartbeat_has_passed"],
            on="take_plain",
        )
        | idle.to(minting, cond=[*_READ, "not_of_my_process", "watched_unchanged"], on="take_plain")
    )
    elect = idle.to(minting, cond=[*_READ, "nobody_owns"], on="take_elected") | idle.to(
        minting, cond=[*_READ, "saw_somebody", "still_the_one_seen", "still_over"], on="take_elected"
    )
    force = idle.to(minting, cond=[*_READ, "not_of_my_process", "owner_was_shown"], on="take_forced")
    supersede = idle.to(minting, cond=[*_READ, "reload_takes_over", "newer_generation"], on="take_superseding")
    resume = idle.to(minting, cond=[*_READ, "still_the_one_left", "still_over"], on="take_resumed") | idle.to(
        minting, cond=[*_READ, "still_the_one_left", "newer_generation"], on="take_resumed"
    )
    mint = minting.to(raising, cond=["above_high_water", "above_entry"], on="raise_mark")
    abandon = minting.to(idle, on="give_up")
    raised = raising.to(placing, cond=["mark_is_durable"], on="place") | raising.to(idle, on="give_up")
    settle = (
        placing.to(owner, cond=["write_succeeded"], on="own")
        | placing.to(idle, cond=["surely_failed"], on="give_up")
        | placing.to(doubtful, on="doubt")
        | renewing.to(owner, cond=["write_succeeded"], on="renewed")
        | renewing.to(owner)
        | deleting.to(idle, cond=["write_succeeded"], on="give_up")
        | deleting.to(owner, cond=["surely_failed"])
        | deleting.to(doubtful, on="doubt")
    )
    resolve = doubtful.to(owner, cond=[*_READ, "entry_landed"], on="resolved") | doubtful.to(
        idle, cond=[*_READ], on="give_up"
    )
    refresh = owner.to(renewing, cond=[*_MINE, "mine_to_refresh"], on="renew") | owner.to(
        idle, cond=[*_MINE], on="lose"
    )
    release = owner.to(deleting, cond=[*_MINE, "mine_to_release"], on="let_go")
    commit = owner.to(committing, cond=["commit_inside", "strict_read", "same_key", "mine_to_commit"], on="run")
    landed = committing.to(owner)
    emit = owner.to(owner, cond=["own_lease_holds"], on="send_effect")
    switch = idle.to(idle, on="turn") | owner.to(owner, on="turn")
    die = (
        idle.to(off, on="vanish")
        | owner.to(off, on="vanish")
        | doubtful.to(off, on="vanish")
        | minting.to(off, on="vanish")
        | raising.to(off, on="vanish")
        | placing.to(off, on="vanish")
        | renewing.to(off, on="vanish")
        | deleting.to(off, on="vanish")
        | committing.to(off, on="vanish")
    )

    # -- reading ------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def inside(data: Runtime, message: Deciding) -> bool:
        """Fence: decide on what was read inside the transaction. Without it two acquire, or a sibling's key is lost."""
        return message.sight.inside

    @staticmethod
    @guard(Law.FENCE)
    def commit_inside(data: Runtime, message: Commit) -> bool:
        """Fence: the effect runs inside the transaction. Without it one lands after another runtime owns."""
        return message.sight.inside

    @staticmethod
    @guard(Law.PROOF)
    def strict_read(data: Runtime, message: Deciding) -> bool:
        """Proof: what cannot be read is not empty. Without it the other owners' entries are overwritten."""
        return message.sight.readable

    @staticmethod
    @guard(Law.FENCE)
    def same_key(data: Runtime, message: Deciding) -> bool:
        """Fence: a tenure is of one key. Without it an owner that switched profiles forgets a lease that is its own."""
        return data.tenure is not None and data.tenure.key == message.sight.key

    @staticmethod
    @guard(Law.FRESH)
    def after_previous(data: Runtime, message: Start) -> bool:
        """Fresh: a runtime is newer than all of its process. Without it nobody can tell which of two took over."""
        return message.generation > message.previous

    # -- acquiring ----------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.PROOF)
    def nobody_owns(data: Runtime, message: Deciding) -> bool:
        """Proof: an absent entry is free. Without it a live lease is taken."""
        return message.sight.entry is None

    @staticmethod
    @permit(Law.PROOF)
    def death_is_proof(data: Runtime, message: Deciding) -> bool:
        """Proof: a proven death needs no waiting. Without it an entry of a process that had my pid bars me for ever."""
        entry = message.sight.entry
        return entry is not None and proven_dead(entry.birth, message.sight.seen, data.me.process)

    @staticmethod
    @guard(Law.FRESH)
    def not_of_my_process(data: Runtime, message: Deciding) -> bool:
        """Fresh: within a process the newer owns, whatever the time. Without it an older one takes a paused lease."""
        entry = message.sight.entry
        return entry is None or not under_my_pid(entry.pid, entry.birth, data.me.process)

    @staticmethod
    @permit(Law.PROOF)
    def expiry_frees(data: Runtime, message: Deciding) -> bool:
        """Proof: a lease that is over may be replaced. Without it an owner that hangs owns for ever."""
        return True

    @staticmethod
    @guard(Law.PROOF)
    def lease_has_passed(data: Runtime, message: Deciding) -> bool:
        """Proof: our own leases are over by the monotonic clock. Without it a live lease is taken."""
        entry = message.sight.entry
        return (
            entry is not None
            and stamped(entry, data.me.process.birth.boot_id)
            and passed(entry.stamp_ms or 0, message.sight.monotonic_ms, data.me.stale_ms)
        )

    @staticmethod
    @guard(Law.PROOF)
    def only_without_stamp(data: Runtime, message: Deciding) -> bool:
        """Proof: the wall clock decides where there is no stamp. Without it a step of the clock evicts an owner."""
        entry = message.sight.entry
        return entry is None or not stamped(entry, data.me.process.birth.boot_id)

    @staticmethod
    @guard(Law.PROOF)
    def heartbeat_has_passed(data: Runtime, message: Deciding) -> bool:
        """Proof: a foreign lease is over when its heartbeat is old. Without it a live foreign owner is replaced."""
        entry = message.sight.entry
        return entry is not None and heartbeat_passed(entry, message.sight.wall_ms, data.me.stale_ms)

    @staticmethod
    @permit(Law.PROOF)
    def watched_unchanged(data: Runtime, message: Deciding) -> bool:
        """Proof: a heartbeat from the future, unchanged for a whole lease, is over. Without it it bars all for ever."""
        entry = message.sight.entry
        return (
            entry is not None
            and not stamped(entry, data.me.process.birth.boot_id)
            and from_future(entry, message.sight.wall_ms, data.me.stale_ms)
            and message.sight.unchanged_ms > data.me.stale_ms
        )

    @staticmethod
    @guard(Law.PROOF)
    def saw_somebody(data: Runtime, message: Elect) -> bool:
        """Proof: to have seen nobody is no wildcard. Without it an election evicts a newcomer."""
        return data.shown is not None

    @staticmethod
    @guard(Law.PROOF)
    def still_the_one_seen(data: Runtime, message: Elect) -> bool:
        """Proof: exactly the owner seen. Without it the winner of another election is replaced at once."""
        entry = message.sight.entry
        return data.shown is None or (entry is not None and same_owner(data.shown, entry.owner))

    @staticmethod
    @guard(Law.PROOF)
    def still_over(data: Runtime, message: Elect | Resume) -> bool:
        """Proof: the lease is still over at commit time. Without it a leader that has refreshed is evicted."""
        sight = message.sight
        return classify(sight.entry, sight, data.me.process, data.me.stale_ms) == STALE

    @staticmethod
    @guard(Law.PROOF)
    def owner_was_shown(data: Runtime, message: Force) -> bool:
        """Proof: force is over the very owner that was shown. Without it an owner that nobody confirmed is evicted."""
        entry = message.sight.entry
        return entry is not None and same_owner(data.shown, entry.owner)

    @staticmethod
    @permit(Law.FRESH)
    def reload_takes_over(data: Runtime, message: Supersede) -> bool:
        """Fresh: the newer runtime needs nobody's word. Without it a reload is locked out by its predecessor."""
        return True

    @staticmethod
    @guard(Law.FRESH)
    def newer_generation(data: Runtime, message: Supersede | Resume) -> bool:
        """Fresh: only the newer supersedes. Without it two runtimes of a process take from each other in turns."""
        entry = message.sight.entry
        return entry is not None and supersedes(entry, data.me.process, data.me.cwd, data.generation)

    @staticmethod
    @guard(Law.FENCE)
    def still_the_one_left(data: Runtime, message: Resume) -> bool:
        """Fence: a resume takes exactly the owner it saw. Without it a session start takes a newcomer's lease."""
        entry = message.sight.entry
        return entry is not None and same_owner(data.shown, entry.owner)

    @staticmethod
    @guard(Law.FRESH)
    def above_high_water(data: Runtime, message: Mint) -> bool:
        """Fresh: above every epoch raised before (and one that all peers read exactly). Without it an epoch repeats."""
        return message.high_water < message.epoch <= data.me.max_epoch

    @staticmethod
    @guard(Law.FRESH)
    def above_entry(data: Runtime, message: Mint) -> bool:
        """Fresh: above an integer that a foreign owner has. Without it two owners have one epoch."""
        return message.epoch > ordered(message.entry_epoch)

    # -- writing ------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def mark_is_durable(data: Runtime, message: Raised) -> bool:
        """Durable first: no entry without its mark. Without it the epoch is used again after the entry is gone."""
        return message.durable

    @staticmethod
    @guard(Law.DURABLE_FIRST)
    def write_succeeded(data: Runtime, message: Settle) -> bool:
        """Durable first: memory follows the file. Without it a runtime acts under a lease that was never written."""
        return message.outcome is Outcome.SUCCEEDED

    @staticmethod
    @guard(Law.UNKNOWN)
    def surely_failed(data: Runtime, message: Settle) -> bool:
        """Unknown: not known is not failed. Without it a lease is left that its own runtime neither keeps nor frees."""
        return message.outcome is Outcome.FAILED

    @staticmethod
    @guard(Law.UNKNOWN)
    def entry_landed(data: Runtime, message: Resolve) -> bool:
        """Unknown: the file resolves a doubt. Without it a runtime acts under a lease that was never written."""
        return _mine(data, message.sight)

    # -- owning -------------------------------------------------------------------------------------------------------

    @staticmethod
    @guard(Law.FENCE)
    def mine_to_own(data: Runtime, message: Look) -> bool:
        """Fence: I own while the entry is exactly mine. Without it two runtimes say so of one key."""
        return _mine(data, message.sight)

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def mine_to_refresh(data: Runtime, message: Refresh) -> bool:
        """Late is nothing: a displaced owner renews nothing. Without it its refresh overwrites the new owner."""
        return _mine(data, message.sight)

    @staticmethod
    @guard(Law.LATE_IS_NOTHING)
    def mine_to_release(data: Runtime, message: Release) -> bool:
        """Late is nothing: a displaced owner frees nothing. Without it its release deletes the new owner's entry."""
        return _mine(data, message.sight)

    @staticmethod
    @guard(Law.FENCE)
    def mine_to_commit(data: Runtime, message: Commit) -> bool:
        """Fence: what runs inside the transaction is the owner's. Without it a displaced owner's effect lands late."""
        return _mine(data, message.sight)

    @staticmethod
    @guard(Law.FENCE)
    def own_lease_holds(data: Runtime, message: Send) -> bool:
        """Fence: past its own lease an owner is silent. Without it one that was paused acts beside its successor."""
        return data.tenure is not None and not passed(data.tenure.stamp_ms, message.monotonic_ms, data.me.stale_ms)

    # -- effects ------------------------------------------------------------------------------------------------------

    @staticmethod
    def begin(data: Runtime, message: Start) -> Answer:
        return attrs.evolve(data, generation=message.generation), ()

    @staticmethod
    def remember(data: Runtime, message: Look) -> Answer:
        entry = message.sight.entry
        return attrs.evolve(data, shown=None if entry is None else entry.owner), ()

    @staticmethod
    def take_plain(data: Runtime, message: Acquire) -> Answer:
        return attrs.evolve(data, mode="plain"), ()

    @staticmethod
    def take_elected(data: Runtime, message: Elect) -> Answer:
        return attrs.evolve(data, mode="election"), ()

    @staticmethod
    def take_forced(data: Runtime, message: Force) -> Answer:
        return attrs.evolve(data, mode="forced"), ()

    @staticmethod
    def take_superseding(data: Runtime, message: Supersede) -> Answer:
        return attrs.evolve(data, mode="superseding"), ()

    @staticmethod
    def take_resumed(data: Runtime, message: Resume) -> Answer:
        return attrs.evolve(data, mode="resume"), ()

    @staticmethod
    def raise_mark(data: Runtime, message: Mint) -> Answer:
        me = data.me
        owner = Owner(me.process.pid, me.cwd, me.instance_id, message.epoch, data.generation)
        return attrs.evolve(data, tenure=Tenure(data.key, owner, 0)), (RaiseHighWater(message.epoch),)

    @staticmethod
    def place(data: Runtime, message: Raised) -> Answer:
        tenure = attrs.evolve(_held(data), stamp_ms=message.monotonic_ms)
        entry = _entry(data.me, tenure.owner, message.wall_ms, message.monotonic_ms, None)
        return attrs.evolve(data, tenure=tenure), (WriteEntry(tenure.key, entry),)

    @staticmethod
    def own(data: Runtime, message: Settle) -> Answer:
        tenure = _held(data)
        return attrs.evolve(data, mode="none", shown=None), (Owned(tenure.key, tenure.epoch, data.mode),)

    @staticmethod
    def doubt(data: Runtime, message: Settle) -> Answer:
        return attrs.evolve(data, mode="none", shown=None), ()

    @staticmethod
    def resolved(data: Runtime, message: Resolve) -> Answer:
        tenure = _held(data)
        return data, (Owned(tenure.key, tenure.epoch, "resolved"),)

    @staticmethod
    def give_up(data: Runtime, message: Happening) -> Answer:
        return attrs.evolve(data, tenure=None, mode="none", shown=None), ()

    @staticmethod
    def lose(data: Runtime, message: Look | Refresh) -> Answer:
        tenure = _held(data)
        return attrs.evolve(data, tenure=None, shown=None), (Lost(tenure.key, tenure.epoch),)

    @staticmethod
    def renew(data: Runtime, message: Refresh) -> Answer:
        sight, tenure = message.sight, _held(data)
        kept = None if sight.entry is None else sight.entry.bus_secret
        entry = _entry(data.me, tenure.owner, sight.wall_ms, sight.monotonic_ms, kept)
        return attrs.evolve(data, stamp_ms=sight.monotonic_ms), (WriteEntry(tenure.key, entry),)

    @staticmethod
    def renewed(data: Runtime, message: Settle) -> Answer:
        return attrs.evolve(data, tenure=attrs.evolve(_held(data), stamp_ms=data.stamp_ms)), ()

    @staticmethod
    def let_go(data: Runtime, message: Release) -> Answer:
        return data, (DeleteEntry(_held(data).key),)

    @staticmethod
    def run(data: Runtime, message: Commit) -> Answer:
        tenure = _held(data)
        return data, (RunEffect(tenure.key, tenure.epoch),)

    @staticmethod
    def send_effect(data: Runtime, message: Send) -> Answer:
        tenure = _held(data)
        return data, (SendEffect(tenure.key, tenure.epoch),)

    @staticmethod
    def turn(data: Runtime, message: Switch) -> Answer:
        return attrs.evolve(data, key=message.key, shown=None), ()

    @staticmethod
    def vanish(data: Runtime, message: Die) -> Answer:
        return Runtime(data.me, data.key), ()


def _held(data: Runtime) -> Tenure:
    assert data.tenure is not None, "the phase says that there is a tenure"
    return data.tenure


def _mine(data: Runtime, sight: Sight) -> bool:
    return data.tenure is not None and sight.entry is not None and same_owner(data.tenure.owner, sight.entry.owner)


def _entry(me: Me, owner: Owner, wall_ms: int, monotonic_ms: int, kept_secret: str | None) -> Entry:
    """What is written on acquisition and refresh: the owner as it was minted, a fresh lease, my endpoint (7.2)."""
    return Entry(
        pid=owner.pid,
        cwd=owner.cwd,
        instance_id=owner.instance_id,
        heartbeat_ms=wall_ms,
        leader_epoch=owner.leader_epoch,
        runtime_generation=owner.runtime_generation,
        bus_socket_path=me.bus_socket_path,
        bus_secret=me.bus_secret if me.bus_secret is not None else kept_secret,
        birth=me.process.birth,
        stamp_ms=monotonic_ms,
    )


LEADER_ELECTION: Final[Table[Runtime, Happening, Output]] = compile_chart(LeaderElectionChart)
