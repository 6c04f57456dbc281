"""What the probe measures, what it says of what it finds, and that it leaves nothing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tenure.adapters import cli
from tenure.adapters.errors import TenureError
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.looking import probe_platform
from tenure.adapters.looking.probe import probe, sqlite, wal_is_safe, wall_clock
from tenure.adapters.looking.probe_report import Probe, Row, as_json, verdict
from tenure.adapters.testing.faulty import Call, Fails, FaultyFiles, Plan


def rows(found: Probe) -> dict[str, Row]:
    return {row.name: row for row in found.rows}


def test_every_measurement_has_its_row_and_nothing_stays(tmp_path: Path) -> None:
    found = probe(str(tmp_path))
    assert {
        "file system",
        "free space",
        "rename onto a guard",
        "rename onto a file",
        "rename onto an empty one",
        "exclusive create",
        "rename over a file",
        "fsync of a directory",
        "time of a rename",
        "time of an fsync",
        "flock",
        "flock, inherited",
        "Unix socket",
        "notice of a death",
        "births",
        "boot id",
        "pid namespace",
        "pid 1",
        "monotonic clock",
        "clock with suspends",
        "wall clock",
        "SQLite",
    } == set(rows(found))
    assert found.fit
    assert "excludes" == rows(found)["flock"].found
    assert "a child keeps it, its end frees it" == rows(found)["flock, inherited"].found
    assert [] == list(tmp_path.iterdir())


def test_what_a_killed_probe_left_is_removed(tmp_path: Path) -> None:
    dead, alive = (tmp_path / f".tenure-probe-{pid}-0123abcd" for pid in (2**31 - 1, os.getpid()))
    dead.mkdir()
    (dead / "x").touch()
    alive.mkdir()
    probe(str(tmp_path))
    assert [alive] == list(tmp_path.iterdir())


def test_it_is_measured_where_the_files_are(tmp_path: Path) -> None:
    """`DIR/tmp/telegram` may be on another file system than DIR."""
    state = tmp_path / "tmp" / "telegram"
    state.mkdir(parents=True)
    made: list[str] = []

    def watches(call: Call) -> None:
        made.extend(call.paths[:1] if call.name == "make_directory" else ())

    assert probe(str(tmp_path), FaultyFiles(PosixFiles(), watches)).fit
    assert all(path.startswith(f"{state}/.tenure-probe-") for path in made)
    assert [] == list(state.iterdir())


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("name", ["make_directory", "create"])
def test_where_nothing_can_be_written_it_is_one_line(tmp_path: Path, number: int, name: str) -> None:
    files = FaultyFiles(PosixFiles(), lambda call: Fails(number) if call.name == name else None)
    with pytest.raises(TenureError) as raised:
        probe(str(tmp_path), files)
    assert f"{tmp_path}: nothing can be written there: {os.strerror(number)}" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [] == list(tmp_path.iterdir())


def refusing(name: str, end: str, number: int) -> Plan:
    """A file system on which that call on that path fails."""
    return lambda call: Fails(number) if call.name == name and call.paths[-1].endswith(end) else None


def test_a_file_system_that_cannot_replace_files_is_not_fit(tmp_path: Path) -> None:
    found = probe(str(tmp_path), FaultyFiles(PosixFiles(), refusing("rename", "/old", errno.EPERM)))
    assert "bad" == rows(found)["rename over a file"].mood
    assert not found.fit
    assert "tenure cannot run here: rename over a file" == verdict(found)


def test_a_file_system_without_fsync_of_directories_is_warned_of(tmp_path: Path) -> None:

    def refuses(call: Call) -> Fails | None:
        directory = "/" not in call.paths[0].partition(".tenure-probe-")[2]
        return Fails(errno.EINVAL) if call.name == "sync" and directory else None

    found = probe(str(tmp_path), FaultyFiles(PosixFiles(), refuses))
    assert ("warn", "Invalid argument") == (
        rows(found)["fsync of a directory"].mood,
        rows(found)["fsync of a directory"].found,
    )
    assert found.fit
    assert "warning" in verdict(found)


class Overwriting(PosixFiles):
    """A file system whose rename and create replace whatever stands there."""

    def rename(self, source: str, target: str) -> None:
        if os.path.isdir(target):
            for name in os.listdir(target):
                os.unlink(os.path.join(target, name))
        elif os.path.isdir(source) and os.path.exists(target):
            os.unlink(target)
        os.rename(source, target)

    def create(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)


def test_a_file_system_that_overwrites_is_not_fit(tmp_path: Path) -> None:
    found = probe(str(tmp_path), Overwriting())
    assert {"rename onto a guard", "rename onto a file", "exclusive create"} <= {
        row.name for row in found.rows if row.mood == "bad"
    }
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "virtiofs"])
def test_network_file_systems_are_warned_of(kind: str) -> None:
    row = probe_platform.of_mount(kind)
    assert ("warn", kind) == (row.mood, row.found)
    assert "processes of one machine only" in row.means


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "apfs", "unknown"])
def test_local_file_systems_are_not(kind: str) -> None:
    assert "good" == probe_platform.of_mount(kind).mood


MOUNTS = r"""/dev/vda / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
server:/x /srv nfs4 rw 0 0
/dev/vdb /srv/local xfs rw 0 0
x /with\040blank fuse.x rw 0 0
over /srv/local btrfs rw 0 0
torn
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/", "ext4"),
        ("/runner", "ext4"),
        ("/run/x", "tmpfs"),
        ("/srv", "nfs4"),
        ("/srv/locality", "nfs4"),
        ("/srv/local/x", "btrfs"),
        ("/with blank/x", "fuse.x"),
    ],
)
def test_a_path_is_on_the_innermost_mount_and_the_last_of_one_place(path: str, kind: str) -> None:
    assert kind == probe_platform.kind_of_mount(MOUNTS, path)


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_wal_is_for_an_sqlite_that_has_the_fix(version: tuple[int, int, int], safe: bool) -> None:
    """DESIGN 10: 3.51.3, 3.50.7, 3.44.6 or later."""
    assert safe == wal_is_safe(version)
    assert ("WAL may be used" in sqlite(version).means) == safe


def test_a_wall_clock_that_steps_is_warned_of() -> None:
    assert "good" == wall_clock(1_000_000).mood
    assert "warn" == wall_clock(-2_000_000_000).mood


def test_a_directory_too_deep_for_a_socket_is_warned_of_and_fit(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    found = probe(str(deep))
    assert "warn" == rows(found)["Unix socket"].mood
    assert "take a shorter DIR" in rows(found)["Unix socket"].means
    assert found.fit


def test_the_shape_of_json(tmp_path: Path) -> None:
    found = as_json(Probe("/x", (Row("a", "b", "c", "warn"),)))
    assert {
        "directory": "/x",
        "fit": True,
        "rows": [{"name": "a", "found": "b", "means": "c", "mood": "warn"}],
    } == found


def tenure(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code if isinstance(ended.value.code, int) else 0


def test_the_command_says_whether_tenure_can_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == tenure("doctor", str(tmp_path), "--probe")
    assert "tenure can run here" in capsys.readouterr().out
    assert 0 == tenure("doctor", str(tmp_path), "--probe", "--json")
    assert json.loads(capsys.readouterr().out)["fit"] is True
    assert 2 == tenure("doctor", str(tmp_path / "none"), "--probe")
    assert "no such directory" in capsys.readouterr().err
