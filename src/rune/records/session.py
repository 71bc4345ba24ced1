"""How a process and a conversation are connected while it runs."""

from rune.records.record import Record


class LeaseHolder(Record, frozen=True, kw_only=True):
    """What a lock file says about its holder; `since` is RFC 3339, `started` the process's start
    in clock ticks since boot (tells a recycled pid apart).
    """

    pid: int
    boot_id: str
    started: int
    since: str
