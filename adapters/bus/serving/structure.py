"""How much of a line of JSON is structure, before it is parsed (`Limits.structure_bytes`)."""

from __future__ import annotations

from typing import Final

_SLICE: Final = 64 * 1024


def outside_strings(line: bytes, enough: int) -> int:
    """How many bytes of `line` stand outside of strings, quotes included; counting ends beyond `enough`.

    In slices, so that a thread that counts lets the others run. A line that is no JSON is counted as if it were.
    """
    count, inside, start = 0, False, 0
    while start < len(line) and count <= enough:
        stop = start + _SLICE
        part = line[start:stop]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # it ends between a backslash and what that escapes
            stop += 1
            part = line[start:stop]
        parts = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        count += len(parts) - 1 + sum(map(len, parts[inside::2]))
        inside ^= len(parts) % 2 == 0
        start = stop
    return count
