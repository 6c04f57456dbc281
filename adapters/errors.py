"""The one exception hierarchy at the adapters' edge: what went wrong with which file, field or peer, in one line."""

from __future__ import annotations


class TenureError(Exception):
    """Bad input or a missing tool. The message is one line that names the thing and says what to do."""
