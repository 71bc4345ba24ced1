"""What a prompt was made of, as text and as a number."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.records.traces import DroppedBlock, InferenceTraceRecord
from rune.surface.context_text import context_text, use_of
from rune.surface.rows import ContextUse
from tests.store.builders import a_trace, an_id


def traced(**changes: object) -> InferenceTraceRecord:
    return msgspec.structs.replace(a_trace(1), **changes)


def test_the_server_s_count_of_prompt_and_answer_leads() -> None:
    assert use_of(traced(prompt_tokens_served=4400, output_tokens=200)) == ContextUse(
        used=4600, budget=6000, window=8192, level="orange", served=True
    )


@pytest.mark.parametrize(
    "changes",
    [{"prompt_tokens_served": None}, {"prompt_tokens_served": 260, "model_calls": 2}],
    ids=["no count", "a sum over calls"],
)
def test_without_a_count_of_that_prompt_the_estimate_stands_in(changes: dict[str, object]) -> None:
    assert use_of(traced(**changes)) == ContextUse(used=130, budget=6000, window=8192, level="green", served=False)


def test_every_block_has_a_bar_and_a_reason_in_the_order_of_the_prompt() -> None:
    blocks = {"history": 3000, "persona": 40, "template": 24, "user": 600, "zeal": 10}
    lines = context_text(traced(per_block_tokens=blocks)).splitlines()
    scale = lines.index("  each # is up to 375 tokens, 1/16 of the budget")
    rows = [line.split(maxsplit=3) for line in lines[scale + 1 :] if "#" in line]
    assert [row[0] for row in rows] == ["persona", "zeal", "history", "user", "template"]
    assert [len(row[1]) for row in rows] == [1, 1, 8, 2, 1]
    assert [row[2] for row in rows] == ["40", "10", "3,000", "600", "24"]
    assert all(row[3] for row in rows)


def test_what_was_left_out_says_how_much_and_why() -> None:
    dropped = (
        DroppedBlock(name="project", tokens=900, reason="over_budget"),
        DroppedBlock(name="history", tokens=50, reason="history_trimmed", message_ids=(an_id("msg", 1),)),
    )
    text = context_text(traced(dropped_blocks=dropped))
    assert "left out:" in text
    assert "900  no room within the budget" in text
    assert "50  1 message; the oldest leave first" in " ".join(text.split()).replace("50 1", "50  1")


@pytest.mark.parametrize(
    ("reuse", "broke", "said"),
    [
        (None, None, "prefix: this was the first request"),
        (0.987, None, "prefix: 98.7 % of the prompt before was sent again as it was"),
        (0.1, "project changed", "10.0 % of the prompt before was sent again as it was\nit broke: project changed"),
    ],
)
def test_how_the_prefix_held_is_said(reuse: float | None, broke: str | None, said: str) -> None:
    assert said in context_text(traced(prefix_reuse=reuse, prefix_break=broke))


@given(
    st.dictionaries(st.from_regex(r"[a-z_]{1,40}", fullmatch=True), st.integers(0, 10**9), max_size=12),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=120),
    st.integers(0, 10**7),
)
def test_no_line_is_wider_than_80_columns(blocks: dict[str, int], model: str, budget: int) -> None:
    dropped = tuple(DroppedBlock(name=name, tokens=size, reason="over_budget") for name, size in blocks.items())
    trace = traced(
        per_block_tokens=blocks,
        dropped_blocks=dropped,
        model=model,
        input_budget=budget,
        prefix_break=", ".join(f"{name} changed" for name in blocks),
        degraded=tuple(blocks),
    )
    assert max(len(line) for line in context_text(trace).splitlines()) <= 80
