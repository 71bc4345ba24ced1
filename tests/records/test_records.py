"""Records load whole or not at all, and the tables that others rely on say what the design says."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import InvalidRecordError
from rune.records.events import EVENT_KINDS, Event, HistoryArchived, SessionEnded, TurnFailed, check_event, kind_of
from rune.records.ids import ID_KINDS, IdKind, is_id
from rune.records.messages import ConversationMessageRecord
from rune.records.record import Record, from_builtins, from_json, to_builtins
from rune.records.tasks import AMENDABLE, LEGAL_TRANSITIONS, TaskStatus
from rune.records.times import milliseconds, rfc3339
from rune.records.tools import ToolCall
from rune.records.traces import PromptRecipe, RecipeBlock, RecipeMessage
from rune.records.usage import Usage


def a_message(**changes: Any) -> ConversationMessageRecord:
    values: dict[str, Any] = {
        "id": "msg_1", "ts": "2026-11-30T14:00:00.000Z", "role": "assistant", "content": "Grüße \ud83d\ude00",
        "conversation_id": "cnv_1", "task_id": "tsk_1", "turn_id": "trn_1", "token_estimate": 3,
        "provenance": "model", "usage": Usage(calls=1, prompt_tokens=5),
        "tool_calls": (ToolCall(id="c1", name="read_file", arguments={"path": "a", "deep": {"x": [1, None]}}),),
    }  # fmt: skip
    return ConversationMessageRecord(**(values | changes))


def as_values(record: Record) -> dict[str, Any]:
    return to_builtins(record)


def test_a_record_comes_back_equal() -> None:
    record = a_message(content="Grüße")
    assert from_json(msgspec.json.encode(record), ConversationMessageRecord) == record
    assert from_builtins(as_values(record), ConversationMessageRecord) == record


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        a_message().content = "other"  # pyright: ignore[reportAttributeAccessIssue] - that it is refused is the point


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("token_estimate",), "3", "token_estimate"),
        (("token_estimate",), 3.5, "token_estimate"),
        (("token_estimate",), True, "token_estimate"),
        (("complete",), 1, "complete"),
        (("content",), None, "content"),
        (("role",), "robot", "role"),
        (("usage", "calls"), "1", "usage.calls"),
        (("usage",), [], "usage"),
        (("tool_calls", 0, "name"), 7, "tool_calls[0].name"),
        (("tool_calls", 0, "source"), "guessed", "tool_calls[0].source"),
        (("tool_calls", 0, "arguments"), "{}", "tool_calls[0].arguments"),
    ],
)
def test_a_value_of_the_wrong_type_names_its_field_at_any_depth(
    path: tuple[str | int, ...], value: object, field: str
) -> None:
    values = as_values(a_message())
    place: Any = values
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(InvalidRecordError) as caught:
        from_builtins(values, ConversationMessageRecord)
    assert caught.value.field == field
    assert caught.value.record == "ConversationMessageRecord"
    assert caught.value.expected
    assert caught.value.got


@pytest.mark.parametrize("name", ConversationMessageRecord.__struct_fields__)
def test_every_missing_field_is_named_also_one_that_has_a_default(name: str) -> None:
    values = as_values(a_message())
    del values[name]
    with pytest.raises(InvalidRecordError) as caught:
        from_builtins(values, ConversationMessageRecord)
    assert (caught.value.field, caught.value.got) == (name, "nothing")


@pytest.mark.parametrize(
    ("where", "missing", "field"),
    [(("usage",), "cached_tokens", "usage.cached_tokens"), (("tool_calls", 0), "source", "tool_calls[0].source")],
)
def test_a_missing_field_is_named_at_any_depth(where: tuple[str | int, ...], missing: str, field: str) -> None:
    values = as_values(a_message())
    place: Any = values
    for step in where:
        place = place[step]
    del place[missing]
    with pytest.raises(InvalidRecordError) as caught:
        from_builtins(values, ConversationMessageRecord)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("where", "field"), [((), "extra"), (("usage",), "usage.extra"), (("tool_calls", 0), "tool_calls[0].extra")]
)
def test_an_unknown_field_is_named_at_any_depth(where: tuple[str | int, ...], field: str) -> None:
    values = as_values(a_message())
    place: Any = values
    for step in where:
        place = place[step]
    place["extra"] = 1
    with pytest.raises(InvalidRecordError) as caught:
        from_builtins(values, ConversationMessageRecord)
    assert caught.value.field == field


def test_a_deep_record_is_named_down_to_its_place_in_a_list() -> None:
    block = RecipeBlock(name="persona", placement="prefix", tokens=1, blob="b")
    recipe = PromptRecipe(
        dialect="ollama", prefix="p", blocks=(block, block), history=(RecipeMessage(message_id="m", rendering="r"),),
        tools="", messages_hash="h", messages_bytes=1, prompt_tokens_estimated=1,
    )  # fmt: skip
    values = as_values(recipe)
    del values["blocks"][1]["tokens"]
    with pytest.raises(InvalidRecordError, match=r"PromptRecipe: blocks\[1\]\.tokens: expected a value, got nothing"):
        from_builtins(values, PromptRecipe)


def test_a_recipe_without_what_newer_ones_may_say_reads_and_writes_as_it_was() -> None:
    older: dict[str, Any] = {
        "dialect": "ollama", "prefix": "p", "blocks": (), "history": (), "tools": "", "messages_hash": "h",
        "messages_bytes": 1, "prompt_tokens_estimated": 1,
    }  # fmt: skip
    recipe = from_builtins(older, PromptRecipe)
    assert (recipe.format, recipe.think, recipe.temperature) == ("", None, None)
    assert to_builtins(recipe) == older
    newer = older | {"format": "f", "think": "off", "temperature": 0.0}
    assert to_builtins(from_builtins(newer, PromptRecipe)) == newer
    assert from_builtins(newer, PromptRecipe).blobs == {"p", "f"}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"null", b"\xff", b'{"calls":1}{"calls":1}'])
def test_what_is_no_record_is_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        from_json(data, Usage)


# Every name of spine.md, Event vocabulary, with the partition it belongs to.
VOCABULARY = {
    "conversation": """
        conversation.created conversation.renamed conversation.forked conversation.hidden
        turn.started turn.finished turn.failed user.message response.generated tool.message tool.intent tool.result
        command.run owner.correction task.created task.amended task.transition task.stale task.imported
        approval.requested approval.decided approval.expired inference.traced summary.written summary.undone
        history.archived session.checkpoint context.prefix_changed context.pressure
        model.selected thinking.selected permission.changed mode.changed""",
    "memory": """
        memory.created memory.recalled memory.conflict memory.superseded memory.disputed memory.retired memory.erased
        memory.abstraction_candidate dream.proposed dream.applied dream.undone lesson.candidate lesson.promoted
        commitment.created commitment.closed""",
    "model": "model.score model.traced model.unavailable",
    "system": """
        session.started session.ended trust.granted trust.revoked rule.added rule.revoked rule.fired
        capability.requested capability.selected capability.failed capability.unavailable background.failed
        storage.degraded journal.repaired journal.forked body.erased config.changed event.imported pin.imported""",
}


def test_the_registry_holds_exactly_the_vocabulary_each_name_in_its_partition() -> None:
    wanted = {name: partition for partition, names in VOCABULARY.items() for name in names.split()}
    assert {name: kind.partition for name, kind in EVENT_KINDS.items()} == wanted
    assert all(kind.name == name and kind.meaning for name, kind in EVENT_KINDS.items())


def test_every_body_is_a_frozen_record_that_refuses_unknown_fields_and_carries_a_version() -> None:
    for kind in EVENT_KINDS.values():
        if kind.body is not None:
            config = kind.body.__struct_config__
            assert config.frozen, kind.name
            assert config.forbid_unknown_fields, kind.name
            assert "schema_version" in kind.body.__struct_fields__, kind.name


def an_event(event_type: str, body: Record, partition_key: str) -> Event:
    return Event(
        event_id="evt_1", event_type=event_type, partition_key=partition_key, actor_id="rune",
        timestamp="2026-11-30T14:00:00.000Z", body=body,
    )  # fmt: skip


ENDED = SessionEnded(id="ses_1")
FAILED = TurnFailed(turn_id="trn_1", conversation_id="cnv_1", error="ServerError", message="no", hint="")


def test_an_event_that_fits_the_registry_passes() -> None:
    check_event(an_event("session.ended", ENDED, "system"))
    check_event(an_event("turn.failed", FAILED, "cnv_1"))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (an_event("session.exploded", ENDED, "system"), "'session.exploded' is not registered"),
        (an_event("memory.created", ENDED, "memory"), "is reserved and not emitted"),
        (an_event("session.ended", FAILED, "system"), "carries a SessionEnded, not a TurnFailed"),
        (an_event("session.ended", ENDED, "cnv_1"), "belongs to partition 'system', not 'cnv_1'"),
        (an_event("turn.failed", FAILED, "system"), "belongs to a conversation, not to 'system'"),
    ],
)
def test_an_event_that_does_not_fit_is_a_value_error_that_says_why(event: Event, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_event(event)


def test_a_name_that_is_not_registered_has_no_kind() -> None:
    with pytest.raises(ValueError, match=r"'nope' is not registered"):
        kind_of("nope")
    assert kind_of("history.archived").body is HistoryArchived


@given(st.integers(0, 253_402_300_799_999))
def test_a_time_comes_back_to_the_millisecond_and_sorts_as_text(moment: int) -> None:
    text = rfc3339(moment)
    assert milliseconds(text) == moment
    assert len(text) == 24
    assert text.endswith("Z")
    assert moment == 0 or rfc3339(moment - 1) < text


def test_a_time_is_written_in_one_way_only() -> None:
    assert rfc3339(1_796_047_200_123) == "2026-11-30T14:00:00.123Z"
    for other in ("2026-11-30T14:00:00", "2026-11-30 14:00:00.000Z", "2026-13-30T14:00:00.000Z", "now"):
        with pytest.raises(ValueError, match="does not match format"):
            milliseconds(other)


ULID = "01kb9y3c7m0000000000000000"


@pytest.mark.parametrize("kind", ID_KINDS)
def test_an_id_has_three_letters_and_a_ulid(kind: IdKind) -> None:
    assert is_id(f"{kind}_{ULID}")
    assert is_id(f"{kind}_{ULID}", kind)
    assert not is_id(f"{kind}_{ULID}", "dev" if kind != "dev" else "evt")


@pytest.mark.parametrize(
    "text",
    [
        *("", "msg", f"msg{ULID}", f"xyz_{ULID}", f"msg_{ULID[:-1]}", f"msg_{ULID}0", f"msg_{ULID.upper()}"),
        *(f"MSG_{ULID}", f"msg_8{ULID[1:]}", f"msg_{ULID[:-1]}i", f"msg_{ULID[:-1]}l", f"msg_{ULID[:-1]}o"),
        *(f"msg_{ULID[:-1]}u", f"msg_{ULID}\n", f" msg_{ULID}", f"msg_{ULID[:-1]}\u0663"),
    ],
)
def test_anything_else_is_no_id(text: str) -> None:
    assert not is_id(text)


def test_the_kinds_of_ids_are_those_of_the_design() -> None:
    assert get_args(IdKind) == ("evt", "msg", "cnv", "tsk", "trn", "apr", "trc", "ses", "mem", "dev", "cal", "rul")


def test_a_figure_that_nobody_knows_is_not_nought() -> None:
    known = Usage(calls=1, prompt_tokens=10, cached_tokens=0, output_tokens=5)
    unknown = Usage(calls=1)
    assert unknown.plus(unknown) == Usage(calls=2)
    assert known.plus(unknown) == Usage(calls=2, prompt_tokens=10, cached_tokens=0, output_tokens=5)
    assert unknown.plus(known) == known.plus(unknown)
    assert known.plus(known).prompt_tokens == 20
    assert json.loads(msgspec.json.encode(unknown))["prompt_tokens"] is None


COUNTS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(
    Usage,
    calls=st.integers(0, 99),
    prompt_tokens=COUNTS,
    cached_tokens=COUNTS,
    output_tokens=COUNTS,
    model_time_ms=COUNTS,
)


@given(USAGES, USAGES, USAGES)
def test_usage_adds_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))


# spine.md, TaskStateRepository.
DIAGRAM = """
created            -> running | cancelled | superseded | failed
running            -> open | awaiting_approval | completed | failed | cancelled | superseded
open               -> running | completed | cancelled | superseded
awaiting_approval  -> running | open | cancelled | superseded | failed
failed             -> running
"""


def test_a_task_may_go_where_the_diagram_says_and_nowhere_else() -> None:
    drawn = {
        (start.strip(), end.strip())
        for line in DIAGRAM.strip().splitlines()
        for start, _, ends in [line.partition("->")]
        for end in ends.split("|")
    }
    assert {(start.value, end.value) for start, ends in LEGAL_TRANSITIONS.items() for end in ends} == drawn
    assert LEGAL_TRANSITIONS.keys() == set(TaskStatus)


def test_a_message_amends_a_task_that_is_alive_and_started() -> None:
    assert {status.value for status in AMENDABLE} == {"open", "running", "awaiting_approval"}
