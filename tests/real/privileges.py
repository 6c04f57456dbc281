"""Root writes everywhere; these take that away for a while, so that tests of what cannot be written need no skip."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: modes of files do not bind who has them."""
_VERSION_3 = 0x20080522
_DROP_FROM_BOUNDS = 24  # PR_CAPBSET_DROP


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """In here modes of files bind this thread, whoever it is."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    assert libc.capget(ctypes.byref(header), data) == 0
    before = data[0].effective
    data[0].effective = before & ~sum(1 << number for number in _OVERRIDES)
    assert libc.capset(ctypes.byref(header), data) == 0
    try:
        yield
    finally:
        data[0].effective = before
        assert libc.capset(ctypes.byref(header), data) == 0


def before_exec() -> None:
    """As `preexec_fn`: the program that is executed next is bound by modes."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for number in _OVERRIDES:
            assert libc.prctl(_DROP_FROM_BOUNDS, number, 0, 0, 0) == 0
