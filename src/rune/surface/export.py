"""A conversation as a document: Markdown to read, JSON to have every field. Documented in `docs/export.md`."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rune.records.messages import ConversationMessageRecord
from rune.records.turns import TurnRecord
from rune.store.conversations import Conversation
from rune.surface.remarks import remarks
from rune.surface.rows import CallRow, TurnEnd
from rune.surface.tool_text import line_of
from rune.text.safe_text import safe_text

VERSION: Final = 1

# What may not stand in a message that is put into the document as it is: it could end up as structure of the
# document itself. Judged per line outside of code blocks, rather too strictly than too loosely.
_CONTAINERS: Final = r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t>]+)*"
_HEADING: Final = re.compile(rf"{_CONTAINERS}#{{1,6}}(?:[ \t]|$)")
_UNDERLINE: Final = re.compile(r"[ \t>]*(?:=+|-+)[ \t]*$")
_ANY_FENCE: Final = re.compile(rf"{_CONTAINERS}(?:```|~~~)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_HTML: Final = re.compile(r"<[A-Za-z/!?]")
_DEFINITION: Final = re.compile(rf"{_CONTAINERS}\[[^\]]*\]:")
_PUNCTUATION: Final = re.compile(r"([!-/:-@\[-`{-~])")


class WholeConversation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is kept of a conversation. Messages and turns are in order, oldest first; `ends` says by turn
    how it ended; `calls` what came of the calls in the messages. Of a fork the messages that it shares with its origin
    are among them.
    """

    conversation: Conversation
    messages: tuple[ConversationMessageRecord, ...]
    turns: tuple[TurnRecord, ...]
    ends: dict[str, TurnEnd]
    calls: tuple[CallRow, ...] = ()

    @property
    def folded(self) -> frozenset[str]:
        """The ids of messages that only say what came of a call: where calls stand with their ends, they need not."""
        return frozenset(call.result_message_id for call in self.calls if call.outcome is not None)

    @property
    def calls_of(self) -> dict[str, list[CallRow]]:
        """The calls by the id of the message that made them."""
        found: dict[str, list[CallRow]] = {}
        for call in self.calls:
            found.setdefault(call.message_id, []).append(call)
        return found


def as_json(whole: WholeConversation) -> str:
    """Return it as one JSON object, ASCII: nothing is left out."""
    conversation = whole.conversation
    facts: dict[str, Any] = {
        **msgspec.to_builtins(conversation.record),
        "last_active": conversation.last_active,
        "hidden": conversation.hidden,
        "renamed": conversation.renamed,
    }
    turns: list[dict[str, Any]] = []
    for turn in whole.turns:
        end = whole.ends.get(turn.id)
        known = end or TurnEnd(reason=None)
        beside = {"error": known.error, "hint": known.hint, "may_have_run": list(known.may_have_run)}
        turns.append(msgspec.to_builtins(turn) | beside)
    document = {
        "version": VERSION,
        "conversation": facts,
        "messages": [msgspec.to_builtins(message) for message in whole.messages],
        "turns": turns,
        "calls": [msgspec.to_builtins(call) for call in whole.calls],
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1)


def as_markdown(whole: WholeConversation) -> str:
    """Return it as Markdown. Control characters are made visible, as on a terminal.

    Only Rune's own headings are headings of the document: a message that has some, or raw HTML, or a code block
    that is never closed, stands in a quotation; any other as it was written.
    """
    said = remarks(whole.conversation.record.id, whole.messages, whole.ends)
    parts = [_front(whole)]
    calls, folded = whole.calls_of, whole.folded
    for message in whole.messages:
        if message.id not in folded:
            parts.append(_message(message, calls.get(message.id, ())))
        for remark in said.get(message.id, ()):
            foreign = f": {_plain(remark.foreign)}" if remark.foreign else ""
            parts.append(f"*\\[{remark.text}{foreign}\\]*")
    return "\n\n".join(parts) + "\n"


def embedded(text: str) -> str:
    """Return a message so that it can stand in a Markdown document: as it is, or in a quotation."""
    safe = safe_text(text.replace("\r\n", "\n")).strip("\n")
    if not safe.strip():
        return ""
    if _is_harmless(safe):
        return safe
    return "\n".join(f"> {line}" if line else ">" for line in safe.split("\n"))


def _front(whole: WholeConversation) -> str:
    record, conversation = whole.conversation.record, whole.conversation
    facts = [
        ("conversation", _code(record.id)),
        ("channel", record.channel),
        ("folder", _code(record.folder)),
        ("model", _code(record.model) if record.model else "none yet"),
        ("began", _time(record.created_at)),
        ("last message", _time(conversation.last_active)),
        ("messages", f"{len(whole.messages):,}"),
    ]
    if record.forked_from is not None:
        behind = f" behind {_code(record.fork_msg_id)}" if record.fork_msg_id else ""
        facts.append(("branched off", f"{_code(record.forked_from)}{behind}"))
    lines = "\n".join(f"- {name}: {value}" for name, value in facts)
    return f"# {_plain(record.title) or 'Untitled'}\n\n{lines}"


def _message(message: ConversationMessageRecord, made: Sequence[CallRow]) -> str:
    parts = [f"## {_speaker(message)}, {_time(message.ts)}\n\n<!-- {message.id} -->"]
    if message.thinking:
        parts.append(f"*\\[thinking left out: {len(message.thinking):,} characters\\]*")
    text = _fenced(message.content) if message.role == "tool" else embedded(message.content)
    if text:
        parts.append(text)
    if made:
        parts.append("Tool calls:\n\n" + "\n".join(f"- {_code(line_of(call))}" for call in made))
    elif message.tool_calls:
        calls = (f"- {_code(call.name)} {_code(_arguments(call.arguments))}" for call in message.tool_calls)
        parts.append("Tool calls:\n\n" + "\n".join(calls))
    return "\n\n".join(parts)


def _speaker(message: ConversationMessageRecord) -> str:
    match message.role:
        case "user":
            return "You" if message.provenance == "owner" else f"You ({message.provenance})"
        case "assistant":
            return f"Rune ({_plain(message.model)})" if message.model else "Rune"
        case "tool":
            return f"Tool {_plain(message.tool_name)}"
        case "system":
            return "System"


def _is_harmless(text: str) -> bool:
    """Say whether nothing in a text can become structure of the document that it stands in."""
    fence, before = "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
            continue
        if found:
            fence, before = found[1], ""
            continue
        if _ANY_FENCE.match(line) or _HEADING.match(line) or _HTML.search(line) or _DEFINITION.match(line):
            return False
        if before.strip() and _UNDERLINE.match(line):
            return False
        before = line
    return not fence


def _fenced(text: str) -> str:
    """Return what a tool said as a code block that nothing in it can close."""
    safe = safe_text(text.replace("\r\n", "\n")).strip("\n")
    longest = max((len(run) for run in re.findall("`+", safe)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}\n{safe}\n{fence}" if safe else ""


def _code(text: str | None) -> str:
    """Return one line as a code span that nothing in it can close."""
    safe = " ".join(safe_text(text or "", newlines=False, tabs=False).split())
    longest = max((len(run) for run in re.findall("`+", safe)), default=0)
    ticks = "`" * (longest + 1)
    padding = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{ticks}{padding}{safe}{padding}{ticks}" if safe else "-"


def _plain(text: str) -> str:
    """Return foreign text as one line in which nothing is Markdown."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(safe_text(text, newlines=False, tabs=False).split()))


def _arguments(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def _time(moment: str) -> str:
    """Return RFC 3339 to the second, in UTC; what was imported may not know its time."""
    return "at an unknown time" if not moment else f"{moment[:10]} {moment[11:19]} UTC"
