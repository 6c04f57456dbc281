"""What fails while a member begins to lead, or leads: it is tried again, and others lead meanwhile (K4, V14)."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.roles import Leading, Seeking
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, ProvisionRefused
from tests.adapters.fleet.fleet_room import run, until
from tests.adapters.fleet.member_room import TIMES, Village


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


class Failing(LocalProvisioning):
    """Provisioning that raises, so often."""

    def __init__(self, village: Village, pid: int, error: Exception, times: int = 1_000_000) -> None:
        super().__init__(village.ports(pid))
        self.error = error
        self.times = times

    async def provision(self, *arguments: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return await super().provision(*arguments)


@pytest.mark.parametrize("error", [ProvisionRefused("all letters are held"), ValueError("a fault"), TimeoutError("t")])
def test_provisioning_that_raises(village: Village, error: Exception) -> None:
    """Each time the lease is given up; after a grace it is tried again, and at last it leads."""

    async def story() -> None:
        async with village:
            life = await village.joins(101, provisioning=Failing(village, 101, error, times=2))
            assert isinstance(life.role, Leading)
            assert life.role.epoch == 3  # the lease was won, and given up, two times before
            assert sum(isinstance(role, Leading) for role in life.roles) == 1
            said = str(error) if isinstance(error, TenureError) else "provisioning failed"
            waited = [role for role in life.roles if isinstance(role, Seeking) and role.phase == "waiting"]
            assert len(waited) == 2
            assert all(said in role.error for role in waited)
            numbers = life.member.statistics()
            assert (numbers.failed_promotions, numbers.promotions) == (2, 1)
            assert life.edges == [True]

    run(story())


def test_others_lead_meanwhile(tmp_path: Path) -> None:
    """The favourite's promotion fails: it lets the other lead, and follows it with the slot that it had."""

    async def story() -> None:
        village = Village(tmp_path, attrs.evolve(TIMES, grace_ms=400))
        async with village:
            first = await village.joins(101)
            second = await village.joins(102, provisioning=Failing(village, 102, ProvisionRefused("not here")))
            third = await village.joins(103)
            slot = second.slot
            await first.member.leave()
            await third.leads()
            assert (await second.follows(third)).slot == slot
            assert second.member.statistics().failed_promotions >= 1
            assert second.edges == [True, False, True]

    run(story())


@pytest.mark.parametrize("left", ["torn", json.dumps({"version": 1, "threads": [{"a": 1}]})])
def test_a_projection_of_somebody_elses(village: Village, left: str) -> None:
    """What a person has to mend is said so; mended, it leads. Until then it takes no lease: an epoch that is given back
    at once, again and again, would keep everybody else busy."""

    async def story() -> None:
        async with village:
            state = Path(village.directory.state) / "state.json"
            state.parent.mkdir(parents=True)
            state.write_text(left)
            life = await village.enters(101)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: (isinstance(life.role, Seeking) and life.role.mend) or joining.done())
            if not joining.done():
                assert "state.json" in str(life.role)
                assert "waiting" == life.member.phase
                elections = life.member.statistics().elections
                await until(lambda: life.member.statistics().elections > elections + 1)
                assert not Path(village.directory.registry).exists()
                state.unlink()
            await joining
            assert isinstance(life.role, Leading)
            assert 1 == life.role.epoch

    run(story())


@pytest.mark.parametrize("what", ["a directory", "a file that is no socket"])
def test_an_endpoint_that_cannot_be_made(village: Village, what: str) -> None:
    """Something that is not ours stands in the way: it is named, and left as it is."""

    async def story() -> None:
        async with village:
            path = Path(village.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if what == "a directory" else path.write_text("somebody's")
            life = await village.enters(101)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: isinstance(life.role, Seeking) and life.role.mend)
            assert f"{path}: {what} stands there; move it away" in str(life.role)
            assert path.is_dir() if what == "a directory" else path.read_text() == "somebody's"
            path.rmdir() if what == "a directory" else path.unlink()
            await joining
            assert isinstance(life.role, Leading)

    run(story())


def test_a_followers_endpoint_that_cannot_be_made() -> None:
    """Said as well; mended, it follows. (A path that is long would be mapped to another directory.)"""

    async def story(village: Village) -> None:
        async with village:
            first = await village.joins(101)
            room = Path(village.directory.state) / "followers"
            room.write_text("a file")
            life = await village.enters(102)
            joining = asyncio.ensure_future(life.member.join())
            await until(lambda: isinstance(life.role, Seeking) and life.role.mend)
            assert str(room) in str(life.role)
            room.unlink()
            await joining
            await life.follows(first)

    with tempfile.TemporaryDirectory(prefix="tenure-") as root:
        run(story(Village(Path(root))))


def test_a_registration_that_raises(village: Village) -> None:
    """A fault of this program is noted, and tried again as any failure is."""

    async def story() -> None:
        async with village:
            first = await village.joins(101)
            life = await village.enters(102)
            moves: Any = life.member.course._moves
            register, errors = moves.register, [KeyError("x"), TenureError("y")]

            async def broken(*arguments: Any) -> Any:
                if errors:
                    raise errors.pop()
                return await register(*arguments)

            moves.register = broken
            await life.member.join()
            await life.follows(first)
            assert life.member.statistics().refused_registrations == 2
            assert [fields["error"] for fields in village.notes.said("fleet", "fault")] == ["KeyError: 'x'"]
            village.notes.kept.clear()

    run(story())


def test_the_lease_is_lost_while_it_starts(village: Village) -> None:
    """Somebody took it meanwhile: nothing of the start is left, and it is tried again."""

    async def story() -> None:
        async with village:
            let, begun = asyncio.Event(), asyncio.Event()

            async def make(pending: object) -> None:
                begun.set()
                await let.wait()

            life = await village.enters(101, provisioning=LocalProvisioning(village.ports(101), make=make))
            joining = asyncio.ensure_future(life.member.join())
            await begun.wait()
            await asyncio.to_thread(Path(village.directory.registry).write_text, "{}")
            await until(lambda: life.member.statistics().failed_promotions == 1)
            await until(lambda: life.member.leader.epoch is None)
            let.set()
            await joining
            assert isinstance(life.role, Leading)
            numbers = life.member.statistics()
            assert (numbers.failed_promotions, numbers.promotions) == (1, 1)

    run(story())


@pytest.mark.parametrize("late", [0.0, 0.6])
def test_a_loss_that_is_heard_before_the_election(village: Village, late: float) -> None:
    """Its last word comes at the same moment as the loss, or when the next election is under way: it does not lead by
    that, and the next one is not spoilt by it."""

    async def story() -> None:
        async with village:
            life = await village.enters(101)
            course: Any = life.member.course
            elect = course._moves.elect

            async def lost(observed: int) -> Any:
                found = await elect(observed)
                if life.member.statistics().failed_promotions == 0:
                    course.deposed("lost epoch 1")
                    await asyncio.sleep(late)
                return found

            course._moves.elect = lost
            await life.member.join()
            assert isinstance(life.role, Leading)
            assert life.role.epoch == 2
            numbers = life.member.statistics()
            assert (numbers.failed_promotions, numbers.promotions, numbers.depositions) == (1, 1, 0)

    run(story())


@pytest.mark.parametrize("raises", [False, True])
def test_a_work_that_ends(village: Village, raises: bool) -> None:
    """The lease is given up, the next one leads; and who is alone leads again after a grace."""

    async def story() -> None:
        async with village:
            ends, epochs = asyncio.Event(), []

            async def work(epoch: int) -> None:
                epochs.append(epoch)
                await ends.wait()
                ends.clear()
                if raises:
                    raise RuntimeError("the work")

            first = await village.joins(101, run=work)
            await until(lambda: epochs == [1])
            ends.set()
            await until(lambda: epochs == [1, 2])
            assert first.member.statistics().depositions == 1
            said = [str(role) for role in first.roles if isinstance(role, Seeking)]
            assert raises == any("RuntimeError: the work" in text for text in said)
            assert said[-2:] == ["standing for election", "starting to lead"]  # that one is over
            await first.leads()
            second = await village.joins(102)
            await second.follows(first)
            ends.set()
            await second.leads()
            await first.follows(second)
            assert epochs == [1, 2]
            assert {role.epoch for role in first.roles if isinstance(role, Leading)} == {1, 2}

    run(story())


def test_a_work_that_is_no_coroutine(village: Village) -> None:
    """It has failed; the lease is not kept for nothing."""

    async def story() -> None:
        async with village:
            life = await village.enters(101, run=lambda epoch: 1 // 0)
            joining = asyncio.ensure_future(life.member.join())
            numbers = life.member.statistics
            await until(lambda: numbers().depositions + numbers().failed_promotions >= 2)
            assert any("ZeroDivisionError" in str(role) for role in life.roles)
            await life.member.leave()
            await joining

    run(story())


def test_deposed_while_followers_are_registered(village: Village) -> None:
    """They find the new one; nobody keeps a registration with the old."""

    async def story() -> None:
        async with village:
            first, second, third = await village.fleet(101, 102, 103)
            lives = [first, second, third]
            registry = Path(village.directory.registry)
            entry = json.loads(registry.read_text())
            del entry["default"]
            registry.write_text(json.dumps(entry))

            def one_leads() -> bool:
                roles = sorted(type(life.role).__name__ for life in lives)
                return roles == ["Following", "Following", "Leading"] and (
                    first.member.statistics().depositions + first.member.statistics().promotions > 1
                )

            await until(one_leads)
            (leading,) = [life for life in lives if isinstance(life.role, Leading)]
            for life in lives:
                if life is not leading:
                    await life.follows(leading)
            await until(lambda: len(leading.member.leader.fleet_view().followers) == 2)
            assert [life for life in lives if life.member.leader.epoch is not None] == [leading]

    run(story())
