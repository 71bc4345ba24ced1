"""Views of one home that several processes write, and processes that are killed."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rune.records.events import SessionEnded
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_message, an_id
from tests.store.spine import a_durable_store, a_spine, an_event, hashes, open_views

ROOT = Path(__file__).parents[2]


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.child_process", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def last_line(child: "subprocess.Popen[str]", *, say: str = "") -> str:
    output, _ = child.communicate(say, timeout=60)
    return output.splitlines()[-1]


def wait_for(word: str, child: "subprocess.Popen[str]") -> None:
    assert child.stdout is not None
    assert child.stdout.readline().strip() == word


async def test_two_processes_that_catch_up_at_once_share_the_work_and_agree(tmp_path: Path) -> None:
    store, _ = a_durable_store(tmp_path, CountedIds())
    for first in range(0, 3000, 1000):
        await store.append_many(
            [
                an_event(number, "session.ended", SessionEnded(id=an_id("ses", number)), "system")
                for number in range(first, first + 1000)
            ]
        )
    await store.close()
    children = [start("catch-up", str(tmp_path)) for _ in range(2)]
    for child in children:
        wait_for("ready", child)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    done = [json.loads(last_line(child)) for child in children]
    assert sum(each["applied"] for each in done) == 3000
    assert done[0]["hashes"] == done[1]["hashes"]
    assert [child.returncode for child in children] == [0, 0]


async def test_a_process_killed_between_journal_and_views_loses_nothing(tmp_path: Path) -> None:
    with start("die", str(tmp_path)) as child:
        wait_for("durable", child)
        assert child.wait(60) == -signal.SIGKILL
    store, evidence = a_durable_store(tmp_path, CountedIds())
    async with a_spine(tmp_path / "views-1.db", store, evidence=evidence) as spine:
        assert spine.engine.catch_up().applied == 1
        assert await spine.conversations.messages(CONVERSATION) == [a_message(1), a_message(2)]
        before = hashes(spine.engine)
        spine.engine.rebuild()
        assert hashes(spine.engine) == before
    await store.close()


@pytest.mark.parametrize("round_", range(3))
async def test_processes_that_write_side_by_side_find_each_others_facts(round_: int, tmp_path: Path) -> None:
    children = [start("emit", str(tmp_path), name) for name in "abcdef"]
    for child in children:
        wait_for("ready", child)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    assert [json.loads(last_line(child)) for child in children] == [[]] * 6, f"round {round_}"
    store, evidence = a_durable_store(tmp_path, CountedIds(), read_only=True)
    engine = open_views(tmp_path / "views-1.db", store, evidence)
    engine.catch_up()
    assert engine.read(lambda connection: connection.execute("SELECT count(*) FROM events").get) == 240
    before = hashes(engine)
    assert engine.rebuild().applied == 240
    assert hashes(engine) == before
    engine.close()
