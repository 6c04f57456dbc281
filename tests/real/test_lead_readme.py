"""The README's opening, done as it says: three terminals, and the leader killed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.real.conftest import Leads

README = Path(__file__).parents[2] / "README.md"


def test_three_terminals(leads: Leads) -> None:
    """The first leads, the others stand by; killed, one of them goes on. What they print is what the README shows."""
    opening = README.read_text(encoding="utf-8").split("## ", 1)[0]
    commands, first, other, after = re.findall(r"```text\n(.*?)```", opening, re.DOTALL)
    words = re.search(r"\$ \.venv/bin/tenure lead (\S+) -- sh -c '(.*)'\n", commands)
    assert words is not None
    script = words[2]

    def shown(number: int) -> str:
        found = [leads.root / f"{stream}{number}" for stream in ("stderr", "stdout")]
        return "".join(path.read_text() for path in found if path.exists())

    leader = leads.start("sh", "-c", script, lease=None)
    leads.until(lambda: shown(1) == first)
    others = [leads.start("sh", "-c", script, lease=None) for _ in range(2)]
    for number in (2, 3):
        leads.until(lambda number=number: shown(number) == other.replace("4711", str(leader.pid)))
    assert "`kill -9 4711`" in opening
    leader.kill()
    leads.until(lambda: any(all(line in shown(number) for line in after.splitlines()) for number in (2, 3)))
    assert all(lead.status is None for lead in others)
