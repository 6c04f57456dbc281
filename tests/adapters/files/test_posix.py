"""`Files` on a real directory: what each kind of node is to a reader."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.adapters.files.posix import PosixFiles


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


@pytest.mark.parametrize("make", [_socket, os.mkfifo], ids=["socket", "pipe"])
def test_what_is_no_regular_file_is_said_to_be_none_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[str], None]
) -> None:
    """The kernel has an error of its own for a socket; to a reader it is damage like the others."""
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    make("owners.json")
    with pytest.raises(OSError, match="not a regular file") as raised:
        PosixFiles().read(f"{tmp_path}/owners.json")
    assert errno.EINVAL == raised.value.errno
