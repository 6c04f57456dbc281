"""Strings as JavaScript measures and trims them."""

from __future__ import annotations

from typing import Final

_BLANK: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Others than Python's: a byte order mark is blank, the separators U+001C to U+001F and U+0085 are not."""


def trimmed(text: str) -> str:
    """``text.trim()``."""
    return text.strip(_BLANK)


def utf16_length(text: str) -> int:
    """``text.length``: a character beyond the first plane counts twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
