"""What the rows of a view come to, whatever their order in the file: two views that say the same have one hash."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import apsw

_ROWS_AT_ONCE: Final = 500


def rows_hash(connection: apsw.Connection, tables: Sequence[str], go_on: Callable[[], None] = lambda: None) -> str:
    """Return 32 hex digits over all rows of these tables of a projection. `go_on` is called now and then; what it
    raises ends the look. Raises apsw.Error.
    """
    total = 0
    for table in tables:
        for number, row in enumerate(connection.execute(f"SELECT * FROM {table}")):  # noqa: S608 a projection's own name
            if number % _ROWS_AT_ONCE == 0:
                go_on()
            digest = hashlib.sha256(repr((table, row)).encode()).digest()
            total += int.from_bytes(digest[:16], "big")
    return f"{total % (1 << 128):032x}"
