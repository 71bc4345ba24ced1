"""What the repositories share: records in a column of the views, and ids by a part of them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw
import msgspec

from rune.errors import DamagedViewsError, NotFoundError
from rune.records.record import Record
from rune.store.event_store import Offset

R = TypeVar("R", bound=Record)

MOST_ROWS = 100_000
_NAMED = 5
_PLACE = tuple[str, int, int, int]
_HINT = {
    "cnv": "`rune sessions list --all` shows the conversations.",
    "apr": "`rune approve` shows what waits for an answer.",
    "rul": "`/permissions` shows the rules.",
    "trc": "`rune trace` shows the last ones.",
    "msg": "`rune sessions show ID` shows a conversation's messages with their ids.",
}
_DECODERS: dict[type[Record], msgspec.json.Decoder[Any]] = {}


def read_record(stored: bytes, kind: type[R]) -> R:
    """Return the record of a row. Raises DamagedViewsError: the file was changed by something else.

    The journal's codec checked it strictly on its way into the views; doing so again for each of
    10,000 messages would take longer than all the rest.
    """
    decoder = _DECODERS.get(kind) or _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))
    try:
        return decoder.decode(stored)
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedViewsError(f"a {kind.__name__} of the views is not as it was written: {error}") from error


def read_offset(row: tuple[Any, ...]) -> Offset:
    """Return the place in a row of writer, seq, segment, position. Raises DamagedViewsError."""
    with as_written():
        return Offset(*msgspec.convert(row, _PLACE))


@contextmanager
def as_written() -> Generator[None, None, None]:
    """Turn what comes of a value that Rune never wrote into DamagedViewsError."""
    try:
        yield
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise DamagedViewsError(f"a row of the views is not as it was written: {error}") from error


def at_most(limit: int) -> int:
    """Return how many rows are asked for: none for less than none, and never more than fit in memory."""
    return max(0, min(limit, MOST_ROWS))


def find_by_part(connection: apsw.Connection, *, text: str, kind: str, table: str, listed: str = "1") -> str:
    """Return the one id in `table` that is, begins or ends with `text`; the kind's letters may be left out.

    `listed` is a condition in SQL. Raises NotFoundError, which names what it could be instead.
    """
    # As lists show an end where the room is short.
    part = text.strip().removeprefix("…").lower().removeprefix(f"{kind}_")
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
