"""Registry, mark, guard or directory are damaged: one line that names the file, and nothing is changed (S9, S12)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.files.guard import GuardDamaged
from tenure.adapters.files.high_water import MarkDamaged
from tenure.adapters.files.posix import PosixFiles
from tenure.adapters.files.registry import RegistryDamaged
from tenure.adapters.testing.faulty import Fails

from .lease_house import House, won


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is empty"),
        (b'{"default": ', "bad JSON"),
        (b"[1, 2]", "an array instead of a JSON object"),
        (b'{"default": 5}', "default is a number instead of an object"),
        (b'{"default": {"pid": "12"}}', "default.pid is not a number"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_damaged_registry_is_named_and_left_alone(house: House, text: bytes, said: str) -> None:
    """S12, bad input: one line, the file, what is wrong; nothing on disk changed, no guard left behind."""
    house.write(text)
    lease = house.process(1).lease()
    view = lease.look()
    assert (None, "inactive", False) == (view.entry, view.state, view.readable)
    assert f"{house.directory.registry}: {said}" in view.problem
    with pytest.raises(RegistryDamaged) as caught:
        lease.acquire("plain")

    assert f"{house.directory.registry}: {said}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert text == house.text()
    assert ["owners.json"] == [n for n in house.inner.entries(house.directory.state) if not n.startswith(".")]
    assert "idle" == lease.phase


def test_an_owner_of_a_damaged_registry_waits_for_it_to_be_mended(house: House) -> None:
    """K6, Unknown: what cannot be read is no loss."""
    dweller = house.process(1)
    lease = dweller.lease()
    won(lease)
    good = house.text()
    house.write(b"{")
    assert ("unknown", "unknown") == (lease.check(), lease.refresh())
    assert 2 == len(dweller.notes.said("lock"))
    with pytest.raises(RegistryDamaged):
        lease.release()
    with pytest.raises(RegistryDamaged):
        lease.commit(lambda epoch: pytest.fail("ran"))
    with pytest.raises(RegistryDamaged):
        lease.acquire("plain")
    assert ("owner", b"{") == (lease.phase, house.text())
    assert good is not None
    house.write(good)
    assert ("mine", "mine") == (lease.check(), lease.refresh())


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_registry_that_cannot_be_read_is_no_empty_one(number: int) -> None:
    """Strict reading."""
    house = House()
    won(house.process(1).lease())
    text = house.text()
    lease = house.process(
        2, lambda c: Fails(number) if c.name == "read" and c.paths[0] == house.directory.registry else None
    ).lease()
    assert not lease.look().readable
    with pytest.raises(RegistryDamaged, match=house.directory.registry):
        lease.acquire("plain")
    assert (text, []) == (house.text(), house.left())


def test_a_damaged_mark_ends_the_acquisition(house: House) -> None:
    """DESIGN 10: never treated as 0; the error names the file and what to do."""
    house.make_state()
    house.inner.create(house.directory.high_water, b"{}")
    lease = house.process(1).lease()
    with pytest.raises(MarkDamaged, match=house.directory.high_water):
        lease.acquire("plain")

    assert ("idle", None, []) == (lease.phase, house.text(), house.left())


def test_a_damaged_guard_keeps_everybody_out(house: House) -> None:
    """S9: and nothing is changed."""
    house.make_state()
    house.inner.make_directory(house.directory.guard)
    with pytest.raises(GuardDamaged, match=r"owners\.json\.transaction"):
        house.process(1).lease().acquire("plain")
    assert house.text() is None
    house.inner.remove_directory(house.directory.guard)


@pytest.mark.parametrize("place", ["tmp", "tmp/telegram"])
def test_a_file_in_place_of_a_directory(house: House, place: str) -> None:
    """Named at once; nothing is waited for."""
    if place == "tmp/telegram":
        house.inner.make_directory(f"{house.directory.root}/tmp")
    house.inner.create(f"{house.directory.root}/{place}", b"")
    lease = house.process(1).lease()
    before = house.clock.monotonic
    with pytest.raises(TenureError, match=f"{house.directory.root}/{place}"):
        lease.acquire("plain")
    assert before == house.clock.monotonic


def test_no_directory_is_made_above_the_agents(tmp_path: Path) -> None:
    """DIR itself has to be there."""
    house = House(PosixFiles(), str(tmp_path / "gone"))
    with pytest.raises(TenureError, match="gone/tmp: cannot be made"):
        house.process(1).lease().acquire("plain")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("make_directory", "/telegram"),
        ("make_directory", ".staged."),
        ("create", ".staged."),
        ("create", "epochs.json"),
    ],
)
def test_on_a_full_disk_no_directory_is_left_behind(house: House, call: str, part: str) -> None:
    """Whatever it is that cannot be made: the directories that were made for it go again."""
    full = Fails(errno.ENOSPC)
    dweller = house.process(1, lambda made: full if made.name == call and part in made.paths[0] else None)
    with pytest.raises(TenureError, match="No space left"):
        dweller.lease().acquire("plain")
    assert "absent" == house.inner.kind(f"{house.directory.root}/tmp")
