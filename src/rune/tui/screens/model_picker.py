"""Which model answers from now on."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rich.cells import cell_len

from rune.surface.rows import ModelRow
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.screens.picker import Found, Picker, PickerRow

NO_MODEL: Final = (
    "No model was found. Start Ollama and get one (ollama pull qwen3:8b), or get the small one that Rune "
    "runs itself: rune models fetch-embedded"
)
# The least widths at which a column has room.
_FOR_WINDOW: Final = 46
_FOR_SIZE: Final = 56
_FOR_KIND: Final = 72
_FOR_ABILITIES: Final = 100
_KILO: Final = 1024
_BILLION: Final = 1_000_000_000


class ModelPicker(Picker):
    """Gives the name of a model, None when it was left.

    `load` returns the models and, a sentence each, what kept others from being seen; it may raise RuneError.
    """

    def __init__(
        self, load: Callable[[], Awaitable[tuple[Sequence[ModelRow], Sequence[str]]]], *, current: str = ""
    ) -> None:
        async def rows() -> Found:
            models, notes = await load()
            return Found([_row(model, current) for model in models], notes)

        super().__init__("Models", rows, empty=NO_MODEL, current=current)


def _row(model: ModelRow, current: str) -> PickerRow:
    find = f"{model.name} {model.provider} {' '.join(model.capabilities)}"
    used = bool(current) and model.name == current

    def draw(width: int) -> Line:
        return model_line(model, width, used=used)

    return PickerRow(model.name, find, draw, open=not model.refused)


def model_line(model: ModelRow, width: int, *, used: bool) -> Line:
    """Return a model in at most `width` cells: its name, whether it is in use, what it is, where it runs.

    Which columns there are depends on the width alone, so that those of all rows stand below each other.
    """
    if model.refused:
        name = foreign(model.name, max(width // 2, 8))
        return spread(
            [Span(name, "dim"), Span(SafeText(" · "), "dim"), Span(foreign(model.refused, width), "dim")], [], width
        )
    where = "stand-in" if model.stand_in else "remote" if model.remote else "local"
    kind = " ".join(part for part in (model.parameters, model.quantisation) if part)
    columns = [
        (_FOR_ABILITIES, _column(", ".join(model.capabilities[:8]), 28)),
        (_FOR_KIND, _column(kind, 14)),
        (_FOR_SIZE, SafeText(f"{_bytes(model.size):>8}")),
        (_FOR_WINDOW, SafeText(f"{_tokens(model.window):>6}{' window' if model.window else '       '}")),
    ]
    right = [Span(SafeText(f"{text}  "), "dim") for least, text in columns if width >= least]
    right.append(Span(SafeText(f"{where:<8}"), "dim" if where == "local" else "warning"))
    state = [Span(SafeText("  in use"), "accent")] if used else []
    name = foreign(model.name, max(width - width_of(right) - width_of(state) - 2, 1))
    return spread([Span(name, "strong"), *state], right, width)


def _column(text: str, cells: int) -> SafeText:
    short = foreign(text, cells)
    return SafeText(short + " " * (cells - cell_len(short)))


def _tokens(window: int | None) -> str:
    if window is None:
        return ""
    return f"{window // _KILO}k" if window >= _KILO else str(window)


def _bytes(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / _BILLION:.1f} GB" if size >= _BILLION // 10 else f"{max(size // 1_000_000, 1)} MB"
