"""What one process of a home does at a time: an import, an erasure."""

from pathlib import Path

from rune.errors import StorageUnavailableError
from rune.host.files import LockedFile, lock_file
from rune.store.failures import unavailable


def alone(lock: Path, what: str) -> LockedFile:
    """Take the lock file that only one `what` (with its article: "an import") has, until the end of a `with`.

    Raises StorageUnavailableError, also when another one is running.
    """
    try:
        taken = lock_file(lock)
    except OSError as error:
        raise unavailable(error, f"cannot begin {what}") from error
    if taken is None:
        raise StorageUnavailableError(
            f"{what} is running in this home already", hint="Wait for its end, then run this one again."
        )
    return taken
