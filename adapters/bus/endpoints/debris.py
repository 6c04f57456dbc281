"""What processes that died left beside an endpoint: private sockets, and links on their way (bus.md a).

A socket file whose listener is gone never lives again: nothing can listen at it, since a name is bound once. So a
refused connection proves it dead, except in the moment between bind and listen; hence the age.

A stop leaves the link at its path (`Endpoint`). A leader's stays for the next one to rename over. A follower's bears
its instance, which nobody else ever is: it is removed when that process is gone as well, since only that could be about
to publish it again. Where paths are too long, the name says neither, and whoever published it may be about to do so
again: there a link to nothing stays for an hour. Followers leave one each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Final

from tenure.adapters.bus.endpoints.calls import EndpointCalls, Node

OLD_MS: Final = 60_000
"""Younger debris is left alone: its process may be between two calls."""
NAMELESS_MS: Final = 3_600_000
_AT_ONCE: Final = 256
"""Names looked at in one sweep."""
_PRIVATE: Final = re.compile(r"\.pt-[0-9a-f]{16}\.sock")
_LINK: Final = re.compile(r"[^/]+\.sock\.link\.[^/]+")
_FOLLOWER: Final = re.compile(r"([1-9][0-9]{0,9})_[0-9]+\.sock")
"""A follower's endpoint: its instance, "<pid>:<ms>"."""
_NAMELESS: Final = re.compile(r"[0-9a-f]{16}\.sock")
"""An endpoint in the short directory."""


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
    kinds = (_PRIVATE, _LINK, _FOLLOWER, _NAMELESS)
    return (name for name in names if any(kind.fullmatch(name) for kind in kinds))


def _dead(calls: EndpointCalls, path: str) -> bool:
    """Whether `path` is ours, old, and nobody listens at it, or behind it."""
    name = os.path.basename(path)
    follower = _FOLLOWER.fullmatch(name)
    if follower and not calls.gone(int(follower[1])):
        return False
    node = calls.node(path)
    wanted = "socket" if _PRIVATE.fullmatch(name) else "link"
    old = NAMELESS_MS if _NAMELESS.fullmatch(name) else OLD_MS
    if node.standing != wanted or node.uid != os.geteuid() or node.age_ms < old:
        return False
    if wanted == "link" and not _PRIVATE.fullmatch(calls.target(path)):
        return False
    return calls.probe(path) == "dead" and _same(node, calls.node(path))


def _same(before: Node, after: Node) -> bool:
    return before.standing == after.standing and before.identity == after.identity
