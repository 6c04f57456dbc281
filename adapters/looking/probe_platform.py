"""The parts of the probe that are about the platform: mounts, locks, sockets, processes, clocks."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final

from tenure.adapters.files.processes import processes as of_this_platform
from tenure.adapters.looking.probe_report import Row
from tenure.machines.identity import RUNNING

NETWORK: Final = ("nfs", "cifs", "smb", "9p", "fuse", "ceph", "afs", "glusterfs", "virtiofs", "lustre", "vboxsf")
"""File systems, by how their names begin, through which other machines or a host may write."""
_FIRST_NAMESPACE: Final = 0xEFFFFFFC
"""The inode of the pid namespace that a Linux boots with."""
_SOCKET_LIMIT: Final = 107 if sys.platform == "linux" else 103
"""Bytes of a Unix socket's path."""


# -- the mount ------------------------------------------------------------------


def file_system(directory: str) -> Row:
    """On which file system a directory is, by the mounts of this process."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return Row(
            "file system", "unknown", "if it is a network's, processes of other machines cannot be seen", "quiet"
        )
    return of_mount(kind_of_mount(mounts, os.path.realpath(directory)))


def kind_of_mount(mounts: str, directory: str) -> str:
    """The type of the mount that a real path is on; of those at one place the last counts."""
    best, kind = -1, "unknown"
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = _unescaped(fields[1])
        inside = directory == place or directory.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:
            best, kind = len(place), fields[2]
    return kind


def of_mount(kind: str) -> Row:
    """What a file system's type means."""
    if kind.startswith(NETWORK):
        means = (
            "other machines may write here: their processes look dead from here, and rename or flock may not be atomic"
        )
        return Row("file system", kind, f"{means}: share it among processes of one machine only", "warn")
    if kind in ("tmpfs", "ramfs"):
        return Row("file system", kind, "gone after a restart, and so is the mark of epochs", "warn")
    return Row("file system", kind)


def _unescaped(field: str) -> str:
    """A mount point without the octal escapes of /proc/mounts."""
    for digits, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(digits, sign)
    return field


# -- locks and sockets ----------------------------------------------------------


def locks(place: str) -> Iterator[Row]:
    """flock, and that a child which inherits the descriptor keeps the lock: ``tenure lead`` rests on both."""
    path = os.path.join(place, "lock")
    with ExitStack() as stack:
        first, second = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for _ in range(2))
        stack.callback(_close, second)
        held = _locked(first) and not _locked(second)
        if not held:
            os.close(first)
            yield Row("flock", "does not exclude", "tenure lead cannot run here: two COMMANDs could run", "bad")
            return
        yield Row("flock", "excludes", "one COMMAND at a time")
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            pass_fds=(first,),
        )
        os.close(first)
        inherited = not _locked(second)
        child.communicate()
        free = _locked(second)
    if inherited and free:
        yield Row("flock, inherited", "a child keeps it, its end frees it", "no COMMAND starts while one lives")
    else:
        yield Row("flock, inherited", "not kept", "tenure lead cannot run here: two COMMANDs could run", "bad")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _close(descriptor: int) -> None:
    with suppress(OSError):
        os.close(descriptor)


def socket_path(place: str, endpoint: str) -> Row:
    """Whether a Unix socket can be bound here, and whether its path would be short enough."""
    length = len(os.fsencode(endpoint))
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        near = f"/proc/self/fd/{directory}/s" if sys.platform == "linux" else os.path.join(place, "s")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(near)
    except OSError as error:
        return Row("Unix socket", str(error), "followers cannot be served here; leading is not affected", "warn")
    finally:
        os.close(directory)
    found = f"path of {length} bytes, {_SOCKET_LIMIT} at most"
    if length > _SOCKET_LIMIT:
        return Row("Unix socket", found, "too long: followers cannot be served; take a shorter DIR", "warn")
    return Row("Unix socket", found)


# -- processes ------------------------------------------------------------------


def processes() -> Iterator[Row]:
    """What can be known of other processes, and of one's own birth."""
    ports = of_this_platform()
    me = ports.me()
    watch = ports.watch(me.pid, me.birth)
    if watch is None:
        yield Row("notice of a death", "none", "deaths are asked for, which takes a check's time", "quiet")
    else:
        alive = not select.select([watch.fileno()], [], [], 0)[0]
        watch.close()
        yield Row("notice of a death", "pidfd" if alive else "pidfd, but wrong", "a successor leads at once")
    if me.birth.ticks > 0:
        yield Row("births", f"ticks {me.birth.ticks}", "a reused pid is told from its last process")
    else:
        yield Row("births", "not to be had", "a reused pid keeps a dead owner's guard (K1)", "warn")
    yield Row("boot id", me.birth.boot_id, "what an earlier boot left is dead", "quiet")
    yield _namespace(me.birth.namespace)
    if ports.sighting(1).state == RUNNING:
        yield Row("pid 1", "visible", "processes of other users can be probed")
    else:
        yield Row("pid 1", "hidden", "who cannot be seen counts as alive until the lease passes", "warn")


def _namespace(inode: int) -> Row:
    if inode == _FIRST_NAMESPACE or inode == 0:
        return Row("pid namespace", str(inode), "the machine's own: all its processes are seen", "quiet")
    means = "a container's: processes outside cannot be seen, and their leases end by time only (K14)"
    return Row("pid namespace", str(inode), means, "quiet")


# -- clocks ---------------------------------------------------------------------


def clocks() -> Iterator[Row]:
    """Which clocks there are, and how fine they are."""
    fine = time.clock_getres(time.CLOCK_MONOTONIC) * 1e9
    yield _resolution("monotonic clock", fine, "stamps: leases of one boot are judged by it")
    if not hasattr(time, "CLOCK_BOOTTIME"):
        means = "a lease that passes in a suspend is noticed at the next check only"
        yield Row("clock with suspends", "none", means, "quiet")
        return
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    found = (
        f"{time.clock_getres(time.CLOCK_BOOTTIME) * 1e9:.0f} ns; suspended for {max(0.0, slept):.1f} s since the boot"
    )
    yield Row("clock with suspends", found, "who wakes up knows that its lease has passed")


def _resolution(name: str, nanoseconds: float, means: str) -> Row:
    if nanoseconds > 50e6:
        return Row(name, f"{nanoseconds / 1e6:.0f} ms", f"{means}; too coarse for a check every second", "warn")
    return Row(name, f"{nanoseconds:.0f} ns", means)
