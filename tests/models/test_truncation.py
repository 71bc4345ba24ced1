from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ContextTruncatedError
from rune.models.transport import ChatRequest, LoadOptions
from rune.models.truncation import TruncationWatch, was_cut
from rune.records.usage import Usage
from tests.models.cutting_server import Counting, CuttingServer, Piece, Texts, asked

WINDOWS = [4096, 32768, 65536]
COUNTINGS: list[Counting] = ["told", "whole", "without cached"]
# context/budget.py leaves a quarter of the window for the answer and a twentieth as a margin.
BUDGET = 0.7
CASES = 40
TURNS = 500


@pytest.mark.parametrize(
    ("estimated", "served", "window", "cut"),
    [
        (4000, 2050, 4096, True),  # num_keep 4: half of the window is left
        (4000, 2051, 4096, True),
        (4000, 2053, 4096, True),
        (4000, 2054, 4096, False),
        (4000, 2045, 4096, False),
        (9000, 258, 512, True),  # recorded from a real server
        (2565, 2051, 4096, False),  # nothing so far from the window can have been cut
        (3000, 1500, 4096, False),  # a low count alone: cached tokens may be left out
        (1322, 465, 512, True),  # recorded: whole messages dropped; it cannot have fitted
        (513, 465, 512, True),  # over the window, and not refused
        (512, 465, 512, False),
        (600, 601, 512, False),  # more was read than the window would hold: the window is another
        (100_000, 16387, 32768, True),
        (8, 4096, 4096, False),
    ],
)
def test_a_served_count_betrays_a_cut_prompt_only_where_it_is_proof(
    estimated: int, served: int, window: int, cut: bool
) -> None:
    assert was_cut(estimated, served, window) is cut


@given(st.integers(1, 300_000), st.integers(1024, 262_144), st.floats(0, 1))
def test_a_prompt_within_the_budget_never_raises_an_alarm_whatever_is_counted(
    served: int, window: int, share: float
) -> None:
    assert not was_cut(int(window * BUDGET * share), served, window)


def conversation(texts: Texts, window: int) -> list[Piece]:
    """Return messages that fill about what the budget allows, by the estimate; the last one is the person's."""
    messages = [texts.message("system", 2)]
    budget = window * BUDGET
    while True:
        added = [
            texts.message("user", texts.random.choice((0, 0, 1, 2))),
            texts.message("assistant", texts.random.choice((1, 2, 4))),
        ]
        if sum(piece.estimated for piece in (*messages, *added)) > budget:
            return messages[:-1] if messages[-1].role == "assistant" else messages
        messages += added


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("window", WINDOWS)
def test_no_ordinary_turn_raises_an_alarm(window: int, counting: Counting) -> None:
    turns, seed = 0, 0
    while turns < TURNS:
        seed += 1
        texts = Texts(seed)
        server, watch = CuttingServer(window, counting, texts.random), TruncationWatch()
        messages = conversation(texts, window)
        # From the first question on, at most forty turns of each: a long conversation is mostly the same again.
        ends = [n for n, piece in enumerate(messages, start=1) if piece.role == "user"]
        for end in texts.random.sample(ends, min(40, len(ends))) if len(ends) > 40 else ends:
            sent = messages[:end]
            if texts.random.random() < 0.2:
                server.evict()
            usage, cut = server.read(sent)
            request = asked(sent, window)
            assert not cut
            assert usage.prompt_tokens is not None
            assert not was_cut(request.estimated, usage.prompt_tokens, window)
            assert watch.look(request, usage, window=window) is None
            turns += 1


@cache
def too_long(window: int, number: int) -> list[Piece]:
    """Return messages that a window cannot hold: many, one that is huge, or a few too many, by the case's number."""
    texts = Texts(number)
    messages = conversation(texts, int(window * (1.3 + number % 3)))
    match number % 4:
        case 0:
            return [messages[0], texts.message("user", int(window / 100) + number)]
        case 1:
            return [*messages, texts.message("user", int(window / 140) + number)]
        case _:
            pass
    while sum(piece.tokens for piece in messages) <= window:
        messages.append(texts.message("user", number % 3))
    return messages


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("window", WINDOWS)
def test_every_cut_prompt_is_noticed_by_the_answer_alone(window: int, counting: Counting) -> None:
    for number in range(CASES):
        server = CuttingServer(window, counting, Texts(number).random)
        sent = too_long(window, number)
        usage, cut = server.read(sent)
        assert cut
        assert usage.prompt_tokens is not None
        assert was_cut(asked(sent, window).estimated, usage.prompt_tokens, window), (number, usage)


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("window", WINDOWS)
def test_every_prompt_cut_to_a_smaller_window_than_asked_for_is_noticed_once_that_is_known(
    window: int, counting: Counting
) -> None:
    for number in range(CASES):
        server, watch = CuttingServer(window, counting, Texts(number).random), TruncationWatch()
        sent = too_long(window, number)
        usage, cut = server.read(sent)
        assert cut
        request = asked(sent, window * 16)
        error = watch.look(request, usage, window=window)
        assert isinstance(error, ContextTruncatedError)
        assert (error.estimated, error.served, error.window) == (request.estimated, usage.prompt_tokens, window)


def test_of_a_smaller_window_that_nobody_knows_a_server_that_counts_all_gives_itself_away_soon() -> None:
    late: list[int] = []
    for seed in range(30):
        texts = Texts(seed)
        server, watch = CuttingServer(4096, "told", texts.random), TruncationWatch()
        messages = conversation(texts, 65536)
        cuts = 0
        for end in [n for n, piece in enumerate(messages, start=1) if piece.role == "user"]:
            usage, cut = server.read(messages[:end])
            cuts += cut
            if watch.look(asked(messages[:end], 65536), usage) is not None:
                assert cut
                late.append(cuts)
                break
    assert len(late) == 30
    assert sum(late) / len(late) < 2
    assert max(late) <= 3


ASKED = ChatRequest(model="m", messages=b'[{"a":1}]', tools=b"[]", options=LoadOptions(num_ctx=8192), estimated=1000)
MORE = msgspec.structs.replace(ASKED, messages=b'[{"a":1},{"b":2}]', estimated=1200)


def told(tokens: int) -> Usage:
    return Usage(calls=1, prompt_tokens=tokens, cached_tokens=0)


def test_a_prompt_that_grew_and_was_read_with_fewer_tokens_was_cut() -> None:
    watch = TruncationWatch()
    assert watch.look(ASKED, told(800)) is None
    error = watch.look(MORE, told(700))
    assert isinstance(error, ContextTruncatedError)
    assert (error.estimated, error.served, error.window) == (1200, 700, 8192)


def test_where_cached_tokens_may_be_left_out_a_lower_count_is_no_proof() -> None:
    watch = TruncationWatch()
    assert watch.look(ASKED, Usage(calls=1, prompt_tokens=800)) is None
    assert watch.look(MORE, Usage(calls=1, prompt_tokens=40)) is None


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(MORE, messages=b'[{"b":2}]'),
        msgspec.structs.replace(MORE, model="other"),
        msgspec.structs.replace(MORE, think="off"),
        msgspec.structs.replace(MORE, messages=b'[{"a":1},{"thinking":"hm"}]'),
        msgspec.structs.replace(MORE, tools=b'[{"name":"x"}]'),
    ],
    ids=["another prompt", "another model", "thinks otherwise", "holds thinking", "other tools"],
)
def test_only_a_prompt_that_extends_the_last_one_is_compared_with_it(other: ChatRequest) -> None:
    watch = TruncationWatch()
    assert watch.look(ASKED, told(800)) is None
    assert watch.look(other, told(700)) is None


def test_tools_that_a_template_shows_only_once_may_be_missing_the_next_time() -> None:
    tools = b'[{"type":"function","function":{"name":"read","description":"' + b"reads a file " * 30 + b'"}}]'
    watch = TruncationWatch()
    assert watch.look(msgspec.structs.replace(ASKED, tools=tools), told(800)) is None
    assert watch.look(msgspec.structs.replace(MORE, tools=tools), told(740)) is None


def test_a_model_that_is_known_to_be_overestimated_may_fill_its_window() -> None:
    watch = TruncationWatch()
    for _ in range(3):
        assert watch.look(msgspec.structs.replace(ASKED, estimated=2000), told(1000)) is None
    full = msgspec.structs.replace(ASKED, estimated=9000)
    assert watch.look(full, told(4600)) is None
    assert TruncationWatch().look(full, told(4600)) is not None


def test_an_answer_without_a_count_says_nothing() -> None:
    watch = TruncationWatch()
    assert watch.look(ASKED, told(800)) is None
    assert watch.look(MORE, Usage(calls=1)) is None
    assert watch.look(msgspec.structs.replace(MORE, messages=b'[{"a":1},{"b":2},{}]'), told(10)) is None
