"""Recording protocol events (DESIGN 8): a file per process, an order counter that all processes of a recording share.

An event is a formatted line, copied into a mapped file: no system call, so that a process that is killed loses at most
the event that it was writing, and recording costs next to nothing beside a call on the file system. The file is made
longer a chunk at a time; its unused tail is NULs, which are no part of it, and `TraceRecorder.close` cuts them off.

A line is the JSON object of `tenure.adapters.trace.lines`. Members that say nothing are left out.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
import secrets
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tenure.adapters.errors import TenureError

COUNTER: Final = "order"
"""The file of the order counter: the number of the last transaction, an unsigned little-endian integer of 8 bytes."""
SUFFIX: Final = ".trace"
CHUNK: Final = 1 << 20
"""Bytes by which a file grows."""

_spell = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(separators=(",", ":")).encode


class TraceRecorder:
    """A `Recorder` that writes into `directory`, which it makes where it is not there.

    Threads may share it; a forked child goes on in a file of its own. Nothing that fails while it records reaches the
    protocol: `broken` says what did, and from then on nothing more is recorded by this process.

    Raises `TenureError` where the directory or the counter cannot be made.
    """

    def __init__(self, directory: str | os.PathLike[str], *, chunk: int = CHUNK) -> None:
        self.directory = Path(directory)
        self.broken: str | None = None
        self._chunk = max(mmap.PAGESIZE, chunk - chunk % mmap.PAGESIZE)
        self._lock = threading.RLock()
        self._heads: dict[tuple[str, str, str], str] = {}
        self._seq, self._end, self._size, self._descriptor = 1, 0, 0, -1
        self._map: mmap.mmap | _Nowhere = _NOWHERE
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._counter = _counter(self.directory / COUNTER)
            self._open()
        except OSError as error:
            raise TenureError(f"{self.directory}: cannot record here ({error.strerror}); name another one") from error
        _LIVING.add(self)

    def order(self) -> int:
        """The number of the transaction that was just entered. Called inside the guard, by one at a time."""
        counter = self._counter
        number = counter[0] + 1
        counter[0] = number
        return number

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
        """Record one event; see `tenure.adapters.ports.Recorder`."""
        try:
            with self._lock:
                seq = self._seq
                self._seq = seq + 1
                try:
                    head = self._heads[module, action, node]
                except KeyError:
                    head = self._head(module, action, node)
                at = self._counter[0]
                # Inside a transaction the counter is its number, or somebody else is in: said only then.
                if number == at:
                    text = f'{head}{seq},"number":{number}'
                elif number:
                    text = f'{head}{seq},"number":{number},"at":{at}'
                else:
                    text = f'{head}{seq},"at":{at},"t":{time.monotonic_ns() // 1000}'
                if tenure is not None:
                    if type(tenure) is int:
                        text = f'{text},"tenure":{tenure}'
                    else:
                        text = f'{text},"tenure":{_spell(tenure) if type(tenure) is str else _encode(tenure)}'
                if args:
                    text = f'{text},"args":{_encode(args)}'
                if observed:
                    text = f'{text},"observed":{_encode(observed)}'
                line = f"{text}}}\n".encode()
                start = self._end
                end = start + len(line)
                if end > self._size:
                    self._grow(end)
                self._end = end
                self._map[start:end] = line
        except Exception as error:
            self._break(error)

    def close(self) -> None:
        """Cut off the unused tail. Events after it are not recorded."""
        with self._lock, suppress(OSError, ValueError):
            self._map.close()
            os.ftruncate(self._descriptor, self._end)
            os.close(self._descriptor)
            self._descriptor = -1
        _LIVING.discard(self)
        self.broken = self.broken or "closed"

    def _open(self) -> None:
        name = f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.directory / name, flags, 0o600)
        os.ftruncate(self._descriptor, self._chunk)
        self._map = mmap.mmap(self._descriptor, self._chunk)
        self._size = self._chunk

    def _grow(self, need: int) -> None:
        if self._descriptor < 0:
            self._open()  # the first event of a forked child
        size = self._size
        if need <= size:
            return
        while size < need:
            size += self._chunk
        os.ftruncate(self._descriptor, size)
        self._map.close()
        self._map = mmap.mmap(self._descriptor, size)
        self._size = size

    def _head(self, module: str, action: str, node: str) -> str:
        head = f'{{"module":{_encode(module)},"action":{_encode(action)},"node":{_encode(node)},"seq":'
        if len(self._heads) > 4096:
            self._heads.clear()  # a runtime that names its threads anew for ever must not fill the memory
        self._heads[module, action, node] = head
        return head

    def _break(self, error: Exception) -> None:
        if self.broken is None:
            self.broken = f"{type(error).__name__}: {error}"
            self._map = _NOWHERE
            self._size = 1 << 62

    def _forked(self) -> None:
        # The parent's lock may have been held by a thread that does not exist here; its file is the parent's.
        self._lock = threading.RLock()
        if self.broken is not None:
            return
        try:
            self._map.close()
            os.close(self._descriptor)
        except Exception as error:
            self._break(error)
            return
        # A file of its own is made for its first event: most children have none.
        self._seq, self._end, self._size, self._descriptor = 1, 0, 0, -1
        self._map = _NOWHERE


class _Nowhere:
    """What a broken recorder writes to."""

    def __setitem__(self, place: slice, line: bytes) -> None:
        return

    def close(self) -> None:
        return


_NOWHERE: Final = _Nowhere()
_LIVING: Final[weakref.WeakSet[TraceRecorder]] = weakref.WeakSet()


def _counter(path: Path) -> memoryview:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < 8:
            os.ftruncate(descriptor, 8)
        return memoryview(mmap.mmap(descriptor, 8)).cast("Q")
    finally:
        os.close(descriptor)


def _all_forked() -> None:
    for recorder in list(_LIVING):
        recorder._forked()


def _all_closed() -> None:
    for recorder in list(_LIVING):
        recorder.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_all_forked)
atexit.register(_all_closed)
