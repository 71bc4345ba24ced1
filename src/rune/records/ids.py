"""Stable ids: three letters, an underscore, a 26-character lower-case ULID (spine.md, Values)."""

import re
from typing import Literal, get_args

IdKind = Literal["evt", "msg", "cnv", "tsk", "trn", "apr", "trc", "ses", "mem", "dev", "cal", "rul"]

ID_KINDS: tuple[str, ...] = get_args(IdKind)
_ULID = re.compile(r"[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}")


def is_id(text: str, kind: IdKind | None = None) -> bool:
    """Say whether `text` has the shape of an id, of that kind when one is named."""
    head, separator, ulid = text.partition("_")
    if not separator or head not in ID_KINDS or (kind is not None and head != kind):
        return False
    return _ULID.fullmatch(ulid) is not None
