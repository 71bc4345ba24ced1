"""Pins of an earlier version: chunks of text in an SQLite file, in the wing `pins`.

How that file lays its tables out is not known for certain, so the table is found by its columns. The file is
never changed: it is opened as immutable, and where changes stand beside it that are not in it yet (a write-ahead
log, a rollback journal) a copy is read instead. Nothing in it is trusted: no view, no trigger and no function of
its schema is run.
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import apsw
import msgspec

from rune.errors import StorageError, UsageError
from rune.records.events import PinImported
from rune.store.codec import digest
from rune.store.imports.arrivals import EVIDENCE_LIMIT, Arrival, LeftOut, LeftOutError
from rune.store.imports.derived_ids import derived
from rune.store.imports.event_lines import message_text
from rune.store.imports.event_words import NAME_LENGTH, plain_id
from rune.store.imports.foreign_files import opened
from rune.store.imports.foreign_json import Mask, one_line
from rune.store.imports.foreign_times import read_time
from rune.store.ledger import Draft

WING = "pins"
LABELS = ("topic", "open question", "outcome", "status", "context")

_WING_COLUMN = "wing"
_TEXT_COLUMNS = ("text", "content", "chunk", "document", "body", "chunk_text")
_ID_COLUMNS = ("id", "chunk_id", "uuid", "key")
_TIME_COLUMNS = ("created_at", "timestamp", "ts", "time", "updated_at", "filed_at")
_LABELLED = re.compile(r"\[(topic|open question|outcome|status|context)\][ \t]*(.*)", re.IGNORECASE)
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-journal")
_ROW_BYTES = 64 << 20
_NAMED = 20


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table with its columns, by their names in lower case."""

    name: str
    columns: dict[str, str]
    virtual: bool

    def first(self, names: tuple[str, ...]) -> str | None:
        """Return the first of these columns that it has, as it is written there."""
        return next((self.columns[name] for name in names if name in self.columns), None)


def pins_in(path: Path, mask: Mask) -> Iterator[Arrival | LeftOut]:
    """Iterate over the pins in a file.

    Raises UsageError for what is no SQLite file, or one in which no table, or more than one, can hold pins;
    StorageError when the file is damaged further on.
    """
    with _readable(path) as connection:
        table = _table(connection, path)
        number = 0
        try:
            for row in connection.execute(_query(table), (EVIDENCE_LIMIT, WING)):
                number += 1
                where = f"chunk {number:,}"
                try:
                    yield _arrival(cast("tuple[object, ...]", row), where, mask)
                except LeftOutError as error:
                    yield LeftOut(where, error.reason)
        except apsw.Error as error:
            raise StorageError(
                f"{str(path)!r} cannot be read further than {number:,} chunks: {error}",
                hint="What came before is in. Mend the file (sqlite3 FILE .recover) and run it again.",
            ) from error


def pin_fields(text: str) -> dict[str, tuple[str, ...]]:
    """Return what stands under each label of a chunk; a line without one goes on with the field before it."""
    found: dict[str, list[str]] = {label: [] for label in LABELS}
    current: list[str] | None = None
    for line in text.splitlines():
        labelled = _LABELLED.match(line.strip())
        if labelled is not None:
            current = found[labelled[1].lower()]
            current.append(labelled[2].strip())
        elif current is not None and line.strip():
            current[-1] = f"{current[-1]}\n{line.strip()}".strip()
    return {label: tuple(value for value in values if value) for label, values in found.items()}


def _arrival(row: tuple[object, ...], where: str, mask: Mask) -> Arrival:
    data, length, given_id, given_time = row
    if isinstance(length, int) and length > EVIDENCE_LIMIT:
        raise LeftOutError(f"it has {length:,} bytes, and at most {EVIDENCE_LIMIT:,} are taken in")
    if not isinstance(data, bytes) or not data.strip():
        raise LeftOutError("it holds no text")
    try:
        given = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LeftOutError(f"it is not UTF-8: byte {error.start + 1} of it is 0x{data[error.start]:02x}") from error
    text = mask(given)
    raw = text.encode("utf-8")
    original_id = plain_id(given_id.decode("utf-8", "replace") if isinstance(given_id, bytes) else given_id)
    fields = pin_fields(message_text(text))
    when = given_time.decode("utf-8", "replace") if isinstance(given_time, bytes) else given_time
    body = PinImported(
        original_id=one_line(mask(original_id), NAME_LENGTH),
        topic=fields["topic"],
        open_question=fields["open question"],
        outcome=fields["outcome"],
        status=fields["status"],
        context=fields["context"],
        occurred_at=read_time(when),
        evidence=digest(raw),
    )
    # With its text: ids of rows begin at 1 in every such file, and a pin may have been written anew under its id.
    draft = Draft(
        event_type="pin.imported", body=body, partition="system", event_id=derived("evt", "pin", original_id, given)
    )
    notes = () if any(fields.values()) else ("it has none of the usual labels: it is kept as it is",)
    return Arrival(where=where, became="pin", raw=raw, drafts=(draft,), notes=notes)


@contextlib.contextmanager
def _readable(path: Path) -> Generator[apsw.Connection, None, None]:
    """Give a connection that can change nothing. Raises UsageError for what is no SQLite file."""
    with contextlib.ExitStack() as stack:
        with opened(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise UsageError(f"{str(path)!r} is not an SQLite file")
        source = path.resolve()
        beside = [other for suffix in _BESIDE if _holds_something(other := source.with_name(source.name + suffix))]
        immutable = "&immutable=1"
        if beside:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rune-import-")))
            for each in (source, *beside):
                _copy(each, folder / each.name)
            source, immutable = folder / source.name, ""
        try:
            connection = apsw.Connection(
                f"file:{quote(str(source))}?mode={'ro' if immutable else 'rw'}{immutable}",
                flags=apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READONLY if immutable else apsw.SQLITE_OPEN_READWRITE),
            )
            stack.callback(connection.close)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, _ROW_BYTES)
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            connection.execute("PRAGMA cell_size_check = ON").fetchall()
            connection.execute("PRAGMA query_only = ON").fetchall()
        except apsw.Error as error:
            raise UsageError(f"{str(path)!r} cannot be read as an SQLite file: {error}") from error
        yield connection


def _copy(source: Path, target: Path) -> None:
    with opened(source) as descriptor, open(descriptor, "rb", closefd=False) as file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)


def _holds_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _table(connection: apsw.Connection, path: Path) -> _Table:
    """Return the one table that can hold pins. Raises UsageError, which lists what there is."""
    try:
        tables = list(_tables(connection))
    except apsw.Error as error:
        raise UsageError(f"{str(path)!r} cannot be read as an SQLite file: {error}") from error
    fitting = [table for table in tables if _WING_COLUMN in table.columns and table.first(_TEXT_COLUMNS)]
    # A full-text index repeats what an ordinary table holds.
    fitting = [table for table in fitting if not table.virtual] or fitting
    if len(fitting) == 1:
        return fitting[0]
    there = "; ".join(f"{table.name} ({', '.join(table.columns.values())})" for table in tables[:_NAMED]) or "none"
    more = f"; and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
    which = "more than one table" if fitting else "no table"
    raise UsageError(
        f"{str(path)!r} has {which} with a column {_WING_COLUMN!r} and a text. Tables: {one_line(there, 2000)}{more}",
        hint=f"The text is looked for in a column named {', '.join(_TEXT_COLUMNS)}. Copy the pins into a file with one "
        "such table.",
    )


def _tables(connection: apsw.Connection) -> Iterator[_Table]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    for row in rows:
        name, sql = str(row[0]), str(row[1] or "")
        try:
            columns = connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,)).fetchall()
        except apsw.SQLError:
            columns = []  # a virtual table whose module is not here: it is named, and its columns are not known
        yield _Table(
            name=name,
            columns={str(column[0]).lower(): str(column[0]) for column in columns},
            virtual=sql.upper().startswith("CREATE VIRTUAL"),
        )


def _query(table: _Table) -> str:
    """Return the query for text (bytes, NULL when too long), its length, id and time. Bytes: text need not be UTF-8."""
    text = _quoted(table.first(_TEXT_COLUMNS) or "")
    identity, time = table.first(_ID_COLUMNS), table.first(_TIME_COLUMNS)
    short = f"octet_length({text}) <= ?"
    return (
        f"SELECT CASE WHEN {short} THEN CAST({text} AS BLOB) END, octet_length({text}), "  # noqa: S608 quoted names
        f"{_value(identity)}, {_value(time)} FROM {_quoted(table.name)} "
        f"WHERE CAST({_quoted(table.columns[_WING_COLUMN])} AS TEXT) = ? COLLATE NOCASE"
    )


def _value(column: str | None) -> str:
    """Return an expression for a short value: numbers as they are, text as bytes, NULL for anything long."""
    if column is None:
        return "NULL"
    name = _quoted(column)
    return (
        f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} "
        f"WHEN octet_length({name}) <= 1000 THEN CAST({name} AS BLOB) END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
