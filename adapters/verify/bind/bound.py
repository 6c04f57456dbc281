"""A configuration in which an adapter is bound to its twin, as the modules of this room list them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tenure.adapters.verify.bind.binding import Binding


@attrs.frozen
class Bound:
    """One configuration. `least`: situations that it has to have, lest it should show nothing; `thorough`: too large
    for `quick`."""

    binding: Callable[[], Binding[Any]]
    least: int
    thorough: bool = False
