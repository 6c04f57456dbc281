"""What comes of moving an item."""

from __future__ import annotations

import attrs


@attrs.frozen
class Moved:
    """It is the other's now. (Or somebody else's, or settled: at any rate not this process's any more.)"""


@attrs.frozen
class Kept:
    """It stays here, and may be executed here. `why`: in words, for a person. `definite`: nothing was offered, and
    nothing would be, as things are; a person need not wait."""

    why: str
    definite: bool = False


Outcome = Moved | Kept
