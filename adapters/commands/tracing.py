"""The command ``tenure trace check`` (DESIGN 8)."""

from __future__ import annotations
