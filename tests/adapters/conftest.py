"""What every test of the adapters gets: an event loop that reports an error fails it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest


class _Reports(logging.Handler):
    """What event loops say on standard error when nobody hears of it: an exception of a task or a future that was
    never retrieved, a callback that raised, a task that was destroyed while it was pending."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@pytest.fixture(autouse=True)
def loop_reports() -> Iterator[list[str]]:
    """What loops have reported in this test; a test that provokes a report takes it away."""
    reports, logger = _Reports(), logging.getLogger("asyncio")
    logger.addHandler(reports)
    try:
        yield reports.said
    finally:
        logger.removeHandler(reports)
    assert not reports.said, "\n".join(reports.said)


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_lost_in_a_cycle() -> Iterator[None]:
    """What a cycle kept is reported when it is collected: at the end of its module at the latest."""
    reports, logger = _Reports(), logging.getLogger("asyncio")
    yield
    logger.addHandler(reports)
    try:
        gc.collect()
    finally:
        logger.removeHandler(reports)
    assert not reports.said, "\n".join(reports.said)
