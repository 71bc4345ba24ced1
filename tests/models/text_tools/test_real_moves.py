"""The constrained protocol with the real small model: only structure is asserted, it talks nonsense at times."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from rune.models.embedded.transport import SMOLLM2_NAME, EmbeddedTransport
from rune.models.text_tools.acting import acting
from rune.models.text_tools.constrained import constrained_request, instructions
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    LoadOptions,
    Progress,
    TextDelta,
    ToolCallReady,
)
from rune.records.models import ActionProtocol
from rune.records.tools import ToolSchema
from tests.embedded_model import real_model_file
from tests.models.embedded.calls import transport_for
from tests.turn.rig import until

pytestmark = pytest.mark.model

C: ActionProtocol = "constrained"

FILES = [f"src/part_{number}.py" for number in range(300)]
READ = ToolSchema(
    name="read_file",
    description="Read a file of the project.",
    parameters={"type": "object", "properties": {"path": {"type": "string", "enum": FILES}}, "required": ["path"]},
)
EDIT = ToolSchema(
    name="edit_file",
    description="Change a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "\\.py"},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}, "minItems": 1, "maxItems": 1},
        },
        "required": ["path", "edits"],
        "$defs": {
            "Edit": {
                "type": "object",
                "properties": {"search": {"type": "string", "maxLength": 20}, "lines": {"type": ["integer", "null"]}},
                "required": ["search", "lines"],
            }
        },
    },
)
CHECK = ToolSchema(name="run_tests", description="Run the tests.", parameters={"type": "object", "properties": {}})


@pytest.fixture
async def transport(tmp_path: Path) -> AsyncIterator[EmbeddedTransport]:
    # Not tmp_path for the socket: its path must be short.
    with TemporaryDirectory(prefix="rt-") as runtime:
        transport = transport_for(real_model_file(), Path(runtime), tmp_path)
        yield transport
        await transport.close()


def request(tools: Sequence[ToolSchema], text: str, *, answer: bool = False, limit: int = 200) -> ChatRequest:
    messages = [{"role": "system", "content": instructions(tools)}, {"role": "user", "content": text}]
    plain = ChatRequest(
        model=SMOLLM2_NAME,
        messages=json.dumps(messages).encode(),
        tools=b"[]",
        options=LoadOptions(num_ctx=4096),
        estimated=10,
        max_tokens=limit,
    )
    return constrained_request(plain, tools, answer=answer)


def asked(
    transport: EmbeddedTransport, text: str, tools: Sequence[ToolSchema], *, answer: bool = True, limit: int = 200
) -> AsyncGenerator[ChatChunk, None]:
    return acting(transport.chat(request(tools, text, answer=answer, limit=limit)), tools=tools, protocol=C)


async def heard(chunks: AsyncGenerator[ChatChunk, None]) -> list[ChatChunk]:
    return [chunk async for chunk in chunks if not isinstance(chunk, Progress)]


async def test_a_real_model_calls_a_tool_with_arguments_that_fit(transport: EmbeddedTransport) -> None:
    chunks = await heard(asked(transport, "Read src/part_7.py", [READ, EDIT, CHECK], answer=False))
    ready, end = chunks
    assert isinstance(ready, ToolCallReady)
    assert ready.call.name in {"read_file", "edit_file", "run_tests"}
    assert (ready.call.source, ready.call.id) == ("constrained", "call_1")
    assert isinstance(end, Completed)
    assert (end.reason, end.usage.calls) == ("tool_calls", 1)


async def test_a_live_schema_leaves_only_what_is_there(transport: EmbeddedTransport) -> None:
    ready, _ = await heard(asked(transport, "Read the file /etc/passwd", [READ], answer=False))
    assert isinstance(ready, ToolCallReady)
    assert ready.call.arguments["path"] in FILES


async def test_every_shape_of_schema_is_understood(transport: EmbeddedTransport) -> None:
    ready, _ = await heard(asked(transport, "Change one line of src/part_1.py", [EDIT], answer=False, limit=400))
    assert isinstance(ready, ToolCallReady)
    (edit,) = ready.call.arguments["edits"]
    assert edit.keys() == {"search", "lines"}


async def test_a_real_answer_is_streamed_as_text(transport: EmbeddedTransport) -> None:
    *texts, end = await heard(asked(transport, "Name three rivers.", (), limit=60))
    assert isinstance(end, Completed)
    assert end.reason in {"stop", "length"}
    assert all(isinstance(chunk, TextDelta) for chunk in texts)
    said = "".join(chunk.text for chunk in texts if isinstance(chunk, TextDelta))
    assert len(texts) > 1
    assert not said.startswith(("{", '"'))


async def test_a_call_is_called_off_in_the_middle(transport: EmbeddedTransport) -> None:
    seen: list[ChatChunk] = []
    given: list[ChatChunk] = []

    async def listen() -> None:
        chunks = acting(tapped(transport.chat(request([EDIT], "Change src/part_1.py")), seen), tools=[EDIT], protocol=C)
        async for chunk in chunks:
            given.append(chunk)  # noqa: PERF401 - what came before the cancel counts

    task = asyncio.create_task(listen())
    await until(lambda: sum(isinstance(chunk, TextDelta) for chunk in seen) > 3)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert all(isinstance(chunk, Progress) for chunk in given)
    assert not any(isinstance(chunk, Completed) for chunk in seen)
    ready, _ = await heard(asked(transport, "Run the tests", [CHECK], answer=False))
    assert isinstance(ready, ToolCallReady)


async def tapped(inner: AsyncGenerator[ChatChunk, None], seen: list[ChatChunk]) -> AsyncGenerator[ChatChunk, None]:
    async with aclosing(inner):
        async for chunk in inner:
            seen.append(chunk)
            yield chunk


@pytest.mark.slow
async def test_an_answer_that_loops_ends_at_the_models_own_limit(transport: EmbeddedTransport) -> None:
    endless = msgspec.structs.replace(request((), "Why is the sky blue?", answer=True), max_tokens=None)
    *_, end = await heard(acting(transport.chat(endless), tools=(), protocol=C))
    assert isinstance(end, Completed)
    assert (end.usage.output_tokens or 0) <= 1024
