"""edit_file: what it changes, what it leaves as it was, and what it refuses."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.errors import (
    AccessDeniedError,
    DigestMismatchError,
    FileUnavailableError,
    InvalidArgumentsError,
    StorageUnavailableError,
)
from rune.host.paths import storable_path
from rune.records.tools import FileTouch, ToolCall
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.read_file import ReadFile
from rune.tools.prepare import digest_of
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace
from tests.tools.workspace import sha

CART = b"def total(items):\n    return sum(items)\n\n\ndef add(a, b):\n    return a - b\n"
FIX = {"search": "    return a - b", "replace": "    return a + b"}

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = workplace(tmp_path)
    (place.folder / "src").mkdir()
    (place.folder / "src" / "cart.py").write_bytes(CART)
    return place


async def edited(place: Workplace, name: str, data: bytes, search: str, replace: str) -> bytes:
    """Write a file, edit it, and return what it holds then."""
    path = place.folder / name
    path.write_bytes(data)
    await done(EditFile(), place, path=name, edits=[{"search": search, "replace": replace}])
    return path.read_bytes()


async def test_an_edit_is_planned_with_its_diff_and_changes_nothing_before_it_acts(place: Workplace) -> None:
    cart = place.folder / "src" / "cart.py"
    made = await plan(EditFile(), place, path="src/cart.py", edits=[FIX])
    after = CART.replace(b"a - b", b"a + b")
    assert cart.read_bytes() == CART
    assert made.effect == "src/cart.py +1 -1"
    assert made.detail.startswith("--- a/src/cart.py\n+++ b/src/cart.py\n")
    assert "-    return a - b\n+    return a + b\n" in made.detail
    assert made.preconditions == {"path": str(cart), "before": sha(CART), "after": sha(after)}
    assert made.touches == (cart,)
    assert (made.asks, made.rule) == ("", "edit_file(src/**)")


async def test_an_edit_that_acts_says_what_it_did_and_keeps_what_was_there(place: Workplace) -> None:
    cart = place.folder / "src" / "cart.py"
    result = await done(EditFile(), place, path="src/cart.py", edits=[FIX])
    after = CART.replace(b"a - b", b"a + b")
    assert cart.read_bytes() == after
    assert result.files == (FileTouch(path=str(cart), before=sha(CART), after=sha(after)),)
    assert result.text.startswith("Changed src/cart.py: +1 -1.\n--- a/src/cart.py")
    assert result.summary == "+1 -1"
    assert place.undo.get(sha(CART)) == CART


async def test_a_plan_comes_out_the_same_each_time(place: Workplace) -> None:
    call = ToolCall(id="1", name="edit_file", arguments={"path": "src/cart.py", "edits": [FIX]})
    digests = set[str]()
    for _ in range(2):
        made = await EditFile().prepare(call.arguments, place)
        digests.add(digest_of(call, made.preconditions))
        await done(ReadFile(), place, path="src/cart.py")
    assert len(digests) == 1


async def test_another_content_makes_another_digest(place: Workplace) -> None:
    call = ToolCall(id="1", name="edit_file", arguments={"path": "src/cart.py", "edits": [FIX]})
    before = digest_of(call, (await EditFile().prepare(call.arguments, place)).preconditions)
    (place.folder / "src" / "cart.py").write_bytes(CART + b"# more\n")
    assert digest_of(call, (await EditFile().prepare(call.arguments, place)).preconditions) != before


async def test_a_file_that_changed_after_it_was_planned_is_left_alone(place: Workplace) -> None:
    cart = place.folder / "src" / "cart.py"
    made = await plan(EditFile(), place, path="src/cart.py", edits=[FIX])
    cart.write_bytes(b"somebody else's\n")
    with pytest.raises(DigestMismatchError):
        await EditFile().execute(made, place, watch())
    assert cart.read_bytes() == b"somebody else's\n"


async def test_nothing_is_written_when_what_was_there_cannot_be_kept(place: Workplace, tmp_path: Path) -> None:
    (tmp_path / "home" / "undo").write_bytes(b"no folder")
    made = await plan(EditFile(), place, path="src/cart.py", edits=[FIX])
    with pytest.raises(StorageUnavailableError):
        await EditFile().execute(made, place, watch())
    assert (place.folder / "src" / "cart.py").read_bytes() == CART


async def test_a_person_who_stops_it_in_time_has_nothing_changed(place: Workplace) -> None:
    made = await plan(EditFile(), place, path="src/cart.py", edits=[FIX])
    waiting = watch()
    waiting.stop.set()
    result = await EditFile().execute(made, place, waiting)
    assert (result.outcome, result.files) == ("cancelled", ())
    assert (place.folder / "src" / "cart.py").read_bytes() == CART


async def test_several_edits_are_made_all_or_none(place: Workplace) -> None:
    wrong = {"search": "nowhere", "replace": "x"}
    with pytest.raises(InvalidArgumentsError, match="Nothing was changed"):
        await plan(EditFile(), place, path="src/cart.py", edits=[FIX, wrong])
    await done(EditFile(), place, path="src/cart.py", edits=[FIX, {"search": "total(", "replace": "sum_of("}])
    assert (place.folder / "src" / "cart.py").read_bytes() == CART.replace(b"a - b", b"a + b").replace(
        b"total(", b"sum_of("
    )


async def test_a_garbled_search_in_a_file_that_was_read_is_found_and_it_is_said(place: Workplace) -> None:
    await done(ReadFile(), place, path="src/cart.py")
    result = await done(
        EditFile(), place, path="src/cart.py", edits=[{"search": "6| return a - b", "replace": "6| return a + b"}]
    )
    assert (place.folder / "src" / "cart.py").read_bytes() == CART.replace(b"a - b", b"a + b")
    assert "line 6:" in result.text


async def test_a_garbled_search_in_a_file_that_was_not_read_is_sent_to_read_it(place: Workplace) -> None:
    with pytest.raises(InvalidArgumentsError, match="have not read") as refused:
        await plan(
            EditFile(), place, path="src/cart.py", edits=[{"search": "return  a - b", "replace": "return a + b"}]
        )
    assert "read_file path=src/cart.py" in refused.value.hint


async def test_an_edit_of_a_file_that_changed_since_it_was_read_says_so(place: Workplace) -> None:
    await done(ReadFile(), place, path="src/cart.py")
    (place.folder / "src" / "cart.py").write_bytes(b"# new\n" + CART)
    result = await done(EditFile(), place, path="src/cart.py", edits=[FIX])
    assert "had changed since you read it" in result.text
    again = await done(EditFile(), place, path="src/cart.py", edits=[{"search": "# new\n", "replace": "# newer\n"}])
    assert "had changed" not in again.text


async def test_an_edit_that_does_not_fit_says_whether_the_file_changed_since(place: Workplace) -> None:
    await done(ReadFile(), place, path="src/cart.py")
    (place.folder / "src" / "cart.py").write_bytes(b"all new\n")
    with pytest.raises(InvalidArgumentsError) as refused:
        await plan(EditFile(), place, path="src/cart.py", edits=[FIX])
    assert "changed since you read it" in refused.value.hint


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([{"search": "a - b", "replace": "a - b"}], "changes nothing"),
        ([{"search": "return a * b", "replace": "return a - b"}], "stands there already"),
        ([{"search": "return", "replace": "yield"}], "fits at 2 places"),
        ([{"search": "", "replace": "x"}], "the search is empty"),
        ([], "edit_file"),
        ([{"old_string": "a", "new_string": "b"}], "old_string"),
        ({"search": "a - b", "replace": "a + b"}, "edits"),
        ([{"search": "a - b", "replace": "a \ud800 b"}], "U\\+D800"),
        ([{"search": "a - b", "replace": "a \0 b"}], "zero byte"),
    ],
)
async def test_an_edit_that_is_none_is_refused_with_the_reason(place: Workplace, edits: object, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said):
        await plan(EditFile(), place, path="src/cart.py", edits=edits)
    assert (place.folder / "src" / "cart.py").read_bytes() == CART


@pytest.mark.parametrize(
    ("data", "search", "replace", "after"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n", id="crlf"),
        pytest.param(b"a\r\nb\nc\rd", "b", "x", b"a\r\nx\nc\rd", id="mixed ends"),
        pytest.param(b"a\nb", "b", "x", b"a\nx", id="no newline at the end"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", "a", "x", b"\xef\xbb\xbfx\nb\n", id="byte order mark"),
        pytest.param("aä\nb\n".encode("utf-16"), "b", "ö", "aä\nö\n".encode("utf-16"), id="utf-16"),
        pytest.param("grün\nb\n".encode("latin-1"), "b", "blau ß", "grün\nblau ß\n".encode("latin-1"), id="latin-1"),
        pytest.param(
            "größe ä ö\n".encode() + b"\xff\nb\n", "b", "x", "größe ä ö\n".encode() + b"\xff\nx\n", id="damaged"
        ),
        pytest.param(b"a\tb  \n\n\n", "a", "x", b"x\tb  \n\n\n", id="white space"),
    ],
)
async def test_what_is_not_edited_stays_byte_for_byte(
    place: Workplace, data: bytes, search: str, replace: str, after: bytes
) -> None:
    assert await edited(place, "odd.txt", data, search, replace) == after


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444])
async def test_its_mode_is_kept(place: Workplace, mode: int) -> None:
    path = place.folder / "run.sh"
    path.write_bytes(b"#!/bin/sh\necho a\n")
    path.chmod(mode)
    await done(EditFile(), place, path="run.sh", edits=[{"search": "echo a", "replace": "echo b"}])
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize(
    "name", [b"with blank.py", b"-rf", b"\xff\xfe.py", "größe.py".encode(), b"a\nb.py", b"100%41.py"]
)
async def test_a_file_of_any_name_is_edited_by_the_name_that_is_shown(place: Workplace, name: bytes) -> None:
    path = place.folder / os.fsdecode(name)
    path.write_bytes(b"a = 1\n")
    shown = (await done(ReadFile(), place, path=os.fsdecode(name))).summary.split(":")[0]
    result = await done(EditFile(), place, path=shown, edits=[{"search": "1", "replace": "2"}])
    assert path.read_bytes() == b"a = 2\n"
    assert result.files[0].path == storable_path(path)


@pytest.mark.parametrize("path", ["./src/cart.py", "src/cart.py/", "src/../src/cart.py", "src//cart.py"])
async def test_a_path_may_be_written_in_more_than_one_way(place: Workplace, path: str) -> None:
    made = await plan(EditFile(), place, path=path, edits=[FIX])
    assert made.effect == "src/cart.py +1 -1"


async def test_a_link_to_a_folder_is_told_by_where_it_leads(place: Workplace) -> None:
    (place.folder / "code").symlink_to("src")
    made = await plan(EditFile(), place, path="code/cart.py", edits=[FIX])
    assert made.touches == (place.folder / "src" / "cart.py",)
    assert made.effect == "src/cart.py +1 -1"


async def test_a_link_a_second_name_and_a_pipe_are_refused(place: Workplace) -> None:
    (place.folder / "link.py").symlink_to("src/cart.py")
    (place.folder / "one.py").write_bytes(CART)
    (place.folder / "two.py").hardlink_to(place.folder / "one.py")
    os.mkfifo(place.folder / "pipe.py")
    for name in ("link.py", "two.py", "pipe.py"):
        with pytest.raises(AccessDeniedError):
            await plan(EditFile(), place, path=name, edits=[FIX])


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("none.py", None, "is not there"),
        ("empty.py", b"", "is empty"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
    ],
)
async def test_what_cannot_be_edited_says_why(place: Workplace, name: str, data: bytes | None, said: str) -> None:
    if data is not None:
        (place.folder / name).write_bytes(data)
    with pytest.raises(FileUnavailableError, match=said):
        await plan(EditFile(), place, path=name, edits=[FIX])


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts", ".env", "src/id_rsa"])
async def test_a_place_that_no_tool_may_write_is_refused(place: Workplace, path: str) -> None:
    with pytest.raises(AccessDeniedError):
        await plan(EditFile(), place, path=path, edits=[FIX])


async def test_a_protected_file_asks_and_offers_no_rule(place: Workplace) -> None:
    (place.folder / "AGENTS.md").write_bytes(b"old\n")
    made = await plan(EditFile(), place, path="AGENTS.md", edits=[{"search": "old", "replace": "new"}])
    assert "protected" in made.asks
    assert made.rule == ""


async def test_a_character_that_the_encoding_lacks_is_refused(place: Workplace) -> None:
    (place.folder / "old.txt").write_bytes("grün\n".encode("latin-1"))
    with pytest.raises(InvalidArgumentsError, match="cannot be written"):
        await plan(EditFile(), place, path="old.txt", edits=[{"search": "grün", "replace": "\u4e2d"}])


async def test_bytes_that_are_no_text_are_shown_storably(place: Workplace) -> None:
    (place.folder / "odd.txt").write_bytes("größe ä ö\n".encode() + b"\xff\nb\n")
    made = await plan(EditFile(), place, path="odd.txt", edits=[{"search": "b", "replace": "x"}])
    made.detail.encode()
    result = await EditFile().execute(made, place, watch())
    result.text.encode()


async def test_the_model_is_given_a_long_diff_in_part_and_the_person_all_of_it(place: Workplace) -> None:
    lines = "".join(f"line {number}\n" for number in range(500))
    (place.folder / "long.txt").write_text(lines)
    made = await plan(EditFile(), place, path="long.txt", edits=[{"search": lines, "replace": lines.upper()}])
    assert made.detail.count("\n+LINE") == 500
    result = await EditFile().execute(made, place, watch())
    assert "left out" in result.text
    assert len(result.text.splitlines()) < 70


@pytest.mark.parametrize("size", [2_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)])
async def test_a_large_file_stays_as_it_was_but_for_the_edit(place: Workplace, size: int) -> None:
    data = b"x" * 79 + b"\n"
    big = data * (size // len(data))
    after = await edited(place, "big.txt", big + b"the end\r\n", "the end", "an end")
    assert after == big + b"an end\r\n"


@settings(max_examples=25, deadline=None)
@given(
    lines=st.lists(st.sampled_from(["a", "b", "", "  c", "ü", "\t"]), max_size=8),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=8, max_size=8),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    closed=st.booleans(),
)
async def test_every_other_byte_stays_whatever_the_file_is_like(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: list[str], codec: str, closed: bool
) -> None:
    place = workplace(tmp_path_factory.mktemp("w"))
    before = "".join(line + end for line, end in zip(lines, ends, strict=False))
    rest = ("\r\nlast" if closed else "") + ("\n" if codec == "utf-8" else "")
    after = await edited(place, "f.txt", f"{before}NEEDLE{rest}".encode(codec), "NEEDLE", "found")
    assert after == f"{before}found{rest}".encode(codec)
