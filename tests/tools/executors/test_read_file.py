import hashlib
import os
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, FileUnavailableError, InvalidArgumentsError
from rune.records.tools import FileTouch
from rune.tools.edits import Edit, Edited, apply
from rune.tools.executors.read_file import ReadFile
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, workplace

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


def put(place: Workplace, name: str, data: bytes) -> Path:
    path = place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


async def read(place: Workplace, path: str, offset: int = 1, limit: int = 2000) -> str:
    return (await done(ReadFile(), place, path=path, offset=offset, limit=limit)).text


@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "src//a.py", "src/a.py/"])
async def test_a_plain_file_is_its_lines_with_their_numbers(place: Workplace, path: str) -> None:
    put(place, "src/a.py", b"def add(a, b):\n\n    return a - b\n")
    assert await read(place, path) == "1| def add(a, b):\n2|\n3|     return a - b"


async def test_an_absolute_path_is_named_from_the_folder(place: Workplace) -> None:
    path = put(place, "a.py", b"x\n")
    result = await done(ReadFile(), place, path=str(path))
    assert (result.text, result.summary) == ("1| x", "a.py: 1 line")


async def test_what_was_read_is_told_with_its_hash(place: Workplace) -> None:
    path = put(place, "a.py", b"\xef\xbb\xbfx\r\n")
    (place.folder / "link.py").symlink_to("a.py")
    digest = hashlib.sha256(b"\xef\xbb\xbfx\r\n").hexdigest()
    result = await done(ReadFile(), place, path="link.py", limit=1)
    assert result.files == (FileTouch(path=str(path), before=digest, after=digest),)


async def test_an_edit_copied_with_its_line_numbers_still_fits(place: Workplace) -> None:
    text = "class A:\n\n    def add(self):\n\n        return 1\n"
    put(place, "a.py", text.encode())
    search = "\n".join((await read(place, "a.py")).splitlines()[2:])
    edited = apply(text, [Edit(search, search.replace("return 1", "return 2"))])
    assert isinstance(edited, Edited)
    assert edited.text == text.replace("return 1", "return 2")


@pytest.mark.parametrize(
    ("data", "said", "line"),
    [
        (b"a\r\nb\r\n", "UTF-8, CRLF, 6 bytes", "1| a\n2| b"),
        (b"\xef\xbb\xbfa\n", "UTF-8 with byte order mark, 5 bytes", "1| a"),
        ("é\n".encode("utf-16"), "UTF-16 (little endian), 6 bytes", "1| é"),
        (b"caf\xe9\n", "Windows-1252, 5 bytes", "1| café"),
        (b"a\x81b\xe9\n", "Latin-1, 5 bytes", "1| a\x81bé"),
        ("éèàù".encode() + b"\xff\n", "UTF-8 with bytes that are none, 10 bytes", "1| éèàù\ufffd"),
    ],
)
async def test_what_is_not_plain_is_said_before(place: Workplace, data: bytes, said: str, line: str) -> None:
    put(place, "a.txt", data)
    assert await read(place, "a.txt") == f"[a.txt: {said}]\n{line}"


async def test_a_long_file_comes_in_parts_that_say_how_to_get_the_next(place: Workplace) -> None:
    put(place, "a.txt", b"".join(b"line %d\n" % number for number in range(1, 5001)))
    first = await read(place, "a.txt")
    assert first.startswith("[a.txt: UTF-8, 48,893 bytes]\n1| line 1\n")
    assert first.endswith("2000| line 2000\n[lines 1-2000 of 5000; more: read_file path=a.txt, offset=2001]")
    assert (await read(place, "a.txt", offset=4999)).splitlines()[1:] == [
        "4999| line 4999",
        "5000| line 5000",
        "[lines 4999-5000 of 5000; the end]",
    ]
    assert "[lines 7-9 of 5000; more: read_file path=a.txt, offset=10]" in await read(place, "a.txt", 7, 3)


async def test_a_part_has_at_most_fifty_kilobytes_of_whole_lines(place: Workplace) -> None:
    put(place, "a.txt", (b"\xc3\xa9" * 500 + b"\n") * 1000)
    text = await read(place, "a.txt")
    assert 48_000 < len(text.encode()) < 50_500
    assert "[lines 1-49 of 1000; more: read_file path=a.txt, offset=50]" in text


async def test_a_very_long_line_is_cut_and_says_so(place: Workplace) -> None:
    put(place, "a.json", b"x" * 2_000_000 + b"\nshort\n")
    assert (await read(place, "a.json")) == (
        "1| " + "x" * 2000 + " [+1,998,000 characters]\n2| short\n[1 long line cut at 2,000 characters]"
    )


async def test_a_line_that_is_not_there_is_an_error_with_their_number(place: Workplace) -> None:
    put(place, "a.txt", b"a\nb\n")
    with pytest.raises(InvalidArgumentsError, match=r"a.txt has 2 lines: there is no line 3"):
        await read(place, "a.txt", offset=3)


async def test_an_empty_file_says_so(place: Workplace) -> None:
    put(place, "a.txt", b"")
    result = await done(ReadFile(), place, path="a.txt")
    assert result.text == "a.txt is empty (0 bytes)."
    assert result.files[0].after == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG image, 10 bytes. Images cannot be shown"),
        (b"\x7fELF\0\0", "ELF program or library, 6 bytes"),
        (b"\0\1\2", "unknown binary data, 3 bytes"),
    ],
)
async def test_what_is_no_text_is_refused_with_its_kind(place: Workplace, data: bytes, said: str) -> None:
    put(place, "x.bin", data)
    with pytest.raises(FileUnavailableError) as error:
        await read(place, "x.bin")
    assert f"x.bin is not a text file: {said}" in error.value.in_one_line


async def test_a_folder_is_sent_to_the_right_tool(place: Workplace) -> None:
    put(place, "src/a.py", b"")
    for path in ("src", "src/", "."):
        with pytest.raises(FileUnavailableError, match="is a folder") as error:
            await read(place, path)
        assert error.value.hint == "Use list_directory."


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("src/crat.py", "Did you mean src/cart.py?"),
        ("src/Cart.py", "Did you mean src/cart.py?"),
        ("cart.py", "Did you mean src/cart.py?"),
        ("lib/cart.py", "Did you mean src/cart.py?"),
        ("src/zzz", "Use list_directory path=src to see what is."),
        ("lib/zzz", "Use glob_files to find it."),
    ],
)
async def test_a_file_that_is_not_there_is_told_with_the_nearest(place: Workplace, path: str, hint: str) -> None:
    put(place, "src/cart.py", b"")
    with pytest.raises(FileUnavailableError, match="is not there") as error:
        await read(place, path)
    assert error.value.hint == hint


@pytest.mark.parametrize(
    "name", [b"two\nlines", b"caf\xe9", b"x" * 255, "\u202egnp.exe".encode(), b"tab\there", b"100%"]
)
async def test_an_odd_name_is_read_as_it_is_and_as_it_is_shown(place: Workplace, name: bytes) -> None:
    path = put(place, os.fsdecode(name), b"x\n")
    result = await done(ReadFile(), place, path=path.name)
    assert result.text.endswith("1| x")
    assert result.summary.isprintable()
    assert (await read(place, result.summary.removesuffix(": 1 line"))).endswith("1| x")


@pytest.mark.parametrize("path", ["../home/x", "/etc/passwd", ".env", "out", "deep/.env"])
async def test_what_may_not_be_read_is_not(place: Workplace, path: str) -> None:
    put(place, ".env", b"TOKEN=1")
    put(place, "deep/.env", b"TOKEN=1")
    (place.folder / "out").symlink_to("../home")
    with pytest.raises((AccessDeniedError, FileUnavailableError)) as error:
        await read(place, path)
    assert "Access denied" in error.value.message


async def test_a_pipe_a_loop_and_a_closed_file_are_told_at_once(place: Workplace) -> None:
    os.mkfifo(place.folder / "pipe")
    (place.folder / "a").symlink_to("b")
    (place.folder / "b").symlink_to("a")
    with pytest.raises(AccessDeniedError, match="no regular file"):
        await read(place, "pipe")
    with pytest.raises(FileUnavailableError, match="leads in a circle"):
        await read(place, "a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_a_file_that_the_system_closes_is_told(place: Workplace) -> None:
    put(place, "closed", b"x").chmod(0)
    with pytest.raises(AccessDeniedError, match="closed to you by the system"):
        await read(place, "closed")


async def test_fifty_megabytes_are_read_in_parts(place: Workplace) -> None:
    put(place, "big.txt", b"0123456789abcde\n" * (50 * 1024 * 1024 // 16))
    result = await done(ReadFile(), place, path="big.txt", offset=3_000_000, limit=2)
    assert result.summary == "big.txt: lines 3000000-3000001 of 3276800"


async def test_the_same_call_prepares_to_the_same_plan(place: Workplace) -> None:
    put(place, "a.py", b"x\n")
    first, second = await plan(ReadFile(), place, path="a.py"), await plan(ReadFile(), place, path="a.py")
    assert (first.effect, first.preconditions) == (second.effect, second.preconditions)
    with pytest.raises(InvalidArgumentsError, match="offset"):
        await plan(ReadFile(), place, path="a.py", offset=0)
