"""The embedded transport with the real small model. It talks nonsense at times: only structure is asserted."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from rune.errors import (
    CapabilityMissingError,
    ContextTruncatedError,
    ModelNotFoundError,
    ModelUnavailableError,
    ServerError,
)
from rune.models.embedded.transport import SMOLLM2_NAME, EmbeddedTransport
from rune.models.transport import Completed, Progress, TextDelta
from tests.models.embedded.calls import (
    LONG,
    ORDER,
    STORY,
    WINDOW,
    all_of,
    ask,
    completed,
    pid_of,
    text_of,
    transport_for,
    until,
)

pytestmark = pytest.mark.model


async def test_a_turn_loads_reads_answers_and_completes_with_exact_figures(transport: EmbeddedTransport) -> None:
    chunks = await all_of(transport.chat(ask("Name three rivers.", max_tokens=16)))
    assert chunks[0] == Progress(phase="loading", done=0, total=None)
    kinds = [type(chunk) for chunk in chunks]
    assert kinds == sorted(kinds, key=ORDER.index)
    assert kinds.count(Completed) == 1
    end = chunks[-1]
    assert isinstance(end, Completed)
    assert end.usage.calls == 1
    assert end.usage.prompt_tokens is not None
    assert end.usage.prompt_tokens > 10
    assert end.usage.cached_tokens == 0
    assert end.usage.output_tokens is not None
    assert end.usage.output_tokens <= 16
    assert end.usage.model_time_ms is not None
    assert await transport.window_in_force(SMOLLM2_NAME) == WINDOW
    memory = transport.memory()
    assert memory is not None
    assert 50_000_000 < memory < 2_000_000_000


async def test_a_growing_prompt_is_read_from_the_cache(transport: EmbeddedTransport) -> None:
    first = await completed(transport.chat(ask("Name a river.", max_tokens=4)))
    second = await completed(transport.chat(ask("Name a river.", "The Nile.", "And another?", max_tokens=4)))
    third = await completed(
        transport.chat(ask("Name a river.", "The Nile.", "And another?", "The Po.", "More?", max_tokens=4))
    )
    cached = [end.usage.cached_tokens or 0 for end in (first, second, third)]
    assert cached[0] < cached[1] < cached[2]
    assert first.usage.prompt_tokens is not None
    assert cached[1] >= first.usage.prompt_tokens - 8


async def test_reading_a_long_prompt_is_told_batch_by_batch(transport: EmbeddedTransport) -> None:
    chunks = await all_of(transport.chat(ask(LONG[:900], max_tokens=2)))
    readings = [chunk for chunk in chunks if isinstance(chunk, Progress) and chunk.phase == "reading"]
    end = chunks[-1]
    assert isinstance(end, Completed)
    assert len(readings) >= 4
    assert [reading.done for reading in readings] == sorted({reading.done for reading in readings})
    assert {reading.total for reading in readings} == {end.usage.prompt_tokens}
    assert readings[-1].done == end.usage.prompt_tokens


async def test_an_answer_obeys_a_json_schema(transport: EmbeddedTransport) -> None:
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"tool": {"const": "read"}, "lines": {"type": "integer", "minimum": 1, "maximum": 99}},
                "required": ["tool", "lines"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"answer": {"type": "string", "maxLength": 20}},
                "required": ["answer"],
                "additionalProperties": False,
            },
        ]
    }
    request = ask("Sing something about the sea.", format=json.dumps(schema).encode(), max_tokens=120)
    said = json.loads(await text_of(transport.chat(request)))
    assert said.keys() in ({"tool", "lines"}, {"answer"})
    assert said.get("tool", "read") == "read"
    assert isinstance(said.get("lines", 1), int)


async def test_a_schema_that_is_none_is_refused_and_the_next_call_works(transport: EmbeddedTransport) -> None:
    with pytest.raises(ServerError) as caught:
        await all_of(transport.chat(ask("Hi", format=b'{"$ref": "#/nowhere"}')))
    assert caught.value.status == 400
    assert await completed(transport.chat(ask("Hi", max_tokens=2)))


async def test_another_window_loads_the_model_again(transport: EmbeddedTransport) -> None:
    assert await transport.window_in_force(SMOLLM2_NAME) is None
    windows: list[int | None] = []
    for num_ctx in (512, 512, 1024):
        chunks = await all_of(transport.chat(ask("Hi", num_ctx=num_ctx, max_tokens=2)))
        loads = [chunk for chunk in chunks if isinstance(chunk, Progress) and chunk.phase == "loading"]
        windows.append(await transport.window_in_force(SMOLLM2_NAME) if loads else None)
    assert windows == [512, None, 1024]
    assert await transport.window_in_force("another") is None


async def test_a_prompt_over_the_window_is_told_with_its_numbers(transport: EmbeddedTransport) -> None:
    with pytest.raises(ContextTruncatedError) as caught:
        await all_of(transport.chat(ask(LONG, num_ctx=512, estimated=600)))
    assert caught.value.estimated == 600
    assert caught.value.window == 512
    assert caught.value.served is not None
    assert caught.value.served > 512


async def test_an_answer_that_fills_the_window_ends_with_length(transport: EmbeddedTransport) -> None:
    end = await completed(transport.chat(ask("List the numbers from 1 to 1000. 1, 2, 3, 4,", num_ctx=256)))
    if end.reason == "length":
        assert (end.usage.prompt_tokens or 0) + (end.usage.output_tokens or 0) <= 257


async def test_calls_on_one_worker_take_turns(transport: EmbeddedTransport) -> None:
    first = transport.chat(ask(STORY, max_tokens=12))
    await until(TextDelta, first)
    second = asyncio.create_task(all_of(transport.chat(ask("Hi", max_tokens=2))))
    rest = await all_of(first)
    assert isinstance(rest[-1], Completed)
    assert isinstance((await second)[-1], Completed)


async def test_two_transports_answer_at_once(model_file: Path, runtime_dir: Path, tmp_path: Path) -> None:
    transports = [transport_for(model_file, runtime_dir, tmp_path) for _ in range(2)]
    ends = await asyncio.gather(*(completed(each.chat(ask("Hi", max_tokens=4))) for each in transports))
    assert len({pid_of(each) for each in transports}) == 2
    assert [end.usage.calls for end in ends] == [1, 1]
    for each in transports:
        await each.close()


async def test_counting_is_exact(transport: EmbeddedTransport) -> None:
    assert await transport.count("") == 0
    text = "Rivers flow. \u65e5\u672c\u8a9e \U0001f600 \ud800"
    assert 0 < await transport.count(text) < await transport.count(text * 2) <= 2 * await transport.count(text)


async def test_a_file_that_is_not_ours_is_named_after_itself(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "Some-Model.Q4.gguf"
    path.symlink_to(model_file)
    transport = transport_for(path, runtime_dir, tmp_path)
    (info,) = await transport.models()
    assert info.name == "some-model.q4"
    assert info.digest.startswith("stat:")
    assert await transport.describe("some-model.q4") == info
    assert transport.worker_pid() is None


async def test_the_model_is_described_without_loading_it(transport: EmbeddedTransport) -> None:
    info = await transport.describe(SMOLLM2_NAME)
    assert info.capabilities == {"chat"}
    assert (info.context_length, info.quantisation, info.parameters, info.family) == (8192, "Q4_1", "135M", "llama")
    assert info.size == 98_362_432
    assert not info.remote
    assert transport.worker_pid() is None


async def test_what_the_model_cannot_do_is_refused_before_anything_is_loaded(transport: EmbeddedTransport) -> None:
    with pytest.raises(CapabilityMissingError, match="tools"):
        await all_of(transport.chat(ask("Hi", tools=b'[{"type":"function"}]')))
    with pytest.raises(CapabilityMissingError, match="thinking"):
        await all_of(transport.chat(ask("Hi", think="on")))
    with pytest.raises(CapabilityMissingError, match="embedding"):
        await transport.embed(SMOLLM2_NAME, ["a"])
    with pytest.raises(ModelNotFoundError, match="'another'"):
        await all_of(transport.chat(ask("Hi", model="another")))
    assert transport.worker_pid() is None


async def test_without_the_extra_it_says_what_to_install(
    transport: EmbeddedTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # how Python itself marks a module that is not there
    with pytest.raises(ModelUnavailableError) as caught:
        await all_of(transport.chat(ask("Hi")))
    assert caught.value.hint == 'Run `pip install "rune-local[embedded]"`.'
