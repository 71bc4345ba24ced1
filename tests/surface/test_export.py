"""A conversation as a document: nothing is missing in JSON, and no message can pass for the document's own words."""

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rune.errors import StorageUnavailableError, StreamBrokenError, UsageError
from rune.models.scripted import breaks, says
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.record import from_builtins
from rune.records.tools import ToolCall
from rune.records.turns import StopReason, TurnRecord
from rune.records.usage import Usage
from rune.store.conversations import Conversation
from rune.surface.export import WholeConversation, as_json, as_markdown, embedded
from rune.surface.export_file import default_name, write_export
from rune.surface.rows import TurnEnd
from rune.text.safe_text import safe_text
from tests.turn.rig import rig

NOW = "2026-11-30T12:00:00.000Z"
TURN = "trn_00000000000000000000000001"
CODE = "Like this:\n\n```python\n# not a heading\nprint('<b>')\n```\n\nDone."
PIECES = (
    *("# top", "## You, 2026", "   ###### deep", "- # in a list", "> ## in a quote", "title\n===", "title\n---"),
    *("```", "````md", "~~~", "   ```", "- ```", "`open", "``` a ` b", "    indented", "\tindented"),
    *("<!--", "<details>", "a <b>bold", "</blockquote>", "<pre>", "<?x", "[a]: http://example.org", "<http://x.y>"),
    *(
        "- item",
        "1. one",
        "> quote",
        "***",
        "---",
        "| a |\n|---|",
        "\\",
        "*",
        "",
        " ",
        "words",
        "\r",
        "\x1b[31m",
        "\u2028",
    ),
)


def a_message(text: str, role: str = "assistant", **fields: object) -> ConversationMessageRecord:
    values = {
        "id": "msg_00000000000000000000000001",
        "ts": NOW,
        "role": role,
        "content": text,
        "conversation_id": "cnv_00000000000000000000000001",
        "task_id": "tsk_00000000000000000000000001",
        "turn_id": TURN,
        "token_estimate": 3,
        "provenance": "owner" if role == "user" else "model",
        **fields,
    }
    return msgspec.convert(values, ConversationMessageRecord)


def a_conversation(*messages: ConversationMessageRecord, title: str = "rivers", **end: object) -> WholeConversation:
    record = ConversationRecord(
        id="cnv_00000000000000000000000001",
        channel="task",
        folder="/home/ada/poems",
        title=title,
        model="scripted",
        created_at=NOW,
    )
    turn = TurnRecord(
        id=TURN,
        conversation_id=record.id,
        task_id="tsk_00000000000000000000000001",
        message_id="msg_00000000000000000000000001",
        model="scripted",
    )
    return WholeConversation(
        conversation=Conversation(record=record, last_active=NOW, messages=len(messages), hidden=False, renamed=False),
        messages=messages,
        turns=(turn,),
        ends={TURN: msgspec.convert({"reason": None, **end}, TurnEnd)},
    )


def headings(document: str) -> list[str]:
    """Return the headings that a reader of the document sees, wherever they stand that is not in a quotation."""
    found: list[str] = []
    quoted = 0
    tokens = MarkdownIt("commonmark", {"html": True}).parse(document)
    for token, following in pairwise(tokens):
        quoted += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "heading_open" and not quoted:
            found.append(f"{token.tag} {following.content}")
    return found


OWN = ["h1 rivers", "h2 You, 2026-11-30 12:00:00 UTC", "h2 Rune, 2026-11-30 12:00:00 UTC"]


@given(parts=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=8))
def test_whatever_is_said_the_headings_are_the_document_s_own(parts: list[str]) -> None:
    text = "\n".join(parts)
    document = as_markdown(a_conversation(a_message(text, "user"), a_message(text), a_message("end", "user")))
    assert headings(document) == [*OWN, OWN[1]]
    assert safe_text(document) == document
    outside = [token for token in MarkdownIt("commonmark", {"html": True}).parse(document) if token.level == 0]
    assert [token.content.strip() for token in outside if token.type == "html_block"] == [
        "<!-- msg_00000000000000000000000001 -->"
    ] * 3


@given(parts=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=8))
def test_what_is_quoted_is_the_message_once_the_marks_are_taken_off(parts: list[str]) -> None:
    text = safe_text("\n".join(parts)).strip("\n")
    shown = embedded(text)
    if shown != text and text.strip():
        assert [line.removeprefix(">").removeprefix(" ") for line in shown.split("\n")] == text.split("\n")


def test_a_message_that_is_harmless_stands_as_it_was_written() -> None:
    assert embedded(CODE) == CODE
    document = as_markdown(a_conversation(a_message(CODE)))
    assert f"\n\n{CODE}\n" in document


@pytest.mark.parametrize("title", ["# x", "*a* [b](c)", "a\n# b", "```", "<b>", "1. x"], ids=str.split)
def test_a_title_is_one_heading_of_plain_words(title: str) -> None:
    document = as_markdown(a_conversation(title=title))
    (heading,) = [token for token in MarkdownIt().parse(document) if token.type == "inline"][:1]
    assert {child.type for child in heading.children or ()} <= {"text", "text_special"}
    assert "".join(child.content for child in heading.children or ()) == " ".join(title.replace("\n", "\\n").split())


def test_what_is_no_answer_and_what_broke_off_is_said_with_its_reason() -> None:
    unanswered = as_markdown(a_conversation(a_message("why?", "user"), reason=StopReason.FAILED, error="out of memory"))
    assert "*\\[no answer: failed: out of memory\\]*" in unanswered
    cut = as_markdown(a_conversation(a_message("The Rh", complete=False), reason=StopReason.CANCELLED))
    assert "*\\[the answer broke off: cancelled by you\\]*" in cut
    running = as_markdown(a_conversation(a_message("why?", "user")))
    assert "*\\[no answer: the turn has not ended\\]*" in running


def test_thinking_is_noted_calls_are_listed_and_what_a_tool_said_is_a_block() -> None:
    call = ToolCall(id="1", name="read_file", arguments={"path": "a`b.py"})
    asked = a_message("I look.", thinking="hm " * 400, tool_calls=[msgspec.to_builtins(call)])
    said = a_message("# a\n```\nb", "tool", tool_name="read_file", provenance="tool")
    document = as_markdown(a_conversation(asked, said))
    assert "*\\[thinking left out: 1,200 characters\\]*" in document
    assert "hm hm" not in document
    assert '- `read_file` ``{"path": "a`b.py"}``' in document
    assert "## Tool read\\_file, 2026" in document
    assert "````\n# a\n```\nb\n````" in document


async def test_json_has_every_field_of_every_message_and_turn(tmp_path: Path) -> None:
    broken = StreamBrokenError("the server went away", hint="Start it again.")
    answers = [says("The Rhine.", thinking="which?"), breaks("half", broken)]
    async with rig(tmp_path / "home", answers) as it:
        first = await it.say("name a river\n\x1b[31m\u202e")
        await it.say("two", first.conversation_id)
        whole = await it.services.surface.views.whole(first.conversation_id)
        stored = json.loads(as_json(whole))
        assert list(stored) == ["version", "conversation", "messages", "turns", "calls"]
        messages = [from_builtins(message, ConversationMessageRecord) for message in stored["messages"]]
        assert messages == await it.services.surface.views.transcript(first.conversation_id)
        assert messages[1].thinking == "which?"
        turns = [
            {k: v for k, v in turn.items() if k not in ("error", "hint", "may_have_run")} for turn in stored["turns"]
        ]
        assert [from_builtins(turn, TurnRecord) for turn in turns] == list(whole.turns)
        assert [turn["error"] for turn in stored["turns"]] == ["", "the server went away"]
        facts = stored["conversation"]
        extra = {name: facts.pop(name) for name in ("last_active", "hidden", "renamed")}
        assert from_builtins(facts, ConversationRecord) == whole.conversation.record
        assert extra["hidden"] is False
        assert isinstance(messages[0].usage, Usage | None)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Name a river!", "name-a-river-000001.md"),
        ("../../etc/passwd", "etc-passwd-000001.md"),
        ("-rf *", "rf-000001.md"),
        ("", "conversation-000001.md"),
        ("Flüsse 河", "flüsse-河-000001.md"),
        ("河" * 200, f"{'河' * 60}-000001.md"),
    ],
    ids=["words", "path", "option", "empty", "letters", "long"],
)
def test_a_file_is_named_for_its_conversation_and_nothing_else_can_come_of_it(title: str, name: str) -> None:
    record = a_conversation(title=title).conversation.record
    assert default_name(record) == name


def test_a_file_that_is_there_is_left_alone_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    file, link = tmp_path / "there.md", tmp_path / "link.md"
    file.write_text("mine")
    link.symlink_to(tmp_path / "nowhere")
    for taken in (file, link):
        with pytest.raises(UsageError, match="nothing is overwritten"):
            write_export(taken, "text")
    with pytest.raises(StorageUnavailableError, match="cannot be written"):
        write_export(tmp_path / "no" / "such.md", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.md", "there.md"]
    assert file.read_text() == "mine"
    write_export(tmp_path / "new.md", "text\udc80")
    assert (tmp_path / "new.md").read_bytes() == b"text\\udc80"
    assert (tmp_path / "new.md").stat().st_mode & 0o777 == 0o600
