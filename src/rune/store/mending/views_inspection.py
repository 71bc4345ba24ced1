"""A views file as it lies there, looked at without changing it or making one."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import msgspec

from rune.store.event_store import Offset
from rune.store.view_cursor import read_cursor

_PROBLEMS_NAMED: Final = 3
# A rebuild may hold it for a moment; a doctor does not wait longer.
_BUSY_MILLISECONDS: Final = 2_000
_READING: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW


class ViewsState(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `there`: the file is; `problem` says why it cannot be used ("": it can); `cursor` how far it
    followed each slot; `bytes` all that it takes, with its log; `sqlite` the library's version. With `log_unread` they
    stand partly in a log that cannot be read here: they may have come further than `cursor` says.
    """

    there: bool
    sqlite: str
    fts5: bool
    problem: str = ""
    cursor: dict[str, Offset] = {}
    bytes: int = 0
    log_unread: bool = False


def inspect_views(path: Path) -> ViewsState:
    """Check a views file (`PRAGMA quick_check`) and say how far it has come. Raises nothing for a damaged file."""
    sqlite, fts5 = apsw.sqlite_lib_version(), _has_fts5()
    if not path.is_file() or path.is_symlink():
        problem = "it is not a plain file" if path.exists() or path.is_symlink() else ""
        return ViewsState(there=bool(problem), sqlite=sqlite, fts5=fts5, problem=problem)
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    size = sum(file.lstat().st_size for file in files if file.exists())
    problem, cursor, log_unread = "", dict[str, Offset](), False
    try:
        connection = _with_its_log(path)
        log_unread = connection is None and _log(path).exists()
        cursor, problem = _looked_into(connection or _alone(path))
    except (apsw.Error, UnicodeDecodeError, ValueError) as error:
        # Without its log a file may be no more than a beginning: that is no damage.
        problem = "" if log_unread else str(error) or type(error).__name__
    return ViewsState(
        there=True, sqlite=sqlite, fts5=fts5, problem=problem, cursor=cursor, bytes=size, log_unread=log_unread
    )


@contextmanager
def reading(path: Path) -> Generator[apsw.Connection]:
    """Open a views file for one look at it as it is at one moment, without making or changing a file.

    Raises apsw.Error, also where it has a log that cannot be read here, and where it got one meanwhile: what was read
    may then be of two moments.
    """
    shared = _with_its_log(path)
    if shared is None and _log(path).exists():
        raise apsw.CantOpenError("its log cannot be read here")
    connection = shared or _alone(path)
    try:
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()
    if shared is None and _log(path).exists():
        raise apsw.BusyError("somebody began to write to it")


def _has_fts5() -> bool:
    connection = apsw.Connection(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE trial USING fts5 (text)").fetchall()
    except apsw.SQLError:
        return False
    else:
        return True
    finally:
        connection.close()


def _looked_into(connection: apsw.Connection) -> tuple[dict[str, Offset], str]:
    try:
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({_PROBLEMS_NAMED})")]
        if found != ["ok"]:
            return {}, "; ".join(found)
        return read_cursor(connection), ""
    finally:
        connection.close()


def _alone(path: Path) -> apsw.Connection:
    """Open a file that is all there is to see, and tell SQLite so: it would make an empty log otherwise."""
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=_READING)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _with_its_log(path: Path) -> apsw.Connection | None:
    """Open a file that somebody has open, or had when he was killed; None where it has no log, or lies in a folder
    that cannot be written: SQLite reads no log there.
    """
    if not _log(path).exists():
        return None
    try:
        connection = apsw.Connection(f"{path.as_uri()}?mode=ro", flags=_READING)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.CantOpenError:
        return None
    return connection
