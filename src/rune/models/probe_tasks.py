"""The fixed tasks of the probe, two of each kind, and what counts as done. Changing them changes what scores mean."""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from rune.models.side_messages import SideMessage
from rune.models.text_tools.constrained import call_text, result_text
from rune.records.models import ActionProtocol
from rune.records.tools import ToolCall, ToolSchema
from rune.text.storable import storable

_SEEN_LENGTH: Final = 100
_PAST_CALL: Final = "call_0"
# A call or a result that a model printed, in whatever form: nobody wants to read that as an answer.
_MARKUP: Final = re.compile(r"[<{\[]|```")


class Call(msgspec.Struct, frozen=True):
    """A call of this tool with at least these arguments."""

    tool: str
    arguments: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """Words and no call, nor anything that looks like one; `saying` stands in them, whatever its case. "" takes any."""

    saying: str = ""


class Past(msgspec.Struct, frozen=True):
    """A call that the model made before, and what it came to."""

    call: Call
    result: str


class ProbeTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task: what a person says, what happened since, and what is right now."""

    name: str
    says: str
    expected: Call | Answer
    past: Past | None = None

    def messages(self, protocol: ActionProtocol) -> tuple[SideMessage, ...]:
        """Return what the model is sent after the system message."""
        said = SideMessage(role="user", content=self.says)
        if self.past is None:
            return (said,)
        name, result = self.past.call.tool, self.past.result
        call = ToolCall(id=_PAST_CALL, name=name, arguments=self.past.call.arguments)
        if protocol == "constrained":
            return (
                said,
                SideMessage(role="assistant", content=call_text(call)),
                SideMessage(role="user", content=result_text(name, result)),
            )
        return (
            said,
            SideMessage(role="assistant", calls=(call,)),
            SideMessage(role="tool", content=result, tool_name=name, call_id=_PAST_CALL),
        )

    def passed(self, text: str, calls: Sequence[ToolCall]) -> bool:
        """Say whether this is what was wanted. A call that was only printed as text is not."""
        match self.expected:
            case Call(tool=tool, arguments=arguments):
                if len(calls) != 1 or calls[0].name != tool or calls[0].source == "repaired":
                    return False
                return all(_same(calls[0].arguments.get(name), value) for name, value in arguments.items())
            case Answer(saying=saying):
                words = text.strip()
                return not calls and bool(words) and not _MARKUP.match(words) and saying.lower() in words.lower()


def seen(text: str, calls: Sequence[ToolCall]) -> str:
    """Return in a few words what a model did."""
    if calls:
        said = ", then ".join(_call(call) for call in calls)
    else:
        said = f"answered: {text}" if text.strip() else "said nothing"
    return brief(said)


def brief(text: str) -> str:
    """Return a text as one line of at most 100 characters."""
    line = " ".join(storable(text).split())
    return line if len(line) <= _SEEN_LENGTH else f"{line[: _SEEN_LENGTH - 1]}…"


def _call(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in sorted(call.arguments.items()))
    printed = " (printed as text)" if call.source == "repaired" else ""
    return f"{call.name}({arguments}){printed}"


def _same(given: object, wanted: object) -> bool:
    if isinstance(wanted, str):
        return isinstance(given, str) and _plain(given) == _plain(wanted)
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            _same(cast("dict[str, Any]", given).get(name), value)
            for name, value in cast("dict[str, Any]", wanted).items()
        )
    if isinstance(wanted, list):
        if not isinstance(given, list) or len(cast("list[Any]", given)) != len(cast("list[Any]", wanted)):
            return False
        return all(map(_same, cast("list[Any]", given), cast("list[Any]", wanted)))
    # True == 1, and a number is no yes.
    return type(given) is type(wanted) and given == wanted


def _plain(text: str) -> str:
    """Return a text without what changes nothing about a path: blanks around it, `./` before, `/` behind."""
    return text.strip().removeprefix("./").removesuffix("/")


def _tool(name: str, description: str, properties: dict[str, Any], required: Sequence[str]) -> ToolSchema:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSchema(name=name, description=description, parameters=parameters)


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_EDIT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"old": _text("the text that is there"), "new": _text("what stands in its place afterwards")},
    "required": ["old", "new"],
    "additionalProperties": False,
}

TOOLS: Final = (
    _tool("read_file", "Read a text file of the project.", {"path": _text("the file")}, ["path"]),
    _tool("list_files", "List the names of the files in a folder.", {"folder": _text("the folder")}, ["folder"]),
    _tool(
        "edit_file",
        "Replace pieces of text in a file.",
        {
            "path": _text("the file"),
            "edits": {"type": "array", "items": _EDIT, "minItems": 1, "description": "each piece to replace"},
        },
        ["path", "edits"],
    ),
    _tool(
        "run_tests",
        "Run the project's tests.",
        {
            "folder": _text("the folder with the tests"),
            "timeout_seconds": {"type": "integer", "minimum": 1, "description": "when to give up"},
            "verbose": {"type": "boolean", "description": "whether each test is named"},
        },
        ["folder", "timeout_seconds", "verbose"],
    ),
)

TASKS: Final = (
    ProbeTask(
        name="choose a tool: a file",
        says="What is written in notes.txt?",
        expected=Call("read_file", {"path": "notes.txt"}),
    ),
    ProbeTask(
        name="choose a tool: a folder",
        says="Which files are in the folder docs?",
        expected=Call("list_files", {"folder": "docs"}),
    ),
    ProbeTask(
        name="fill arguments: typed",
        says="Run the tests in the folder checks, verbose, and give up after 90 seconds.",
        expected=Call("run_tests", {"folder": "checks", "timeout_seconds": 90, "verbose": True}),
    ),
    ProbeTask(
        name="fill arguments: nested",
        says="In the file calc.py, replace `a - b` by `a + b`.",
        expected=Call("edit_file", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}),
    ),
    ProbeTask(
        name="use a result: a number",
        says="Which port is set in config.ini?",
        past=Past(Call("read_file", {"path": "config.ini"}), "[server]\nhost = localhost\nport = 8471\n"),
        expected=Answer("8471"),
    ),
    ProbeTask(
        name="use a result: a name",
        says="Which file in the folder src is written in Python?",
        past=Past(Call("list_files", {"folder": "src"}), "logo.png\nREADME.md\nstart.py\n"),
        expected=Answer("start.py"),
    ),
    ProbeTask(
        name="answer without a tool: a fact",
        says="What is the capital of France?",
        expected=Answer("Paris"),
    ),
    ProbeTask(
        name="answer without a tool: a sum",
        says="How much is 17 plus 4?",
        expected=Answer("21"),
    ),
    ProbeTask(
        name="none fits: a message",
        says="Send an e-mail to Anna: I will be ten minutes late.",
        expected=Answer(),
    ),
    ProbeTask(
        name="none fits: the weather",
        says="What is the weather in Lisbon right now?",
        expected=Answer(),
    ),
)
