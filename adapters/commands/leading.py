"""The commands ``tenure lead`` and ``tenure commit``."""

from __future__ import annotations
