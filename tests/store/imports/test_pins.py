import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from rune.errors import StorageError, UsageError
from rune.records.events import PinImported
from rune.store.codec import digest
from rune.store.imports.arrivals import EVIDENCE_LIMIT, Arrival, LeftOut
from rune.store.imports.pins import pin_fields, pins_in
from tests.store.imports.older import SECRET, mask

CHUNK = "[topic] rivers\n[open question] which is\n  the longest?\n[Status] waiting\n[status] still\nplain\n[outcome]"
TABLE = "CREATE TABLE chunks (id INTEGER PRIMARY KEY, wing TEXT, room TEXT, content TEXT, created_at REAL)"
INSERT = "INSERT INTO chunks (wing, content, created_at) VALUES (?, ?, ?)"


def a_database(path: Path, *statements: str, rows: tuple[tuple[str | bytes | float | None, ...], ...] = ()) -> Path:
    connection = apsw.Connection(str(path))
    for statement in statements or (TABLE,):
        connection.execute(statement).fetchall()
    if rows:
        connection.executemany(INSERT, rows)
    connection.close()
    return path


def read(path: Path) -> list[Arrival | LeftOut]:
    return list(pins_in(path, mask))


def pins(path: Path) -> list[PinImported]:
    drafts = [each.drafts[0].body for each in read(path) if isinstance(each, Arrival)]
    return [body for body in drafts if isinstance(body, PinImported)]


def test_each_label_is_a_field_and_other_lines_go_on_with_the_one_before() -> None:
    assert pin_fields("before\n" + CHUNK) == {
        "topic": ("rivers",),
        "open question": ("which is\nthe longest?",),
        "status": ("waiting", "still\nplain"),
        "outcome": (),
        "context": (),
    }


def test_chunks_of_the_wing_come_in_with_their_text_as_evidence(tmp_path: Path) -> None:
    rows = (("pins", CHUNK, 1_700_000_000.5), ("other", "[topic] no", None), ("Pins", "no label", None))
    path = a_database(tmp_path / "old.db", TABLE, rows=rows)
    first, second = (each for each in read(path) if isinstance(each, Arrival))
    pin = first.drafts[0].body
    assert isinstance(pin, PinImported)
    assert (pin.topic, pin.original_id, pin.occurred_at) == (("rivers",), "1", "2023-11-14T22:13:20.500Z")
    assert (first.raw, pin.evidence, first.notes) == (CHUNK.encode(), digest(CHUNK.encode()), ())
    assert (second.raw, len(second.notes)) == (b"no label", 1)


def test_chunks_that_cannot_be_kept_are_named(tmp_path: Path) -> None:
    rows = (
        ("pins", b"\xff", None),
        ("pins", None, None),
        ("pins", "x" * (EVIDENCE_LIMIT + 1), None),
        ("pins", "ok", None),
    )
    found = read(a_database(tmp_path / "old.db", TABLE, rows=rows))
    left = [each for each in found if isinstance(each, LeftOut)]
    assert [each.where for each in left] == ["chunk 1", "chunk 2", "chunk 3"]
    assert "4,194,305 bytes" in left[2].reason
    assert isinstance(found[3], Arrival)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (("CREATE TABLE notes (body TEXT)",), r"no table .* Tables: notes \(body\)"),
        (("CREATE TABLE a (wing, text)", "CREATE TABLE b (WING, Document)"), r"more than one .* a \(wing, text\); b "),
        (("CREATE VIEW v AS SELECT 'pins' AS wing, 'x' AS text",), "no table .* Tables: none"),
    ],
    ids=["none", "two", "view"],
)
def test_a_file_that_does_not_tell_where_its_pins_are_is_refused(
    tmp_path: Path, statements: tuple[str, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        read(a_database(tmp_path / "old.db", *statements))


def test_odd_names_and_a_full_text_index_beside_the_table_do_not_disturb(tmp_path: Path) -> None:
    statements = (
        'CREATE TABLE "a ""b; DROP TABLE x" (WING, "Text")',
        "INSERT INTO \"a \"\"b; DROP TABLE x\" VALUES ('pins', '[topic] odd')",
        "CREATE VIRTUAL TABLE search USING fts5(wing, content)",
    )
    path = a_database(tmp_path / "o d?#%41.db", *statements)
    assert [pin.topic for pin in pins(path)] == [("odd",)]


@pytest.mark.parametrize(
    "damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000], ids=["empty", "text", "bytes"]
)
def test_what_is_no_database_is_refused(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "old.db").write_bytes(damage)
    with pytest.raises(UsageError):
        read(tmp_path / "old.db")


def test_a_database_that_is_damaged_further_on_gives_what_comes_before(tmp_path: Path) -> None:
    rows = tuple(("pins", f"[topic] {n} " + "x" * 3000, None) for n in range(50))
    path = a_database(tmp_path / "old.db", TABLE, rows=rows)
    data = bytearray(path.read_bytes())
    data[60_000:70_000] = b"\xff" * 10_000
    path.write_bytes(data)
    found: list[Arrival | LeftOut] = []
    with pytest.raises(StorageError, match="cannot be read further"):
        found.extend(_each(pins_in(path, mask), found))
    assert 5 < len(found) < 50


def _each(arrivals: Iterator[Arrival | LeftOut], into: list[Arrival | LeftOut]) -> list[Arrival | LeftOut]:
    for each in arrivals:
        into.append(each)  # noqa: PERF402 - what came before the error is what counts
    return []


def files(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_file_is_not_changed_and_nothing_is_put_beside_it(tmp_path: Path) -> None:
    path = a_database(tmp_path / "old.db", TABLE, rows=(("pins", CHUNK, None),))
    before = files(tmp_path)
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    assert len(pins(path)) == 1
    tmp_path.chmod(0o700)
    assert files(tmp_path) == before


def test_what_stands_only_in_the_log_beside_it_is_read_from_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    writing = apsw.Connection(str(path))
    writing.pragma("journal_mode", "wal")
    writing.execute(TABLE).fetchall()
    writing.execute(INSERT, ("pins", CHUNK, None)).fetchall()
    before = files(tmp_path)
    assert before.keys() == {"old.db", "old.db-wal", "old.db-shm"}
    assert len(pins(path)) == 1
    assert files(tmp_path) == before
    writing.close()


def test_secrets_are_masked_in_fields_and_evidence(tmp_path: Path) -> None:
    path = a_database(tmp_path / "old.db", TABLE, rows=(("pins", f"[context] {SECRET}", None),))
    assert SECRET not in repr(read(path))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is a pipe"):
        read(tmp_path / "pipe")


def test_a_table_whose_module_is_not_here_does_not_stop_the_others(tmp_path: Path) -> None:
    virtual = "'CREATE VIRTUAL TABLE vectors USING vec0(a)'"
    entry = " ".join(("INSERT INTO sqlite_schema VALUES ('table', 'vectors', 'vectors', 0,", virtual, ")"))
    path = a_database(
        tmp_path / "old.db",
        TABLE,
        "PRAGMA writable_schema = ON",
        entry,
        rows=(("pins", CHUNK, None),),
    )
    assert [pin.topic for pin in pins(path)] == [("rivers",)]
