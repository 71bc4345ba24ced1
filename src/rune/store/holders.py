"""The note in a lock file that says who holds it."""

import os
from pathlib import Path

from rune.errors import InvalidRecordError
from rune.host.clock import Clock
from rune.host.machine import boot_id, process_started
from rune.host.small_files import read_bounded
from rune.records.record import from_json
from rune.records.session import LeaseHolder
from rune.records.times import rfc3339
from rune.store.codec import canon

_LONGEST = 1 << 16
_NOBODY_KNOWN = LeaseHolder(pid=0, boot_id="", started=0, since="")


def this_process(clock: Clock) -> LeaseHolder:
    """Return the note of the running process. `started` is 0 where the system does not tell."""
    pid = os.getpid()
    return LeaseHolder(pid=pid, boot_id=boot_id(), started=process_started(pid) or 0, since=rfc3339(clock.now_ms()))


def note(holder: LeaseHolder) -> bytes:
    """Return what is written into the lock file."""
    return canon(holder) + b"\n"


def read_note(path: Path) -> LeaseHolder:
    """Return what a lock file says. `pid` is 0 when it says nothing: its holder is just taking or leaving it.

    Raises OSError.
    """
    try:
        return from_json(read_bounded(path, _LONGEST), LeaseHolder)
    except (InvalidRecordError, FileNotFoundError):
        return _NOBODY_KNOWN


def is_living(holder: LeaseHolder) -> bool:
    """Say whether the process of a note is this boot's and still the same one."""
    return holder.boot_id == boot_id() and (process_started(holder.pid) or 0) == holder.started and holder.pid > 0
