"""What `rune doctor` says about what happened: the journal, the bodies kept beside it, what was begun and not ended."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from rune.records.session import LeaseHolder
from rune.records.times import rfc3339
from rune.store.event_store import Offset
from rune.store.mending.evidence_inspection import EvidenceState
from rune.store.mending.journal_inspection import Damage, JournalState, Naming, SlotState
from rune.store.mending.views_comparison import Comparison
from rune.store.mending.views_inspection import ViewsState
from rune.surface.doctor import Finding
from rune.surface.local_times import on_the_clock
from rune.surface.sizes import counted, size_text

NAMED: Final = 5
_MEND: Final = "`rune doctor --mend`"
_MINUTE_MS: Final = 60_000


def journal(state: JournalState, now_ms: int) -> Finding:
    """Say what every slot holds, who writes it, and what of it does not verify."""
    lines = [_slot_line(slot, now_ms) for slot in state.slots]
    lines += [_damage_line(damage) for damage in state.damage[:NAMED]]
    lines += _rest(len(state.damage), "damaged place")
    lines += [f"{name}: a later Rune wrote it" for name in state.newer[:NAMED]]
    lines += [f"{name}: not written in this journal's form" for name in sorted(state.foreign)[:NAMED]]
    lines += [f"kept: {file.name} ({size_text(file.bytes)})" for file in state.kept[:NAMED]]
    lines += _rest(len(state.kept), "kept file")
    if state.unreadable:
        named = ", ".join(sorted(state.unreadable)[:NAMED])
        lines.append(
            f"{counted(len(state.unreadable), 'body', 'bodies')} in a form that this Rune does not know: {named}"
        )
    mend = ""
    if state.foreign:
        mend = state.foreign[min(state.foreign)]
    elif state.newer:
        mend = "Use the Rune that wrote it; this one only reads what it understands."
    elif state.damage:
        mend = f"{_MEND} sets the damaged parts aside and keeps them, so that Rune can write again. "
        mend += "Until then everything that is intact can be read."
    if state.damage and (state.foreign or state.newer):
        mend = f"{mend.removesuffix('.')}. Only then {_MEND} can set the damaged parts aside."
    return Finding(
        name="journal",
        state="broken" if state.damage or state.newer or state.foreign else "ok",
        detail=_journal_detail(state),
        mend=mend,
        lines=tuple(lines),
        counts={
            "events": state.events,
            "slots": len(state.slots),
            "bytes": sum(slot.bytes for slot in state.slots),
            "damaged": len(state.damage),
            "newer": len(state.newer),
            "foreign": len(state.foreign),
            "kept_files": len(state.kept),
        },
    )


def _journal_detail(state: JournalState) -> str:
    events = f"{counted(state.events, 'event')} in {counted(len(state.slots), 'slot')}"
    if state.damage:
        return f"{counted(len(state.damage), 'place is', 'places are')} damaged; {events} verified"
    if state.foreign:
        return f"{counted(len(state.foreign), 'file is', 'files are')} of another program; {events} verified"
    if state.newer:
        newer = counted(len(state.newer), "file is", "files are")
        return f"{newer} in a form that only a later Rune knows; {events} verified"
    return f"{events}, each verified"


def evidence(state: EvidenceState, named: Mapping[str, Naming]) -> Finding:
    """Say how many blobs the journal names and whether each is whole; `named` gives an event that names it."""
    groups = (("missing", state.missing), ("changed", state.tampered), ("unreadable", state.unreadable))
    lines: list[str] = []
    for what, blobs in groups:
        lines += [f"{what}: {blob}{_of(named.get(blob))}" for blob in blobs[:NAMED]]
        lines += _rest(len(blobs), f"{what} blob")
    if state.unfinished:
        lines.append(f"{counted(state.unfinished, 'unfinished file')}, {state.left_over:,} of them over a day old")
    lost = sum(len(blobs) for _, blobs in groups)
    mend = ""
    if lost:
        mend = f"Everything else is intact and works. {_lost(named, [blob for _, blobs in groups for blob in blobs])}"
    elif state.left_over:
        mend = f"{_MEND} removes what is over a day old."
    detail = f"{counted(state.whole, 'blob')} verified, {size_text(state.bytes)}"
    if state.erased:
        detail += f"; {state.erased:,} removed by an erasure"
    return Finding(
        name="evidence",
        state="broken" if lost else "warning" if state.left_over else "ok",
        detail=f"{detail}; {lost:,} lost" if lost else detail,
        mend=mend,
        lines=tuple(lines),
        counts={
            "whole": state.whole,
            "bytes": state.bytes,
            "missing": len(state.missing),
            "tampered": len(state.tampered),
            "unreadable": len(state.unreadable),
            "erased": state.erased,
            "unnamed": state.unnamed,
            "unfinished": state.unfinished,
            "left_over": state.left_over,
        },
    )


def _of(name: Naming | None) -> str:
    if name is None:
        return " of an event"
    where = f" of {name.partition}" if name.partition.startswith("cnv_") else ""
    return f" of {name.event_id} ({name.event_type}{where})"


def _lost(named: Mapping[str, Naming], blobs: Sequence[str]) -> str:
    """Say what a person can do about blobs that are lost: bring them back, or give up what rests on them."""
    back = "Put those files back into the evidence folder, from a backup: the next start takes them in."
    names = [name for blob in blobs if (name := named.get(blob)) is not None]
    ids = dict.fromkeys(name.event_id if name.alone else name.partition for name in names)
    if not ids:
        return back
    command = f"rune erase {' '.join([*ids][:NAMED])}{' ...' if len(ids) > NAMED else ''}"
    return f"{back} Without a backup: `{command}` gives up what is lost, and nothing looks for it any more."


def erasing(state: JournalState) -> Finding:
    """Say whether everything that was to be erased is gone."""
    left = len(state.unblanked)
    done = len(state.erased) - left
    detail = f"{counted(done, 'body', 'bodies')} erased" if done else "nothing was erased"
    if not left:
        return Finding(name="erasing", state="ok", detail=detail, counts={"erased": done, "unfinished": 0})
    return Finding(
        name="erasing",
        state="broken",
        detail=f"{counted(left, 'body', 'bodies')} that should be erased still stand in the journal: it was cut off",
        mend=f"{_MEND} finishes it.",
        lines=tuple(sorted(state.unblanked)[:NAMED]),
        counts={"erased": done, "unfinished": left},
    )


def turns(state: JournalState, holder: Callable[[str], LeaseHolder | None]) -> Finding:
    """Say which turns have no end; `holder` tells who has a conversation open: there it may still run."""
    running = sum(holder(conversation) is not None for conversation in state.open_turns.values())
    left = len(state.open_turns) - running
    them = "it" if left == 1 else "them"
    detail = f"{counted(running, 'turn')} running" if running else "every turn has ended"
    counts = {"running": running, "left_open": left}
    if not left:
        return Finding(name="turns", state="ok", detail=detail, counts=counts)
    what = f"{counted(left, 'turn was', 'turns were')} cut off by a kill; the next start of Rune ends {them}"
    return Finding(name="turns", state="ok", detail=what, counts=counts)


def clock(state: JournalState, now_ms: int) -> Finding:
    """Say whether this machine's clock is behind what was written already."""
    behind = state.newest - now_ms
    if behind <= _MINUTE_MS:
        return Finding(name="clock", state="ok", detail=rfc3339(now_ms))
    return Finding(
        name="clock",
        state="warning",
        detail=f"{rfc3339(now_ms)} is {counted(round(behind / 60_000), 'minute')} behind the newest event: "
        "the clock was set back",
        mend="Set the clock if it is wrong. Nothing is reordered: events keep the order in which they were written.",
        counts={"behind_ms": behind},
    )


def views(state: ViewsState, path: Path, journal_state: JournalState, older: Mapping[str, int]) -> Finding:
    """Say whether the views can be used and have come as far as the journal; `older` are files of earlier schemas."""
    lines = tuple(
        f"{name}: of another Rune, {size_text(size)}; it may be removed" for name, size in sorted(older.items())
    )
    behind, ahead = _distance(state.cursor, journal_state)
    compared = state.there and not (state.problem or state.log_unread)
    counts = {"bytes": state.bytes, "behind": behind if compared else 0}
    found = partial(Finding, name="views", lines=lines, counts=counts)
    library = f"SQLite {state.sqlite}{'' if state.fts5 else ' WITHOUT full-text search'}"
    if not state.fts5:
        return found(
            state="broken", detail=library, mend='Install apsw from its wheels: pip install --force-reinstall "apsw"'
        )
    if not state.there:
        return found(state="ok", detail=f"not made yet; the next start makes them from the journal ({library})")
    anew = f"Nothing is lost: the next start makes them anew from the journal, and {_MEND} does so now."
    if state.problem:
        return found(state="warning", detail=f"{path.name} cannot be used: {state.problem}", mend=anew)
    known = f"{path.name}, {size_text(state.bytes)}, {library}; "
    if state.log_unread:
        return found(
            state="ok", detail=f"{known}how far they have come stands in a log that only a writable disk shows"
        )
    if ahead:
        return found(
            state="warning", detail=f"{known}they hold {counted(ahead, 'event')} that the journal lacks", mend=anew
        )
    step = f"{counted(behind, 'event')} behind, taken in at the next start" if behind else "in step with the journal"
    return found(state="ok", detail=known + step)


def compared_views(finding: Finding, found: Comparison, path: Path) -> Finding:
    """Return what is to be said of views that looked sound, now that they were held against the journal."""
    if found.not_compared:
        detail = f"{finding.detail}; not compared with the journal: {found.not_compared}"
        return msgspec.structs.replace(finding, detail=detail)
    counts = {**finding.counts, "differing": len(found.differing)}
    if not found.differing:
        said = f"{finding.detail}; each row is as the journal says"
        return msgspec.structs.replace(finding, detail=said, counts=counts)
    named = ", ".join(found.differing)
    return msgspec.structs.replace(
        finding,
        state="warning",
        detail=f"{path.name} is not what the journal says, in {named}: something else changed it",
        mend=f"Nothing is lost: {_MEND} makes it anew from the journal.",
        counts=counts,
    )


def hold_more(state: ViewsState, journal_state: JournalState) -> bool:
    """Say whether the views hold events that the journal did not have when it was looked at."""
    return _distance(state.cursor, journal_state)[1] > 0


def _distance(cursor: Mapping[str, Offset], state: JournalState) -> tuple[int, int]:
    """Return how many events the views lack, and how many they hold beyond the journal."""
    held = {slot.writer: slot.last for slot in state.slots}
    behind = sum(max(0, last - _seq(cursor, writer)) for writer, last in held.items())
    ahead = sum(max(0, at.seq - held.get(writer, 0)) for writer, at in cursor.items())
    # What lies behind damage is no event to be taken in, nor one that is lacking.
    return (0, 0) if state.damage else (behind, ahead)


def _seq(cursor: Mapping[str, Offset], writer: str) -> int:
    return cursor[writer].seq if writer in cursor else 0


def _slot_line(slot: SlotState, now_ms: int) -> str:
    line = f"{slot.writer}: {counted(slot.events, 'event')}, {counted(slot.segments, 'file')}, {size_text(slot.bytes)}"
    if slot.holder is not None:
        line += f"; written by process {slot.holder.pid} since {on_the_clock(slot.holder.since, now_ms)}"
    elif slot.torn:
        line += f"; a torn tail of {size_text(slot.torn)} is cut off, and kept, at the next start"
    return line


def _damage_line(damage: Damage) -> str:
    behind = f"{counted(damage.behind, 'intact event')} behind it" if damage.behind else "nothing intact behind it"
    return f"{damage.file}, line {damage.line:,}, byte {damage.byte:,}: {damage.reason}; {behind}"


def _rest(count: int, what: str) -> list[str]:
    return [f"and {counted(count - NAMED, f'more {what}')}"] if count > NAMED else []
