"""What the repositories share: records in a column of the views, and ids by a part of them."""

from typing import Any, TypeVar

import apsw
import msgspec

from rune.errors import InvalidRecordError, NotFoundError
from rune.records.record import Record

R = TypeVar("R", bound=Record)

_NAMED = 5
_HINT = {"cnv": "`rune sessions list` shows the conversations.", "trc": "`rune trace` shows the last ones."}
_DECODERS: dict[type[Record], msgspec.json.Decoder[Any]] = {}


def read_record(stored: bytes, kind: type[R]) -> R:
    """Return the record of a row. Raises InvalidRecordError: the file was changed by somebody else.

    The journal's codec checked it strictly on its way into the views; doing so again for each of
    10,000 messages would take longer than all the rest.
    """
    decoder = _DECODERS.get(kind) or _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))
    try:
        return decoder.decode(stored)
    except msgspec.DecodeError as error:
        raise InvalidRecordError(
            kind.__name__, field="record", expected="the views' own form", got=str(error)
        ) from error


def find_by_part(connection: apsw.Connection, *, text: str, kind: str, table: str, listed: str = "1") -> str:
    """Return the one id in `table` that is, begins or ends with `text`; the kind's letters may be left out.

    `listed` is a condition in SQL. Raises NotFoundError, which names what it could be instead.
    """
    part = text.strip().lower().removeprefix(f"{kind}_")
    if not (part.isalnum() and part.isascii()):
        raise NotFoundError(f"nothing has the id {text!r}", hint=_HINT[kind])
    rows = connection.execute(
        f"SELECT id FROM {table} WHERE {listed} AND (id GLOB ? OR id GLOB ?) ORDER BY id DESC LIMIT ?",  # noqa: S608 names from the repositories
        (f"{kind}_{part}*", f"{kind}_*{part}", _NAMED + 1),
    ).fetchall()
    found = [str(row[0]) for row in rows]
    if not found:
        raise NotFoundError(f"nothing has the id {text!r}", hint=_HINT[kind])
    if len(found) > 1:
        more = " ..." if len(found) > _NAMED else ""
        raise NotFoundError(f"{text!r} could be {', '.join(found[:_NAMED])}{more}", hint="Give more of the id.")
    return found[0]
