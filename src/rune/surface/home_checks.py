"""What `rune doctor` says about where things are kept: room, permissions, locks, what goes by itself, backups."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rune.config.settings import RetentionSettings
from rune.host.file_systems import is_network, kind_of, locks_hold
from rune.host.paths import Home, seen_unwritable
from rune.host.permissions import open_places
from rune.records.ids import is_id
from rune.records.session import LeaseHolder
from rune.store.leases import LeaseBook
from rune.store.mending.backups import Backup
from rune.surface.doctor import Finding
from rune.surface.local_times import on_the_clock
from rune.surface.sizes import counted, size_text

LOW_SPACE: Final = 500 * 1024 * 1024
NAMED: Final = 5
_MEGABYTE: Final = 1024 * 1024


def places(home: Home) -> Finding:
    """Say where things are kept and whether there is room. Raises OSError."""
    if not home.data_dir.is_dir():
        return Finding(name="home", state="ok", detail=f"{home.data_dir} is not there yet; the first use makes it")
    if (why := seen_unwritable(home.data_dir)) is not None:
        detail = f"it can only be read: {why.message}"
        return Finding(name="home", state="broken", detail=detail, mend=why.hint, counts={"free": 0})
    free = shutil.disk_usage(home.data_dir).free
    detail = f"{home.data_dir}, {size_text(free)} free"
    if free < LOW_SPACE:
        mend = "Free some space: what cannot be written is refused."
        return Finding(name="home", state="warning", detail=detail, mend=mend, counts={"free": free})
    return Finding(name="home", state="ok", detail=detail, counts={"free": free})


def permissions(home: Home) -> Finding:
    """Say what of Rune's own others may look into. Raises OSError."""
    found = open_places(home)
    if not found:
        return Finding(name="permissions", state="ok", detail="everything that Rune made is its owner's alone")
    lines = [
        f"mode {place.mode:04o}: chmod {place.wanted:04o} {shlex.quote(str(place.path))}" for place in found[:NAMED]
    ]
    if len(found) > NAMED:
        lines.append(f"and {len(found) - NAMED:,} more")
    return Finding(
        name="permissions",
        state="warning",
        detail=f"{counted(len(found), 'place')} may be used by others on this machine",
        mend=f"{'That command closes it' if len(found) == 1 else 'Those commands close them'}, and so does "
        "`rune doctor --mend`.",
        lines=tuple(lines),
        counts={"open": len(found)},
    )


def locks(home: Home) -> Finding:
    """Say whether two Runes can keep out of each other's way there. Raises OSError."""
    if not home.data_dir.is_dir():
        return Finding(name="locks", state="ok", detail="nothing to lock yet")
    kind = kind_of(home.data_dir)
    where = f" ({kind})" if kind else ""
    if locks_hold(home.data_dir) is False:
        return Finding(
            name="locks",
            state="broken",
            detail=f"a lock does not keep a second process out on this file system{where}",
            mend="Set RUNE_HOME to a folder on a local disk: two Runes would write the same conversation here.",
        )
    if is_network(kind):
        return Finding(
            name="locks",
            state="warning",
            detail=f"the home lies on a network file system{where}: what is locked and synced is up to its server",
            mend="Set RUNE_HOME to a folder on a local disk.",
        )
    return Finding(name="locks", state="ok", detail=f"a second process is kept out{where}")


def leases(home: Home, book: LeaseBook, now_ms: int) -> Finding:
    """Say which conversations are open, and in which process. Raises StorageUnavailableError."""
    ids = [path.stem for path in _lock_files(home.leases) if is_id(path.stem, "cnv")]
    held = [(name, holder) for name in ids if (holder := book.holder(name)) is not None]
    lines = [f"{name}: {_holder_text(holder, now_ms)}" for name, holder in held[:NAMED]]
    detail = f"{counted(len(held), 'conversation')} open in a running Rune" if held else "no conversation is open"
    return Finding(name="leases", state="ok", detail=detail, lines=tuple(lines), counts={"held": len(held)})


def retention(sizes: Mapping[str, tuple[int, int]], settings: RetentionSettings) -> Finding:
    """Say how much there is of what goes by itself, and how much there may be. `sizes` as `Retention.sizes`."""
    lines = tuple(f"{name}: {counted(files, 'file')}, {size_text(count)}" for name, (files, count) in sizes.items())
    undo = sizes.get("undo", (0, 0))[1]
    limit = settings.undo_megabytes * _MEGABYTE
    detail = f"undo for {settings.undo_days} days and {settings.undo_megabytes} MB, logs for {settings.log_days} days"
    counts = {f"{name}_bytes": count for name, (_, count) in sizes.items()}
    if undo > limit:
        mend = "The next start removes the oldest; `/health` says when something could not be removed."
        return Finding(name="retention", state="warning", detail=detail, mend=mend, lines=lines, counts=counts)
    return Finding(name="retention", state="ok", detail=detail, lines=lines, counts=counts)


def backups(kept: Sequence[Backup], unfinished: int, now_ms: int) -> Finding:
    """Say which backups from before a change of schema there are."""
    lines = [f"{backup.folder}: {_backup_text(backup, now_ms)}" for backup in kept]
    counts = {"kept": len(kept), "bytes": sum(backup.bytes for backup in kept), "unfinished": unfinished}
    detail = counted(len(kept), "backup") if kept else "none was needed yet"
    if unfinished:
        mend = "`rune doctor --mend` removes what was cut off."
        detail += f"; {counted(unfinished, 'backup was', 'backups were')} cut off while it was kept"
        return Finding(name="backups", state="warning", detail=detail, mend=mend, lines=tuple(lines), counts=counts)
    return Finding(name="backups", state="ok", detail=detail, lines=tuple(lines), counts=counts)


def _backup_text(backup: Backup, now_ms: int) -> str:
    by = f"written by {backup.written_by.rune}, " if backup.written_by is not None else ""
    when = f"made {on_the_clock(backup.made, now_ms)}, " if backup.made else ""
    return f"{by}{when}{counted(backup.files, 'file')}, {size_text(backup.bytes)}"


def _holder_text(holder: LeaseHolder, now_ms: int) -> str:
    since = f" since {on_the_clock(holder.since, now_ms)}" if holder.since else ""
    return f"process {holder.pid}{since}" if holder.pid else "a process that does not say which"


def _lock_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.lock")) if folder.is_dir() else []
