"""Which model answers from now on."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from rich.cells import cell_len

from rune.surface.rows import ModelRow
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.screens.picker import Found, Picker, PickerRow

NO_MODEL: Final = (
    "No model was found. Start Ollama and get one (ollama pull qwen3:4b), or get the small one that Rune "
    "runs itself: rune models fetch-embedded"
)
_LONGEST_NAME: Final = 48  # a longer one does not take the other columns away
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
            table = ModelTable(models, current=current)
            return Found([_row(model, table) for model in models], notes)

        super().__init__("Models", rows, empty=NO_MODEL, current=current)


class ModelTable:
    """Draws the rows of a list of models: each column is as wide as what stands in it, and where the room does not do
    the names have it, and what a model is able to do, its kind, its window and its size go, in this order.
    """

    def __init__(self, models: Sequence[ModelRow], *, current: str = "") -> None:
        self._current = current
        able = [model for model in models if not model.refused]
        self._columns = [_Column(of, max((cell_len(of(model)) for model in able), default=0)) for of in _COLUMNS]
        self._name = max((width_of(self._left(model, _LONGEST_NAME)) for model in able), default=0)

    def line(self, model: ModelRow, width: int) -> Line:
        """Return a model in at most `width` cells: its name, whether it is in use, what it is, where it runs."""
        if model.refused:
            name = foreign(model.name, max(width // 2, width - len(model.refused) - 3, 1))
            said = [Span(SafeText(" · "), "dim"), Span(foreign(model.refused, width), "dim")]
            return spread([Span(name, "dim"), *said], [], width)
        columns = list(self._columns)
        while len(columns) > 1 and self._name + sum(column.room for column in columns) > width:
            del columns[0]
        right = [Span(SafeText(""))]
        for column in columns:
            text = column.of(model)
            style = "warning" if column.of is _where and text != "local" else "dim"
            missing = SafeText(" " * (column.cells - cell_len(text)))
            right += [Span(SafeText("  " if column.cells else "")), Span(text, style), Span(missing)]
        name = self._left(model, max(width - width_of(right), 1))
        return spread(name, right, width)

    def _left(self, model: ModelRow, cells: int) -> list[Span]:
        used = bool(self._current) and model.name == self._current
        state = [Span(SafeText("  in use"), "accent")] if used else []
        return [Span(foreign(model.name, max(cells - width_of(state), 1)), "strong"), *state]


class _Column(NamedTuple):
    """What of a model stands in it, and the cells that the widest takes; with none it is not there."""

    of: Callable[[ModelRow], SafeText]
    cells: int

    @property
    def room(self) -> int:
        """The cells that it takes with those before it."""
        return self.cells + 2 if self.cells else 0


def _row(model: ModelRow, table: ModelTable) -> PickerRow:
    find = f"{model.name} {model.provider} {' '.join(model.capabilities)}"
    return PickerRow(model.name, find, partial(table.line, model), open=not model.refused)


def _abilities(model: ModelRow) -> SafeText:
    return foreign(", ".join(model.capabilities[:8]), 28)


def _kind(model: ModelRow) -> SafeText:
    return foreign(" ".join(part for part in (model.parameters, model.quantisation) if part), 14)


def _window(model: ModelRow) -> SafeText:
    return SafeText(f"{_tokens(model.window):>5} window" if model.window else "")


def _size(model: ModelRow) -> SafeText:
    return SafeText(f"{_bytes(model.size):>7}" if model.size else "")


def _where(model: ModelRow) -> SafeText:
    return SafeText("stand-in" if model.stand_in else "remote" if model.remote else "local")


_COLUMNS: Final = (_abilities, _kind, _window, _size, _where)


def _tokens(window: int | None) -> str:
    if window is None:
        return ""
    return f"{window // _KILO}k" if window >= _KILO else str(window)


def _bytes(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / _BILLION:.1f} GB" if size >= _BILLION // 10 else f"{max(size // 1_000_000, 1)} MB"
