"""The SQLite file of the views: opened a connection a thread, watched, thrown away and begun again.

Nothing in it is the truth: whatever is wrong with the file (gone, damaged, of another schema), the
answer is a new one, filled from the journal.
"""

import os
import re
import secrets
import threading
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from rune.errors import DamagedViewsError, StorageUnavailableError
from rune.host.small_files import locked
from rune.store.failures import unavailable

# How long a writer waits for another process's transaction (at most 500 events: some milliseconds).
_BUSY_MILLISECONDS = 10_000
_WAL_BYTES_KEPT = 16 * 1024 * 1024
# A checkpoint syncs: every 16 MB instead of SQLite's 4 halves the time of a rebuild.
_PAGES_TO_CHECKPOINT = 4000
_CACHE_KIB = 8000
# Views of a version, what SQLite keeps beside them, and the lock under which they are made.
_VERSIONED = re.compile(r"views-([0-9]{1,9})\.(?:db(|-wal|-shm|-journal)|lock)")
_ATTEMPTS = 10
_HINT = "The journal itself is not affected. If it stays so, move that file away: Rune makes it anew."
# The file is not what Rune made, and nothing is lost: throw it away, rebuild. A mistake in our own SQL
# looks the same; making the file anew once does no harm then.
_DAMAGED = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.SchemaChangeError,
    apsw.ConstraintError,
    apsw.MismatchError,
    apsw.FormatError,
    apsw.EmptyError,
    UnicodeDecodeError,
    OverflowError,
)
# So is what cannot be read: a bad sector, or a log that belongs to another file. A new one lies elsewhere.
# SQLITE_IOERR_READ, _SHORT_READ, _DATA, _CORRUPTFS: apsw's types do not name them.
_UNREADABLE = frozenset({10 | 1 << 8, 10 | 2 << 8, 10 | 32 << 8, 10 | 33 << 8})


@contextmanager
def translated(path: Path) -> Generator[None, None, None]:
    """Turn every error of SQLite and of the operating system into ours (the one door).

    Raises DamagedViewsError where a new file helps, and StorageUnavailableError.
    """
    try:
        yield
    except _DAMAGED as error:
        raise DamagedViewsError(f"{path}: {error}") from error
    except apsw.Error as error:
        what = str(error) or type(error).__name__
        if getattr(error, "extendedresult", 0) in _UNREADABLE:
            raise DamagedViewsError(f"{path}: {what}") from error
        raise StorageUnavailableError(f"{path}: {what}", hint=_HINT) from error
    except OSError as error:
        raise unavailable(error, f"cannot use {str(path)!r}") from error


@contextmanager
def transaction(connection: apsw.Connection) -> Generator[None, None, None]:
    """Run a block as one write. IMMEDIATE: a deferred one loses to another process without waiting."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite may have rolled back by itself (disk full); a second ROLLBACK would hide why.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


# Device and number of a file.
_Inode = tuple[int, int]


class OpenViews(NamedTuple):
    """A thread's connection. `birth` is drawn when a file is made and tells it from every other one:
    its `inode` may be given to the next as soon as nobody has it open.
    """

    connection: apsw.Connection
    birth: int
    inode: "_Inode"


class ViewsFile:
    """One views file. `ddl` makes its tables; a file made from another text is replaced, and so is a
    damaged one, which `report` is told.

    Safe to use from any thread: each gets its own connection, reopened when the file at `path` is
    no longer the one it was opened on. A file whose log (`-wal`) was taken from under its connections is
    replaced: some would go on with the old log, others with a new one.
    """

    def __init__(self, path: Path, ddl: str, report: Callable[[Exception], None]) -> None:
        self.path = path
        self._report = report
        self._ddl = ddl
        # SQLite keeps this number in the header; 0 stands for a file that was not finished.
        self.schema: Final = (zlib.crc32(ddl.encode()) & 0x7FFFFFFF) or 1
        self._local = threading.local()
        self._open: set[apsw.Connection] = set()
        # The log that belongs to the file with this inode, as long as this process has a connection to it.
        self._logged: tuple[_Inode, _Inode | None] | None = None
        self._mutex = threading.Lock()
        self._closed = False

    def _inode(self, suffix: str = "") -> _Inode | None:
        try:
            found = Path(f"{self.path}{suffix}").stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _lost_its_log(self) -> bool:
        """Say whether another log, or none, lies beside the file since this process opened it."""
        logged = self._logged
        if logged is None or logged[1] is None or logged[0] != self._inode():
            return False
        return logged[1] != self._inode("-wal")

    def move_to(self, path: Path) -> None:
        """Use the file at another place from now on; each thread opens it with its next query."""
        self.path = path

    def opened(self) -> OpenViews:
        """Return this thread's connection to the file that is there now; makes the file if need be."""
        mine = self._mine()
        if mine is not None and mine.inode == self._inode() and not self._closed and not self._lost_its_log():
            return mine
        if self._closed:
            raise StorageUnavailableError(f"{self.path} was closed")
        for _ in range(_ATTEMPTS):
            with self._creating():
                self._let_go_of_mine()
                try:
                    connection = self._attach()
                except (apsw.Error, StorageUnavailableError):
                    if self._inode() is not None:
                        raise
                    continue  # somebody removed it in this very moment: once more
                inode = self._inode()
                if inode is not None:
                    self._logged = inode, self._inode("-wal")
                    self._local.mine = OpenViews(connection, connection.pragma("application_id"), inode)
                    return self._local.mine
                self._let_go(connection)
        raise StorageUnavailableError(f"{self.path} vanishes whenever it is opened", hint="Look who removes it.")

    def birth(self) -> int | None:
        """Return the birth of the file that this thread has open; None when it has none open."""
        mine = self._mine()
        return None if mine is None else mine.birth

    def let_go(self) -> None:
        """Close what this thread has open; its next use opens the file that is there then."""
        with self._creating():
            self._let_go_of_mine()

    def _let_go_of_mine(self) -> None:
        # Unlinked before anything is closed: else SQLite moves one log into the file and deletes another by its name.
        if self._open and self._lost_its_log():
            self._unlink()
        mine = self._mine()
        if mine is not None:
            self._local.mine = None
            self._let_go(mine.connection)

    def discard(self) -> None:
        """Delete the file, unless it is no longer the one this thread had open; the next use makes a new one."""
        with self._creating():
            mine = self._mine()
            if mine is None or mine.inode == self._inode():
                self._unlink()

    def remove_older(self) -> None:
        """Remove the files of views of earlier versions, which these take the place of. What cannot be removed is
        reported; files of a later version stay.
        """
        own = _VERSIONED.fullmatch(self.path.name)
        if own is None or own[2]:
            return
        try:
            for path in list(self.path.parent.iterdir()):
                other = _VERSIONED.fullmatch(path.name)
                if other is not None and int(other[1]) < int(own[1]):
                    path.unlink(missing_ok=True)
        except OSError as error:
            self._report(unavailable(error, f"cannot remove earlier views beside {str(self.path)!r}"))

    def close(self) -> None:
        """Close every thread's connection; none may be in use. May be called twice."""
        with self._mutex:
            self._closed = True
            connections, self._open = self._open, set()
        with translated(self.path):
            for connection in connections:
                connection.close()

    def _mine(self) -> OpenViews | None:
        return getattr(self._local, "mine", None)

    def _attach(self) -> apsw.Connection:
        if self._inode() is not None:
            try:
                with translated(self.path):
                    connection = self._connect()
                    if connection.pragma("user_version") == self.schema:
                        return self._known(connection)
                    connection.close()
            except DamagedViewsError as error:
                self._report(error)
        self._unlink()
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = self._connect()
        with transaction(connection):
            connection.execute(self._ddl).fetchall()
            connection.pragma("application_id", secrets.randbits(31))
            connection.pragma("user_version", self.schema)
        return self._known(connection)

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
        try:
            connection.set_busy_timeout(_BUSY_MILLISECONDS)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            connection.pragma("journal_size_limit", _WAL_BYTES_KEPT)
            connection.pragma("wal_autocheckpoint", _PAGES_TO_CHECKPOINT)
            connection.pragma("cache_size", -_CACHE_KIB)
            connection.pragma("temp_store", "memory")
        except apsw.Error:
            connection.close()
            raise
        return connection

    def _known(self, connection: apsw.Connection) -> apsw.Connection:
        with self._mutex:
            self._open.add(connection)
        return connection

    def _let_go(self, connection: apsw.Connection) -> None:
        with self._mutex:
            self._open.discard(connection)
        connection.close()

    def _unlink(self) -> None:
        # The side files first: a new file must never meet the log of an old one.
        for suffix in ("-wal", "-shm", ""):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _creating(self) -> Generator[None, None, None]:
        """Let one thread of one process look at the file and make it."""
        with translated(self.path), locked(self.path.with_suffix(".lock")):
            yield
