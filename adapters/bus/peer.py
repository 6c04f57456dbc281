"""Who is on the other end of a Unix socket, as the kernel says (DESIGN 10, Bus).

SO_PEERCRED where there is one (Linux), LOCAL_PEERCRED and LOCAL_PEERPID on macOS. On an accepted socket this is who
connected; on a connected one, who called listen(2): later changes of either process's user do not show.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Final

import attrs

_UCRED: Final = struct.Struct("@iII")
"""struct ucred: pid, uid, gid."""
_XUCRED: Final = struct.Struct("@IIh2x16I")
"""struct xucred: version, uid, number of groups, groups."""
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2


@attrs.frozen
class Peer:
    """One process on the other end."""

    pid: int
    """0 where the kernel cannot say: a process of another pid namespace."""
    uid: int

    @property
    def ours(self) -> bool:
        """Whether it is the same user as this process."""
        return self.uid == os.geteuid()

    def __str__(self) -> str:
        return f"pid {self.pid or '?'} of uid {self.uid}"


def peer_of(end: socket.socket) -> Peer:
    """The process on the other end of a connected Unix socket. Raises OSError where there is none any more."""
    if sys.platform == "linux":
        pid, uid, _ = _UCRED.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        return Peer(pid, uid)
    fields = _XUCRED.unpack(end.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    return Peer(end.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID), fields[1])
