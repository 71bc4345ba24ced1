"""write_file: new files, and whole replacement of what was read."""

import os
import stat
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, DigestMismatchError, FileUnavailableError, InvalidArgumentsError
from rune.records.tools import FileTouch
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.write_file import WriteFile
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace
from tests.tools.workspace import sha

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


async def rewritten(place: Workplace, data: bytes, content: str) -> bytes:
    """Write a file, read it as a model does, write it anew and return what it holds."""
    path = place.folder / "f.txt"
    path.write_bytes(data)
    if data:
        await done(ReadFile(), place, path="f.txt")
    await done(WriteFile(), place, path="f.txt", content=content)
    return path.read_bytes()


async def test_a_new_file_is_planned_whole_and_not_made_yet(place: Workplace) -> None:
    made = await plan(WriteFile(), place, path="src/new.py", content="a = 1\nb = 2\n")
    path = place.folder / "src" / "new.py"
    assert not path.parent.exists()
    assert made.effect == "src/new.py (new file, 2 lines)"
    assert made.detail.startswith("--- /dev/null\n+++ b/src/new.py\n")
    assert "+a = 1\n+b = 2\n" in made.detail
    assert made.preconditions == {"path": str(path), "before": "absent", "after": sha(b"a = 1\nb = 2\n")}
    assert (made.touches, made.rule) == ((path,), "edit_file(src/**)")


async def test_a_new_file_is_made_with_the_folders_above_it(place: Workplace) -> None:
    result = await done(WriteFile(), place, path="a/b/c/new.py", content="a = 1\n")
    path = place.folder / "a" / "b" / "c" / "new.py"
    assert path.read_bytes() == b"a = 1\n"
    assert result.files == (FileTouch(path=str(path), before=None, after=sha(b"a = 1\n")),)
    assert result.text == "Wrote a/b/c/new.py: a new file, 1 line, 6 bytes."


async def test_a_new_file_is_never_put_over_one_that_came_meanwhile(place: Workplace) -> None:
    made = await plan(WriteFile(), place, path="new.py", content="mine\n")
    (place.folder / "new.py").write_bytes(b"theirs\n")
    with pytest.raises(DigestMismatchError):
        await WriteFile().execute(made, place, watch())
    assert (place.folder / "new.py").read_bytes() == b"theirs\n"


async def test_a_file_that_was_not_read_is_not_replaced(place: Workplace) -> None:
    (place.folder / "f.txt").write_bytes(b"old\n")
    with pytest.raises(InvalidArgumentsError, match="have not read it") as refused:
        await plan(WriteFile(), place, path="f.txt", content="new\n")
    assert "read_file path=f.txt" in refused.value.hint


async def test_a_file_that_changed_since_it_was_read_is_not_replaced(place: Workplace) -> None:
    (place.folder / "f.txt").write_bytes(b"old\n")
    await done(ReadFile(), place, path="f.txt")
    (place.folder / "f.txt").write_bytes(b"newer\n")
    with pytest.raises(DigestMismatchError, match="has changed since you read it"):
        await plan(WriteFile(), place, path="f.txt", content="new\n")
    assert (place.folder / "f.txt").read_bytes() == b"newer\n"


async def test_a_file_that_was_read_is_replaced_and_what_it_held_is_kept(place: Workplace) -> None:
    assert await rewritten(place, b"old\nsame\n", "new\nsame\n") == b"new\nsame\n"
    assert place.undo.get(sha(b"old\nsame\n")) == b"old\nsame\n"


async def test_a_file_that_the_model_wrote_itself_may_be_written_again(place: Workplace) -> None:
    await done(WriteFile(), place, path="f.txt", content="one\n")
    await done(EditFile(), place, path="f.txt", edits=[{"search": "one", "replace": "two"}])
    result = await done(WriteFile(), place, path="f.txt", content="three\n")
    assert result.summary == "+1 -1"


async def test_the_same_content_again_is_said_and_not_written(place: Workplace) -> None:
    await done(WriteFile(), place, path="f.txt", content="one\n")
    with pytest.raises(InvalidArgumentsError, match="holds exactly this already"):
        await plan(WriteFile(), place, path="f.txt", content="one\n")


@pytest.mark.parametrize(
    ("data", "content", "after"),
    [
        pytest.param(b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n", id="crlf"),
        pytest.param(b"a\r\nb\nc\n", "a\nx\nc\n", b"a\r\nx\nc\n", id="mixed ends"),
        pytest.param(b"a\nb\n", "a\nc", b"a\nc\n", id="its final newline is kept"),
        pytest.param(b"a\nb", "a\nc", b"a\nc", id="none is kept as none"),
        pytest.param(b"a\nb", "a\nb\n", b"a\nb\n", id="one is added that was asked for"),
        pytest.param(b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n", id="byte order mark"),
        pytest.param(b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n", id="never two marks"),
        pytest.param("ä\n".encode("utf-16"), "ö\n", "ö\n".encode("utf-16"), id="utf-16"),
        pytest.param("grün\n".encode("latin-1"), "rötlich\n", "rötlich\n".encode("latin-1"), id="latin-1"),
        pytest.param(b"", "a\n", b"a\n", id="an empty file need not be read"),
        pytest.param(b"a\n", "", b"", id="all taken out"),
        pytest.param("größe ä ö\n".encode() + b"\xff\nb\n", "größe ä ö\n", "größe ä ö\n".encode(), id="damaged"),
    ],
)
async def test_a_replaced_file_keeps_its_form(place: Workplace, data: bytes, content: str, after: bytes) -> None:
    assert await rewritten(place, data, content) == after


async def test_bytes_that_the_model_could_not_see_are_not_written_over(place: Workplace) -> None:
    (place.folder / "f.txt").write_bytes("größe ä ö\n".encode() + b"\xff\nb\n")
    await done(ReadFile(), place, path="f.txt")
    with pytest.raises(InvalidArgumentsError, match="would be lost"):
        await plan(WriteFile(), place, path="f.txt", content="größe ä ö\n\ufffd\nc\n")


@pytest.mark.parametrize("content", ["a\r\nb\r\n", "no end", "", "\ufeffa\n"])
async def test_a_new_file_holds_what_was_given(place: Workplace, content: str) -> None:
    await done(WriteFile(), place, path="new.txt", content=content)
    assert (place.folder / "new.txt").read_bytes() == content.encode()


async def test_the_exec_bit_of_a_replaced_file_is_kept(place: Workplace) -> None:
    path = place.folder / "f.txt"
    path.write_bytes(b"x")
    path.chmod(0o751)
    await rewritten(place, b"#!/bin/sh\n", "#!/bin/sh\ntrue\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


@pytest.mark.parametrize(("content", "said"), [("a\ud800", "U\\+D800"), ("a\0b", "zero byte")])
async def test_what_no_text_file_can_hold_is_refused(place: Workplace, content: str, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said):
        await plan(WriteFile(), place, path="new.txt", content=content)
    assert not (place.folder / "new.txt").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("```python\na = 1\n```\n", "begins and ends with"),
        ("1| a = 1\n2| b = 2\n3|\n", "have numbers"),
        ("a = 2\n# ... rest of the code unchanged ...\n", "left out"),
    ],
)
async def test_what_small_models_wrap_round_a_content_is_not_written(place: Workplace, content: str, said: str) -> None:
    (place.folder / "f.py").write_bytes(b"a = 1\nb = 2\n")
    await done(ReadFile(), place, path="f.py")
    with pytest.raises(InvalidArgumentsError, match=said):
        await plan(WriteFile(), place, path="f.py", content=content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.md", "```python\na = 1\n```\n"),
        ("f.py", "1| a\nb = 2\n"),
        ("f.py", "def f():\n    ...\n"),
        ("f.py", "# ... existing code ...\nx = 1\n"),
    ],
)
async def test_what_only_looks_like_it_is_written(place: Workplace, name: str, content: str) -> None:
    await done(WriteFile(), place, path=name, content=content)
    assert (place.folder / name).read_text() == content
    await done(WriteFile(), place, path=name, content=f"{content}\n")


async def test_a_file_that_was_never_shown_whole_is_not_replaced(place: Workplace) -> None:
    (place.folder / "long.txt").write_text("line\n" * 2001)
    await done(ReadFile(), place, path="long.txt")
    with pytest.raises(InvalidArgumentsError, match="too long to be replaced") as refused:
        await plan(WriteFile(), place, path="long.txt", content="line\n")
    assert "edit_file" in refused.value.hint


async def test_links_second_names_pipes_and_folders_are_refused(place: Workplace) -> None:
    (place.folder / "folder").mkdir()
    (place.folder / "one.py").write_bytes(b"x\n")
    (place.folder / "link.py").symlink_to("one.py")
    (place.folder / "broken.py").symlink_to("../nowhere.py")
    (place.folder / "two").hardlink_to(place.folder / "one.py")
    os.mkfifo(place.folder / "pipe")
    for name in ("link.py", "broken.py", "two", "pipe"):
        with pytest.raises(AccessDeniedError):
            await plan(WriteFile(), place, path=name, content="x\n")
    for name in ("folder", "folder/", "newfolder/", "one.py/below.py"):
        with pytest.raises(FileUnavailableError):
            await plan(WriteFile(), place, path=name, content="x\n")


async def test_a_binary_file_is_not_replaced_by_text(place: Workplace) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0"
    (place.folder / "p.png").write_bytes(data)
    place.seen[place.folder / "p.png"] = sha(data)
    with pytest.raises(FileUnavailableError, match="PNG image"):
        await plan(WriteFile(), place, path="p.png", content="x\n")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "AGENTS.md", ".github/workflows/ci.yml", ".envrc"])
async def test_a_protected_place_asks_also_where_nothing_is_yet(place: Workplace, path: str) -> None:
    made = await plan(WriteFile(), place, path=path, content="x\n")
    assert made.asks != ""
    assert made.rule == ""


@pytest.mark.parametrize("path", ["../new.py", "/usr/new.py", ".env", "", "a\0b", "src/credentials.json"])
async def test_a_place_that_no_tool_may_write_is_refused(place: Workplace, path: str) -> None:
    with pytest.raises((AccessDeniedError, InvalidArgumentsError)):
        await plan(WriteFile(), place, path=path, content="x\n")


async def test_a_name_that_was_shown_by_its_bytes_means_that_file(place: Workplace) -> None:
    path = place.folder / os.fsdecode(b"pr\xffj.txt")
    path.write_bytes(b"old\n")
    await done(ReadFile(), place, path="pr%FFj.txt")
    await done(WriteFile(), place, path="pr%FFj.txt", content="new\n")
    assert [each.name for each in place.folder.iterdir()] == [path.name]
    assert path.read_bytes() == b"new\n"


async def test_a_folder_with_an_odd_name_has_no_rule_that_could_not_be_kept(place: Workplace) -> None:
    (place.folder / os.fsdecode(b"d\xff")).mkdir()
    made = await plan(WriteFile(), place, path=os.fsdecode(b"d\xff/new.txt"), content="x\n")
    assert made.rule == ""
    made.effect.encode()
    made.detail.encode()
