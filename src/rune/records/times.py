"""Times as they are stored: UTC, RFC 3339, exactly three digits of fraction, `Z`."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(milliseconds: int) -> str:
    """Return wall milliseconds since 1970 as `2026-11-30T14:00:00.123Z`."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def milliseconds(text: str) -> int:
    """Return the wall milliseconds of such a text. Raises ValueError when it is not one."""
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return round((moment - _EPOCH) / timedelta(milliseconds=1))
