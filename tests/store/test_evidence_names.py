"""Each field that holds an evidence id is known, and nothing else counts as one."""

import msgspec
import pytest

from rune.records.approvals import PendingApprovalRecord
from rune.records.events import EVENT_KINDS, EventImported, PinImported
from rune.records.record import Record
from rune.records.tools import CommandRun, ToolResult
from rune.store.evidence_names import blobs_of, names_evidence
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, TIME, a_conversation, a_message, a_task, a_trace, an_id, prefix_changed
from tests.store.samples import one_of_each

BLOB = f"sha256:{'e' * 64}"
IMPORTED = EventImported(
    original_id="1", original_type="note", source="x", channel="", occurred_at=TIME, became="", evidence=BLOB
)
PIN = PinImported(
    original_id="1",
    topic=(),
    open_question=(),
    outcome=(),
    status=(),
    context=(),
    occurred_at="",
    evidence=BLOB,
)
APPROVAL = PendingApprovalRecord(
    id=an_id("apr", 1), turn_id="", conversation_id=CONVERSATION, calls=(), loop_state=BLOB, expires_at=TIME
)
RESULT = ToolResult(
    id="1",
    turn_id="",
    tool="run",
    digest="",
    outcome="ok",
    summary="",
    output=BLOB,
    milliseconds=None,
    confinement="none",
    exit_code=None,
    files=(),
)
COMMAND = CommandRun(
    id="1", conversation_id=CONVERSATION, command="ls", exit_code=0, milliseconds=1, output=BLOB, summary=""
)


@pytest.mark.parametrize(
    ("event_type", "body"),
    [
        ("conversation.created", a_conversation(prefix=BLOB)),
        ("conversation.forked", a_conversation(prefix=BLOB)),
        ("user.message", msgspec.structs.replace(a_message(1), attachments=(BLOB,))),
        ("context.prefix_changed", prefix_changed(BLOB)),
        ("tool.result", RESULT),
        ("command.run", COMMAND),
        ("approval.requested", APPROVAL),
        ("event.imported", IMPORTED),
        ("pin.imported", PIN),
        ("task.imported", msgspec.structs.replace(a_task(1), outcome_ref=BLOB)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_field_that_names_a_blob_is_known(event_type: str, body: Record) -> None:
    assert names_evidence(event_type)
    assert blobs_of(body) == {BLOB}


SCHEMA = f"sha256:{'f' * 64}"


def test_a_trace_names_its_prefix_its_blocks_its_tools_and_the_schema_of_its_answer() -> None:
    trace = a_trace(1)
    request = msgspec.structs.replace(trace.requests[0], tools=BLOB, format=SCHEMA)
    named = blobs_of(msgspec.structs.replace(trace, requests=(request,)))
    assert named == {request.prefix, request.blocks[0].blob, BLOB, SCHEMA}


def test_what_looks_like_one_elsewhere_is_none() -> None:
    assert blobs_of(a_message(1, content=BLOB)) == frozenset()
    assert blobs_of(msgspec.structs.replace(a_task(1), title=BLOB, outcome_ref=an_id("trn", 1))) == frozenset()


def test_only_types_that_are_said_to_name_blobs_do() -> None:
    silent = [event for event in one_of_each(CountedIds()) if not names_evidence(event.event_type)]
    assert silent
    assert [event.event_type for event in silent if blobs_of(event.body)] == []
    assert all(names_evidence(name) for name in EVENT_KINDS if name.startswith("task."))
