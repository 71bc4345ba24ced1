"""The row at the top: which model and where, which conversation, how full its window is, what fails, channel, folder.

Imports next to nothing: the first frame draws it before Textual is there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import ELLIPSIS, Spans, cut_middle, foreign, narrowed, spread, width_of
from rune.tui.lines import Line, Span

if TYPE_CHECKING:
    from rune.records.messages import Channel
    from rune.surface.rows import ContextUse

Where = Literal["", "local", "remote", "stand-in"]

_CHANNELS: Final[tuple["Channel", ...]] = ("task", "chat")
_LEVELS: Final = {"green": "good", "yellow": "warning", "orange": "warning", "red": "bad"}
# The longest level and health, so that nothing beside them moves when they change or come.
_LEVEL_CELLS: Final = 6
_HEALTH_CELLS: Final = 11
_BRIEF_NAME: Final = 6
_BARS: Final = (8, 4)
_NO_FIGURE: Final = "\N{EN DASH}"
_OPENING_CELLS: Final = 20
_MODEL_CELLS: Final = (40, 24, 20, 16, 12, 8, 6)
_FOLDER_CELLS: Final = (40, 24, 16, 12)
_LEAST_TITLE: Final = 6
_TITLE_CELLS: Final = 16
_ELSEWHERE_CELLS: Final = (40, 24, 12)
# What changes files without asking stands out.
_MODES: Final = {"ask": "dim", "read": "good", "edits": "warning"}
# What goes first when the row is too narrow; a name takes its part one form further down.
_ORDER: Final = (
    *("elsewhere", "elsewhere"),
    *("folder", "model", "folder", "bar", "folder", "model", "health", "folder", "bar", "title", "elsewhere", "health"),
    *("model", "rune", "thinking", "channels", "ctx", "model", "where", "model", "where", "ctx", "use"),
    *("permission", "channels", "model", "thinking"),
)


class HeaderState(NamedTuple):
    """What the header shows. `model` None: not known yet, "": there is none. `failing` names the subsystems that
    fail, `worst_tier` is the worst of their tiers. `busy` and `unread` speak of the other channel: a turn of its
    runs, it has news. `home` is the folder that is written as ~. `title` is the conversation's, `elsewhere` the folder
    that it belongs to where that is another one than `folder`. `thinking` is how much the model thinks, "" where that
    is left to it, `permission` what tools may do without asking ("": not known yet).
    """

    model: str | None = None
    where: Where = ""
    context: "ContextUse | None" = None
    failing: tuple[str, ...] = ()
    worst_tier: int | None = None
    channel: "Channel" = "task"
    busy: bool = False
    unread: bool = False
    folder: str = ""
    home: str = ""
    title: str = ""
    elsewhere: str = ""
    thinking: str = ""
    permission: str = ""


def header_line(state: HeaderState, width: int) -> Line:
    """Return the header in exactly `width` cells, or in fewer where that many are not to be had."""
    parts: dict[str, Sequence[Spans]] = {
        "rune": (_spans((" rune ", "accent strong")), ()),
        "model": _model(state),
        "where": _where(state),
        "thinking": _thinking(state),
        "permission": _permission(state),
        "title": (_title(state, _TITLE_CELLS + len("  ")), ()),
        "elsewhere": _elsewhere(state),
        **_context(state.context),
        "health": _health(state),
        "channels": _channels(state),
        "folder": _folder(state),
    }
    fitting = narrowed(parts, _ORDER, width - 1)
    # The title also takes what nothing else needs.
    others = (width_of(form) for name, form in fitting.items() if name != "title")
    title = _title(state, width - 1 - sum(others))
    answers = (*fitting["rune"], *fitting["model"], *fitting["where"], *fitting["thinking"], *fitting["permission"])
    left = (*answers, *title, *fitting["elsewhere"])
    # Before there is a figure, what stands for it is next to its label, and the room for the bar behind it.
    figures = ("ctx", "bar", "use") if state.context is not None else ("ctx", "use", "bar")
    names = (*figures, "health", "channels", "folder")
    return spread(left, [span for name in names for span in fitting[name]], width)


def percentage(context: "ContextUse") -> str:
    """Return how much of its budget the prompt took, rounded as `/context` rounds it; what is there is never 0%."""
    if context.budget <= 0:
        return "full"
    percent = round(100 * context.used / context.budget)
    return "<1%" if percent < 1 and context.used > 0 else f"{percent}%"


def short_folder(folder: str, home: str, cells: int) -> SafeText:
    """Return a folder in at most `cells` cells: ~ for `home`, and what is in the middle goes first."""
    path = folder
    if home and home != "/" and (folder == home or folder.startswith(home.rstrip("/") + "/")):
        path = "~" + folder[len(home.rstrip("/")) :]
    safe = safe_text(path, newlines=False, tabs=False)
    first, *after = safe.split("/")
    for gone in range(len(after)):
        shorter = SafeText("/".join([first, *([ELLIPSIS] if gone else []), *after[gone:]]))
        if len(shorter) <= cells * 2 and width_of([Span(shorter)]) <= cells:
            return shorter
    return cut_middle(SafeText(after[-1] if after else safe), cells)


def _spans(*pieces: tuple[str, str]) -> Spans:
    return tuple(Span(SafeText(text), style) for text, style in pieces)


def _model(state: HeaderState) -> Sequence[Spans]:
    if state.model is None:
        # About the room of a model and where it runs, until everything beside it has gone.
        return (*(_spans((f" {'opening':<{_OPENING_CELLS}}", "dim")),) * 3, _spans((" opening", "dim")))
    if not state.model:
        return (_spans((" no model", "bad")),)
    return tuple((Span(SafeText(" ")), Span(foreign(state.model, cells), "strong")) for cells in _MODEL_CELLS)


def _where(state: HeaderState) -> Sequence[Spans]:
    nothing: Spans = ()
    if not state.where or not state.model:
        return (nothing,)
    style = "dim" if state.where == "local" else "warning"
    long = _spans((" · ", "dim"), (state.where, style))
    short = _spans((f" {state.where}", style))
    # That words leave this machine, or that a small model stands in, is said however narrow it is.
    return (long, short, nothing) if state.where == "local" else (long, short)


def _thinking(state: HeaderState) -> Sequence[Spans]:
    """Return what the person chose of it: of two words the one that a column of figures leaves room for stays."""
    if not state.thinking or not state.model:
        return ((),)
    long = _spans((" · ", "dim"), (f"thinking {state.thinking}", "accent"))
    return long, _spans((f" think {state.thinking}", "accent")), ()


def _permission(state: HeaderState) -> Sequence[Spans]:
    """Return the mode that holds for tools: however narrow it is, it is said."""
    if not state.permission:
        return ((),)
    style = _MODES.get(state.permission, "strong")
    return _spans((" · ", "dim"), (state.permission, style)), _spans((f" {state.permission}", style))


def _context(context: "ContextUse | None") -> dict[str, Sequence[Spans]]:
    """Return label, bar and figure; before there is a figure they take the same room."""
    label = (_spans(("  ctx", "dim")), _spans((" ctx", "dim")), ())
    if context is None:
        bars = tuple(_spans((" " * (cells + 1), "")) for cells in _BARS)
        use = tuple(_spans((f" {_NO_FIGURE:<{cells}}", "dim")) for cells in (5 + _LEVEL_CELLS, 5))
        return {"ctx": label, "bar": (*bars, ()), "use": use}
    style = _LEVELS[context.level]
    filled = min(max(context.used / max(context.budget, 1), 0.0), 1.0)
    bars = tuple(
        _spans((" ", ""), ("▓" * round(filled * cells), style), ("░" * (cells - round(filled * cells)), "dim"))
        for cells in _BARS
    )
    estimate = "" if context.served else "~"
    figure = (f" {estimate + percentage(context):>4} ", "")
    use = (_spans(figure, (f"{context.level:<{_LEVEL_CELLS}}", style)), _spans(figure))
    return {"ctx": label, "bar": (*bars, ()), "use": use}


def _health(state: HeaderState) -> Sequence[Spans]:
    if not state.failing:
        # Where nothing can answer, nothing is well; before anything is known, nothing is claimed.
        well = _spans(("  ● ", "good"), (f"{'healthy':<{_HEALTH_CELLS - 2}}", "dim"))
        return (well if state.model else _spans((" " * (_HEALTH_CELLS + 2), "")), ())
    mark, style = ("✖", "bad") if state.worst_tier == 0 else ("▲", "warning")
    first, *others = state.failing
    more = f" +{len(others)}" if others else ""
    long = _spans((f"  {mark} {foreign(first, 24) + more:<{_HEALTH_CELLS - 2}}", style))
    # What fails is named however narrow it is: a mark alone would be a riddle.
    brief = _spans((f" {mark} {foreign(first, _BRIEF_NAME)}{more.strip()}", style))
    return long, long, brief


def _channels(state: HeaderState) -> Sequence[Spans]:
    marks = ("•" if state.unread else "") + ("…" if state.busy else "")
    news = "accent" if marks else "dim"
    whole: list[tuple[str, str]] = [("  ", "")]
    brief: list[tuple[str, str]] = [(" ", ""), (f"[{state.channel}]", "strong")]
    for name in _CHANNELS:
        whole.append((f"[{name}] ", "strong") if name == state.channel else (f" {name}{marks:<2}", news))
        if name != state.channel and marks:
            brief.append((f" {name}{marks}", news))
    return _spans(*whole), _spans(*brief), _spans(*brief[:2])


def _title(state: HeaderState, room: int) -> Spans:
    if not state.title or room < _LEAST_TITLE + 2:
        return ()
    return Span(SafeText("  ")), Span(foreign(state.title, room - 2), "dim")


def _elsewhere(state: HeaderState) -> Sequence[Spans]:
    if not state.elsewhere:
        return ((),)
    folders = (short_folder(state.elsewhere, state.home, cells) for cells in _ELSEWHERE_CELLS)
    return (*((Span(SafeText(" in "), "dim"), Span(folder, "warning")) for folder in folders), ())


def _folder(state: HeaderState) -> Sequence[Spans]:
    if not state.folder:
        return ((),)
    forms = [
        (Span(SafeText(" ")), Span(short_folder(state.folder, state.home, cells), "dim"), Span(SafeText(" ")))
        for cells in _FOLDER_CELLS
    ]
    return (*forms, ())
