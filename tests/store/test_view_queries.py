"""Reading the views costs the same in a large home as in a small one."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw

from rune.records.events import Event
from rune.records.tasks import TaskStatus
from rune.records.turns import StopReason
from rune.store.event_index import last_pseq, unreported_forks
from tests.store.builders import a_conversation, a_failure, a_message, a_task, a_trace, a_turn, an_id
from tests.store.spine import Spine, a_memory_store, a_spine, events

CONVERSATIONS = 400
LAST = an_id("cnv", CONVERSATIONS)
Read = Callable[[Spine], Awaitable[object]]

READS: dict[str, Read] = {
    "get": lambda spine: spine.conversations.get(LAST),
    "conversations": lambda spine: spine.conversations.conversations(limit=5),
    "conversations of a folder": lambda spine: spine.conversations.conversations("/f3", limit=5),
    "latest of a folder": lambda spine: spine.conversations.latest("/f3", "task"),
    "message": lambda spine: spine.conversations.message(an_id("msg", f"{CONVERSATIONS}x1")),
    "messages": lambda spine: spine.conversations.messages(LAST),
    "window": lambda spine: spine.conversations.window(LAST, 2),
    "messages for a task": lambda spine: spine.conversations.messages_for_task(an_id("tsk", 7)),
    "archived": lambda spine: spine.conversations.archived_ids(LAST),
    "task": lambda spine: spine.tasks.get(an_id("tsk", 7)),
    "active task": lambda spine: spine.tasks.get_active(LAST),
    "open tasks": lambda spine: spine.tasks.list_open(LAST),
    "all open tasks": lambda spine: spine.tasks.list_open(),
    "latest task": lambda spine: spine.tasks.latest(),
    "latest task of a conversation": lambda spine: spine.tasks.latest(LAST),
    "turn": lambda spine: spine.turns.get(an_id("trn", 7)),
    "open turns": lambda spine: spine.turns.open_turns(),
    "open turns of a conversation": lambda spine: spine.turns.open_turns(LAST),
    "turns": lambda spine: spine.turns.turns(LAST),
    "failures of turns": lambda spine: spine.turns.failures(LAST),
    "trace": lambda spine: spine.traces.get(an_id("trc", 7)),
    "traces": lambda spine: spine.traces.newest(limit=2),
    "traces of a turn": lambda spine: spine.traces.of_turn(an_id("trn", 7)),
    "trace summaries": lambda spine: spine.traces.summaries(LAST),
    "last place": lambda spine: spine.engine.query(lambda db: last_pseq(db, LAST)),
    "forks": lambda spine: spine.engine.query(unreported_forks),
    "identity": lambda spine: spine.engine.run(lambda: spine.engine.lookup(an_id("evt", "none"))),
    "search": lambda spine: spine.conversations.search(f"{LAST[-3:]} nowhere"),
    "recent events": lambda spine: spine.engine.run(lambda: list(spine.engine.recent(None, 5))),
}


def a_history(number: int) -> list[Event]:
    """Return a conversation with messages, one task, one finished turn and its trace; the last is still open."""
    conversation, last = an_id("cnv", number), number == CONVERSATIONS
    status = TaskStatus.RUNNING if last else TaskStatus.COMPLETED
    steps = [
        ("conversation.created", a_conversation(conversation, folder=f"/f{number % 5}")),
        ("task.created", a_task(number, conversation)),
        ("turn.started", a_turn(number, conversation)),
        *(("user.message", a_message(f"{number}x{n}", conversation, task_id=an_id("tsk", number))) for n in range(3)),
        ("task.transition", a_task(number, conversation, status=status)),
        *([] if last else [("turn.finished", a_turn(number, conversation, stop_reason=StopReason.ANSWERED))]),
        ("turn.failed", a_failure(number, conversation)),
        ("inference.traced", a_trace(number, conversation)),
    ]
    return list(events(*steps, partition=conversation, prefix=f"{number}x"))


async def test_reading_and_taking_in_look_at_few_rows_of_many(tmp_path: Path) -> None:
    store = a_memory_store()
    for number in range(1, CONVERSATIONS + 1):
        await store.append_many(a_history(number))
    async with a_spine(tmp_path / "views-1.db", store) as spine:
        spine.engine.catch_up()
        taken: dict[str, tuple[int, str]] = {}
        for name, read in READS.items():
            steps = Steps()
            await spine.engine.query(steps.watch)
            await read(spine)
            await spine.engine.query(steps.leave)
            taken[name] = steps.most()
        steps = Steps()
        spine.engine.read(steps.watch)
        await store.append_many(a_history(CONVERSATIONS + 1))
        spine.engine.catch_up()
        spine.engine.read(steps.leave)
        taken["apply"] = steps.most()
        # One pass over a table of 400 rows takes 1,200 steps and more.
        assert {name: most for name, most in taken.items() if most[0] >= 400} == {}


class Steps:
    """Counts the steps of SQLite's machine for each statement of a connection."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, str]] = []

    def watch(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note)

    def leave(self, connection: apsw.Connection) -> None:
        connection.trace_v2(0, None)

    def most(self) -> tuple[int, str]:
        """Return the greatest number and its statement."""
        return max(self._seen)

    def _note(self, event: dict[str, Any]) -> None:
        if "'main'.'search_" in event["sql"]:
            return  # FTS5 keeps its statements, each on one row by its key, and their counts go on for ever
        self._seen.append((event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"], event["sql"]))
