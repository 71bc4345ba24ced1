"""What a real Ollama answered on its /v1 route, given out byte for byte and held against what it is known to be."""

from pathlib import Path

from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import Completed, ToolCallReady
from tests.models.transport_contract import TOOLS, collect, request, text_of
from tests.openai_server import CHAT, MODELS, OpenAIServer, stream

DATA = Path(__file__).parents[2] / "data" / "openai"


async def test_a_whole_answer(openai_server: OpenAIServer, openai_transport: OpenAITransport) -> None:
    body = (DATA / "openai_chat.response.json").read_bytes()
    openai_server.reply(CHAT, stream(body, headers={"Content-Type": "application/json"}))
    chunks, error = await collect(openai_transport, request("test"))
    assert error is None
    assert text_of(chunks) == 'The phrase "to the best of your'
    assert isinstance(end := chunks[-1], Completed)
    assert (end.reason, end.usage.prompt_tokens, end.usage.output_tokens) == ("length", 10, 8)


async def test_a_streamed_call(openai_server: OpenAIServer, openai_transport: OpenAITransport) -> None:
    openai_server.reply(CHAT, stream((DATA / "openai_chat_stream_tools.response.txt").read_bytes()))
    chunks, error = await collect(openai_transport, request("test", tools=TOOLS))
    assert error is None
    (call,) = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert (call.id, call.name, call.arguments) == ("call_gif7psts", "read_file", {"path": "calc.py", "start_line": 1})
    assert isinstance(end := chunks[-1], Completed)
    assert (end.reason, end.usage.prompt_tokens, end.usage.output_tokens) == ("tool_calls", 219, 38)


async def test_a_list_of_models(openai_server: OpenAIServer, openai_transport: OpenAITransport) -> None:
    openai_server.reply(MODELS, stream((DATA / "openai_models.response.json").read_bytes()))
    names = [info.name.partition("/")[2] for info in await openai_transport.models()]
    assert names == ["qwen2.5-coder:1.5b-native", "qwen2.5-coder:1.5b", "smollm2:135m"]
