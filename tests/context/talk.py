"""Conversations for tests: records with counted ids, and turns played through a broker."""

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from rune.context.blocks import (
    AssemblyRequest,
    Capsule,
    ContextTrace,
    ContributionBlock,
    Contributor,
    FrozenPrefix,
    ProjectFile,
)
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.records.messages import ConversationMessageRecord, Provenance, Role
from rune.records.tools import ToolCall, ToolSchema
from rune.records.traces import BlockPlacement, Dialect
from tests.fakes.ids import CountedIds

Message = ConversationMessageRecord

READ_FILE = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def estimate(text: str) -> int:
    """Three bytes a token: more than enough for what these tests say, and cheap."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


class Writer:
    """Makes records, each with the next id."""

    def __init__(self) -> None:
        self._ids = CountedIds()

    def message(
        self,
        role: Role,
        content: str,
        *,
        calls: Sequence[ToolCall] = (),
        call_id: str = "",
        thinking: str = "",
        tail: str = "",
        complete: bool = True,
    ) -> Message:
        provenance: dict[Role, Provenance] = {"user": "owner", "tool": "tool"}
        return Message(
            id=self._ids.new_id("msg"),
            ts="2026-11-30T14:00:00.000Z",
            role=role,
            content=content,
            conversation_id="cnv_00000000000000000000000001",
            task_id="tsk_00000000000000000000000001",
            turn_id="trn_00000000000000000000000001",
            token_estimate=0,
            tool_calls=tuple(calls),
            tool_call_id=call_id,
            tool_name="read_file" if role == "tool" else "",
            thinking=thinking,
            tail=tail,
            provenance=provenance.get(role, "model"),
            complete=complete,
        )

    def user(self, content: str, *, tail: str = "") -> Message:
        return self.message("user", content, tail=tail)

    def answer(self, content: str, *, thinking: str = "", complete: bool = True) -> Message:
        return self.message("assistant", content, thinking=thinking, complete=complete)

    def round(self, text: str, results: Sequence[str], *, thinking: str = "") -> list[Message]:
        """Return an assistant message with one call for each result, and the results."""
        calls = [
            ToolCall(id=f"call_{index}", name="read_file", arguments={"path": f"{index}.py"})
            for index in range(len(results))
        ]
        asked = self.message("assistant", text, calls=calls, thinking=thinking)
        return [asked, *(self.message("tool", got, call_id=f"call_{i}") for i, got in enumerate(results))]


def block(
    name: str,
    content: str,
    *,
    priority: int = 50,
    evictable: bool = True,
    placement: BlockPlacement = "tail",
) -> ContributionBlock:
    return ContributionBlock(
        name=name,
        priority=priority,
        content=content,
        source="a test",
        evictable=evictable,
        placement=placement,
        provenance="owner",
    )


class Giver:
    """A contributor that gives what it is told to; an exception is raised."""

    def __init__(self, name: str, *given: Any) -> None:
        self.name = name
        self.given: Any = given

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        del request
        given = cast("Sequence[ContributionBlock]", self.given)
        if isinstance(given, tuple) and given and isinstance(given[0], BaseException):
            raise given[0]
        return given


class Failures:
    """Remembers the T1 failures it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException]] = []

    def __call__(self, name: str, error: BaseException) -> None:
        self.seen.append((name, error))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.seen]


def request_for(
    message: Message,
    *,
    history: Sequence[Message] = (),
    archived: frozenset[str] = frozenset(),
    frozen: FrozenPrefix | None = None,
    last_messages: bytes = b"",
    tools: Sequence[ToolSchema] = (),
    dialect: Dialect = "ollama",
    window: int = 8192,
    project: Sequence[ProjectFile] = (),
) -> AssemblyRequest:
    return AssemblyRequest(
        conversation_id="cnv_00000000000000000000000001",
        message=message,
        history=history,
        archived=archived,
        frozen=frozen,
        last_messages=last_messages,
        tools=tools,
        model="small",
        dialect=dialect,
        window=window,
        project=project,
    )


def broker_of(
    *contributors: Contributor, failures: Failures | None = None, count: Callable[[str], int] = estimate
) -> ContextBroker:
    return ContextBroker(contributors or standard_contributors(), count, failures or Failures())


def sent(capsule: Capsule) -> list[dict[str, Any]]:
    """Return the messages that a capsule sends, decoded."""
    return cast("list[dict[str, Any]]", json.loads(capsule.messages))


class Conversation:
    """Plays turns as the turn engine does: everything that a request brings is carried to the next one."""

    def __init__(self, broker: ContextBroker, *, window: int = 8192, dialect: Dialect = "ollama") -> None:
        self.broker = broker
        self.window = window
        self.dialect: Dialect = dialect
        self.writer = Writer()
        self.tools: Sequence[ToolSchema] = ()
        self.project: Sequence[ProjectFile] = ()
        self.history: list[Message] = []
        self.archived: frozenset[str] = frozenset()
        self.frozen: FrozenPrefix | None = None
        self.last = b""
        self.requests: list[tuple[Capsule, ContextTrace]] = []

    def request(self, message: Message) -> AssemblyRequest:
        return request_for(
            message,
            history=self.history,
            archived=self.archived,
            frozen=self.frozen,
            last_messages=self.last,
            tools=self.tools,
            dialect=self.dialect,
            window=self.window,
            project=self.project,
        )

    def ask(self, text: str, *, rounds: Sequence[Sequence[Message]] = ()) -> ContextTrace:
        """Send a message and then each round; nothing is answered yet. Returns the trace of `assemble`."""
        message = self.writer.user(text)
        capsule, trace = self.broker.assemble(self.request(message))
        self._note(capsule, trace)
        self.history.append(msgspec.structs.replace(message, tail=trace.tail))
        for each in rounds:
            capsule, extended = self.broker.extend(capsule, each)
            self._note(capsule, extended)
            self.history.extend(each)
        return trace

    def turn(self, text: str, answer: str = "Yes.", *, rounds: Sequence[Sequence[Message]] = ()) -> ContextTrace:
        trace = self.ask(text, rounds=rounds)
        self.history.append(self.writer.answer(answer))
        return trace

    def _note(self, capsule: Capsule, trace: ContextTrace) -> None:
        self.requests.append((capsule, trace))
        self.frozen, self.last = capsule.frozen, capsule.messages
        self.archived |= frozenset(trace.archived_now)
