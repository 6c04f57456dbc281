"""How much is verified."""

from __future__ import annotations

import enum


class Effort(enum.StrEnum):
    """How much is run again: `quick` only what has changed since it passed, `thorough` everything."""

    QUICK = "quick"
    THOROUGH = "thorough"
