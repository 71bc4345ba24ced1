"""Requests for the broker's canaries."""

from rune.context.blocks import AssemblyRequest
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.records.messages import ConversationMessageRecord, Role
from rune.text.tokens import estimate

_CONVERSATION = "cnv_00000000000000000000000001"


def a_broker() -> ContextBroker:
    """Return the product's broker; a failing contributor is raised instead of noted."""

    def fail(name: str, error: BaseException) -> None:
        raise RuntimeError(f"contributor {name} failed") from error

    return ContextBroker(standard_contributors(), estimate, fail)


def a_request(*, text: str, history: list[ConversationMessageRecord], window: int) -> AssemblyRequest:
    """Return a request that goes on with a history."""
    return AssemblyRequest(
        conversation_id=_CONVERSATION,
        message=_message(len(history), "user", text),
        history=history,
        archived=frozenset(),
        frozen=None,
        last_messages=b"",
        tools=(),
        model="canary",
        dialect="ollama",
        window=window,
        project=(),
    )


def long_history(*, turns: int) -> list[ConversationMessageRecord]:
    """Return so many turns of some sentences each."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return [
        _message(turn * 2 + place, role, f"turn {turn}: the river runs past the town and on to the sea. " * 3)
        for turn in range(turns)
        for place, role in enumerate(roles)
    ]


def _message(number: int, role: Role, content: str) -> ConversationMessageRecord:
    return ConversationMessageRecord(
        id=f"msg_{number:026d}",
        ts="2026-01-01T00:00:00.000Z",
        role=role,
        content=content,
        conversation_id=_CONVERSATION,
        task_id="tsk_00000000000000000000000001",
        turn_id=f"trn_{number // 2:026d}",
        token_estimate=estimate(content),
        provenance="owner" if role == "user" else "model",
    )
