"""lint and format_code: the project's own, with real ones; what a formatter changes can be taken back."""

import hashlib
from pathlib import Path

import pytest

from rune.errors import (
    AccessDeniedError,
    FileUnavailableError,
    InvalidArgumentsError,
    StorageUnavailableError,
    ToolError,
)
from rune.records.tools import FileTouch
from rune.tools.executors.format_code import MOST_FILES, FormatCode
from rune.tools.executors.lint import Lint
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace
from tests.tools.projects import give_venv, write

LINT, FORMAT = Lint(), FormatCode()
UGLY = "x  =  1\n"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    this = workplace(tmp_path)
    give_venv(this.folder, ruff=True)
    return this


async def test_the_linter_s_findings_are_a_result(place: Workplace) -> None:
    write(place.folder, {"ruff.toml": "", "a.py": "import os\n", "b.py": "x = 1\n"})
    result = await done(LINT, place)
    assert (result.outcome, result.exit_code) == ("failed", 1)
    assert result.summary.startswith("Found 1 error. (ruff, exit code 1")
    assert "F401" in result.text
    result = await done(LINT, place, path="b.py")
    assert (result.outcome, result.summary.split(" (")[0]) == ("ok", "All checks passed!")
    assert result.files == ()


@pytest.mark.parametrize("tool", [LINT, FORMAT])
async def test_a_path_outside_or_not_there_is_refused(place: Workplace, tool: Lint | FormatCode) -> None:
    write(place.folder, {"a.py": ""})
    (place.folder / "out").symlink_to(place.folder.parent)
    for path in ("..", "/etc", "out"):
        with pytest.raises(AccessDeniedError):
            await plan(tool, place, path=path)
    with pytest.raises(FileUnavailableError):
        await plan(tool, place, path="nowhere/a.py")
    with pytest.raises(InvalidArgumentsError):
        await plan(tool, place, path="a\0b")


async def test_a_name_like_an_option_is_given_as_a_path(place: Workplace) -> None:
    write(place.folder, {"--fix.py": "import os\n"})
    result = await done(LINT, place, path="--fix.py")
    assert result.exit_code == 1
    assert (place.folder / "--fix.py").read_text() == "import os\n"


async def test_formatting_tells_what_changed_and_keeps_what_was_there(place: Workplace) -> None:
    write(place.folder, {"a.py": UGLY, "src/b.py": UGLY, "good.py": "x = 1\n", ".tools/c.py": UGLY})
    this = await plan(FORMAT, place)
    assert "/undo: what 4 files hold is kept before" in this.detail
    result = await FORMAT.execute(this, place, watch())
    assert result.outcome == "ok"
    assert "changed: .tools/c.py, a.py, src/b.py" in result.text
    assert result.summary.startswith("3 files reformatted")
    assert set(result.files) == {
        FileTouch(path=f"{place.folder}/{name}", before=sha(UGLY), after=sha("x = 1\n"))
        for name in (".tools/c.py", "a.py", "src/b.py")
    }
    assert place.undo.get(sha(UGLY)) == UGLY.encode()


async def test_one_file_is_formatted_alone(place: Workplace) -> None:
    write(place.folder, {"a.py": UGLY, "b.py": UGLY})
    (place.folder / "link").symlink_to(".")
    result = await done(FORMAT, place, path="link/a.py")
    assert [touch.path for touch in result.files] == [f"{place.folder}/a.py"]
    assert (place.folder / "b.py").read_text() == UGLY
    assert "no file changed" in (await done(FORMAT, place, path="./a.py")).text


async def test_what_a_failed_formatter_changed_is_told_too(place: Workplace) -> None:
    write(place.folder, {"a.py": UGLY, "b.py": "def (\n"})
    result = await done(FORMAT, place)
    assert result.outcome == "failed"
    assert [touch.path for touch in result.files] == [f"{place.folder}/a.py"]


async def test_more_files_than_are_kept_cannot_be_taken_back_and_that_is_said_before(place: Workplace) -> None:
    write(place.folder, {f"m/a{number}.py": "" for number in range(MOST_FILES + 1)})
    write(place.folder, {"few/a.py": UGLY})
    this = await plan(FORMAT, place)
    assert "/undo: it cannot be taken back" in this.detail
    result = await FORMAT.execute(this, place, watch())
    assert "cannot be taken back" in result.text
    assert result.files == ()
    assert "what 1 file hold" in (await plan(FORMAT, place, path="few")).detail


async def test_a_script_of_which_nothing_is_known_cannot_be_taken_back(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    write(place.folder, {"Makefile": "format:\n\ttrue\n"})
    assert "cannot be taken back" in (await plan(FORMAT, place)).detail


async def test_where_nothing_can_be_kept_nothing_is_formatted(place: Workplace) -> None:
    write(place.folder, {"a.py": UGLY})
    this = await plan(FORMAT, place)
    write(place.folder.parent, {"home/undo": "a file where a folder is needed"})
    with pytest.raises(StorageUnavailableError):
        await FORMAT.execute(this, place, watch())
    assert (place.folder / "a.py").read_text() == UGLY


@pytest.mark.parametrize("tool", [LINT, FORMAT])
async def test_where_there_is_none_it_says_so(tmp_path: Path, tool: Lint | FormatCode) -> None:
    with pytest.raises(ToolError, match="Looked for"):
        await plan(tool, workplace(tmp_path))
