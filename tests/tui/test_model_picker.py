"""A model is found by a few letters; what may not be used is said and not given."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.events import Paste
from textual.pilot import Pilot

from rune.errors import ModelUnavailableError, RuneError
from rune.surface.rows import ModelRow
from rune.tui.lines import MARK
from rune.tui.screens.model_picker import NO_MODEL, ModelPicker, ModelTable
from rune.tui.screens.picker import PickerRows
from rune.tui.widgets.filter_input import FilterInput
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled

QWEN = ModelRow(
    name="qwen3:8b",
    provider="ollama",
    size=5_200_000_000,
    parameters="8.2B",
    quantisation="Q4_K_M",
    window=40_960,
    capabilities=("completion", "tools", "thinking"),
)
GEMMA = ModelRow(name="gemma3:4b", provider="ollama", size=3_300_000_000, window=131_072)
FAR = ModelRow(name="big:400b", provider="ollama", remote=True, refused="it runs elsewhere and remote is not allowed")
SMALL = ModelRow(name="smol:135m", provider="embedded", size=145_000_000, window=8192, stand_in=True)
ALL = (QWEN, GEMMA, FAR, SMALL)


class Answering(SmallApp):
    """Opens the picker and keeps what it gave."""

    def __init__(self, rows: Sequence[ModelRow] = ALL, notes: Sequence[str] = (), **options: Any) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.error: RuneError | None = None
        self.given: list[str | None] = []
        self._rows, self._notes, self._options = rows, notes, options

    async def load(self) -> tuple[Sequence[ModelRow], Sequence[str]]:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self._rows, self._notes

    def pick(self) -> None:
        self.push_screen(ModelPicker(self.load, **self._options), self.given.append)


async def filled(app: Answering, pilot: Pilot[None]) -> None:
    app.pick()
    app.gate.set()
    await settled(app, pilot)


def under_cursor(app: App[None]) -> str:
    return next(row for row in screen_rows(app) if f"{MARK} " in row)


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_at_once_and_fills_in_when_the_models_have_come(size: tuple[int, int]) -> None:
    app = Answering(notes=["http://127.0.0.1:11434 does not answer"], current="gemma3:4b")
    async with app.run_test(size=size) as pilot:
        app.pick()
        await pilot.pause()
        assert "loading …" in screen_text(app)
        app.gate.set()
        await settled(app, pilot)
        assert "loading" not in screen_text(app)
        assert all(row.name in screen_text(app) for row in ALL)
        assert "gemma3:4b  in use" in under_cursor(app)
        assert "11434 does not" in screen_text(app)


def line(model: ModelRow, width: int, *models: ModelRow, current: str = "") -> str:
    row = ModelTable(models or (model,), current=current).line(model, width)
    assert row.cells <= width
    return row.text


def test_a_wide_row_says_what_a_model_is() -> None:
    shown = line(QWEN, 110, *ALL, current="qwen3:8b")
    for part in ("qwen3:8b  in use", "completion, tools, thinking", "8.2B Q4_K_M", "5.2 GB", "40k window", "local"):
        assert part in shown
    assert "stand-in" in line(SMALL, 40, *ALL)


@pytest.mark.parametrize("width", [30, 36, 50, 74, 106])
def test_columns_stand_below_each_other(width: int) -> None:
    rows = [line(model, width, *ALL, current="gemma3:4b") for model in (QWEN, GEMMA, SMALL)]
    assert len({row.index(where) for row, where in zip(rows, ("local", "local", "stand-in"), strict=True)}) == 1
    assert len({max(row.find(" GB "), row.find(" MB ")) for row in rows}) == 1


@pytest.mark.parametrize("width", [36, 50, 74, 106])
def test_no_name_is_cut_while_a_column_beside_it_could_go(width: int) -> None:
    named = ModelRow(name="hf.co/someone/a-long-name", provider="ollama", size=5_200_000_000, window=40_960)
    assert "hf.co/someone/a-long-name" in line(named, width, named, QWEN, GEMMA)
    assert " local" in line(named, width, named, QWEN, GEMMA)


def test_a_column_in_which_nothing_stands_takes_no_room() -> None:
    bare = ModelRow(name="x" * 60, provider="ollama")
    assert line(bare, 74, bare).startswith("x" * 60 + " ")


def test_why_a_model_may_not_be_used_leaves_its_name_the_room_it_needs() -> None:
    long = FAR.__class__(name="n" * 50, provider="ollama", refused="not allowed")
    assert line(long, 74).startswith("n" * 50 + " · not allowed")


@pytest.mark.parametrize(("size", "rows"), [((40, 15), 15), ((80, 24), 9)])
async def test_it_is_as_high_as_what_it_shows(size: tuple[int, int], rows: int) -> None:
    app = Answering(notes=["http://127.0.0.1:11434 does not answer"])
    async with app.run_test(size=size) as pilot:
        await filled(app, pilot)
        box = app.screen.query_one("#picker")
        assert box.region.y == 0
        assert box.region.height <= rows
        assert all(row.name in screen_text(app) for row in ALL)
        before = box.region
        await pilot.press("q", "w")
        await pilot.pause()
        assert box.region == before
        await pilot.resize_terminal(60, 7)
        await pilot.pause()
        assert box.region.height <= 7
        assert "qwen3:8b" in screen_text(app)


async def test_enter_gives_the_model_under_the_cursor() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.given == ["gemma3:4b"]


async def test_typing_narrows_and_what_was_typed_early_counts() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        app.pick()
        await pilot.pause()
        await pilot.press("s", "m")
        app.gate.set()
        await settled(app, pilot)
        await pilot.press("o")
        await pilot.pause()
        assert "qwen3" not in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.given == ["smol:135m"]


async def test_what_may_not_be_used_says_why_and_is_not_given() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        assert "big:400b · it runs elsewhere" in screen_text(app)
        await pilot.press("b", "i", "g", "enter")
        await pilot.pause()
        assert app.given == []
        await pilot.press("escape")
        await pilot.pause()
        assert app.given == [None]


async def test_nothing_that_matches_is_said() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press("z", "question_mark", "enter")
        await pilot.pause()
        assert "nothing here matches “z?”" in screen_text(app)
        assert app.given == []


async def test_what_is_not_there_is_offered_to_be_fetched() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press(*"qwen3:4")
        await pilot.pause()
        assert "fetch qwen3:4 " in screen_text(app)
        await pilot.press("b", "enter")
        await pilot.pause()
        assert app.given == ["pull qwen3:4b"]


@pytest.mark.parametrize("typed", ["gemma3:4b", "two words", "x", "https://ollama.com/library/qwen3", "big"])
async def test_what_is_there_and_what_is_no_name_is_not_offered(typed: str) -> None:
    app = Answering(rows=[*ALL, ModelRow(name="big:latest", provider="ollama")])
    async with app.run_test() as pilot:
        await filled(app, pilot)
        app.screen.query_one(FilterInput).value = typed
        await pilot.pause()
        assert "fetch " not in screen_text(app)


async def test_what_matches_stands_before_what_could_be_fetched() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press(*"gem")
        await pilot.pause()
        assert "gemma3:4b" in under_cursor(app)
        assert "fetch gem " in screen_text(app)


async def test_all_of_one_model_can_be_read() -> None:
    async def details(name: str) -> str:
        return f"everything about {name}"

    app = Answering(details=details)
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press("down", "f3")
        await settled(app, pilot)
        assert "everything about gemma3:4b" in screen_text(app)
        await pilot.press("escape", "enter")
        await pilot.pause()
        assert app.given == ["gemma3:4b"]


async def test_a_model_is_removed_when_it_was_asked_for_twice() -> None:
    removed: list[str] = []

    async def remove(name: str) -> str:
        removed.append(name)
        return f"removed {name}; 3.3 GB are free again"

    app = Answering(remove=remove)
    async with app.run_test() as pilot:
        await filled(app, pilot)
        for keys in (["ctrl+d", "escape"], ["ctrl+d", "down", "ctrl+d", "x", "backspace"]):
            await pilot.press(*keys)
            await pilot.pause()
            assert removed == []
            assert "from its server's disk?" not in screen_text(app)
        await pilot.press("down", "ctrl+d")
        await pilot.pause()
        assert "Remove gemma3:4b (3.3 GB) from its server's disk? Ctrl+D again removes it" in screen_text(app)
        await pilot.press("ctrl+d")
        await settled(app, pilot)
        assert removed == ["gemma3:4b"]
        assert "removed gemma3:4b; 3.3 GB are free again" in screen_text(app)
        assert app.given == []


@pytest.mark.parametrize("key", ["f3", "ctrl+d"])
async def test_what_cannot_be_shown_or_removed_says_why(key: str) -> None:
    async def fails(name: str) -> str:
        raise ModelUnavailableError(f"no server for {name}", hint="Start it.")

    app = Answering(details=fails, remove=fails)
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.press(key, *["ctrl+d"] * (key == "ctrl+d"))
        await settled(app, pilot)
        assert "no server for qwen3:8b. Start it." in screen_text(app)


def test_a_row_says_what_is_loaded_and_how_the_model_acts() -> None:
    facts = {"loaded": True, "loaded_window": 16_384, "on_gpu": 0.4, "protocol": "constrained"}
    shown = line(msgspec.structs.replace(QWEN, **facts), 130)
    assert "● 16k 40% GPU" in shown
    assert "constrained" in shown
    assert "●" not in line(QWEN, 130)
    narrow = line(msgspec.structs.replace(QWEN, **facts), 50)
    assert "● 16k 40% GPU" in narrow
    assert "constrained" not in narrow


@pytest.mark.parametrize("size", SIZES)
async def test_without_any_model_it_says_what_to_do(size: tuple[int, int]) -> None:
    app = Answering(rows=())
    async with app.run_test(size=size) as pilot:
        await filled(app, pilot)
        assert NO_MODEL[:20] in screen_text(app)
        assert "fetch-embedded" in screen_text(app)


@pytest.mark.parametrize("size", SIZES)
async def test_what_went_wrong_is_said_inside(size: tuple[int, int]) -> None:
    app = Answering()
    app.error = ModelUnavailableError("no server at [127.0.0.1]", hint="Start it: ollama serve")
    async with app.run_test(size=size) as pilot:
        await filled(app, pilot)
        assert "no server at [127.0.0.1]" in screen_text(app)
        assert "Start it: ollama serve" in screen_text(app)
        assert app.is_running


async def test_two_thousand_models_are_narrowed_by_looking_at_what_is_seen_only() -> None:
    rows = [ModelRow(name=f"model-{number}", provider="ollama") for number in range(2000)]
    app = Answering(rows=rows)
    async with app.run_test(size=(40, 15)) as pilot:
        await filled(app, pilot)
        await pilot.press(*"1999", "enter")
        await pilot.pause()
        assert app.given == ["model-1999"]


async def test_the_cursor_stays_in_sight() -> None:
    rows = [ModelRow(name=f"model-{number}", provider="ollama") for number in range(100)]
    app = Answering(rows=rows, current="model-50")
    async with app.run_test(size=(40, 15)) as pilot:
        await filled(app, pilot)
        assert "model-50" in under_cursor(app)
        await pilot.press("pagedown", "pagedown", "down", "up", "up")
        assert MARK in screen_text(app)
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert MARK in screen_text(app)
        await pilot.press(*["pageup"] * 30)
        assert "model-0 " in under_cursor(app)


async def test_it_begins_at_the_top_where_the_one_in_use_is_in_sight_anyway() -> None:
    rows = [ModelRow(name=f"model-{number}", provider="ollama") for number in range(100)]
    app = Answering(rows=rows, current="model-5")
    app.gate.set()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        assert "model-5 " in under_cursor(app)
        assert "model-0 " in screen_text(app)


async def test_a_click_gives_the_row() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        await pilot.click(PickerRows, offset=(5, 1))
        await pilot.pause()
        assert app.given == ["gemma3:4b"]


async def test_hostile_names_stay_text() -> None:
    rows = [ModelRow(name=text, provider=text, parameters=text, capabilities=(text,)) for text in HOSTILE]
    rows += [ModelRow(name=text, provider="ollama", refused=text) for text in HOSTILE]
    app = Answering(rows=rows, notes=HOSTILE[:4], current=HOSTILE[0])
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(app, pilot)
        assert all(is_safe(row) for row in screen_rows(app))
        await pilot.press("enter")
        await pilot.pause()
        assert app.given == [HOSTILE[0]]


async def test_what_is_pasted_into_the_filter_is_safe() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await filled(app, pilot)
        entry = app.screen.query_one(FilterInput)
        entry.post_message(Paste("\x1b]52;c;aGk=\x07\u202e"))
        await pilot.pause()
        assert entry.value == "\\x1b]52;c;aGk=\\x07<U+202E>"
        assert all(is_safe(row) for row in screen_rows(app))
        entry.post_message(Paste("[/x]" * 2000))
        await pilot.pause()
        assert all(is_safe(row) for row in screen_rows(app))


@given(name=st.text(min_size=1, max_size=60), refused=st.text(max_size=30), width=st.integers(1, 140))
def test_any_model_fits_and_is_safe(name: str, refused: str, width: int) -> None:
    row = ModelRow(name=name, provider="p", refused=refused, parameters=name, capabilities=(name,))
    assert is_safe(line(row, width, current=name))
