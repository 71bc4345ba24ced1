"""What a token costs on the screen, as ratios: it must not be more for what was said before."""

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import Completed, TextDelta
from rune.records.usage import Usage
from rune.tui.transcript_state import Answer, Entry, Pace, Said, Transcript
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.stage import Stage, stage

FEW, MANY = 10, 2_000
DELTAS = 150
RATE = 100  # tokens a second
SECONDS = 1.5
HISTORY = 30_000  # characters
PARAGRAPH = "Rivers *begin* in the mountains, take what `rain` brings them, and end in a **sea** or another river. "
# Of a loop that comes back in so many milliseconds nobody notices anything, and below it chance decides.
FLOOR = 2.0
TIMES_WITHOUT_HISTORY = 2.0
ATTEMPTS = 3


def history(messages: int) -> tuple[Entry, ...]:
    return tuple(
        Answer(key=str(number), text=PARAGRAPH) if number % 2 else Said(key=str(number), text="And then?")
        for number in range(messages)
    )


def streaming(before: tuple[Entry, ...], tokens: int) -> Transcript:
    live = Answer(key="live", text="word of a river. " * tokens, running=True)
    return Transcript(settled=before, live=(live,), pace=Pace(since=0.0))


async def drawn_for_deltas(at: Stage, messages: int) -> list[int]:
    """Return how many lines were laid out for each of the deltas of an answer that comes after so many messages."""
    view, before = at.app.chat.query_one(TranscriptView), history(messages)
    view.show(streaming(before, 1))
    await at.settled()
    drawn: list[int] = []
    for tokens in range(2, DELTAS):
        lines = view.lines_drawn
        view.show(streaming(before, tokens))
        await at.paint()
        drawn.append(view.lines_drawn - lines)
    return drawn


async def test_a_delta_lays_out_the_same_lines_after_ten_messages_and_after_two_thousand(tmp_path: Path) -> None:
    async with stage(tmp_path, size=(120, 40)) as at:
        await at.settled()
        few, many = await drawn_for_deltas(at, FEW), await drawn_for_deltas(at, MANY)
    assert many == few
    assert sum(few) > 0


async def test_no_message_is_a_widget(tmp_path: Path) -> None:
    async with stage(tmp_path, size=(120, 40)) as at:
        await at.settled()
        view = at.app.chat.query_one(TranscriptView)
        mounted: list[int] = []
        for messages in (FEW, MANY):
            view.show(Transcript(settled=history(messages)))
            await at.settled()
            view.to_top()
            await at.settled()
            mounted.append(len(at.app.chat.walk_children()))
        assert mounted[0] == mounted[1]


async def late(tmp_path: Path, characters: int) -> float:
    """Return how late the event loop comes back in the worst hundredth, in milliseconds, while an answer streams
    below so many characters.
    """
    before = [TextDelta("\n\n".join([PARAGRAPH] * (characters // len(PARAGRAPH)))), Completed("stop", Usage(calls=1))]
    answers = [before] * (characters > 0) + [says("word " * round(RATE * SECONDS * 4), delay=1 / RATE)]
    model = ScriptedTransport(answers, window=1 << 16)
    async with stage(tmp_path, model=model, size=(120, 40), painted=True) as at:
        if characters:
            await at.paste("history")
            await at.pilot.press("enter")
            await at.until(lambda: bool(at.talk.transcript.settled), "the history")
        await at.settled()
        await at.paste("go on")
        await at.pilot.press("enter")
        await at.until(lambda: at.talk.transcript.pace is not None and at.talk.transcript.pace.pieces > 1, "tokens")
        async with collected():
            seen = await lateness(SECONDS)
        assert at.talk.busy
        at.outbox.cancel()
        await at.idle()
    return statistics.quantiles(seen, n=100, method="inclusive")[-1]


@asynccontextmanager
async def collected() -> AsyncGenerator[None]:
    """Keep what other tests have left behind from being looked through, as the app does with what it begins with."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def lateness(seconds: float) -> list[float]:
    """Return, again and again, how much later than asked a millisecond's sleep ended, in milliseconds."""
    seen: list[float] = []
    ends = time.perf_counter() + seconds
    while (began := time.perf_counter()) < ends:
        await asyncio.sleep(0.001)
        seen.append((time.perf_counter() - began) * 1000 - 1)
    return seen


async def test_with_a_long_history_the_loop_is_at_most_twice_as_late(tmp_path: Path) -> None:
    ratios: list[float] = []
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        homes = folder / "without", folder / "within"
        for home in homes:
            home.mkdir(parents=True)
        without, within = await late(homes[0], 0), await late(homes[1], HISTORY)
        ratios.append(within / max(without, FLOOR))
        if ratios[-1] <= TIMES_WITHOUT_HISTORY:
            return
    pytest.fail(f"with a history it was so many times as late: {ratios}")
