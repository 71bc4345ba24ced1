"""What a line of an older journal says: its names and fields, read tolerantly."""

import json
import re
from collections.abc import Iterable
from typing import Literal, cast

import msgspec

from rune.records.messages import Channel
from rune.records.tasks import TaskStatus
from rune.store.imports.arrivals import LeftOutError
from rune.store.imports.foreign_json import Foreign, one_line
from rune.store.imports.foreign_times import read_time

NAME_LENGTH = 200

Says = Literal["user", "assistant", "begin", "task", "other"]

_IDS = ("event_id", "id")
_TYPES = ("event_type", "type")
_TIMES = ("timestamp", "ts", "time", "created_at")
_CONVERSATIONS = ("conversation_id", "session_id", "thread_id", "chat_id")
_TEXTS = ("content", "text", "message", "prompt", "response", "answer", "output", "body")
_TITLES = ("title", "description", "name", "goal")
_STATUSES = ("status", "new_status", "state", "to")

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")

_USER = frozenset(
    {"user", "user.message", "message.user", "user.input", "user.prompt", "user.said", "user.text", "prompt",
     "human.message", "message.received", "message.in", "input.received"}
)  # fmt: skip
_ASSISTANT = frozenset(
    {"assistant", "assistant.message", "message.assistant", "assistant.response", "assistant.answer", "assistant.said",
     "assistant.text", "response", "response.generated", "response.sent", "response.final", "model.response",
     "llm.response", "answer", "answer.given", "reply", "reply.sent", "message.sent", "message.out"}
)  # fmt: skip
_EITHER = frozenset({"message", "chat.message", "message.created", "message.added", "conversation.message"})
_SPEAKERS: dict[str, Says] = {
    "user": "user", "human": "user", "owner": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant",
}  # fmt: skip
_BEGIN = re.compile(r"(conversation|session|chat|thread)\.(created|started|start|began|begin|begun|opened|new)")

STATUSES: dict[str, TaskStatus] = {
    **dict.fromkeys(("completed", "complete", "done", "success", "succeeded", "finished", "closed", "resolved"),
                    TaskStatus.COMPLETED),
    **dict.fromkeys(("failed", "failure", "error", "errored"), TaskStatus.FAILED),
    **dict.fromkeys(("cancelled", "canceled", "aborted", "abandoned", "rejected"), TaskStatus.CANCELLED),
    "superseded": TaskStatus.SUPERSEDED,
    # Nothing that is brought in runs, and no approval of it waits: it is the person's move.
    **dict.fromkeys(
        ("open", "created", "new", "pending", "queued", "todo", "running", "in progress", "active", "started", "begun",
         "reopened", "resumed", "paused", "blocked", "waiting", "awaiting approval"),
        TaskStatus.OPEN,
    ),
}  # fmt: skip
"""The states of other programs, as `state_word` writes them."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One line, understood. `key` tells it from every other line; `conversation` and `task` are the original's ids,
    "" where it names none; `text` is masked, and so are all names. `at` is "" when its time is not known.
    """

    says: Says
    key: tuple[str, ...]
    original_id: str
    original_type: str
    source: str
    channel_name: str
    at: str
    conversation: str = ""
    task: str = ""
    text: str = ""
    title: str = ""
    folder: str = ""
    model: str = ""
    status: TaskStatus | None = None

    @property
    def channel(self) -> Channel:
        """Which of our two channels it belongs to."""
        return "chat" if self.channel_name.casefold() == "chat" else "task"


def understand(line: Foreign) -> Said:
    """Return what a line says. Raises LeftOutError for one that names no type."""
    given, masked = line.given, line.masked
    original_type = next((value for name in _TYPES if isinstance(value := given.get(name), str) and value.strip()), "")
    if not original_type:
        raise LeftOutError("it has no type (`event_type` or `type`)")
    event_id = _identity(given, _IDS)
    payload = _object(masked.get("payload"))
    source = masked.get("source")
    name = _words(original_type)
    said = Said(
        says="other",
        key=_key(given, event_id, original_type),
        original_id=_short(_identity(masked, _IDS)),
        original_type=_short(next(masked[key] for key in _TYPES if given.get(key) == original_type)),
        source=_short(source if isinstance(source, str) else _object(source).get("name")),
        channel_name=_short(source if isinstance(source, str) else _object(source).get("channel")),
        at=next((at for key in _TIMES if (at := read_time(masked.get(key)))), ""),
        conversation=_named(given, _CONVERSATIONS),
        task=_named(given, ("task_id",)),
        title=_first_text((payload, masked), _TITLES),
        folder=_first_text((payload,), ("folder", "cwd", "working_directory")),
        model=_short(payload.get("model")),
    )
    return _spoken(said, name, payload, masked)


def state_word(value: object) -> str:
    """Return a state's name as STATUSES has it: lower case, single blanks."""
    return _words(value).replace(".", " ") if isinstance(value, str) else ""


def text_of(value: object) -> str:
    """Return the text in a value: a text, the texts of a list of parts, or of an object's usual field."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [text_of(part) for part in cast("list[object]", value)]
        return "\n".join(part for part in parts if part)
    if isinstance(value, dict):
        return _first_text((cast("dict[str, object]", value),), _TEXTS)
    return ""


def plain_id(value: object) -> str:
    """Return an id as text: a text that is not blank, or a whole number; "" for everything else."""
    if isinstance(value, str):
        return value if value.strip() else ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _spoken(said: Said, name: str, payload: dict[str, object], masked: dict[str, object]) -> Said:
    """Return it with what it says: a message, a beginning, a task's state, or something else."""
    says: Says = "other"
    if name in _USER or name in _ASSISTANT or name in _EITHER:
        role = payload.get("role", masked.get("role", payload.get("sender")))
        says = "user" if name in _USER else "assistant" if name in _ASSISTANT else _SPEAKERS.get(state_word(role), says)
        text = text_of(masked.get("payload")) or _first_text((masked,), _TEXTS)
        return msgspec.structs.replace(said, says=says, text=text) if text.strip() else said
    if _BEGIN.fullmatch(name):
        return msgspec.structs.replace(said, says="begin")
    if name.startswith("task.") and said.task:
        words = [state_word(payload.get(key)) for key in _STATUSES] + [name.removeprefix("task.").replace(".", " ")]
        status = next((STATUSES[word] for word in words if word in STATUSES), None)
        if status is not None:
            return msgspec.structs.replace(said, says="task", status=status)
    return said


def _key(given: dict[str, object], event_id: str, original_type: str) -> tuple[str, ...]:
    """Return what makes a line itself: its id, with type and time, since some programs count from 1 in each file.
    A line without an id is what it says.
    """
    if not event_id:
        return ("content", json.dumps(given, sort_keys=True))
    times = [json.dumps(given[name], sort_keys=True) for name in _TIMES if name in given]
    return ("event", event_id, original_type, *times)


def _identity(fields: dict[str, object], names: Iterable[str]) -> str:
    return next((found for name in names if (found := plain_id(fields.get(name)))), "")


def _named(given: dict[str, object], names: Iterable[str]) -> str:
    names = tuple(names)
    return _identity(_object(given.get("payload")), names) or _identity(given, names)


def _first_text(places: Iterable[dict[str, object]], names: Iterable[str]) -> str:
    names = tuple(names)
    return next((text for place in places for name in names if (text := text_of(place.get(name)))), "")


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _short(value: object) -> str:
    return one_line(value, NAME_LENGTH) if isinstance(value, str) else ""


def _words(name: str) -> str:
    return _BETWEEN.sub(".", _HUMP.sub(".", name[:NAME_LENGTH]).lower()).strip(".")
