from pathlib import Path

import pytest

from rune.errors import FileUnavailableError, InvalidArgumentsError, NotFoundError
from rune.tools.executors.read_artifact import ReadArtifact
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, workplace

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


def artifacts(*shown: str) -> ReadArtifact:
    """Return the tool for a conversation that was shown these."""

    async def resolve(conversation_id: str, digits: str) -> str:
        found = [each for each in shown if each.removeprefix("sha256:").startswith(digits)]
        assert conversation_id.startswith("cnv_")
        if len(found) != 1:
            raise NotFoundError(f"no {digits}")
        return found[0]

    return ReadArtifact(resolve)


async def test_output_is_read_in_parts_by_its_short_id_and_its_whole_one(place: Workplace) -> None:
    whole = await place.keep(b"".join(b"line %d\n" % number for number in range(1, 3001)), "tool output")
    short = whole.removeprefix("sha256:")[:12]
    for given in (short, whole, f" {short.upper()} "):
        result = await done(artifacts(whole), place, id=given, offset=2, limit=2)
        assert result.text == f"line 2\nline 3\n[lines 2-3 of 3000; more: read_artifact id={short}, offset=4]"
        assert result.summary == f"output {short}: lines 2-3 of 3000"
        assert result.files == ()
    assert (await done(artifacts(whole), place, id=short)).text.splitlines()[2000].startswith("[lines 1-2000 of 3000;")


async def test_what_was_not_shown_in_this_conversation_is_not_there(place: Workplace) -> None:
    kept = await place.keep(b"another's", "tool output")
    with pytest.raises(FileUnavailableError, match="was shown no output with the id") as error:
        await done(artifacts(), place, id=kept)
    assert "Use an id that stands in a result" in error.value.hint


async def test_what_was_shown_and_is_gone_or_damaged_is_told(place: Workplace, tmp_path: Path) -> None:
    with pytest.raises(FileUnavailableError, match="was shown no output"):
        await done(artifacts("sha256:" + "0" * 64), place, id="0" * 12)
    kept = await place.keep(b"output", "tool output")
    digits = kept.removeprefix("sha256:")
    (blob,) = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.read_bytes() == b"output"]
    blob.chmod(0o600)
    blob.write_bytes(b"changed")
    with pytest.raises(FileUnavailableError, match=f"output {digits[:12]} is damaged"):
        await done(artifacts(kept), place, id=kept)


@pytest.mark.parametrize("given", ["", "abc", "../../etc/passwd", "sha256:", "z" * 12, "0" * 65])
async def test_what_is_no_id_is_refused_before_anything_is_looked_for(place: Workplace, given: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="is no id of an output"):
        await plan(artifacts(), place, id=given)


async def test_nothing_bytes_and_a_line_too_far_are_told(place: Workplace) -> None:
    empty, binary, short = [await place.keep(data, "tool output") for data in (b"", b"\0\1", b"a\n")]
    tool = artifacts(empty, binary, short)
    assert (await done(tool, place, id=empty)).text.endswith(" is empty.")
    with pytest.raises(FileUnavailableError, match="not a text file"):
        await done(tool, place, id=binary)
    with pytest.raises(InvalidArgumentsError, match="has 1 lines: there is no line 2"):
        await done(tool, place, id=short, offset=2)
