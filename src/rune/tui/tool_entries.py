"""What tools do, in the entries of a transcript: each call is one card from its check to its end.

A turn that waited for the person goes on as another turn, with the same calls: their cards stand among what is settled
by then, and are found there.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from rune.records.messages import ConversationMessageRecord
from rune.records.permissions import PermissionMode
from rune.records.tools import Outcome
from rune.surface.rows import ApprovalRow, CallRow
from rune.tui.entries import CardState, Checklist, Entry, ToolCard
from rune.turn import events as shown
from rune.turn.events import AskedCall

_STATES: Final[dict[Outcome, CardState]] = {
    "ok": "done",
    "failed": "failed",
    "denied": "denied",
    "cancelled": "cancelled",
    "unknown": "unknown",
}
# So far back a card is looked for that is not among what runs: a turn that waited is not older.
_BACK: Final = 2_000
_NAME_DIGITS: Final = 12
_BY_MODE: Final = re.compile(r"the permission mode is `(?P<mode>\w+)`")
SAID_ELSE: Final = "you said something else instead"

Calls = Mapping[tuple[str, str], CallRow]  # by the ids of the message and of the call in it


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for the person: all of `calls` are answered together."""

    approval_id: str
    calls: tuple[AskedCall, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """What "always" would allow; nothing unless each call offers that."""
        rules = dict.fromkeys(call.rule for call in self.calls)
        return () if "" in rules else tuple(rules)


def question(row: ApprovalRow) -> Asked:
    """Return a stored question."""
    return Asked(approval_id=row.id, calls=row.calls)


def stored_card(row: CallRow, *, waits: bool) -> ToolCard:
    """Return the card of a stored call; `waits`: the person has not answered yet."""
    state: CardState = "waiting" if waits else "skipped" if row.outcome is None else _STATES[row.outcome]
    return ToolCard(
        key=f"{row.message_id}/{row.tool_call_id}",
        call_id=row.call_id or f"{row.message_id}/{row.tool_call_id}",
        name=row.name,
        effect=row.effect,
        detail=row.detail,
        state=state,
        milliseconds=row.milliseconds,
        summary=row.summary,
        output=row.text,
        kept=row.output is not None,
        artifact=_short(row.output),
        exit_code=row.exit_code,
    )


def stored_cards(message: ConversationMessageRecord, calls: Calls, asked: Asked | None) -> list[ToolCard]:
    """Return the cards of a stored answer. A call of which nothing else is kept is shown by its name."""
    waiting = {call.call_id for call in asked.calls} if asked is not None else set[str]()
    cards: list[ToolCard] = []
    for call in message.tool_calls:
        row = calls.get((message.id, call.id))
        if row is None:
            row = CallRow(call_id="", message_id=message.id, tool_call_id=call.id, name=call.name, effect="")
        waits = bool(row.call_id) and row.call_id in waiting
        if row.outcome is None and not row.call_id and asked is not None:
            continue  # it comes after the question, and is checked once that is answered
        cards.append(stored_card(row, waits=waits))
    return cards


def find(entries: Sequence[Entry], call_id: str) -> int | None:
    """Return where the card of a call stands, None where there is none."""
    for place in range(len(entries) - 1, max(len(entries) - _BACK, 0) - 1, -1):
        entry = entries[place]
        if isinstance(entry, ToolCard) and entry.call_id == call_id:
            return place
    return None


def changed(entries: tuple[Entry, ...], place: int, fields: Mapping[str, object]) -> tuple[Entry, ...]:
    """Return the entries with other fields in one of them."""
    return (*entries[:place], msgspec.structs.replace(entries[place], **fields), *entries[place + 1 :])


def started(now: float) -> dict[str, object]:
    """Return what is different in the card of a call that runs from now on."""
    return {"state": "running", "since": now, "seconds": 0, "output": ""}


def finished(event: shown.ToolFinished) -> dict[str, object]:
    """Return what is different in the card of a call that has ended."""
    fields: dict[str, object] = {
        "state": _STATES[event.outcome],
        "milliseconds": event.milliseconds,
        "since": None,
        "summary": event.summary,
        "kept": event.output is not None,
        "artifact": _short(event.output),
        "exit_code": event.exit_code,
    }
    return fields | {"output": event.text} if event.text else fields


def with_time(entries: tuple[Entry, ...], now: float) -> tuple[Entry, ...]:
    """Return the entries with the running calls as long running as they are now; the same object where that changes
    nothing that is shown.
    """

    def aged(entry: Entry) -> Entry:
        if not isinstance(entry, ToolCard) or entry.state != "running" or entry.since is None:
            return entry
        seconds = max(int(now - entry.since), 0)
        return entry if seconds == entry.seconds else msgspec.structs.replace(entry, seconds=seconds)

    return _mapped(entries, aged)


def unanswered(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the entries with nothing waiting for an answer any more: the person said something else instead."""

    def refused(entry: Entry) -> Entry:
        return msgspec.structs.replace(entry, state="denied", summary=SAID_ELSE) if _waits(entry) else entry

    return _mapped(entries, refused)


def resumed(entries: tuple[Entry, ...], end: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return what stays settled, and what a turn that goes on has again: all from the first call that waits on. The
    entry with the key `end` said that the turn had ended there, which it has not.
    """
    first = next((place for place, entry in enumerate(entries) if _waits(entry)), len(entries))
    return entries[:first], tuple(entry for entry in entries[first:] if entry.key != end)


def _waits(entry: Entry) -> bool:
    return isinstance(entry, ToolCard) and entry.state == "waiting"


def ended(entries: tuple[Entry, ...], *, paused: bool) -> tuple[Entry, ...]:
    """Return the entries of a conversation in which no turn runs any more: what never told its end ran no further.
    `paused`: what comes after the question is checked anew, once that is answered.
    """
    fresh: list[Entry] = []
    for entry in entries:
        if not isinstance(entry, ToolCard) or entry.own or entry.state not in ("prepared", "running", "waiting"):
            fresh.append(entry)
        elif entry.state == "waiting":
            fresh.append(entry if paused else msgspec.structs.replace(entry, state="skipped"))
        elif entry.state == "running":
            fresh.append(msgspec.structs.replace(entry, state="unknown", since=None))
        elif not paused:
            fresh.append(msgspec.structs.replace(entry, state="cancelled"))
    return tuple(fresh) if len(fresh) != len(entries) or not _same(entries, fresh) else entries


def listed(entries: tuple[Entry, ...], key: str, event: shown.ChecklistChanged) -> tuple[Entry, ...]:
    """Return the entries with the checklist as it is now, as the newest of them."""
    found, rest = unlisted(entries)
    return (*rest, Checklist(key=key if found is None else found.key, items=event.items))


def unlisted(entries: tuple[Entry, ...]) -> tuple[Checklist | None, tuple[Entry, ...]]:
    """Return the newest checklist and the entries without it; None where there is none, or it is long ago."""
    for place in range(len(entries) - 1, max(len(entries) - _BACK, 0) - 1, -1):
        if isinstance(found := entries[place], Checklist):
            return found, (*entries[:place], *entries[place + 1 :])
    return None, entries


def as_of(asked: Asked, mode: PermissionMode) -> Asked:
    """Return a question without the reasons that were a permission mode, where that is another one by now."""

    def holds(call: AskedCall) -> bool:
        said = _BY_MODE.search(call.why)
        return said is None or said["mode"] == mode

    if all(holds(call) for call in asked.calls):
        return asked
    calls = (call if holds(call) else msgspec.structs.replace(call, why="") for call in asked.calls)
    return msgspec.structs.replace(asked, calls=tuple(calls))


def _short(evidence: str | None) -> str:
    """Return what an artifact is called: enough of its hash."""
    return (evidence or "").removeprefix("sha256:")[:_NAME_DIGITS]


def _mapped(entries: tuple[Entry, ...], change: Callable[[Entry], Entry]) -> tuple[Entry, ...]:
    fresh = tuple(change(entry) for entry in entries)
    return entries if _same(entries, fresh) else fresh


def _same(one: Iterable[Entry], other: Iterable[Entry]) -> bool:
    return all(left is right for left, right in zip(one, other, strict=True))
