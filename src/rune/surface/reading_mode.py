"""What a person is told where a home can be read and not written."""

from rune.errors import (
    CorruptJournalError,
    NewerFormatError,
    StorageError,
    StorageUnavailableError,
    UnmigratedDialectError,
)
from rune.store.failures import refused


def notice(why: StorageError) -> str:
    """Return in one line what is not possible, why, and what a person can do."""
    missing = ""
    if isinstance(why, CorruptJournalError):
        missing = "the journal is damaged: what lies behind the damage may be missing, and "
    elif isinstance(why, UnmigratedDialectError):
        missing = "what another program put into the journal's folder is not shown, and "
    elif isinstance(why, NewerFormatError):
        missing = "what a newer Rune wrote is not shown, and "
    return f"{missing}nothing can be written: {why.in_one_line}"


def not_sent(why: StorageError) -> StorageUnavailableError:
    """Return what is raised instead of sending a message."""
    return refused(why)
