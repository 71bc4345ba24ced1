"""Models as text, and what of a pull is worked out here: sums, speed, what is left."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.models.transport import PullProgress
from rune.records.models import ActionProtocol, ProbeOutcome
from rune.surface.model_text import (
    details_text,
    gpu_text,
    model_table,
    probe_table,
    pull_line,
    time_text,
    tokens_text,
)
from rune.surface.model_values import ModelDetails, PullRow
from rune.surface.pulling import PullMeter
from rune.surface.rows import ModelRow
from rune.text.cells import cell_len
from rune.text.safe_text import safe_text

ROWS = st.lists(
    st.builds(
        ModelRow,
        name=st.text(min_size=1, max_size=80),
        provider=st.sampled_from(["ollama", "openai-compatible", "embedded"]),
        remote=st.booleans(),
        size=st.none() | st.integers(1, 10**12),
        window=st.none() | st.integers(1, 2**20),
        capabilities=st.sampled_from([(), ("chat",), ("chat", "tools", "thinking", "vision")]),
        loaded=st.booleans(),
        loaded_window=st.none() | st.integers(1, 2**20),
        on_gpu=st.none() | st.floats(0, 1),
        protocol=st.sampled_from([None, "native", "constrained"]),
    ),
    max_size=6,
)


@given(ROWS, st.integers(20, 200), st.booleans())
def test_a_table_never_is_wider_than_the_terminal(rows: list[ModelRow], columns: int, marked: bool) -> None:
    lines = model_table(rows, columns, marked=marked).split("\n")
    assert len(lines) == len(rows) + 1
    assert max(cell_len(line) for line in lines) <= columns


def test_what_would_leave_this_machine_is_said_however_narrow_it_gets() -> None:
    far = ModelRow(name="far-away-and-long-enough", provider="x", remote=True, size=2_500_000_000, window=40960)
    assert "remote" in model_table([far], 40)
    near = ModelRow(name="close-by-and-long-enough", provider="x", size=2_500_000_000, window=40960)
    assert "local" not in model_table([near], 40)


@given(
    st.builds(
        PullRow,
        model=st.just("hf.co/somebody/model:Q4"),
        status=st.text(max_size=100),
        done=st.none() | st.integers(0, 10**12),
        total=st.none() | st.integers(0, 10**12),
        bytes_per_second=st.none() | st.floats(0, 1e10),
        seconds_left=st.none() | st.floats(0, 1e7),
    ),
    st.integers(1, 200),
)
def test_a_pull_fits_whatever_room_there_is(row: PullRow, columns: int) -> None:
    line = pull_line(row, columns)
    assert cell_len(line) <= columns
    assert line == safe_text(line, newlines=False, tabs=False)


def test_a_pull_shows_a_bar_how_much_how_fast_and_how_long() -> None:
    row = PullRow(
        model="qwen3:4b", status="pulling", done=10**9, total=2 * 10**9, bytes_per_second=5e7, seconds_left=20
    )
    assert pull_line(row, 80, plain=True) == (
        "qwen3:4b  [##########..........]   50 %  1.0 GB of 2.0 GB  50 MB/s  20 s left"
    )
    begun = msgspec.structs.replace(row, bytes_per_second=None, seconds_left=None)
    assert pull_line(row, 70).startswith(pull_line(begun, 70))
    slow = msgspec.structs.replace(row, bytes_per_second=5e5, seconds_left=99_000)
    assert pull_line(slow, 64).endswith("0.5 MB/s  27 h 30 min left")
    assert pull_line(row, 40, plain=True) == "qwen3:4b   50 %  1.0 GB of 2.0 GB"
    whole = PullRow(model="m", status="verifying sha256 digest", done=2 * 10**9, total=2 * 10**9, bytes_per_second=5e7)
    assert pull_line(whole, 80, bar=False) == "m  100 %  2.0 GB of 2.0 GB  verifying sha256 digest"


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [
        (66_000_000, 400_000_000, " 66 MB of 400 MB"),
        (66_000_000, 2_500_000_000, "0.1 GB of 2.5 GB"),
        (0, 999_999_999, "   0 MB of 1000 MB"),
    ],
)
def test_what_came_and_all_of_it_are_told_in_one_unit(done: int, total: int, said: str) -> None:
    assert said in pull_line(PullRow(model="m", status="pulling", done=done, total=total), 80)


def test_parts_add_up_and_what_was_there_before_is_no_speed() -> None:
    meter = PullMeter("m")
    assert meter.row(PullProgress(status="pulling manifest"), 0.0) == PullRow(model="m", status="pulling manifest")
    first = meter.row(PullProgress(status="a", part="a", done=900, total=1000), 1.0)
    assert (first.done, first.total, first.bytes_per_second) == (900, 1000, None)
    second = meter.row(PullProgress(status="a", part="a", done=920, total=1000), 3.0)
    assert (second.bytes_per_second, second.seconds_left) == (10.0, 8.0)
    other = meter.row(PullProgress(status="b", part="b", done=0, total=80), 3.0)
    assert (other.done, other.total, other.seconds_left) == (920, 1080, 16.0)
    met = meter.row(PullProgress(status="b", part="b", done=0, total=80), 5.0)
    assert met.bytes_per_second == 5.0
    kept = meter.row(PullProgress(status="c", part="c", done=70, total=70), 5.0)
    assert (kept.done, kept.bytes_per_second) == (990, 5.0)
    verifying = meter.row(PullProgress(status="verifying"), 4.0)
    assert (verifying.status, verifying.done, verifying.total) == ("verifying", 990, 1150)


def test_speed_is_that_of_the_last_seconds() -> None:
    meter = PullMeter("m")
    row = PullRow(model="m", status="")
    for second in range(30):
        done = second * 1000 if second < 15 else 15_000 + (second - 15) * 10
        row = meter.row(PullProgress(status="", part="a", done=done, total=10**6), float(second))
    assert row.bytes_per_second is not None
    assert row.bytes_per_second < 20
    stalled = meter.row(PullProgress(status="", part="a", done=15_140, total=10**6), 60.0)
    assert (stalled.bytes_per_second, stalled.seconds_left) == (0.0, None)


def test_parts_without_an_end_do_not_fill_the_memory() -> None:
    meter = PullMeter("m")
    for number in range(5_000):
        row = meter.row(PullProgress(status="", part=f"p{number}", done=1, total=2), 1.0)
        assert (row.done, row.total) == (min(number + 1, 1_000), min(number + 1, 1_000) * 2)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2000), st.sampled_from([0, 10, 1000]), st.floats(0, 5)),
        max_size=40,
    )
)
def test_whatever_a_server_says_figures_stay_possible(steps: list[tuple[str, int, int, float]]) -> None:
    meter, now = PullMeter("m"), 0.0
    for part, done, total, passed in steps:
        now += passed
        row = meter.row(PullProgress(status="s", part=part, done=done, total=total), now)
        assert row.done is not None
        assert row.total is not None
        assert 0 <= row.done <= row.total
        assert row.bytes_per_second is None or row.bytes_per_second >= 0
        assert row.seconds_left is None or row.seconds_left >= 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "1 s"), (59, "59 s"), (61, "2 min"), (3600, "1 h 0 min"), (7500, "2 h 5 min")]
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_tokens_and_shares_are_short() -> None:
    assert [tokens_text(tokens) for tokens in (16384, 131072, 5000)] == ["16k", "128k", "5,000"]
    assert [gpu_text(share) for share in (None, 0.0, 0.004, 0.4, 1.0)] == ["", "CPU", "1% GPU", "40% GPU", "GPU"]


def test_what_a_server_writes_is_shown_on_one_line_into_a_pipe_too() -> None:
    evil = "a\x1b[31m\nb\u202e" + "x" * 10_000
    row = ModelRow(name=evil, provider="ollama", remote=False, parameters=evil, loaded=True, expires_at=evil)
    details = ModelDetails(
        row=row,
        where="local",
        family=evil,
        digest=evil,
        window=8192,
        window_why="known",
        protocol_why="",
        probe=(),
        valid=0,
        repaired=0,
        failed=0,
    )
    for text in (model_table([row], None), details_text(details, 0)):
        assert safe_text(text) == text
        assert max(map(len, text.splitlines())) < 1_000
    assert len(model_table([row], None).splitlines()) == 2


def test_a_probe_is_a_table_of_both_protocols() -> None:
    def outcome(task: str, passed: bool, protocol: ActionProtocol = "native") -> ProbeOutcome:
        return ProbeOutcome(task=task, protocol=protocol, passed=passed, seen="it wrote an essay", milliseconds=812)

    probe = [outcome("choose", False), outcome("choose", True, "constrained"), outcome("answer", True)]
    assert probe_table(probe).splitlines() == [
        "probe   native     constrained",
        "choose  no 812 ms  ok 812 ms",
        "answer  ok 812 ms  -",
        "passed  1 of 2     1 of 2",
    ]
