"""The trace file is plain JSON lines that other programs can read, and its failure is typed."""

import json
import stat
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from rune.observability.inference_trace import TraceFile
from rune.records.record import from_builtins
from rune.records.traces import InferenceTraceRecord, PromptRecipe


def trace(number: int, model: str = "qwen3:8b") -> InferenceTraceRecord:
    recipe = PromptRecipe(
        dialect="ollama",
        prefix="",
        blocks=(),
        history=(),
        tools="",
        messages_hash="",
        messages_bytes=2,
        prompt_tokens_estimated=1,
    )
    return InferenceTraceRecord(
        id=f"trc_{number}",
        kind="conversation",
        provider="ollama",
        model=model,
        remote=False,
        turn_id=None,
        task_id=None,
        conversation_id=None,
        window=8192,
        num_ctx=8192,
        input_budget=6000,
        model_calls=1,
        prompt_tokens_estimated=1,
        prompt_tokens_served=None,
        cached_tokens=None,
        output_tokens=None,
        latency_ms=None,
        first_token_ms=None,
        model_time_ms=None,
        per_block_tokens={"user": 1},
        dropped_blocks=(),
        prefix_reuse=None,
        prefix_break=None,
        stop_reason="answered",
        success=True,
        requests=(recipe,),
    )


def test_a_trace_reads_back_as_it_was_one_a_line(tmp_path: Path) -> None:
    file = TraceFile(tmp_path, "w000")
    traces = [trace(1), trace(2, "mödel\n\u2028")]
    for each in traces:
        file.append(each)
    file.close()
    path = tmp_path / "inference_traces-w000.jsonl"
    data = path.read_bytes()
    assert data.isascii()
    assert [from_builtins(json.loads(line), InferenceTraceRecord) for line in data.splitlines()] == traces
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_slot_has_a_file_of_its_own(tmp_path: Path) -> None:
    for slot in ("w000", "w001"):
        file = TraceFile(tmp_path, slot)
        file.append(trace(1))
        file.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["inference_traces-w000.jsonl", "inference_traces-w001.jsonl"]


def test_a_text_that_is_not_storable_does_not_fail_the_file(tmp_path: Path) -> None:
    file = TraceFile(tmp_path, "w000")
    file.append(trace(1, "caf\udce9"))
    file.close()
    assert json.loads((tmp_path / "inference_traces-w000.jsonl").read_text())["model"] == "caf\udce9"


def test_a_file_that_cannot_be_written_is_unavailable_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailableError, match="No such file or directory") as caught:
        TraceFile(tmp_path / "nowhere", "w000").append(trace(1))
    assert "journal" in caught.value.hint
