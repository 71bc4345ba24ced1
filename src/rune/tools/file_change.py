"""One file given another content: how it is planned, shown and carried out. What edit_file and write_file share.

What was planned is carried out or nothing is: the file still holds what it held, and that is kept for /undo before.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import DigestMismatchError, FileUnavailableError, InvalidArgumentsError, ToolError
from rune.host.paths import storable_path
from rune.records.tools import FileTouch
from rune.text.storable import is_storable, storable
from rune.tools.diffs import Diff, diff
from rune.tools.executor import Done, Plan, Watch
from rune.tools.files import MOST_BYTES, Target
from rune.tools.naming import meant, shown_name
from rune.tools.policy import rule_for
from rune.tools.text_file import BinaryFile, TextFile, decode
from rune.tools.workplace import Workplace

ABSENT: Final = "absent"
"""Stands for the hash of what is replaced where there is nothing."""

_DIFF_LINES: Final = 60  # of the diff that the model is given


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds (None: it is not there) and what it is to hold, and what the model is told about how."""

    path: Path
    name: str
    old: bytes | None
    old_sha256: str | None
    new: bytes
    shown: Diff
    notes: tuple[str, ...] = ()


def target_of(path: str, place: Workplace) -> Target:
    """Find where a path leads; a file that is meant as its name was shown is found too. Raises ToolError."""
    target = place.files.target(path)
    if target.facts is not None:
        return target
    try:
        names = [entry.name for entry in place.files.list(os.fspath(target.path.parent)).entries]
    except ToolError:
        return target  # nothing is there, the folder neither: what is written there is new
    other = meant(target.path.name, names)
    return target if other is None else place.files.target(os.fspath(target.path.parent / other))


def text_of(target: Target, place: Workplace) -> tuple[bytes, TextFile]:
    """Return what a target holds. Raises FileUnavailableError for what is no text, DigestMismatchError when it became
    another in this moment.
    """
    content = place.files.read(os.fspath(target.path))
    facts = content.facts
    name = shown_name(place.named(target.path))
    if target.facts is None or facts.path != target.path or facts.sha256 != target.facts.sha256:
        raise DigestMismatchError(f"{name} changes while it is read. Nothing was written", hint="Read it again.")
    file = decode(content.data)
    if isinstance(file, BinaryFile):
        raise FileUnavailableError(f"{name} is {file.in_words}", retryable=False)
    return content.data, file


def planned(
    target: Target,
    place: Workplace,
    *,
    old: bytes | None,
    texts: tuple[str | None, str],
    new: bytes,
    notes: tuple[str, ...] = (),
) -> Plan:
    """Return the plan of a change whose text was `texts[0]` and is to be `texts[1]`. Raises InvalidArgumentsError for
    one that changes nothing, or makes the file too large.
    """
    name = shown_name(place.named(target.path))
    if old == new:
        raise InvalidArgumentsError(f"{name} holds exactly this already: nothing was changed, and nothing needs to be.")
    if len(new) > MOST_BYTES:
        raise InvalidArgumentsError(f"{name} would be larger than {MOST_BYTES:,} bytes. Nothing was changed.")
    shown = diff(*texts, name)
    before = target.facts.sha256 if target.facts is not None else None
    asks = target.ruling.reason if target.ruling.verdict == "ask" else ""
    rule = "" if asks else rule_for(target.path, place.folder)
    return Plan(
        effect=f"{name} {shown.counts}" if old is not None else f"{name} (new file, {_lines(shown.added)})",
        detail=storable(shown.text),
        preconditions={
            "path": storable_path(target.path),
            "before": before or ABSENT,
            "after": hashlib.sha256(new).hexdigest(),
        },
        touches=(target.path,),
        asks=asks,
        rule=rule if is_storable(rule) else "",
        state=FileChange(path=target.path, name=name, old=old, old_sha256=before, new=new, shown=shown, notes=notes),
    )


def carried_out(change: FileChange, place: Workplace, watch: Watch) -> Done:
    """Do it. Blocks. Raises DigestMismatchError when the file is another by now, StorageUnavailableError when what it
    held cannot be kept, and what `WorkspaceFiles.replace` does; nothing was written then.
    """
    if watch.stop.is_set():
        return Done(
            text=f"Stopped by the person before anything was done: {change.name} is as it was.",
            summary="stopped, nothing changed",
            outcome="cancelled",
        )
    if change.old is not None:
        place.undo.keep(change.old)
    facts = place.files.replace(os.fspath(change.path), change.new, change.old_sha256)
    touch = FileTouch(path=storable_path(change.path), before=change.old_sha256, after=facts.sha256)
    if change.old is None:
        said = f"Wrote {change.name}: a new file, {_lines(change.shown.added)}, {facts.size:,} bytes."
        return Done(text="\n".join([said, *change.notes]), summary=change.shown.counts, files=(touch,))
    said = f"Changed {change.name}: {change.shown.counts}."
    text = "\n".join([said, *change.notes, storable(change.shown.cut(_DIFF_LINES)).rstrip("\n")])
    return Done(text=text, summary=change.shown.counts, files=(touch,))


def _lines(count: int) -> str:
    return f"{count:,} {'line' if count == 1 else 'lines'}"
