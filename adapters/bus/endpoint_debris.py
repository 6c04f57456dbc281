"""What processes that died left beside an endpoint: private sockets, and links on their way (bus.md a).

A socket file whose listener is gone never lives again: nothing can listen at it, since a name is bound once. So a
refused connection proves it dead, except in the moment between bind and listen; hence the age. Links at stable paths
are never removed here: whoever owns the path renames over them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Final

from tenure.adapters.bus.endpoint_calls import EndpointCalls, Node

OLD_MS: Final = 60_000
"""Younger debris is left alone: its process may be between two calls."""
_AT_ONCE: Final = 256
"""Names looked at in one sweep."""
_PRIVATE: Final = re.compile(r"\.pt-[0-9a-f]{16}\.sock")
_LINK: Final = re.compile(r"[^/]+\.sock\.link\.[^/]+")


def sweep(calls: EndpointCalls, room: str) -> tuple[str, ...]:
    """Remove from the directory `room` what the dead left; the paths that were removed.

    Raises OSError where the directory cannot be read; what cannot be removed stays.
    """
    removed = []
    for name in islice(_debris(calls.entries(room)), _AT_ONCE):
        path = f"{room}/{name}"
        with suppress(OSError):
            if _dead(calls, path):
                calls.unlink(path)
                removed.append(path)
    return tuple(removed)


def _debris(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if _PRIVATE.fullmatch(name) or _LINK.fullmatch(name))


def _dead(calls: EndpointCalls, path: str) -> bool:
    """Whether `path` is ours, old, and nobody listens at it, or behind it."""
    node = calls.node(path)
    wanted = "socket" if _PRIVATE.fullmatch(os.path.basename(path)) else "link"
    if node.standing != wanted or node.uid != os.geteuid() or node.age_ms < OLD_MS:
        return False
    if wanted == "link" and not _PRIVATE.fullmatch(calls.target(path)):
        return False
    return calls.probe(path) == "dead" and _same(node, calls.node(path))


def _same(before: Node, after: Node) -> bool:
    return before.standing == after.standing and before.identity == after.identity
