"""Why there was no answer, said to people: no errno's name, no identifier of ours, one line."""

from __future__ import annotations

import errno
import re

import pytest

from tenure.adapters.bus.client import FOREIGN, TIMEOUT, TOO_LONG, NoResponse, Unreachable
from tenure.adapters.bus.wording import unanswered

REASONS = sorted({*errno.errorcode.values(), FOREIGN, TIMEOUT, TOO_LONG, "Unknown error 4711"})


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("sent", [True, False])
def test_every_reason_has_words(reason: str, sent: bool) -> None:
    said = unanswered("/dir/bus.sock", Unreachable(reason, retryable=False, sent=sent))
    assert said.startswith("/dir/bus.sock: ")
    words = said.removeprefix("/dir/bus.sock: ")
    assert len(words.split()) > 1
    assert not re.search(r"\bE[A-Z0-9]{2,}\b|foreign-listener|answer-too-long", words)
    assert "\n" not in words


def test_the_ones_that_happen() -> None:
    """Each says what to do, where there is something to do."""
    said = {reason: unanswered("p", Unreachable(reason, True, False)) for reason in REASONS}
    assert said["ENOENT"] == "p: nobody listens there"
    assert said["ECONNREFUSED"] == "p: nobody listens there any more"
    assert "another user" in said[FOREIGN]
    assert "hangs" in said[TIMEOUT]
    assert said["EACCES"] == "p: this user may not connect to it"
    assert unanswered("p", NoResponse()) == "p: closed without an answer"


def test_a_path_of_others_stays_on_its_line() -> None:
    """The other system writes any text into its entry."""
    assert "\n" not in unanswered("a\nb", NoResponse())
