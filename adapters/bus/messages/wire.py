"""A line of the bus: one JSON object and a line feed, UTF-8 (bus.md a, FRAMING and PARSE FAILURE)."""

from __future__ import annotations

import hashlib
from typing import Final

from tenure.adapters.bus.messages.envelopes import Envelope
from tenure.adapters.bus.messages.fields import Fields, Malformed, Wrong
from tenure.adapters.bus.messages.json_values import LINE_LIMIT, BadJson, dump_bytes, load, within
from tenure.adapters.bus.messages.parsing import read_envelope
from tenure.adapters.bus.messages.rendering import render_envelope

__all__ = ["LINE_LIMIT", "Malformed", "encode", "fingerprint", "not_carriable", "parse", "request_line"]


_NO_STACK: Final = Malformed("line", "cannot be read: the stack is used up here")
"""Made beforehand: there is no stack left to make it."""


def parse(line: bytes) -> Envelope | Malformed:
    """The envelope that a line is, with or without its line feed. It raises nothing, whatever the line is."""
    try:
        value = load(line)
        if not isinstance(value, dict):
            return Malformed("line", "is not a JSON object")
        return read_envelope(Fields(value))
    except BadJson as bad:
        return Malformed("line", str(bad))
    except Wrong as wrong:
        return Malformed(wrong.field, wrong.problem)
    except RecursionError:
        return _NO_STACK


def encode(envelope: Envelope) -> bytes:
    """The line of an envelope, line feed included. Raises BadJson for what is nested far deeper than a line may be."""
    return dump_bytes(render_envelope(envelope)) + b"\n"


def request_line(envelope: Envelope) -> bytes:
    """The line of a request, which can be read at its other end. Raises BadJson for what no line can hold: its reader
    would close the connection, each time."""
    return within(dump_bytes(render_envelope(envelope))) + b"\n"


def not_carriable(envelope: Envelope) -> str | None:
    """Why no line can hold a request, as in "it ...": is nested too deep; None where one can."""
    try:
        request_line(envelope)
    except BadJson as bad:
        return str(bad)
    return None


def fingerprint(envelope: Envelope) -> str:
    """What tells two requests of one request id apart: equal where, and only where, the envelopes are (by SHA-256 of
    the compact JSON). Members that the parser does not know are no part of it."""
    return hashlib.sha256(dump_bytes(render_envelope(envelope))).hexdigest()
