"""Mending that is killed on the way, or finds another process at work."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rune.errors import SlotHeldError
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, fill
from tests.store.mending.damaged import SECOND, THIRD, damage_of, edited, files, mend, spoilt, three_segments

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


def killed_after_each_step(home: Path) -> list[dict[str, Any]]:
    """Return what copies of a home hold, each mended by a process that was killed after another step, and again."""
    command = [sys.executable, "-m", "tests.store.mending.mending_process", str(home)]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


async def test_killed_after_any_step_the_next_run_completes_and_nothing_is_lost_or_doubled(
    tmp_path: Path, ids: CountedIds
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    stored = await three_segments(home, ids)
    edited(FIRST, lambda at: [*at[:2], spoilt(at[2]), *at[3:]])(home)
    expected = sorted(set(event_ids(stored)) - {stored[1].event_id})
    sizes = {name: len(data) for name, data in files(home).items()}
    rounds = await asyncio.to_thread(killed_after_each_step, home)
    assert [each["killed"] for each in rounds] == [
        *(f"{done} {name}" for name in (FIRST, SECOND, THIRD) for done in ("copied", "kept")),
        *(f"wrote {name}" for name in (FIRST, SECOND, THIRD)),
        f"moved {THIRD}", f"moved {SECOND}", f"cut {FIRST}", "",
    ]  # fmt: skip
    whole = rounds[-1]
    for each in rounds:
        assert sorted(each["events"]) == expected, each["killed"]
        # Each file was noted once, and the counts are those of all runs together.
        assert each["repaired"] == whole["repaired"], each["killed"]
        assert each["files"].keys() == whole["files"].keys(), each["killed"]
    assert [(name, size) for name, _, size, _ in whole["repaired"][1:]] == [
        (SECOND, sizes[SECOND]),
        (THIRD, sizes[THIRD]),
    ]


async def test_killed_between_two_groups_of_events_none_is_written_twice(tmp_path: Path, ids: CountedIds) -> None:
    home = tmp_path / "home"
    home.mkdir()
    stored = await fill(home, ids, [1, 600])
    edited(FIRST, lambda at: [*at[:1], spoilt(at[1]), *at[2:]])(home)
    rounds = await asyncio.to_thread(killed_after_each_step, home)
    assert [each["killed"] for each in rounds] == [
        f"copied {FIRST}", f"kept {FIRST}", f"wrote a group of {FIRST}", f"wrote {FIRST}", f"cut {FIRST}", "",
    ]  # fmt: skip
    for each in rounds:
        assert sorted(each["events"]) == event_ids(stored[1:]), each["killed"]
        (note,) = each["repaired"]
        assert note[3].endswith(": 600 events written again, 1 line could not be"), each["killed"]


def test_a_slot_that_a_living_process_writes_is_not_touched_and_its_process_is_named(
    tmp_path: Path, ids: CountedIds
) -> None:
    asyncio.run(fill(tmp_path, ids, [1, 1, 1]))
    command = [sys.executable, "-m", "tests.store.mending.mending_process", str(tmp_path), "hold"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"holding\n"
        edited(FIRST, lambda at: [at[0], spoilt(at[1]), *at[2:]])(tmp_path)
        before = files(tmp_path)
        (found,) = damage_of(tmp_path)
        assert found.held_by == process.pid
        with pytest.raises(SlotHeldError, match=str(process.pid)) as caught:
            asyncio.run(mend(tmp_path, ids))
        assert caught.value.pid == process.pid
        assert files(tmp_path) == before
        process.stdin.close()
    (done,) = asyncio.run(mend(tmp_path, ids))
    assert done.written == 2
