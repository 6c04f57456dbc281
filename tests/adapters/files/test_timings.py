"""Timings are scaled in proportion: durations shrink, counts stay, nothing becomes 0 that has to be waited for."""

from __future__ import annotations

import attrs

from tenure.adapters.files.timings import Timings

COUNTS = {"attempts", "rename_attempts", "register_retries"}


def test_every_duration_is_scaled_and_every_count_stays() -> None:
    whole, part = attrs.asdict(Timings()), attrs.asdict(Timings().scaled(1 / 20))
    assert whole.keys() == part.keys()
    for name, value in whole.items():
        assert (value if name in COUNTS else value / 20) == part[name], name


def test_a_bound_of_whole_milliseconds_stays_positive() -> None:
    tiny = Timings().scaled(1e-9)
    for name, value in attrs.asdict(tiny).items():
        assert isinstance(value, float) or value >= 1, name


def test_the_fleet_is_timed_as_the_reference_says() -> None:
    """bus.md 0: heartbeat 1 s, stale after 5 s, grace 2.5 s, registration 10 times 150 ms apart within 30 s each."""
    t = Timings()
    assert (1000, 5000, 2500) == (t.heartbeat_ms, t.prune_ms, t.grace_ms)
    assert (30_000, 10, 150.0, 1000) == (t.register_timeout_ms, t.register_retries, t.register_delay_ms, t.response_ms)
