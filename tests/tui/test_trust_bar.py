"""That there is something to decide about a folder's files is said in one row, which never takes the keyboard."""

from pathlib import Path

import pytest
from textual.widgets import Input

from rune.tui.widgets.trust_bar import TrustBar, changed_paths, trust_lines
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text
from tests.tui.trust_folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def text(folder: Folder, width: int = 80) -> str:
    (row,) = trust_lines(folder.status(), width)
    assert row.cells <= width
    return row.text.rstrip()


def test_one_file_is_named_with_what_holds_and_the_key_that_decides(folder: Folder) -> None:
    (folder.path / ".rune/config.yaml").unlink()
    shown = text(folder)
    assert shown.startswith(" AGENTS.md would instruct Rune here; it is not read  ")
    assert shown.endswith("  f2 looks and decides")
    assert len(shown) == 79


def test_several_files_are_named_as_far_as_there_is_room_and_counted(folder: Folder) -> None:
    for name in "abc":
        folder.write(f".rune/{name}.yaml", "x")
    assert text(folder).startswith(" AGENTS.md, .rune/a.yaml and 3 more would instruct Rune; not read ")
    assert text(folder, 100).startswith(" AGENTS.md and 4 more would instruct Rune here; they are not read ")
    assert text(folder, 160).startswith(" AGENTS.md, .rune/a.yaml, .rune/b.yaml and 2 more would instruct Rune here; ")


def test_a_change_names_what_changed_only(folder: Folder) -> None:
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "# Other rules\n")
    assert text(folder).startswith(" AGENTS.md changed since you trusted it; it is not read  ")
    assert text(folder).endswith("f2 looks and decides")
    assert text(folder, 40) == " AGENTS.md changed; not read         f2"


def test_a_line_of_a_file_cannot_pass_for_the_name_of_one(folder: Folder) -> None:
    folder.write("AGENTS.md", "-- trusted/harmless.md\nx\n")
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "++ now/harmless.md\nx\n")
    assert changed_paths(folder.status()) == ("AGENTS.md",)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 160])
@pytest.mark.parametrize("many", [1, 2, 12])
@pytest.mark.parametrize("changed", [True, False])
def test_however_narrow_it_names_a_file_and_the_key(folder: Folder, width: int, many: int, changed: bool) -> None:
    (folder.path / ".rune/config.yaml").unlink()
    if changed:
        folder.book.grant(folder.status())
        folder.write("AGENTS.md", "# Other rules\n")
    for number in range(1, many):
        folder.write(f".rune/{number}.yaml", "x")
    shown = text(folder, width)
    assert shown.startswith(" AGENT")
    assert " f2" in shown
    assert ("changed" if changed else "not read") in shown or width < 40


@pytest.mark.parametrize("size", SIZES)
async def test_it_takes_one_row_and_leaves_the_keyboard_where_it_is(folder: Folder, size: tuple[int, int]) -> None:
    bar, prompt = TrustBar(), Input()
    app = SmallApp(bar, prompt)
    async with app.run_test(size=size) as pilot:
        assert not bar.display
        prompt.focus()
        bar.ask(folder.status())
        await pilot.pause()
        assert bar.size.height == 1
        assert not bar.can_focus
        await pilot.press("h", "i", "enter")
        assert prompt.value == "hi"
        assert "f2" in screen_text(app)
        bar.ask(None)
        await pilot.pause()
        assert not bar.display


async def test_where_nothing_is_to_be_decided_nothing_is_said(folder: Folder) -> None:
    bar = TrustBar()
    app = SmallApp(bar)
    async with app.run_test() as pilot:
        bar.ask(folder.book.grant(folder.status()))
        await pilot.pause()
        assert not bar.display


async def test_hostile_names_stay_text(folder: Folder) -> None:
    (folder.path / "AGENTS.md").unlink()
    bar = TrustBar()
    app = SmallApp(bar)
    async with app.run_test(size=(40, 15)) as pilot:
        for name in HOSTILE[:6]:
            folder.write(f".rune/{name.replace('/', '_')}.yaml", "x")
            bar.ask(folder.status())
            await pilot.pause()
            assert all(is_safe(row) for row in screen_rows(app))
            assert "f2" in screen_text(app)
