"""A sample project uses the kit from the built wheel, and from nothing else of this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SAMPLE = Path(__file__).parent / "downstream"
WHOLE = ("machines", "models", "adapters", "spec", "pyproject.toml", "README.md", "LICENSE")


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """The output of a command that succeeds."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTEST_ADDOPTS")} | more
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_uses_the_kit_from_the_wheel(tmp_path: Path) -> None:
    """Build the wheel from a copy, unpack it where the sample finds it first, run the sample's tests there."""
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in WHOLE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("tenure-*.whl")
    run(*pip, "install", "--no-deps", "--target", site, wheel, cwd=tmp_path)
    project = tmp_path / "project"
    shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")

    where = "import tenure.adapters.testing as kit; print(kit.__file__)"
    assert run(sys.executable, "-c", where, cwd=project, PYTHONPATH=str(site)).startswith(str(site))
    said = run(sys.executable, "-m", "pytest", "-q", "test_bot.py", cwd=project, PYTHONPATH=str(site))

    assert "5 passed" in said
