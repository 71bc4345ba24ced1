"""How long ago something was, as a person says it."""

from typing import Final

from rune.records.times import milliseconds

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
# Beyond this many days the date says more.
_DAYS: Final = 14


def age(then: str, now_ms: int) -> str:
    """Return how long before `now_ms` (wall milliseconds) `then` (RFC 3339) was; the date when it is long ago.

    A moment that is still to come (a clock was set back) is just now; "" (an imported message may not know) is no date.
    """
    if not then:
        return "undated"
    seconds = (now_ms - milliseconds(then)) // 1000
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min ago"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h ago"
    days = seconds // _DAY
    if days > _DAYS:
        return then[: len("2026-11-30")]
    return "1 day ago" if days == 1 else f"{days} days ago"
