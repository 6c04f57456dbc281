"""The engine of the stage `bind`, on toy adapters: what is learnt, what is merged, what is compared."""

from __future__ import annotations

import shutil
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.ports import Ports
from tenure.adapters.testing.memory import BOOT
from tenure.adapters.verify import manifest
from tenure.adapters.verify.bind.binding import BROKEN, Binding, Participant, World
from tenure.adapters.verify.bind.calls import Call, Got, Raised
from tenure.adapters.verify.bind.check import bind_checks
from tenure.adapters.verify.bind.controlled import ControlledPorts, uuid_of
from tenure.adapters.verify.bind.disk import Contents, Disks, identities, identity
from tenure.adapters.verify.bind.explore import explore
from tenure.adapters.verify.bind.fingerprint import Fingerprints
from tenure.adapters.verify.bind.learner import Learner, Program
from tenure.adapters.verify.bind.replay import NotDeterministic, Replay
from tenure.adapters.verify.bind.situations import Limits
from tenure.adapters.verify.effort import Effort
from tenure.machines.guard_name import marker, render_name
from tenure.machines.identity import Birth, Process
from tenure.models.world import Action, FrozenMap
from tenure.models.world import World as Twin

ME = Process(100, Birth(1, BOOT, 1))


# -- learning ---------------------------------------------------------------------------------------------------------


def _learner(program: Program) -> Learner:
    constants = Fingerprints((Ports, ControlledPorts, Replay))
    return Learner(program, ME, lambda frames: None, None, constants)


def test_a_local_state_is_a_call_and_what_was_answered_before() -> None:
    """The program goes on from an answer, and its last value is its result."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        return ports.kind("/a"), ports.kind("/b")

    learner = _learner(program)
    first = learner.start()
    second = learner.after(first, Got("file"))
    assert Call("kind", ("/a",)) == learner.locals[first].call
    assert Call("kind", ("/b",)) == learner.locals[second].call
    assert ("returned", "('file', 'absent')") == learner.locals[learner.after(second, Got("absent"))].result


def test_what_makes_no_difference_is_one_state() -> None:
    """An answer that is forgotten leaves no trace: the states after it are merged."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        ports.kind("/a")
        return ports.kind("/b")

    learner = _learner(program)
    first = learner.start()
    assert learner.after(first, Got("file")) == learner.after(first, Got("absent"))


def test_what_is_in_no_variable_is_told_apart() -> None:
    """In the middle of an expression an answer is on the value stack alone."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        return [ports.kind("/a"), ports.kind("/b")]

    learner = _learner(program)
    first = learner.start()
    one, other = (learner.after(first, Got(kind)) for kind in ("file", "absent"))
    assert one != other
    assert ("returned", "['absent', 'file']") == learner.locals[learner.after(other, Got("file"))].result


def test_an_error_that_is_being_handled_is_told_apart() -> None:
    """A bare `raise` raises what was caught, which no variable need name."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        try:
            ports.unlink("/a")
        except OSError:
            ports.kind("/a")
            raise
        return None

    learner = _learner(program)
    first = learner.start()
    results = []
    for number in (1, 5):
        last = learner.after(learner.after(first, Raised(number)), Got("absent"))
        results.append(learner.locals[last].result)
    assert results[0] != results[1]


def test_the_loop_that_one_is_in_is_told_apart() -> None:
    """How far a loop is shows in its variable; what it goes through, in the answer that its head was given."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        for name in ports.entries("/"):
            ports.unlink(name)
        return None

    learner = _learner(program)
    first = learner.start()
    alone = learner.after(first, Got(("a",)))
    two = learner.after(first, Got(("a", "b")))
    assert alone != two
    assert learner.locals[learner.after(alone, Got())].call is None
    assert Call("unlink", ("b",)) == learner.locals[learner.after(two, Got())].call


def test_code_that_is_no_function_of_its_answers_is_found() -> None:
    """A counter outside of the program makes two runs differ: nothing that was learnt counts."""
    counted: list[int] = []

    def program(ports: ControlledPorts, replay: Replay) -> object:
        counted.append(1)
        return ports.kind(f"/{len(counted)}")

    learner = _learner(program)
    first = learner.start()
    with pytest.raises(NotDeterministic, match="with the same answers"):
        learner.after(first, Got("file"))


def test_clean_up_of_a_program_that_has_stopped_asks_nothing() -> None:
    """`finally` runs while the program is stopped; what it asks is not what the program waits for."""

    def program(ports: ControlledPorts, replay: Replay) -> object:
        try:
            return ports.kind("/a")
        finally:
            with suppress(OSError):
                ports.unlink("/b")

    learner = _learner(program)
    first = learner.start()
    assert Call("kind", ("/a",)) == learner.locals[first].call
    assert Call("unlink", ("/b",)) == learner.locals[learner.after(first, Got("file"))].call


# -- the world --------------------------------------------------------------------------------------------------------


def test_identities_are_found_in_texts() -> None:
    """A uuid, a staged guard's name and a claim marker's uuid say which number was drawn."""
    assert 7 == identity(uuid_of(7))
    assert 5 == identity(render_name(marker(100, ME.birth, 5)))
    assert frozenset({3, 7}) == identities((f"/x/owner.{uuid_of(3)}.json", uuid_of(7), "nothing"))


def test_a_disk_is_a_value() -> None:
    """Equal contents have one number, and a call answers as `MemoryFiles` does."""
    disks = Disks()
    empty = disks.add({"/d": None})
    answer, after = disks.do(empty, Call("create", ("/d/f", b"x")))
    assert (Got(None), {"/d": None, "/d/f": b"x"}) == (answer, disks.contents[after])
    assert (Got(None), empty) == disks.do(after, Call("unlink", ("/d/f",)))
    assert isinstance(disks.do(empty, Call("unlink", ("/d/f",)))[0], Raised)


# -- comparing --------------------------------------------------------------------------------------------------------


@attrs.frozen(cache_hash=True)
class Toy:
    """VARIABLES of the toy: who holds the lock file, and what each is about to do."""

    holder: str
    node: FrozenMap[str, str]
    budget: int


class ToyTwin(Twin[Toy]):
    """Two take a lock file, one at a time, and leave."""

    module = "Toy"

    def initial(self) -> Iterable[Toy]:
        yield Toy("none", FrozenMap({"a": "out", "b": "out"}), 1)

    def actions(self) -> tuple[Action[Toy], ...]:
        each = (("a",), ("b",))
        bodies: dict[str, Callable[[Toy, str], Iterable[Toy]]] = {
            "Take": self._take, "Refused": self._refused, "Leave": self._leave, "Crash": self._crash,
        }  # fmt: skip
        return tuple(Action(name, body, each) for name, body in bodies.items())

    def _take(self, state: Toy, who: str) -> Iterable[Toy]:
        if state.holder == "none" and state.node[who] == "out":
            yield attrs.evolve(state, holder=who, node=state.node.set(who, "in"))

    def _refused(self, state: Toy, who: str) -> Iterable[Toy]:
        if state.holder != "none" and state.node[who] == "out":
            yield attrs.evolve(state, node=state.node.set(who, "over"))

    def _leave(self, state: Toy, who: str) -> Iterable[Toy]:
        if state.node[who] == "in":
            yield attrs.evolve(state, holder="none", node=state.node.set(who, "over"))

    def _crash(self, state: Toy, who: str) -> Iterable[Toy]:
        yield attrs.evolve(state, node=state.node.set(who, "over"), budget=state.budget - 1)


class ToyBinding(Binding[Toy]):
    """The toy's adapter creates the lock file and unlinks it; `program` may do it otherwise."""

    at_rest = ("out",)
    at_end = ("over",)

    def __init__(self, program: Callable[[str], Program], budget: int = 1) -> None:
        self.twin = ToyTwin()
        self.budget = budget
        self.participants = tuple(Participant(n, pid, program(n)) for n, pid in (("a", 1), ("b", 2)))

    def contents(self) -> Contents:
        return {}

    def faults(self, call: Call) -> tuple[Raised, ...]:
        return ()

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", ("ab"[pid - 1],)),)

    def observe(self, frames: Sequence[types.FrameType]) -> Hashable:
        return (next(f.f_locals["phase"] for f in frames if "phase" in f.f_locals),)

    def agrees(self, state: Toy, participant: str, observed: Hashable) -> bool:
        return (state.node[participant],) == observed

    def phase_in(self, state: Toy, participant: str) -> str:
        return state.node[participant]

    def shared_in(self, state: Toy) -> Hashable:
        return state.holder

    def shared(self, disks: Disks, world: World) -> Hashable:
        return (disks.contents[world.disk].get("/lock") or b"none").decode()


def _takes(name: str) -> Program:
    def program(ports: ControlledPorts, replay: Replay) -> object:
        phase = "out"
        try:
            ports.create("/lock", name.encode())
        except FileExistsError:
            return "refused"
        phase = "in"
        ports.unlink("/lock")
        return phase

    return program


def _looks_first(name: str) -> Program:
    def program(ports: ControlledPorts, replay: Replay) -> object:
        phase = "out"
        if ports.kind("/lock") == "file":
            return "refused"
        with suppress(FileExistsError):
            ports.create("/lock", name.encode())
        phase = "in"
        with suppress(FileNotFoundError):
            ports.unlink("/lock")
        return phase

    return program


def test_an_adapter_that_is_its_twin_passes() -> None:
    """All interleavings, with a crash at each call, are behaviours of the twin."""
    found = explore(ToyBinding(_takes))
    assert ((), "") == (found.story, found.limit)
    assert found.situations > 10


def test_looking_first_is_found_with_the_shortest_story() -> None:
    """Both look, both are in: the story has the calls with their answers, and what the twin could have done."""
    found = explore(ToyBinding(_looks_first, budget=0))
    text = "\n".join(found.story)
    assert "kind(/lock) -> absent" in text
    assert "no behaviour of the twin" in text
    assert "the twin may be in" in text


def test_an_error_that_is_none_of_ours_is_a_failure() -> None:
    """What leaves an adapter is a TenureError; anything else fails, with its story."""

    def careless(name: str) -> Program:
        def program(ports: ControlledPorts, replay: Replay) -> object:
            phase = "out"
            ports.create("/lock", name.encode())
            return phase

        return program

    assert "FileExistsError" in explore(ToyBinding(careless, budget=0)).story[-1]


def test_an_error_of_ours_is_a_result() -> None:
    """A TenureError ends the program, and that is compared as well."""

    def polite(name: str) -> Program:
        def program(ports: ControlledPorts, replay: Replay) -> object:
            phase = "out"
            try:
                ports.create("/lock", name.encode())
            except FileExistsError as error:
                raise TenureError("busy") from error
            phase = "in"
            ports.unlink("/lock")
            return phase

        return program

    assert () == explore(ToyBinding(polite)).story


def test_a_limit_is_said() -> None:
    """Beyond a limit there is no verdict."""
    found = explore(ToyBinding(_takes), Limits(situations=3))
    assert ((), "more than 3 situations") == (found.story, found.limit)


def test_faults_are_bounded_by_the_budget() -> None:
    """A fault costs: with no budget nothing fails."""

    class Faulty(ToyBinding):
        def faults(self, call: Call) -> tuple[Raised, ...]:
            return (BROKEN,) if call.name == "create" else ()

    assert () == explore(Faulty(_takes, budget=0)).story
    assert "OSError" in explore(Faulty(_takes)).story[-1]


# -- the manifest -----------------------------------------------------------------------------------------------------


def test_a_manifest_that_names_nothing_runnable_is_a_problem(tmp_path: Path) -> None:
    """Neither a name nor a reason: the stage fails for it, and is not passed over."""
    shutil.copytree(manifest.spec_directory(), tmp_path, dirs_exist_ok=True)
    path = tmp_path / "manifest.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("tenure.adapters.verify.bind.guard:BOUND", "none"), encoding="utf-8")
    problems = manifest.load(tmp_path)["FileTransaction"].problems
    assert ["bind"] == [problem.stage for problem in problems]


def test_every_module_says_what_bind_and_real_run() -> None:
    """... or why there is nothing; what is named can be imported and has configurations for `quick`."""
    for entry in manifest.load(manifest.spec_directory()).values():
        for named in (entry.bind, entry.real):
            assert named is not None, entry.name
            assert not named.startswith("none:") or len(named) > 20, entry.name
        if not (entry.bind or "").startswith("none:"):
            quick = bind_checks(entry, Effort.QUICK)
            assert len(bind_checks(entry, Effort.THOROUGH)) > len(quick) > 1
