"""The row at the bottom: what the turn does right now in true figures, what Esc would do, what waits, the version."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rune.text.safe_text import SafeText
from rune.tui.fit import Spans, foreign, narrowed, spread
from rune.tui.lines import Line, Span

if TYPE_CHECKING:
    from rune.tui.transcript_state import Pace

_KEYS: Final = (
    (("enter", "sends"), ("ctrl+j", "new line"), ("/", "commands"), ("F1", "help")),
    (("enter", "sends"), ("/", "commands"), ("F1", "help")),
    (("/", "commands"), ("F1", "help")),
    (("F1", "help"),),
)
_ORDER: Final = (
    *("state", "keys", "below", "version", "state", "keys", "keys", "below", "esc", "state", "keys"),
    *("waiting", "state", "waiting", "below", "esc"),
)
_MINUTE: Final = 60
_HOUR: Final = 3600
_SLOW: Final = 10


class FooterState(NamedTuple):
    """What the footer shows. `pace` None: no turn runs; `now` in seconds of the clock that `pace` was taken with.
    `waiting` messages wait for the turn's end. `following` False: the person has scrolled up, and `below` lines
    came since. `hint` is what is to be said for a moment ("": nothing), `version` without its v. `own`: something runs
    that the person began themselves.
    """

    pace: "Pace | None" = None
    now: float = 0.0
    waiting: int = 0
    following: bool = True
    below: int = 0
    hint: str = ""
    version: str = ""
    model: str = ""
    own: bool = False


def footer_line(state: FooterState, width: int) -> Line:
    """Return the footer in exactly `width` cells, or in fewer where that many are not to be had."""
    idle = state.pace is None and not state.hint and not state.own
    parts: dict[str, Sequence[Spans]] = {
        "state": _state(state),
        "keys": (*(_keys(form) for form in _KEYS), ()) if idle else ((),),
        "esc": _esc(state),
        "waiting": _waiting(state.waiting),
        "below": _below(state),
        "version": (_spans((f"  v{foreign(state.version, 20)} ", "dim")), ()) if state.version else ((),),
    }
    fitting = narrowed(parts, _ORDER, width)
    left = [span for name in ("state", "keys", "esc", "waiting", "below") for span in fitting[name]]
    return spread(left, fitting["version"], width)


def turn_words(pace: "Pace", model: str, now: float) -> tuple[str, ...]:
    """Return what a turn does and how far it is, a figure each; the most important first. From the first model call
    on it is told which step it is, and how long all of them took.
    """
    took = elapsed(now - pace.since)
    does, *figures = _doing(pace, model, took)
    if not pace.steps or pace.phase == "cancelling":
        return (does, *figures)
    return (f"step {pace.step}/{pace.steps}", does, took, *(figure for figure in figures if figure != took))


def _doing(pace: "Pace", model: str, took: str) -> tuple[str, ...]:
    match pace.phase:
        case "loading":
            return (f"loading {model}".rstrip(), took)
        case "reading" if pace.total:
            figures = f"{pace.done:,} of {pace.total:,}" if 0 < pace.done < pace.total else f"{pace.total:,}"
            return (f"reading {figures} tokens", took)
        case "running":
            return (f"running {pace.doing}".rstrip(), took)
        case "thinking" | "answering":
            tokens = f"{pace.pieces:,} token{'' if pace.pieces == 1 else 's'}" if pace.pieces else ""
            return (pace.phase, rate(pace.rate), *([tokens] if pace.phase == "answering" else []))
        case "cancelling":
            return ("stopping",)
        case _:
            return ("waiting for the model" if pace.phase == "waiting" else pace.phase, took)


def elapsed(seconds: float) -> str:
    """Return a duration in words, "" under a second: nobody waits yet."""
    whole = int(seconds)
    if whole < 1:
        return ""
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"


def rate(tokens_a_second: float | None) -> str:
    """Return a speed in words, "" while there is none."""
    if tokens_a_second is None:
        return ""
    return f"{tokens_a_second:,.0f} tok/s" if tokens_a_second >= _SLOW else f"{tokens_a_second:.1f} tok/s"


def _spans(*pieces: tuple[str, str]) -> Spans:
    return tuple(Span(SafeText(text), style) for text, style in pieces)


def _state(state: FooterState) -> Sequence[Spans]:
    if state.hint:
        cells = (200, 200, 60, 36, 20)
        return tuple((Span(SafeText(" ")), Span(foreign(state.hint, each), "strong")) for each in cells)
    if state.pace is None:
        return (_spans((" your command runs", "accent")), _spans((" running", "accent"))) if state.own else ((),)
    first, *more = (word for word in turn_words(state.pace, foreign(state.model, 40), state.now) if word)
    forms = [(Span(SafeText(" ")), Span(foreign(first, 60), "accent"), *_after(more[:many])) for many in (3, 2, 1, 0)]
    return (*forms, (Span(SafeText(" ")), Span(foreign(first, 20), "accent")))


def _after(words: Sequence[str]) -> Spans:
    return _spans(*((f" · {word}", "") for word in words))


def _keys(keys: Sequence[tuple[str, str]]) -> Spans:
    pieces: list[tuple[str, str]] = []
    for key, does in keys:
        pieces += [(" · " if pieces else " ", "dim"), (key, "key"), (f" {does}", "dim")]
    return _spans(*pieces)


def _esc(state: FooterState) -> Sequence[Spans]:
    if state.waiting:
        does = " takes back"
    elif state.own or (state.pace is not None and state.pace.phase != "cancelling"):
        does = " stops"
    else:
        return ((),)
    return _spans(("   ", ""), ("esc", "key"), (does, "dim")), _spans((" · ", "dim"), ("esc", "key"), (does, "dim")), ()


def _waiting(waiting: int) -> Sequence[Spans]:
    if not waiting:
        return ((),)
    return _spans((f"   {waiting} waiting", "")), _spans((f" · {waiting} waiting", "")), ()


def _below(state: FooterState) -> Sequence[Spans]:
    if state.following or state.below <= 0:
        return ((),)
    long = _spans(("   new below ↓ ", "warning"), ("ctrl+end", "key"))
    return long, _spans(("   new below ↓", "warning")), _spans((" ↓", "warning")), ()
