"""The clocks and the randomness of this machine, and all real ports together."""

from __future__ import annotations

import string
import sys
import time
from os import urandom
from secrets import choice, randbits
from typing import Final

from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.processes import processes
from tenure.adapters.ports import Diagnostics, Fields, Ports, Recorder

_ALPHABET: Final = string.ascii_letters + string.digits
# On Linux the monotonic clock stands still in a suspend, elsewhere it is the one there is.
_FENCE: Final = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC


class HostClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000

    def fence_ms(self) -> int:
        return time.clock_gettime_ns(_FENCE) // 1_000_000

    def sleep_ms(self, duration_ms: float) -> None:
        time.sleep(duration_ms / 1000)


class RandomIdentities:
    """From the operating system's randomness, so that a fork repeats nothing."""

    def uuid(self) -> str:
        # str(uuid.uuid4()), at a third of its cost
        bits = urandom(16).hex()
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{'89ab'[int(bits[16], 16) % 4]}{bits[17:20]}-{bits[20:]}"

    def bits(self, count: int) -> int:
        return randbits(count)

    def word(self, length: int) -> str:
        return "".join(choice(_ALPHABET) for _ in range(length))


class Silent:
    """Diagnostics that go nowhere."""

    def note(self, category: str, phase: str, fields: Fields) -> None:
        return


def real_ports(diagnostics: Diagnostics | None = None, recorder: Recorder | None = None) -> Ports:
    """The ports of this machine."""
    return Ports(PosixFiles(), processes(), HostClock(), RandomIdentities(), diagnostics or Silent(), recorder)
