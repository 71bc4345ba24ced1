import asyncio
import os
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, FileUnavailableError, InvalidArgumentsError
from rune.tools.executors.glob_files import GlobFiles
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = workplace(tmp_path)
    for name in ("a.py", "src/b.py", "src/deep/c.ts", "src/deep/d.js", "tests/test_b.py", "node_modules/x/e.py"):
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).touch()
    return place


async def found(place: Workplace, pattern: str, path: str = ".") -> list[str]:
    lines = (await done(GlobFiles(), place, pattern=pattern, path=path)).text.splitlines()
    return [line for line in lines if not line.startswith("[left out")]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "tests/test_b.py"]),
        ("**/*.py", ["a.py", "src/b.py", "tests/test_b.py"]),
        ("/*.py", None),
        ("./src/*.py", ["src/b.py"]),
        ("src/**", ["src/b.py", "src/deep/c.ts", "src/deep/d.js"]),
        ("src/**/*.{ts,js}", ["src/deep/c.ts", "src/deep/d.js"]),
        ("{a,test_*}.py", ["a.py", "tests/test_b.py"]),
        ("deep", ["src/deep/"]),
        ("*/", ["src/", "src/deep/", "tests/"]),
        ("?.ts", ["src/deep/c.ts"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("nothing", ["Nothing in . is named 'nothing'; 8 names were looked at."]),
    ],
)
async def test_patterns_find_what_they_say(place: Workplace, pattern: str, names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(InvalidArgumentsError, match="does not start in"):
            await found(place, pattern)
    else:
        assert await found(place, pattern) == names


async def test_a_folder_and_an_absolute_pattern_are_understood(place: Workplace) -> None:
    assert await found(place, "*.py", "src") == ["src/b.py"]
    assert await found(place, f"{place.folder}/src/*.py") == ["src/b.py"]
    assert await found(place, "*.py", "node_modules/") == ["node_modules/x/e.py"]


async def test_what_was_left_out_is_told(place: Workplace) -> None:
    (place.folder / ".gitignore").write_text("tests/\n*.ts\n")
    (place.folder / ".env").write_text("A=1")
    result = await done(GlobFiles(), place, pattern="**")
    assert result.text.splitlines() == [
        ".env",
        ".gitignore",
        "a.py",
        "src/b.py",
        "src/deep/d.js",
        "[left out: hidden or generated folders (node_modules/); 2 by .gitignore; 1 that may not or cannot be read;"
        " name such a folder as path to look into it]",
    ]
    assert result.summary == "5 names"


async def test_a_closed_folder_is_named_and_not_entered(place: Workplace) -> None:
    (place.folder / "credentials").mkdir()
    (place.folder / "credentials" / "x.go").touch()
    assert await found(place, "credentials") == ["credentials/"]
    assert (await found(place, "*.go"))[0].startswith("Nothing in . is named")


async def test_links_are_named_and_not_followed(place: Workplace) -> None:
    (place.folder / "loop").symlink_to(".")
    (place.folder / "out").symlink_to("..")
    (place.folder / "deep").symlink_to("src/deep")
    assert await found(place, "**/*.ts") == ["src/deep/c.ts"]
    assert await found(place, "loop") == ["loop"]


async def test_odd_names_and_deep_folders_are_walked(place: Workplace) -> None:
    deep = place.folder
    for _ in range(300):
        deep /= "down"
    deep.mkdir(parents=True)
    (deep / "x\ny.go").touch()
    (place.folder / os.fsdecode(b"caf\xe9.go")).touch()
    assert await found(place, "*.go") == ["caf%E9.go", f"{'down/' * 300}x\\ny.go"]


async def test_more_than_two_hundred_are_counted(place: Workplace) -> None:
    for number in range(250):
        (place.folder / f"{number:03}.md").touch()
    names = await found(place, "*.md")
    assert len(names) == 201
    assert names[-1] == "[50 more: narrow the pattern or the path]"


@pytest.mark.parametrize("pattern", ["../x", "a/../../x", "/etc/*", "/", "x" * 2_000, "{a,b}" * 12, "[z-a]"])
async def test_what_is_no_pattern_is_said_before_anything_is_looked_at(place: Workplace, pattern: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        await plan(GlobFiles(), place, pattern=pattern)


async def test_a_file_as_folder_and_a_place_outside_are_refused(place: Workplace) -> None:
    with pytest.raises(FileUnavailableError):
        await found(place, "*", "a.py")
    with pytest.raises(AccessDeniedError):
        await found(place, "*", "..")


async def test_it_ends_when_the_person_wants_it_to(place: Workplace) -> None:
    stop = asyncio.Event()
    stop.set()
    result = await GlobFiles().execute(await plan(GlobFiles(), place, pattern="*"), place, watch(stop=stop))
    assert result.outcome == "cancelled"
