"""The commands ``tenure status`` and ``tenure doctor``."""

from __future__ import annotations
