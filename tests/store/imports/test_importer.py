import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rune.errors import LeaseHeldError
from rune.records.messages import ConversationMessageRecord
from rune.store.imports.event_lines import events_in
from rune.store.imports.operator_tasks import tasks_in
from rune.store.imports.report import SHOWN
from tests.store.imports.older import a_line, a_long_journal, an_import_home, written

REPOSITORY = Path(__file__).parents[3]


def said(number: int | str, text: str, **fields: Any) -> dict[str, Any]:
    return a_line(number, "user.message", {"session_id": "s", "content": text}, **fields)


async def test_everything_comes_in_once(tmp_path: Path) -> None:
    path = a_long_journal(tmp_path / "old.jsonl", 90)
    async with an_import_home(tmp_path / "home") as home:
        first = await home.take_in(events_in, path)
        stored = home.stored()
        again = await home.take_in(events_in, path)
        assert (first.seen, first.arrived, first.there, first.conversations) == (90, 90, 0, 3)
        assert (again.seen, again.arrived, again.there, again.conversations) == (90, 0, 90, 0)
        assert home.stored() == stored
    async with an_import_home(tmp_path / "home") as home:
        assert (await home.take_in(events_in, path)).there == 90


async def test_what_came_in_is_a_conversation_like_any_other(tmp_path: Path) -> None:
    path = a_long_journal(tmp_path / "old.jsonl", 4)
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, path)
        (conversation,) = await home.spine.conversations.conversations()
        messages = await home.spine.conversations.messages(conversation.record.id)
        turns = await home.spine.turns.turns(conversation.record.id)
        assert [message.content for message in messages] == [f"number {n}" for n in range(4)]
        assert [turn.stop_reason for turn in turns] == ["answered"] * 2
        assert await home.spine.tasks.get_active(conversation.record.id) is not None
        assert home.evidence.get(messages[0].attachments[0]) == path.read_bytes().split(b"\n")[0]


async def test_a_journal_that_grew_since_gives_what_is_new(tmp_path: Path) -> None:
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, a_long_journal(tmp_path / "old.jsonl", 41))
        report = await home.take_in(events_in, a_long_journal(tmp_path / "old.jsonl", 50))
        assert (report.arrived, report.there, report.conversations) == (9, 41, 0)


async def test_the_same_line_twice_is_stored_once(tmp_path: Path) -> None:
    differently_written = b'{"payload": {}, "timestamp": 1700000000, "type": "x", "id": "e1"}'
    path = written(tmp_path / "old.jsonl", a_line(1, "x"), a_line(1, "x"), differently_written)
    async with an_import_home(tmp_path / "home") as home:
        report = await home.take_in(events_in, path)
        assert (report.arrived, report.there, report.left) == (1, 2, 0)
        later = await home.take_in(events_in, written(tmp_path / "old.jsonl", differently_written))
        assert (later.arrived, later.there, later.left) == (0, 1, 0)


async def test_another_content_under_a_known_id_is_named_and_left(tmp_path: Path) -> None:
    async with an_import_home(tmp_path / "home") as home:
        report = await home.take_in(events_in, written(tmp_path / "a", said(1, "one"), said(1, "other")))
        assert (report.arrived, report.left) == (1, 1)
        report = await home.take_in(events_in, written(tmp_path / "b", said(1, "third"), said(2, "next")))
        assert (report.arrived, report.left) == (1, 1)
        assert home.heard.lefts == [f"line {n}: its id is there already, with another content" for n in (2, 1)]
        assert [body["content"] for body in home.stored("user.message")] == ["one", "next"]


async def test_an_id_of_an_event_of_ours_is_never_taken_over(tmp_path: Path) -> None:
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, written(tmp_path / "a", said(1, "one")))
        ours = next(envelope.event_id for _, envelope in home.spine.store.replay())
        report = await home.take_in(events_in, written(tmp_path / "b", a_line(1, "x", id=ours)))
        assert (report.arrived, report.left) == (0, 1)


async def test_a_task_of_ours_is_never_taken_over(tmp_path: Path) -> None:
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, written(tmp_path / "a", said(1, "one")))
        (task,) = await home.spine.tasks.list_open()
        (tmp_path / "t").write_text(json.dumps([{"task_id": task.id, "description": "x", "status": "done"}]))
        report = await home.take_in(tasks_in, tmp_path / "t")
        assert (report.arrived, report.left) == (0, 1)
        assert await home.spine.tasks.get(task.id) == task


def killed_in_the_middle(home: Path, journal: Path) -> None:
    arguments = [sys.executable, "-m", "tests.store.imports.killed_import", str(home), str(journal)]
    killed = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()


async def test_a_killed_import_is_completed_by_the_next(tmp_path: Path) -> None:
    path = a_long_journal(tmp_path / "old.jsonl", 1000)
    await asyncio.to_thread(killed_in_the_middle, tmp_path / "home", path)
    async with an_import_home(tmp_path / "home") as home:
        assert len(home.stored("user.message", "response.generated")) == 600
        report = await home.take_in(events_in, path)
        assert (report.there, report.arrived) == (600, 400)
        messages = home.stored("user.message", "response.generated")
        assert Counter(body["content"] for body in messages) == Counter(f"number {n}" for n in range(1000))
        assert len(home.stored("conversation.created")) == 25
        assert len(home.stored("turn.finished")) == 500


async def test_a_conversation_that_is_open_elsewhere_stops_it_and_the_next_run_goes_on(tmp_path: Path) -> None:
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, written(tmp_path / "a", said(1, "one")))
        (conversation,) = await home.spine.conversations.conversations()
        more = written(tmp_path / "b", said(1, "one"), said(2, "two"))
        with home.leases.take(conversation.record.id), pytest.raises(LeaseHeldError):
            await home.take_in(events_in, more)
        assert (await home.take_in(events_in, more)).arrived == 1
        with home.leases.take(conversation.record.id):
            assert (await home.take_in(events_in, more)).there == 2


async def test_lost_evidence_of_a_line_is_no_reason_to_leave_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a", said(1, "one"))
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, path)
        (body,) = home.stored("user.message")
        name = body["attachments"][0].removeprefix("sha256:")
        (tmp_path / "home" / "evidence" / name[:2] / name[2:]).unlink()
        report = await home.take_in(events_in, path)
        assert (report.arrived, report.there, report.left) == (0, 1, 0)
        assert not home.evidence.has(body["attachments"][0])


async def test_only_the_first_of_many_bad_lines_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "old.jsonl", *[b"bad"] * (SHOWN + 5), a_line(1, "x"))
    async with an_import_home(tmp_path / "home") as home:
        report = await home.take_in(events_in, path)
        assert (report.left, len(report.left_named), report.arrived) == (SHOWN + 5, SHOWN, 1)
        assert len(home.heard.lefts) == SHOWN


async def test_batches_are_bounded(tmp_path: Path) -> None:
    large = [said(n, "x" * 3_000_000) for n in range(4)]
    spread = [a_line(n, "user.message", {"session_id": f"s{n}", "content": "?"}) for n in range(10, 120)]
    async with an_import_home(tmp_path / "home") as home:
        await home.take_in(events_in, written(tmp_path / "old.jsonl", *large, *spread))
        assert len(home.heard.batches) >= 4
        stored = await home.spine.conversations.messages(home.stored("user.message")[-1]["conversation_id"])
        assert all(isinstance(message, ConversationMessageRecord) for message in stored)
