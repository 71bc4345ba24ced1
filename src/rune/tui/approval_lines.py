"""What is shown of a question that waits for the person: exactly what would run, why it asks, and the answers."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from rune.text.safe_text import SafeText, safe_text
from rune.tui.diffs import diff_rows, digits, drawn, is_diff
from rune.tui.fit import ELLIPSIS, cut_line, spread, width_of
from rune.tui.lines import MARK, Line, Span, line
from rune.tui.markdown.wrapping import cells, hung, wrapped
from rune.tui.revealed import is_revealed, revealed
from rune.tui.tool_entries import Asked
from rune.turn.events import AskedCall

_HIDDEN: Final = "what stands out holds characters that cannot be seen: they are written as \\x1b or <U+202E>"
_HINT_ROWS: Final = 2

_Forms = tuple[tuple[tuple[str, str], ...], ...]  # of a hint, the longest first: keys, and what each does


class AnswerChoice(NamedTuple):
    """One answer: `key` gives it at once, `label` says what it does (what of it is a rule is foreign text)."""

    key: str
    name: str
    label: str


def choices_of(asked: Asked) -> tuple[AnswerChoice, ...]:
    """Return the answers there are; "always" only where all calls could be allowed for good."""
    always = (AnswerChoice("a", "always", f"always {', '.join(asked.rules)}"),) if asked.rules else ()
    return (
        AnswerChoice("y", "allow", "allow"),
        *always,
        AnswerChoice("n", "deny", "no"),
        AnswerChoice("e", "because", "no, because ..."),
    )


def body_lines(asked: Asked, width: int) -> Iterator[Line]:
    """Give what would run, all of it, in lines of at most `width` cells. Several calls begin with a list of them."""
    many = len(asked.calls)
    if many > 1:
        for place, call in enumerate(asked.calls, 1):
            named = [*revealed(call.name, "strong"), Span(SafeText(" ")), *_flat(_whole_effect(call))]
            yield cut_line(line(Span(SafeText(f" {place}/{many} "), "dim"), *named), width)
    for place, call in enumerate(asked.calls, 1):
        if many > 1:
            yield Line()
        yield from _call_lines(call, f"{place}/{many} " if many > 1 else "", width)


def head_line(
    asked: Asked, first: int, shown: int, of: str, *, above: bool, more: bool, focused: bool, width: int
) -> Line:
    """Return the row that says that something waits, and which part of it is seen: from row `first` (of 0) on, of as
    many as `of` says.
    """
    many = len(asked.calls)
    forms = [" waiting for you"] if many == 1 else [f" waiting for you: {many} calls, answered together"]
    forms += [" waiting for you"] if many == 1 else [f" waiting for you: {many} calls", f" {many} calls wait"]
    places = [""]
    if above or more:
        arrows = f"{'↑' * above}{'↓' * more}"
        rows = f"rows {first + 1}-{first + shown} of {of} {arrows}"
        places = [f"{rows}, pgup pgdn "] * focused + [f"{rows} ", f"{first + 1}-{first + shown}/{of} {arrows} ", arrows]
    fitting = ((words, where) for where in places for words in forms if cells(words) + cells(where) + 1 <= width)
    words, where = next(fitting, (forms[-1], places[-1]))
    return spread([Span(SafeText(words), "warning")], [Span(SafeText(where), "dim")], width)


def choice_lines(choices: Sequence[AnswerChoice], at: int | None, width: int, *, live: bool = True) -> tuple[Line, ...]:
    """Return the answers, with a mark before the one that Enter takes, as many in a row as there is room for. Not
    `live`: the keyboard is elsewhere, and none of the keys does anything.
    """
    rows: list[Line] = []
    row: list[Span] = []
    for place, choice in enumerate(choices):
        mark, key, label = spans = _choice(choice, chosen=live and place == at, live=live)
        if row and width_of(row) + 1 + width_of(spans) > width:
            rows.append(line(*row))
            row = []
        if 1 + width_of(spans) <= width:
            row += [Span(SafeText(" ")), *spans]
            continue
        # A rule is shown as it is: what is too wide goes on below.
        lead = Span(SafeText(f" {mark.text}{key.text}"), key.style)
        room = max(width - cells(lead.text), 1)
        rows += hung(wrapped([label], room), lead, Span(SafeText(" " * cells(lead.text))))
    return (*rows, line(*row)) if row else tuple(rows)


Hint = Literal["", "stray", "below", "always", "reason"]

_REASON: Final[_Forms] = (
    (("enter", " says no, for this reason"), ("", " · "), ("esc", " goes back")),
    (("enter", " says no"), ("", " · "), ("esc", " back")),
)
_FOCUSED: Final[dict[Hint, _Forms]] = {
    "": ((("esc", " later"),),),
    "stray": (
        (("tab", " writes a message instead (this is then not done)"),),
        (("tab", " writes a message instead"),),
        (("tab", " writes"),),
    ),
    "below": (
        (("", "more below: "), ("y", " again"), ("", ", or "), ("pgdn", "")),
        (("", "more below: "), ("y", " again")),
    ),
    "always": (
        (("enter", " allows this, and such calls for good"), ("", " · "), ("n", " no"), ("", " · "), ("esc", " later")),
        (("enter", " allows such calls for good"),),
        (("enter", " always"),),
    ),
    "reason": _REASON,
}
_TYPED: Final[_Forms] = (
    (("tab", ": answer"), ("", " · "), ("enter", " sends your message instead: this is not done")),
    (("tab", ": answer"), ("", " · "), ("enter", " sends: this is not done")),
    (("tab", ": answer"), ("", " · "), ("enter", " refuses")),
    (("tab", ": answer"),),
)
_AWAY: Final[_Forms] = (
    (("tab", ": answer"), ("", " · a message that you send goes instead of it: this is not done")),
    (("tab", ": answer"), ("", " · a message is sent instead of it")),
    (("tab", ": answer"),),
)


def hint_lines(*, focused: bool, typed: bool, width: int, hint: Hint = "") -> tuple[Line, ...]:
    """Return what else can be done, or what a key did: for who is at the question, for who says why not, and for who
    writes. What does not go into one row takes two before it says less.
    """
    forms = _REASON if hint == "reason" else _FOCUSED[hint] if focused else _TYPED if typed else _AWAY
    rows: tuple[Line, ...] = ()
    indent = Span(SafeText(" "))
    for form in forms:
        spans = [span for key, does in form for span in (Span(SafeText(key), "key"), Span(SafeText(does), "dim"))]
        rows = tuple(hung(wrapped(spans, max(width - 1, 1)), indent, indent))
        if len(rows) <= _HINT_ROWS:
            return rows
    return tuple(cut_line(row, width) for row in rows[:_HINT_ROWS])


def elsewhere_lines(where: str, width: int) -> tuple[Line, ...]:
    """Return where a question can be answered that cannot be answered here."""
    indent = Span(SafeText(" "))
    said = Span(safe_text(where, newlines=False, tabs=False), "warning")
    return tuple(hung(wrapped([said], max(width - 1, 1)), indent, indent))


def _whole_effect(call: AskedCall) -> str:
    """Return what a call would do: of a command as much as stands in its first line, which `effect` may cut."""
    first = call.detail.partition("\n")[0]
    stem = call.effect.removesuffix(ELLIPSIS)
    return first if stem and not is_diff(call.detail) and first.startswith(stem) else call.effect


def _choice(choice: AnswerChoice, *, chosen: bool, live: bool) -> tuple[Span, Span, Span]:
    style = "chosen" if chosen else "" if live else "dim"
    return (
        Span(SafeText(f"{MARK} " if chosen else "  "), style),
        Span(SafeText(f"{choice.key} "), f"key {style}".strip() if live else style),
        Span(safe_text(choice.label, newlines=False, tabs=False), style),
    )


def _call_lines(call: AskedCall, number: str, width: int) -> Iterator[Line]:
    indent = Span(SafeText(" "))
    room = max(width - 1, 1)
    head = [Span(SafeText(number), "dim"), *revealed(call.name, "strong"), Span(SafeText(" ")), *_flat(call.effect)]
    if call.detail:  # which says all of it
        yield from hung([cut_line(line(*head), room)], indent, indent)
    else:
        yield from hung(wrapped(head, room, chop=True), indent, indent)
    why = [Span(safe_text(f"asks because {call.why}", newlines=False, tabs=False), "dim")] if call.why else []
    brief = width_of(why) <= room  # what takes more comes behind what would run
    if brief and why:
        yield from hung([line(*why)], indent, indent)
    if is_revealed(call.effect + call.detail + call.rule):
        yield from hung(wrapped([Span(SafeText(_HIDDEN), "warning")], room), indent, indent)
    if is_diff(call.detail):
        rows = diff_rows(call.detail)
        number_cells = digits(rows)
        for row in rows:
            yield from hung(drawn(row, room, number_cells), indent, indent)
    elif call.detail:
        for each in call.detail.removesuffix("\n").split("\n"):
            yield from hung(wrapped(revealed(each, "code"), room, chop=True) or [Line()], indent, indent)
    if not brief:
        yield from hung(wrapped(why, room), indent, indent)


def _flat(effect: str) -> list[Span]:
    return [span for each in effect.split("\n") for span in (*revealed(each), Span(SafeText(" ")))][:-1]
