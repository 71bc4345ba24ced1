import os
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, FileUnavailableError
from rune.tools.executors.list_directory import ListDirectory
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, workplace

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


async def listed(place: Workplace, path: str = ".") -> list[str]:
    return (await done(ListDirectory(), place, path=path)).text.splitlines()


async def test_a_folder_is_listed_with_sizes_and_what_is_left_out_is_named(place: Workplace) -> None:
    for name in ("src", ".git", "node_modules", "build", ".github"):
        (place.folder / name).mkdir()
    for name, size in {"a.py": 12, "big.txt": 3_400, "x.log": 0, ".env": 7}.items():
        (place.folder / name).write_bytes(b"x" * size)
    (place.folder / ".gitignore").write_text("build/\n*.log\n")
    (place.folder / "link").symlink_to("src")
    os.mkfifo(place.folder / "pipe")
    assert await listed(place) == [
        ".env  7 bytes",
        ".gitignore  13 bytes",
        "a.py  12 bytes",
        "big.txt  3.4 KB",
        "link (link)",
        "pipe (no regular file)",
        "src/",
        "[left out as hidden, generated or by .gitignore: .git/, .github/, build/, node_modules/, x.log]",
    ]


async def test_a_subfolder_obeys_the_files_above_it(place: Workplace) -> None:
    (place.folder / "src" / "deep").mkdir(parents=True)
    (place.folder / ".gitignore").write_text("*.log\n/src/deep/*.tmp\n")
    (place.folder / "src" / ".gitignore").write_text("!keep.log\n")
    for name in ("a.log", "keep.log", "b.tmp", "c.py"):
        (place.folder / "src" / "deep" / name).touch()
    assert await listed(place, "src/deep/") == [
        "c.py  0 bytes",
        "keep.log  0 bytes",
        "[left out as hidden, generated or by .gitignore: a.log, b.tmp]",
    ]


async def test_a_folder_that_is_left_out_is_listed_when_it_is_named(place: Workplace) -> None:
    (place.folder / "node_modules" / "x").mkdir(parents=True)
    assert await listed(place, "node_modules") == ["x/"]


async def test_many_names_are_cut_with_their_number(place: Workplace) -> None:
    for number in range(612):
        (place.folder / f"f{number:03}").touch()
    lines = await listed(place)
    assert len(lines) == 501
    assert lines[-1] == "[112 more; glob_files path=. finds names by pattern]"


async def test_each_odd_name_is_one_line(place: Workplace) -> None:
    for name in (b"two\nlines", b"caf\xe9", "\u202egnp".encode(), b"\x1b[31m"):
        (place.folder / os.fsdecode(name)).touch()
    lines = await listed(place)
    assert lines == [r"\x1b[31m  0 bytes", "caf%E9  0 bytes", r"two\nlines  0 bytes", "<U+202E>gnp  0 bytes"]


async def test_an_empty_folder_a_file_and_a_missing_one_are_told(place: Workplace) -> None:
    assert await listed(place) == [". is an empty folder."]
    (place.folder / "a.py").touch()
    with pytest.raises(FileUnavailableError, match=r"a\.py is no folder") as error:
        await listed(place, "a.py")
    assert error.value.hint == "Use read_file for a file."
    with pytest.raises(FileUnavailableError, match="is not there"):
        await listed(place, "nowhere")


async def test_what_is_outside_is_not_listed(place: Workplace) -> None:
    (place.folder / "out").symlink_to("..")
    (place.folder / ".ssh").mkdir()
    for path in ("..", "/", "out", ".ssh"):
        with pytest.raises(AccessDeniedError, match="Access denied"):
            await listed(place, path)
