"""Each recording of a chat with a real Ollama, replayed byte for byte and held against what it is known to be."""

from collections.abc import AsyncIterator

import pytest

from rune.errors import (
    BusyError,
    CapabilityMissingError,
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import Completed, ToolCallReady
from tests.models.transport_contract import collect, request, text_of
from tests.ollama_server import OllamaServer, recorded

COMPLETED = """
chat_after_abort_during_load length 30 5 0 16
chat_keep_alive_0 length 10 5 0 18
chat_keep_alive_10m length 10 5 0 18
chat_keep_alive_minus1 length 10 5 0 18
chat_logprobs length 11 4 0 11
chat_nonstream_smollm2 stop 21 8 0 31
chat_num_predict_length length 15 5 0 18
chat_num_predict_length_nonstream length 15 5 0 18
chat_stop_sequence stop 22 46 0 206
chat_stream_qwen_cold stop 43 17 0 45
chat_stream_smollm2 stop 21 8 0 31
chat_stream_smollm2_cold stop 21 8 0 31
chat_utf8 length 30 40 0 13
ctx_above_model_max length 10 5 0 18
ctx_generation_overflow_default length 22 400 0 2039
ctx_generation_overflow_shift_false length 22 234 0 1156
ctx_long_history_default stop 465 2 0 2
ctx_single_long_msg_default stop 258 10 0 22
ctx_single_long_msg_default_qwen length 258 20 0 71
err_body_bad_role length 10 5 0 25
format_json stop 21 19 0 44
native_tools_after_unload_ok length 272 20 0 64
parallel_1 stop 38 28 0 145
parallel_2 stop 38 11 0 42
queue_full_0 stop 32 2 0 1
queue_full_1 length 12 4 0 13
schema_nonstream_qwen stop 34 27 0 70
schema_nonstream_qwen_native stop 34 33 0 72
schema_nonstream_qwen_tools stop 34 27 0 70
schema_stream_qwen stop 34 27 0 70
schema_stream_qwen_native stop 34 33 0 72
schema_stream_qwen_tools stop 34 27 0 70
schema_with_tools_qwen stop 231 34 0 70
schema_with_tools_qwen_native stop 272 37 0 73
schema_with_tools_qwen_tools stop 231 34 0 70
think_false_ok length 10 5 0 18
tool_cut_by_num_predict_qwen length 231 8 0 28
tool_cut_by_num_predict_qwen_native length 272 8 0 26
tool_cut_in_call_fewshot_qwen length 347 12 0 41
tool_nonstream_fewshot_qwen stop 347 17 0 54
tool_nonstream_fewshot_qwen_native_fence tool_calls 392 22 1 0
tool_nonstream_fewshot_qwen_tools tool_calls 349 21 1 0
tool_nonstream_qwen stop 231 94 0 377
tool_nonstream_qwen_native stop 272 114 0 396
tool_nonstream_qwen_native_fence tool_calls 272 38 1 0
tool_nonstream_qwen_tools tool_calls 231 29 1 0
tool_offered_not_used_qwen stop 230 2 0 1
tool_offered_not_used_qwen_native stop 271 2 0 1
tool_offered_not_used_qwen_tools stop 230 2 0 1
tool_result_followup_qwen stop 280 37 0 113
tool_result_followup_qwen_native stop 322 21 0 64
tool_result_followup_qwen_tools tool_calls 286 37 1 0
tool_stream_fewshot_qwen stop 347 17 0 54
tool_stream_fewshot_qwen_native_fence tool_calls 392 22 1 0
tool_stream_qwen stop 231 94 0 377
tool_stream_qwen_native stop 272 114 0 396
tool_stream_qwen_native_fence tool_calls 272 38 1 0
tool_stream_qwen_tools tool_calls 231 29 1 0
tool_text_then_call_qwen_native_fence tool_calls 265 38 1 0
tool_text_then_call_qwen_tools tool_calls 224 29 1 0
tool_two_calls_qwen length 242 150 0 635
tool_two_calls_qwen_tools tool_calls 242 53 2 0
tool_unknown_tool_qwen_native_fence tool_calls 195 69 1 0
tools_empty_list_ok length 10 5 0 18
unknown_option_ignored length 10 5 0 18
"""

CALLS = {
    "tool_two_calls_qwen_tools": [("call_rg52q98v", "read_file", {"path": "a.py", "start_line": 1}),
                                  ("call_8yt3k0ad", "read_file", {"path": "b.py", "start_line": 1})],
    "tool_stream_qwen_native_fence": [("SWcXDIfIvEDHgTQ14IJHkHgeyCJS3aWN", "read_file",
                                       {"path": "calc.py", "start_line": 1})],
}  # fmt: skip

FAILED: dict[str, tuple[type[ModelError], str]] = {
    "chat_empty_messages_load": (ProtocolError, "request to load the model"),
    "unload_keep_alive_0_empty": (ProtocolError, "request to unload the model"),
    "unload_not_loaded": (ProtocolError, "request to unload the model"),
    "unload_qwen": (ProtocolError, "request to unload the model"),
    "client_abort_midstream": (StreamBrokenError, "in mid-answer"),
    "runner_killed_midstream": (ServerError, "unexpected EOF"),
    "runner_killed_nonstream": (ServerError, "unexpected EOF"),
    "ctx_long_history_truncate_false": (ContextTruncatedError, "1,322 tokens, over the window of 512"),
    "ctx_single_long_msg_default_qwen_native": (ContextTruncatedError, "2,049 tokens, over the window of 512"),
    "ctx_single_long_msg_shift_false": (ContextTruncatedError, "does not fit"),
    "ctx_single_long_msg_shift_false_qwen_native": (ContextTruncatedError, "2,049 tokens, over the window of 512"),
    "ctx_single_long_msg_truncate_false": (ContextTruncatedError, "7,396 tokens, over the window of 512"),
    "ctx_single_long_msg_truncate_false_nonstream": (ContextTruncatedError, "7,396 tokens, over the window of 512"),
    "err_bad_host_header_403": (ServerError, "answered 403"),
    "err_bad_origin_403": (ServerError, "answered 403"),
    "err_bad_keep_alive": (ServerError, "400: time: invalid duration"),
    "err_bad_model_name_400": (ServerError, "400: invalid model name"),
    "err_bad_option_type": (ServerError, "500: option \"temperature\" must be of type float32"),
    "err_body_content_list_400": (ServerError, "400: json: cannot unmarshal array"),
    "err_body_empty_400": (ServerError, "400: missing request body"),
    "err_body_not_json_400": (ServerError, "400: invalid character"),
    "err_body_wrong_type_400": (ServerError, "400: json: cannot unmarshal string"),
    "err_chat_with_embedding_model": (CapabilityMissingError, "does not support chat"),
    "err_load_broken_model": (ServerError, "500: tensor"),
    "err_load_broken_model_nonstream": (ServerError, "500: tensor"),
    "err_no_model_400": (ServerError, "400: model is required"),
    "err_think_badvalue_400": (ServerError, "400: invalid think value"),
    "err_think_level_400": (CapabilityMissingError, "does not support thinking"),
    "err_think_qwen_400": (CapabilityMissingError, "does not support thinking"),
    "err_think_unsupported_400": (CapabilityMissingError, "does not support thinking"),
    "err_tools_unsupported_400": (CapabilityMissingError, "does not support tools"),
    "err_tools_unsupported_400_nonstream": (CapabilityMissingError, "does not support tools"),
    "err_unknown_model_404": (ModelNotFoundError, "not found"),
    "err_unknown_model_notag_404": (ModelNotFoundError, "not found"),
    "native_tools_on_shared_runner_500": (ServerError, "500: tools param requires --jinja flag"),
    "queue_full_2": (BusyError, "busy"),
    "tool_args_as_string_history_qwen": (ServerError, "400: Value looks like object"),
    "tool_args_as_string_history_qwen_native": (ServerError, "400: Value looks like object"),
    "tool_args_as_string_history_qwen_tools": (ServerError, "400: Value looks like object"),
    "tool_cut_by_num_predict_qwen_tools": (EmptyOutputError, "8 tokens generated"),
    "tool_cut_in_call_fewshot_qwen_native": (EmptyOutputError, "1 tokens generated"),
    "tool_cut_in_call_fewshot_qwen_tools": (EmptyOutputError, "12 tokens generated"),
    "tool_nonstream_fewshot_qwen_native": (EmptyOutputError, "1 tokens generated"),
    "tool_stream_fewshot_qwen_native": (EmptyOutputError, "1 tokens generated"),
    "tool_cut_in_call_fewshot_qwen_native_fence": (ServerError, "500: llama-server returned invalid tool call"),
    "tool_cut_in_call_qwen_native_fence": (ServerError, "500: llama-server returned invalid tool call"),
    "notfound_route_404": (ServerError, "answered 404: 404 page not found"),
    "chat_wrong_method_405": (ServerError, "answered 405: 405 method not allowed"),
}  # fmt: skip


async def no_wait(_: float) -> None:
    return None


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as server:
        yield server


@pytest.fixture
async def transport(server: OllamaServer) -> AsyncIterator[OllamaTransport]:
    transport = OllamaTransport(server.url, sleep=no_wait)
    yield transport
    await transport.close()


@pytest.mark.parametrize("row", COMPLETED.split("\n")[1:-1])
async def test_a_whole_answer_is_decoded_as_it_was(server: OllamaServer, transport: OllamaTransport, row: str) -> None:
    name, reason, prompt, output, calls, seen = row.split()
    server.reply("/api/chat", recorded(name))
    chunks, error = await collect(transport, request("m", estimated=int(prompt)))
    assert error is None
    ended = chunks[-1]
    assert isinstance(ended, Completed)
    assert (ended.reason, ended.usage.prompt_tokens, ended.usage.output_tokens) == (reason, int(prompt), int(output))
    assert ended.usage.model_time_ms
    assert sum(isinstance(chunk, ToolCallReady) for chunk in chunks) == int(calls)
    assert len(text_of(chunks)) == int(seen)


@pytest.mark.parametrize("name", list(CALLS))
async def test_calls_are_decoded_with_their_ids(server: OllamaServer, transport: OllamaTransport, name: str) -> None:
    server.reply("/api/chat", recorded(name))
    chunks, _ = await collect(transport, request("m", estimated=272))
    calls = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert [(call.id, call.name, call.arguments) for call in calls] == CALLS[name]


@pytest.mark.parametrize("name", list(FAILED))
async def test_an_answer_that_is_not_whole_ends_in_its_own_error(
    server: OllamaServer, transport: OllamaTransport, name: str
) -> None:
    kind, words = FAILED[name]
    server.reply("/api/chat", recorded(name))
    _, error = await collect(transport, request("m"))
    assert error is not None
    assert type(error) is kind
    assert words in error.message


@pytest.mark.parametrize(
    ("name", "estimated", "served"),
    [
        ("ctx_single_long_msg_default", 7396, 258),
        ("ctx_single_long_msg_default_qwen", 7396, 258),
        ("ctx_long_history_default", 1322, 465),
    ],
)
async def test_a_prompt_that_a_real_server_cut_in_silence_is_noticed(
    server: OllamaServer, transport: OllamaTransport, name: str, estimated: int, served: int
) -> None:
    server.reply("/api/chat", recorded(name))
    asked = request("m", estimated=estimated, num_ctx=512)
    _, error = await collect(transport, asked)
    assert isinstance(error, ContextTruncatedError)
    assert (error.estimated, error.served, error.window) == (estimated, served, 512)
