import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, FileUnavailableError, InvalidArgumentsError
from rune.tools.executors.grep_files import GrepFiles
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace
from tests.tools.workspace import SECRET

pytestmark = pytest.mark.anyio
_RIPGREP = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")


@pytest.fixture(params=[pytest.param("ripgrep", marks=_RIPGREP), "python"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Workplace:
    """Where ripgrep is found, and where it is not."""
    place = workplace(tmp_path)
    if request.param == "python":
        place.environment = {**place.environment, "PATH": "/nowhere"}
    return place


def put(place: Workplace, name: str, data: bytes) -> None:
    path = place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


async def found(place: Workplace, pattern: str, path: str = ".", glob: str = "", *, ignore_case: bool = False) -> str:
    return (await done(GrepFiles(), place, pattern=pattern, path=path, glob=glob, ignore_case=ignore_case)).text


async def test_lines_are_told_with_file_and_number(place: Workplace) -> None:
    put(place, "src/b.py", b"def add(a, b):\n    return a - b\n")
    put(place, "a.py", b"x = add(1, 2)\n")
    result = await done(GrepFiles(), place, pattern=r"add\(")
    assert result.text == "a.py:1: x = add(1, 2)\nsrc/b.py:1: def add(a, b):"
    assert result.summary == "2 lines in 2 files"
    assert result.files == ()


async def test_one_file_is_looked_into_whatever_leaves_it_out(place: Workplace) -> None:
    put(place, ".gitignore", b"*.log\n")
    put(place, ".github/x.log", b"needle\r\n")
    assert await found(place, "needle$", ".github/x.log") == ".github/x.log:1: needle"
    assert await found(place, "needle", ".github/") == (
        "No line matches in .github (hidden folders and what .gitignore names are left out)."
    )


async def test_a_glob_a_folder_and_case_narrow_and_widen(place: Workplace) -> None:
    put(place, "a.py", b"Needle\n")
    put(place, "src/a.ts", b"needle\n")
    put(place, "src/b.py", b"needle\n")
    assert await found(place, "needle", glob="*.py") == "src/b.py:1: needle"
    assert await found(place, "needle", "src", "*.{ts,js}") == "src/a.ts:1: needle"
    assert await found(place, "needle", glob="src/*.py") == "src/b.py:1: needle"
    assert await found(place, "needle", glob="*.py", ignore_case=True) == "a.py:1: Needle\nsrc/b.py:1: needle"


async def test_what_may_hold_secrets_is_not_looked_into(place: Workplace) -> None:
    place.places = type(place.places)(
        reading=place.places.reading, writing=place.places.writing, own=(place.folder / "home",)
    )
    for name in (
        ".env",
        ".ENV",
        "deep/.env.local",
        "id_rsa",
        "tls/Key.PEM",
        "credentials.json",
        "home/x",
        ".ssh",
        ".e\u200bnv",
    ):
        put(place, name, b"needle " + SECRET)
    put(place, ".gitignore", b"!.env\n!id_rsa\n!*\n")
    put(place, "id_map.py", b"needle\n")
    assert await found(place, "needle") == "id_map.py:1: needle"


async def test_links_lead_nowhere(place: Workplace) -> None:
    put(place, "src/a.py", b"needle\n")
    outside = place.folder.parent / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"needle " + SECRET)
    for name, to in {"out": "../outside", "out.txt": "../outside/x", "loop": ".", "b.py": "src/a.py"}.items():
        (place.folder / name).symlink_to(to)
    assert await found(place, "needle") == "src/a.py:1: needle"
    with pytest.raises(AccessDeniedError, match="is outside the folders you may read"):
        await found(place, "needle", "out")


async def test_no_configuration_and_no_file_of_the_project_is_obeyed(place: Workplace) -> None:
    place.environment = {**place.environment, "RIPGREP_CONFIG_PATH": str(place.folder / "rc")}
    put(place, "rc", b"--pre=/bin/false\n--invert-match\n")
    put(place, ".ignore", b"*\n")
    put(place, ".ripgreprc", b"--invert-match\n")
    put(place, "a.py", b"needle\nother\n")
    assert await found(place, "needle") == "a.py:1: needle"


@pytest.mark.parametrize("pattern", ["--pre=sh", "-e"])
async def test_a_pattern_that_looks_like_an_option_is_a_pattern(place: Workplace, pattern: str) -> None:
    put(place, "a.txt", b"run it with " + pattern.encode() + b"\n")
    assert await found(place, pattern) == f"a.txt:1: run it with {pattern}"


async def test_what_is_no_regular_expression_is_said_and_looked_for_as_it_is(place: Workplace) -> None:
    put(place, "a.py", b"print(x[0]\n")
    lines = (await found(place, "print(x[0]")).splitlines()
    assert lines[0].startswith("[the pattern is no regular expression (")
    assert lines[0].endswith("): it was looked for as plain text]")
    assert lines[1:] == ["a.py:1: print(x[0]"]


async def test_a_pattern_of_two_lines_is_refused(place: Workplace) -> None:
    with pytest.raises(InvalidArgumentsError, match="spans lines"):
        await plan(GrepFiles(), place, pattern="a\nb")


async def test_text_is_found_in_each_encoding_and_binary_files_are_none(place: Workplace) -> None:
    put(place, "a16.txt", "needle é\r\n".encode("utf-16"))
    put(place, "b.txt", b"\xef\xbb\xbfneedle\n")
    put(place, "c.txt", b"needle caf\xe9\n")
    put(place, "d.bin", b"needle\n" * 20_000 + b"\0")
    assert await found(place, "^needle") == "a16.txt:1: needle é\nb.txt:1: needle\nc.txt:1: needle café"
    with pytest.raises(FileUnavailableError, match=r"d\.bin is not a text file"):
        await found(place, "needle", "d.bin")


async def test_odd_names_are_one_line_each(place: Workplace) -> None:
    for name in (b"two\nlines", b"caf\xe9", "\u202egnp".encode(), b"x" * 255, b"a: WARNING: b"):
        put(place, os.fsdecode(name), b"needle\n")
    put(place, "a", b"needle\n\0")
    os.mkfifo(place.folder / "pipe")
    assert sorted((await found(place, "needle")).splitlines()) == [
        "<U+202E>gnp:1: needle",
        "a: WARNING: b:1: needle",
        "caf%E9:1: needle",
        r"two\nlines:1: needle",
        f"{'x' * 255}:1: needle",
    ]


async def test_a_long_line_is_cut(place: Workplace) -> None:
    put(place, "a.js", b"needle" + b"\xc3\xa9" * 3_000_000)
    assert await found(place, "needle") == f"a.js:1: needle{'é' * 294}..."


async def test_more_than_a_hundred_lines_are_counted(place: Workplace) -> None:
    put(place, "a.txt", b"needle\n" * 80)
    put(place, "b.txt", b"needle\n" * 80)
    lines = (await found(place, "needle")).splitlines()
    assert len(lines) == 101
    assert lines[-1] == "[160 lines in 2 files; the first 100 are shown: narrow pattern, path or glob]"


async def test_there_is_an_end_to_what_is_counted(place: Workplace) -> None:
    put(place, "a.txt", b"needle\n" * 50_000)
    result = await done(GrepFiles(), place, pattern="needle")
    assert result.summary == "20,000+ lines in 1 file"
    assert result.text.endswith("[stopped at 20,000]")


async def test_fifty_megabytes_are_looked_through(place: Workplace) -> None:
    put(place, "big.txt", b"0123456789abcde\n" * (50 * 1024 * 1024 // 16) + b"needle\n")
    assert await found(place, "needle") == "big.txt:3276801: needle"


async def test_it_ends_soon_when_the_person_wants_it_to(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    place.environment = {**place.environment, "PATH": "/nowhere"}
    put(place, "a.txt", b"a" * 40 + b"!\n")
    stop = asyncio.Event()
    prepared = await plan(GrepFiles(), place, pattern="(a+)+$")  # takes longer than anybody waits
    running = asyncio.ensure_future(GrepFiles().execute(prepared, place, watch(stop=stop)))
    await asyncio.wait([running], timeout=0.05)
    began = time.monotonic()
    stop.set()
    result = await running
    assert result.outcome == "cancelled"
    assert result.text.endswith("[stopped before all was looked at]")
    assert time.monotonic() - began < 2


async def test_a_search_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    place.environment = {**place.environment, "PATH": "/nowhere", "LC_MARK": str(tmp_path)}
    put(place, "a.txt", b"a" * 40 + b"!\n")
    prepared = await plan(GrepFiles(), place, pattern="(a+)+$")
    running = asyncio.ensure_future(GrepFiles().execute(prepared, place, watch()))
    await asyncio.wait([running], timeout=0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not _processes_with(str(tmp_path))


def _processes_with(text: str) -> list[Path]:
    """Return the processes whose environment holds a text."""
    return [each for each in Path("/proc").glob("[0-9]*/environ") if text in _environment(each)]


def _environment(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""  # gone, or another's
