"""The commands, by what they are about; `tenure.adapters.cli` starts them.

Each file imports at its top what every command needs; what is heavy, or comes with another extra, it imports inside the
command: somebody who leads needs no verifier.

| file | what is in it |
|---|---|
| `root` | the application, and the terminal |
| `lines`, `saying` | lines that nothing waits for; lines for people |
| `leading`, `committing`, `joining` | ``tenure lead``, ``commit``, ``join`` |
| `looking` | ``tenure status`` and ``doctor`` |
| `journaling`, `deciding` | ``tenure journal``: looking and copying; what a person decides |
| `why`, `handing`, `importing` | ``tenure why``, ``handoff``, ``import`` |
| `tracing`, `verifying` | ``tenure trace check``; ``verify``, ``explain``, ``guards``, ``answers`` |
"""

from __future__ import annotations

from tenure.adapters.commands import (
    committing,
    deciding,
    handing,
    importing,
    joining,
    journaling,
    leading,
    looking,
    tracing,
    verifying,
    why,
)
from tenure.adapters.commands.root import app

__all__ = [
    "app",
    "committing",
    "deciding",
    "handing",
    "importing",
    "joining",
    "journaling",
    "leading",
    "looking",
    "tracing",
    "verifying",
    "why",
]
