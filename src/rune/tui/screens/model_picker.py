"""Which model answers from now on."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from rune.errors import RuneError, UsageError
from rune.surface.model_text import gpu_text, tokens_text
from rune.surface.pulling import check_name
from rune.surface.rows import ModelRow
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread, width_of
from rune.tui.hints import as_typed, in_the_app
from rune.tui.lines import Line, Span
from rune.tui.screens.help import HelpScreen
from rune.tui.screens.picker import KEYS, Found, Picker, PickerRow, PickerRows

NO_MODEL: Final = (
    "No model was found. Start Ollama and get one (`ollama pull qwen3:4b`), or get the small one that Rune "
    "runs itself: `rune models fetch-embedded`"
)
_ASKS: Final = "type to narrow, or the name of a model to fetch"
_LEAST_NAME: Final = 2
_LONGEST_NAME: Final = 48  # a longer one does not take the other columns away
_KILO: Final = 1024
_BILLION: Final = 1_000_000_000


class ModelPicker(Picker):
    """Gives what is to stand behind `/model`: the name of a model, or `pull NAME` for one that is not there; None when
    it was left.

    `load` returns the models and, a sentence each, what kept others from being seen; it may raise RuneError, and so may
    `details`, which gives everything about one as text, and `remove`, which says what came of it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f3", "details", "Details", show=False, priority=True),
        Binding("ctrl+d", "remove", "Remove", show=False, priority=True),
    ]

    def __init__(
        self,
        load: Callable[[], Awaitable[tuple[Sequence[ModelRow], Sequence[str]]]],
        *,
        current: str = "",
        details: Callable[[str], Awaitable[str]] | None = None,
        remove: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        async def rows() -> Found:
            models, notes = await load()
            self._models = {model.name: model for model in models}
            table = ModelTable(models, current=current)
            return Found([_row(model, table) for model in models], notes)

        keys = [("f3", " shows all of one")] * (details is not None) + [("ctrl+d", " removes")] * (remove is not None)
        super().__init__("Models", rows, empty=as_typed(NO_MODEL), current=current, asks=_ASKS, keys=(*keys, *KEYS))
        self._details = details
        self._remove = remove
        self._models: dict[str, ModelRow] | None = None
        self._doubted = ""  # the model that another Ctrl+D removes
        self._note = ("", "")

    def action_details(self) -> None:
        """Show everything about the model under the cursor."""
        if self._details is not None and (model := self._at_cursor()) is not None:
            self.run_worker(self._show_details(self._details(model.name), model.name), name="details")

    async def _show_details(self, text: Awaitable[str], name: str) -> None:
        try:
            shown = HelpScreen("All of one model", await text)
        except RuneError as error:
            self._tell(_words(error), "bad")
        else:
            self.app.push_screen(shown)  # pyright: ignore[reportUnknownMemberType]  # an app of any type there

    def action_remove(self) -> None:
        """Ask whether the model under the cursor shall be removed; asked for it, remove it."""
        if self._remove is None or (model := self._at_cursor()) is None:
            return
        if self._doubted == model.name:
            self._tell(f"removing {model.name} ...", "dim")
            self.run_worker(self._do_remove(self._remove(model.name)), name="remove")
            return
        size = f" ({_bytes(model.size)})" if model.size else ""
        self._tell(
            f"Remove {model.name}{size} from its server's disk? Ctrl+D again removes it, Esc keeps it.", "warning"
        )
        self._doubted = model.name

    async def _do_remove(self, removing: Awaitable[str]) -> None:
        try:
            said, style = await removing, "strong"
        except RuneError as error:
            said, style = _words(error), "bad"
        await self._fill()
        self._tell(said, style)

    def action_move(self, by: int) -> None:
        """Go to another row; what was asked of this one is answered with no."""
        self._tell("", "")
        super().action_move(by)

    def action_page(self, by: int) -> None:
        """Go a page on, likewise."""
        self._tell("", "")
        super().action_page(by)

    def action_leave(self) -> None:
        """Keep the model that was to be removed, else choose nothing."""
        if self._doubted:
            self._tell("", "")
        else:
            super().action_leave()

    def _narrowed(self) -> None:
        self._doubted, self._note = "", ("", "")
        super()._narrowed()

    def _tell(self, text: str, style: str) -> None:
        """Say this below the rows, which stay as they are; whatever was asked there is asked no longer."""
        changed = self._note != (text, style)
        self._doubted, self._note = "", (text, style)
        if changed:
            self._say(self._typed(), any_shown=self.query_one(PickerRows).under_cursor is not None)
            self._fit()

    def _said(self, query: str, *, any_shown: bool) -> Sequence[tuple[str, str]]:
        return [self._note, *super()._said(query, any_shown=any_shown)]

    def _besides(self, query: str) -> Sequence[PickerRow]:
        """Offer to fetch what was typed, where that can be the name of a model and none here is called so."""
        if self._models is None or len(query.strip()) < _LEAST_NAME:
            return ()
        try:
            wanted = check_name(query)
        except UsageError:  # no name: whoever goes on typing may yet make it one
            return ()
        if wanted in self._models or f"{wanted}:latest" in self._models:
            return ()
        return (PickerRow(f"pull {wanted}", "", partial(_fetch_line, wanted)),)

    def _at_cursor(self) -> ModelRow | None:
        row = self.query_one(PickerRows).under_cursor
        return (self._models or {}).get(row.name) if row is not None else None


class ModelTable:
    """Draws the rows of a list of models: each column is as wide as what stands in it, and where the room does not do
    the names have it, and how a model acts, what it is able to do, its kind, its window, its size and whether it is
    loaded go, in this order.
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


def _fetch_line(name: str, width: int) -> Line:
    where = [Span(SafeText("   from the model server; esc stops it"), "dim")]
    left = [Span(SafeText("fetch "), "accent"), Span(foreign(name, max(width - len("fetch "), 1)), "strong")]
    return spread(left, where if width_of(left) + width_of(where) <= width else [], width)


def _words(error: RuneError) -> str:
    return f"{error.message}. {in_the_app(error.hint)}" if error.hint else error.message


def _acts(model: ModelRow) -> SafeText:
    return SafeText(model.protocol or "")


def _loaded(model: ModelRow) -> SafeText:
    if not model.loaded:
        return SafeText("")
    facts = ("●", tokens_text(model.loaded_window) if model.loaded_window else "", gpu_text(model.on_gpu))
    return SafeText(" ".join(fact for fact in facts if fact))


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


_COLUMNS: Final = (_acts, _abilities, _kind, _window, _size, _loaded, _where)


def _tokens(window: int | None) -> str:
    if window is None:
        return ""
    return f"{window // _KILO}k" if window >= _KILO else str(window)


def _bytes(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / _BILLION:.1f} GB" if size >= _BILLION // 10 else f"{max(size // 1_000_000, 1)} MB"
