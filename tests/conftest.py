"""What every test gets: a Hypothesis profile, a cache of its own, and the certainty that it tests what is installed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.cold_run import ColdRun

# `ci` is the default: the same examples on every machine, and an end. HYPOTHESIS_PROFILE picks another.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# What starts in the background of a shell, or under nohup, ignores these, and so would all that tests start: what is
# handled, by doing nothing, is as by default in a new program.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)

BARE = frozenset({"machines", "models", "adapters", "spec"})
"""The folders by the names that a second, uninstalled copy would have."""


@pytest.fixture(scope="session", autouse=True)
def _only_the_installed_package() -> Iterator[None]:
    """pytest runs at the root of the repository, where the bare folders could be imported as a second copy."""
    yield
    bare = sorted(BARE & sys.modules.keys())
    assert not bare, f"imported from the repository's root beside tenure.*: {', '.join(bare)}"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENURE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


LAST = "cold_run"
"""The fixture whose tests are the last ones: what they ask about runs beside all others, and is over by then."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for the cold run comes when there is nothing else to do."""
    items.sort(key=_waits)


def _waits(item: pytest.Item) -> bool:
    return LAST in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def _beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ColdRun | None]:
    """Starts before the first test what the last ones wait for, if they are among those that run."""
    if not any(map(_waits, request.session.items)):
        yield None
        return
    run = ColdRun(tmp_path_factory.mktemp("cold"))
    try:
        yield run
    finally:
        run.close()


@pytest.fixture(scope="session")
def cold_run(_beside: ColdRun | None) -> ColdRun:
    """The `tenure verify` that was started before the first test."""
    assert _beside is not None
    return _beside
