"""Times of other programs."""

import math
import re
from datetime import UTC, datetime, timedelta

from rune.records.times import rfc3339

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999
# A number first: `fromisoformat` reads some numbers of milliseconds as a date of long ago.
_COUNTED = re.compile(r"\d{9,}(\.\d*)?", re.ASCII)
# Numbers of seconds, milliseconds, microseconds and nanoseconds do not meet: each of these is the year 5138.
_UNITS = ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6))


def read_time(value: object) -> str:
    """Return a time as it is stored (RFC 3339, UTC), "" when the value cannot be read as one.

    A text is RFC 3339 or close to it, UTC where it names no zone, or a number. A number counts seconds since
    1970, or milliseconds, microseconds, nanoseconds, told apart by its size; zero and less is no time.
    """
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return _of_number(value)


def _of_text(text: str) -> str:
    if _COUNTED.fullmatch(text):
        return _of_number(float(text))
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        return ""
    return _stored((moment - _EPOCH) // timedelta(milliseconds=1))


def _of_number(number: float) -> str:
    try:
        whole = float(number)
    except OverflowError:
        return ""
    if not math.isfinite(whole) or whole <= 0:
        return ""
    scale = next((scale for limit, scale in _UNITS if whole < limit), None)
    return "" if scale is None else _stored(round(whole * scale))


def _stored(milliseconds: int) -> str:
    return rfc3339(milliseconds) if 0 < milliseconds <= _LATEST_MS else ""
