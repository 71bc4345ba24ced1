"""Calls of tools and questions about them in lines for a person, the same in the terminal, in lists and documents.

What a call says of itself is foreign text. Where a person decides by it, it stands behind a bar of Rune's own, so that
nothing in it can pass for Rune's words.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rune.records.tools import Outcome
from rune.surface.ages import age
from rune.surface.results import WIDTH
from rune.surface.rows import ApprovalRow, CallRow
from rune.text.fitting import foreign
from rune.text.safe_text import SafeText, safe_text
from rune.turn.events import AskedCall

BAR: Final = "| "
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_TENTHS: Final = 10 * _SECOND
# A summary that says how long it took says it better: without the time until it could begin.
_TIMED: Final = re.compile(r"\(\d[^()]* m?s\)$")
WAITS: Final = "waits for you"
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time
_STATES: Final[dict[Outcome | None, str]] = {
    "ok": "done",
    "failed": "failed",
    "denied": "not allowed",
    "cancelled": "cancelled",
    "unknown": "may have run",
    None: "not carried out",
}


def took(milliseconds: int | None) -> str:
    """Return how long something took: `12 ms`, `1.4 s`, `3 min 20 s`; "" when it is not known."""
    if milliseconds is None:
        return ""
    if milliseconds < _SECOND:
        return f"{milliseconds} ms"
    if milliseconds < _TENTHS:
        return f"{milliseconds / _SECOND:.1f} s"
    if milliseconds < _MINUTE:
        return f"{milliseconds // _SECOND} s"
    return f"{milliseconds // _MINUTE} min {milliseconds % _MINUTE // _SECOND} s"


def call_line(
    name: str, effect: str, outcome: Outcome | None, *, summary: str = "", milliseconds: int | None = None
) -> str:
    """Return a call in one line: what it was to do, what came of it, how long it took. Foreign text, not yet safe."""
    head, said, about = _joined(f"{name} {effect}"), _joined(summary), _joined(effect)
    if about and said.startswith(about):
        said = said.removeprefix(about).lstrip(" :,")  # what it was about is said already
    elif said in about:
        said = ""  # what came of it is what it was to do
    word = _STATES[outcome]
    state = word if said in {"", word} else said if outcome == "ok" else f"{word}: {said}"
    took_text = "" if _TIMED.search(said) else took(milliseconds)
    return f"{head}: {state}" + (f" ({took_text})" if took_text else "")


def line_of(call: CallRow) -> str:
    """Return a call that is stored in one line, as `call_line`; one that has no end says whether it still may."""
    if call.waits:
        return f"{_joined(f'{call.name} {call.effect}')}: {WAITS}"
    return call_line(call.name, call.effect, call.outcome, summary=call.summary, milliseconds=call.milliseconds)


def asked_lines(call: AskedCall, *, most: int | None = None) -> Iterator[SafeText]:
    """Iterate over all that a person needs to decide about a call: what it would do, why they are asked, and behind
    a bar each line of what would happen; after `most` of these how many there are more.
    """
    yield safe_text(asked_line(call), newlines=False, tabs=False)
    if call.why:
        yield safe_text(f"why it asks: {_joined(call.why)}", newlines=False, tabs=False)
    lines = safe_text(call.detail).removesuffix("\n").split("\n") if call.detail else []
    for line in lines[:most]:
        yield SafeText(BAR + line)
    if most is not None and len(lines) > most:
        yield SafeText(f"and {len(lines) - most:,} more lines")


def asked_line(call: AskedCall) -> str:
    """Return what a call that waits would do in one line. Foreign text, not yet safe."""
    return _joined(f"{call.name} {call.effect}")


def rules_of(calls: Sequence[AskedCall]) -> tuple[SafeText, ...]:
    """Return what "always" would allow, each rule once; empty where it is not offered."""
    return tuple(dict.fromkeys(safe_text(call.rule, newlines=False, tabs=False) for call in calls if call.rule))


def approval_lines(row: ApprovalRow, now_ms: int) -> Iterator[SafeText]:
    """Iterate over all of a question: where and when it was asked, each call whole, what "always" would allow, and how
    it was answered.
    """
    where = safe_text(_joined(f"{row.folder}: {row.title}"), newlines=False, tabs=False)
    yield SafeText(f"{row.id}, asked {age(row.asked_at, now_ms)} in {where}")
    for call in row.calls:
        yield SafeText("")
        yield from asked_lines(call)
    if rules := rules_of(row.calls):
        yield SafeText("")
        yield SafeText(f"`--always` would allow in that folder from now on: {', '.join(rules)}")
    if row.standing != "open":
        yield SafeText("")
        yield SafeText(_answered(row, now_ms))


def _answered(row: ApprovalRow, now_ms: int) -> str:
    if row.standing == "expired":
        return f"nobody answered in time: it expired {age(row.expires_at, now_ms)}"
    word = "allowed" if row.decision == "allow" else "refused"
    reason = safe_text(_joined(row.reason), newlines=False, tabs=False)
    return f"{word} by you {age(row.closed_at, now_ms)}" + (f": {reason}" if reason else "")


def waiting_lines(rows: Sequence[ApprovalRow], now_ms: int) -> Iterator[SafeText]:
    """Iterate over a list of questions: end of the id, when it was asked, the folder; below that a line a call. Each
    has at most WIDTH cells, if that can be.
    """
    for row in rows:
        head = f"…{row.id[-_ID_CHARACTERS:]}  {age(row.asked_at, now_ms):<11}  "
        yield SafeText(head + foreign(row.folder, WIDTH - len(head)))
        for call in row.calls:
            yield SafeText("    " + foreign(f"{call.name} {call.effect}", WIDTH - 4))


def _joined(text: str) -> str:
    return " ".join(text.split())
