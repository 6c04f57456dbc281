"""The driver of succession, on its own: what it waits for is what its machine waits for now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tenure.adapters.fleet.succession.course import Course, NotTaken, Outcome, Taken
from tenure.machines.follower_messages import Binding
from tenure.machines.succession_messages import Look
from tests.adapters.fleet.fleet_room import run

NOBODY = Look("inactive")
GONE = Look("stale", 1, 1)
LIVES = Look("elsewhere", 1, 1)
OTHER = Look("elsewhere", 2, 2)
PLACE = Binding("0/2", "B", "Beech")


class Timer:
    """A grace that is over when somebody says so."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.ring = then
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Moves:
    """Calls that are answered when somebody says so."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.cancelled: list[str] = []
        self.looks: list[asyncio.Future[Look]] = []
        self.answers: list[asyncio.Future[Taken | NotTaken]] = []
        self.outcomes: list[asyncio.Future[tuple[Outcome, str]]] = []
        self.timers: list[Timer] = []
        self.course = Course(
            self, 1, after_grace=self._after_grace, on_step=lambda: None, on_fault=lambda error: self.said.append("!")
        )

    def _after_grace(self, then: Callable[[], None]) -> Timer:
        self.timers.append(Timer(then))
        return self.timers[-1]

    async def look(self) -> Look:
        self.looks.append(asyncio.get_running_loop().create_future())
        return await self.looks[-1]

    async def register(self, leader: int, binding: Binding) -> Taken | NotTaken:
        self.said.append(f"register {leader}")
        self.answers.append(asyncio.get_running_loop().create_future())
        try:
            return await self.answers[-1]
        except asyncio.CancelledError:
            self.cancelled.append(f"register {leader}")
            raise

    def leave(self) -> None:
        self.said.append("leave")

    async def elect(self, observed: int) -> tuple[Outcome, str]:
        self.said.append(f"elect {observed}")
        self.outcomes.append(asyncio.get_running_loop().create_future())
        try:
            return await self.outcomes[-1]
        except asyncio.CancelledError:
            self.cancelled.append(f"elect {observed}")
            raise

    async def resign(self) -> None:
        self.said.append("resign")

    async def joined(self, look: Look) -> None:
        """Joined, with that look."""
        joining = asyncio.ensure_future(self.course.join())
        await turns()
        self.looks[-1].set_result(look)
        await joining
        await turns()

    async def following(self) -> None:
        await self.joined(LIVES)
        self.answers[-1].set_result(Taken(PLACE))
        await turns()
        assert self.course.phase == "following"


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_grace_that_is_left_is_not_waited_for() -> None:
    """Its timer is cancelled; where it rings all the same, nobody looks, and where somebody is looking for it already,
    that look says nothing."""

    async def story() -> None:
        moves = Moves()
        await moves.joined(LIVES)
        moves.answers[-1].set_result(NotTaken("no"))
        await turns()
        assert moves.course.phase == "grace"
        (timer,) = moves.timers
        timer.ring()
        await turns()
        asked = len(moves.looks)
        moves.course.saw(OTHER)
        assert (moves.course.phase, timer.cancelled) == ("registering", True)
        await turns()
        moves.answers[-1].set_result(NotTaken("no"))
        await turns()
        assert moves.course.phase == "grace"
        moves.looks[-1].set_result(GONE)
        await turns()
        assert moves.course.phase == "grace"
        timer.ring()
        await turns()
        assert len(moves.looks) == asked
        moves.timers[-1].ring()
        await turns()
        assert len(moves.looks) == asked + 1
        await moves.course.close()

    run(story())


def test_each_wait_has_one_timer() -> None:
    """A wait that goes on begins anew: the timer before it is over."""

    async def story() -> None:
        moves = Moves()
        await moves.joined(Look("unknown"))
        assert moves.course.phase == "waiting"
        moves.timers[0].ring()
        await turns()
        moves.looks[-1].set_result(Look("unknown"))
        await turns()
        assert (moves.course.phase, len(moves.timers)) == ("waiting", 2)
        asked = len(moves.looks)
        moves.timers[0].ring()
        await turns()
        assert len(moves.looks) == asked
        await moves.course.close()

    run(story())


def test_the_look_after_a_loss_is_of_that_loss() -> None:
    """Where the registry was seen meanwhile, and another registration is under way or held, it is told to nobody."""

    async def story() -> None:
        moves = Moves()
        await moves.following()
        moves.course.lost("gone")
        await turns()
        late = moves.looks[-1]
        moves.course.saw(OTHER)
        assert moves.said == ["register 1", "leave"]
        await turns()
        assert moves.said[-1] == "register 2"
        moves.answers[-1].set_result(Taken(PLACE))
        await turns()
        assert moves.course.phase == "following"
        assert late.cancelled()
        await moves.course.close()

    run(story())


def test_who_stops_while_it_stands_for_election_stands_no_more() -> None:
    """The call is cancelled, and what is left of it is given up."""

    async def story() -> None:
        moves = Moves()
        await moves.joined(NOBODY)
        assert (moves.course.phase, moves.said) == ("electing", ["elect 0"])
        moves.course.stop()
        await turns()
        assert (moves.course.phase, moves.said, moves.cancelled) == ("ended", ["elect 0", "resign"], ["elect 0"])
        await moves.course.close()

    run(story())


def test_calls_come_one_after_the_other() -> None:
    """One that is given up may take its time to end: the next one waits for it."""

    async def story() -> None:
        moves = Moves()
        slow = asyncio.Event()
        register = moves.register

        async def reluctant(leader: int, binding: Binding) -> Taken | NotTaken:
            try:
                return await register(leader, binding)
            finally:
                await slow.wait()

        moves.register = reluctant  # type: ignore[method-assign]
        await moves.joined(LIVES)
        moves.course.saw(OTHER)
        await turns()
        assert (moves.said, moves.cancelled) == (["register 1", "leave"], ["register 1"])
        slow.set()
        await turns()
        assert moves.said[-1] == "register 2"
        await moves.course.close()

    run(story())


def test_a_roster_comes_with_the_registration() -> None:
    """What the leader said with it counts from then on: the next loss may be at once."""

    async def story() -> None:
        moves = Moves()
        await moves.joined(LIVES)
        moves.answers[-1].set_result(Taken(PLACE, ("A", "B")))
        await turns()
        assert (moves.course.data.roster, moves.course.data.binding) == (("A", "B"), PLACE)
        await moves.course.close()

    run(story())


def test_what_moved_with_a_promotion_comes_back_with_its_failure() -> None:
    """The binding is the leader's for as long as it leads, or is about to (S32)."""

    async def story() -> None:
        moves = Moves()
        await moves.following()
        moves.course.saw(GONE)
        await turns()
        assert moves.said[-1] == "elect 1"
        assert moves.course.moving is None
        assert moves.course.won(owned=True)
        assert moves.course.moving == PLACE
        moves.outcomes[-1].set_result(("failed", "why"))
        await turns()
        assert (moves.course.phase, moves.course.moving, moves.course.error) == ("waiting", None, "why")
        await moves.course.close()

    run(story())


def test_an_election_that_was_over_before_its_end_was_heard() -> None:
    """It is told as lost once, what is left of it is given up, and the next one is not taken for it."""

    async def story() -> None:
        moves = Moves()
        await moves.joined(NOBODY)
        assert moves.course.won(owned=True)
        moves.course.deposed("lost")
        assert moves.course.phase == "waiting"
        moves.outcomes[-1].set_result(("elected", ""))
        await turns()
        assert (moves.course.phase, moves.said) == ("waiting", ["elect 0", "resign"])
        assert moves.course.error == "lost"
        await moves.course.close()

    run(story())
