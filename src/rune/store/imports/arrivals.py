"""What the readers give: things that can come in, and things that had to be left."""

from typing import Literal

import msgspec

from rune.store.ledger import Draft

Became = Literal["message", "task", "conversation", "pin", "other"]

EVIDENCE_LIMIT = 4 << 20
"""Bytes of one line, task or chunk, at most: what is longer is left, so that any file is read in bounded memory."""


class LeftOutError(Exception):
    """One thing cannot come in; `reason` says why in words of ours. Stays inside this package."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LeftOut(msgspec.Struct, frozen=True):
    """Something that stays out: `where` in the file, and why."""

    where: str
    reason: str


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can come in.

    `drafts` are its facts, stored together or not at all; the first of them stands for it: is that there, so is
    it. `setting` are conversations and tasks that it belongs to, each stored by whichever needs it first. `raw`
    is the masked original to keep as evidence, None when there is none of its own (the end of a turn, say).
    `notes` are for the person.
    """

    where: str
    became: Became | None
    raw: bytes | None
    drafts: tuple[Draft, ...]
    setting: tuple[Draft, ...] = ()
    notes: tuple[str, ...] = ()
