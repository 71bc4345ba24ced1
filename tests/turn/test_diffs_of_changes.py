"""/diff over real files, real tools and a real journal."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from rune.errors import UsageError
from tests.store.builders import CONVERSATION
from tests.turn.desk import Desk, a_desk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with a_desk(tmp_path) as desk:
        yield desk


async def test_diff_shows_all_turns_as_one_change_and_nothing_that_was_taken_back(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.begin(2)
    await desk.edit("a.py", "one", "1")
    await desk.write("new.py", "x\n")
    shown = await desk.diff()
    assert shown["a.py"] == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n"
    assert shown["new.py"] == "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"
    await desk.undo()
    assert list(await desk.diff()) == ["a.py"]
    await desk.undo()
    assert await desk.diff() == {}


async def test_diff_says_what_somebody_else_changed(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    assert await desk.notes() == ""
    (desk.folder / "b.py").write_bytes(b"B\nmine\n")
    assert "It was changed since" in await desk.notes()
    assert "+mine" in (await desk.diff())["b.py"]
    await desk.edit("b.py", "B", "C")
    assert "It was changed in between" in await desk.notes()
    (desk.folder / "b.py").unlink()
    assert "It was removed since" in await desk.notes()


async def test_diff_leaves_out_what_only_somebody_else_changed(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.undo()
    (desk.folder / "b.py").write_bytes(b"mine\n")
    assert await desk.diff() == {}


async def test_a_file_that_became_a_binary_one_and_one_whose_form_changed_are_told_in_a_line(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.edit("b.py", "b", "B")
    (desk.folder / "a.py").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (desk.folder / "b.py").write_bytes(b"b\r\n")
    shown = await desk.diff()
    assert shown["a.py"] == "a.py: UTF-8, mixed line ends -> not a text file: PNG image, 9 bytes\n"
    assert shown["b.py"] == "b.py: only its form changes (UTF-8 -> UTF-8, CRLF)\n"


async def test_secrets_are_masked_in_what_is_shown_and_stored(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        secret = "sk-" + "c4n4ry" * 6
        await desk.begin(1)
        await desk.write("new.py", f"key = {secret!r}\n")
        assert secret not in str(await desk.diff())
        (desk.folder / "new.py").write_text(f"key = {secret!r}\n# mine\n")
        undone = await desk.undo()
        assert secret not in str(undone.files)
        stored = (await desk.spine.intents.results(CONVERSATION))[-1]
        assert secret not in str(stored)


async def test_git_is_not_touched(desk: Desk) -> None:
    def git(*words: str) -> bytes:
        names = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
        return subprocess.run(["git", *names, *words], cwd=desk.folder, check=True, capture_output=True).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    git("add", "b.py")
    state = {path: path.read_bytes() for path in sorted((desk.folder / ".git").rglob("*")) if path.is_file()}
    await desk.undo()
    assert {path: path.read_bytes() for path in sorted((desk.folder / ".git").rglob("*")) if path.is_file()} == state
    assert git("show", ":b.py") == b"B\n"


async def test_a_conversation_without_changes_has_nothing_to_take_back(desk: Desk) -> None:
    with pytest.raises(UsageError, match="nothing to take back"):
        await desk.undo()
    assert await desk.diff() == {}
