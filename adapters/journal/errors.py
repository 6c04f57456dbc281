"""What can go wrong with the journal, one class for each thing to do about it. Every message is one line that names the
file and says what to do."""

from __future__ import annotations

import os
from typing import Final

from tenure.adapters.errors import TenureError, printable
from tenure.adapters.journal.database import BUSY_MS, GONE, DatabaseFault


class JournalError(TenureError):
    """The journal could not do what it was asked for. If nothing else is said, nothing of it was done."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {printable(what)}")
        self.path = path


class JournalBusy(JournalError):
    """Another process was inside for longer than a call may wait; asked again it may be free. One that is stopped, and
    not dead, stays inside."""


class JournalFull(JournalError):
    """No space is left on the disk."""


class JournalUnreachable(JournalError):
    """The file cannot be opened, read or written."""


class JournalDamaged(JournalError):
    """What stands there is no journal, or a damaged one. It is never taken for an empty one (B73)."""


class JournalNewer(JournalError):
    """A newer version of this program has written it."""


class JournalLost(JournalError):
    """What a process has open is not its journal, or not any more, and it will not become so: it leaves."""


class ForeignIdentity(JournalLost):
    """The journal belongs to another bot, and holds its work, or is used by it (I24)."""


class JournalGone(JournalLost):
    """The file at the path is no longer the one that this process has used. Nothing was written to either."""


class OutcomeUnknown(JournalError):
    """The transaction was ended, and nobody knows whether it counts. Each operation may be repeated: what was done is
    answered, and not done again."""


_MEND: Final = "put a backup in its place, or move it away to begin with none"


def told(path: str, fault: DatabaseFault) -> JournalError:
    """The error for a call that failed, other than a commit whose outcome is not known."""
    match fault.code:
        case code if code == GONE:
            return gone(path, fault.text)
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return JournalBusy(
                path,
                f"another process is inside the journal for more than {BUSY_MS} ms; try again, and if it stays so look "
                "for a stopped process that has the file open",
            )
        case "SQLITE_FULL":
            return JournalFull(path, "the disk is full; free some space")
        case "SQLITE_CORRUPT" | "SQLITE_NOTADB" | "SQLITE_FORMAT" | "SQLITE_MISMATCH":
            return JournalDamaged(path, f"the journal is damaged ({fault.text}); {_MEND}")
        case "SQLITE_ERROR" if fault.text.startswith("no such "):
            return JournalDamaged(path, f"the journal is damaged ({fault.text}); {_MEND}")
        case "SQLITE_READONLY" | "SQLITE_PERM" | "SQLITE_AUTH":
            return JournalUnreachable(path, f"cannot be written ({fault.text}); give this user the right to write it")
        case "SQLITE_CANTOPEN":
            return JournalUnreachable(path, f"cannot be opened ({fault.text}); give this user the right to use it")
        case "SQLITE_IOERR":
            return JournalUnreachable(path, f"cannot be read or written ({fault.text}); see to the disk")
    return JournalError(path, f"{fault.text} ({fault.code}); this is a fault of the program")


def unknown(path: str, fault: DatabaseFault) -> OutcomeUnknown:
    """The error for a commit that failed in the middle."""
    return OutcomeUnknown(
        path, f"nobody knows whether the last transaction counts ({fault.text}); see to the disk and try again"
    )


def gone(path: str, what: str) -> JournalGone:
    """The error for a file that has changed under who uses it. `what`: was removed, for example."""
    return JournalGone(
        path,
        f"the journal {what} while this process used it; end every process that uses it, put it or a backup in its "
        "place, and start again",
    )


def lost(path: str, *beside: str, what: str = "has gone") -> JournalDamaged:
    """The error for a journal that is not there (or `what`), though these files beside it say that there was one."""
    rest = " and ".join(map(os.path.basename, beside))
    return JournalDamaged(
        path,
        f"the journal {what}, though there was one: {rest} beside it says so; put a backup in its place, or remove "
        f"{rest} to begin with an empty one, without what it held",
    )


def damaged(path: str, what: str) -> JournalDamaged:
    """The error for a file that is readable and no journal as this program writes it."""
    return JournalDamaged(path, f"{what}; {_MEND}")


def newer(path: str, found: object, known: int) -> JournalNewer:
    """The error for a schema that this program does not know."""
    return JournalNewer(
        path, f"a newer version of tenure has written it (schema {found}, this one knows {known}); use that version"
    )
