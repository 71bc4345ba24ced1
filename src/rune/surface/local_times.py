"""When something was, on the person's own clock. What is stored, and what programs get, stays UTC."""

from datetime import UTC, datetime


def on_the_clock(moment: str, now_ms: int) -> str:
    """Return RFC 3339 in local time, to the minute: `14:03` when that is the day of `now_ms` (wall milliseconds),
    else with the date. What is no time comes back as it is.
    """
    try:
        local = datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError):
        return moment
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"
