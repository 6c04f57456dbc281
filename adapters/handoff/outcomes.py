"""What comes of moving an item."""

from __future__ import annotations

import attrs


@attrs.frozen
class Moved:
    """It is the other's now: he has said so, or the row does."""


@attrs.frozen
class Gone:
    """It is not this process's any more, and nothing says that it is the other's by this offer: its row is somebody
    else's, nobody's, or settled by now."""


@attrs.frozen
class Kept:
    """It stays here, and may be executed here. `why`: in words, for a person. `definite`: nothing was offered, and
    nothing would be, as things are; a person need not wait."""

    why: str
    definite: bool = False


Outcome = Moved | Gone | Kept
