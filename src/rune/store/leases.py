"""Leases: a conversation is written by one process at a time (spine.md, Leases)."""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rune.errors import LeaseHeldError, StorageError
from rune.host.clock import Clock
from rune.host.files import LockedFile, is_locked, lock_file, private_folder
from rune.records.ids import is_id
from rune.records.session import LeaseHolder
from rune.store.failures import refused, unavailable
from rune.store.holders import is_living, note, read_note, this_process

# `holder` shares a free lock for some microseconds; a taker who meets that comes again.
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.002


class ConversationLease:
    """The right to run turns in a conversation and to give its `pseq`, until `release` or the process's death."""

    def __init__(self, conversation_id: str, lock: LockedFile) -> None:
        self.conversation_id = conversation_id
        self._lock = lock

    def release(self) -> None:
        """Let another process have it; may be called twice."""
        self._lock.release()

    def __enter__(self) -> "ConversationLease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class LeaseBook:
    """The leases of one home: `<folder>/<conversation>.lock`, each a flock. The files are never removed.

    `refusal` says why nothing may be written in this run, None when it may: a lease is the right to write.
    `pause` waits that many seconds between two attempts. All methods block shortly: call them on a thread.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        refusal: Callable[[], StorageError | None] = lambda: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._refusal = refusal
        self._pause = pause

    def take(self, conversation_id: str) -> ConversationLease:
        """Take the lease. Raises LeaseHeldError (also when this process holds it), StorageUnavailableError."""
        path = self._path(conversation_id)
        if (why := self._refusal()) is not None:
            raise refused(why)
        try:
            private_folder(self._folder)
            lock = self._lock(conversation_id, path)
            try:
                lock.write(note(this_process(self._clock)))
            except OSError:
                lock.release()
                raise
        except OSError as error:
            raise unavailable(error, f"cannot take the lease of {conversation_id}") from error
        return ConversationLease(conversation_id, lock)

    def holder(self, conversation_id: str) -> LeaseHolder | None:
        """Return who holds the lease, None when it is free; neither waits nor takes it.

        `pid` is 0 when its holder has not written its note yet. Raises StorageUnavailableError.
        """
        path = self._path(conversation_id)
        try:
            return read_note(path) if is_locked(path) else None
        except OSError as error:
            raise unavailable(error, f"cannot look at the lease of {conversation_id}") from error

    def _lock(self, conversation_id: str, path: Path) -> LockedFile:
        for _ in range(_ATTEMPTS):
            lock = lock_file(path)
            if lock is not None:
                return lock
            found = read_note(path)
            if is_living(found):
                raise LeaseHeldError(conversation_id, pid=found.pid, since=found.since)
            self._pause(_PAUSE_SECONDS)
        # Held, by a process that is not visible from here (another container).
        found = read_note(path)
        raise LeaseHeldError(conversation_id, pid=found.pid, since=found.since)

    def _path(self, conversation_id: str) -> Path:
        if not is_id(conversation_id, "cnv"):
            raise ValueError(f"{conversation_id!r} is not the id of a conversation")
        return self._folder / f"{conversation_id}.lock"
