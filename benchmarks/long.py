"""What a long conversation costs the transcript: an answer of 100 KB, and 10,000 messages opened, added to, scrolled,
resized; beside a widget of the same size that has every line of its window ready painted.

Bars: lines drawn for a delta, and widgets, do not grow with the history; on a quiet machine 0.8 s for the answer,
0.5 s to the first picture of 10,000 messages, 5 ms above the floor for one more, 150 ms for another width.
"""

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable

from _app import until
from _measure import BATCHES, Bar, Figures, figures, fingerprint, report, wants_json
from markdown_it import MarkdownIt
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.pilot import Pilot
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

import rune.tui
from rune.tui.line_log import LineLog
from rune.tui.transcript_state import Answer, Entry, Said, Transcript
from rune.tui.widgets.transcript import TranscriptView

SIZE = 120, 40
OTHER_SIZE = 100, 40
MESSAGES = 10_000
ANSWER_BYTES = 100_000
RUNS = 4
DELTAS = 100
Seen = dict[str, list[float]]
LIMITS = {"answer": 800.0, "open": 500.0, "append above the floor": 5.0, "resize": 150.0}

BLOCKS = """## What part {0} does

It goes through **all** rows of the table, once, and keeps `total` in mind; what is *odd* is left out and told at the
end, with [a link](https://example.org/{0}) to where it stands.

- the first thing to know
- the second, which is longer and needs a second line as soon as the window has less than a hundred cells
  - and one below it

```python
def part_{0}(rows: list[int]) -> int:
    \"\"\"Return the sum of rows.\"\"\"
    return sum(row for row in rows if row % 2 == 0)
```

| part | rows | time |
|------|-----:|-----:|
| {0}  | 1200 | 3 ms |

"""


class Ready(ScrollView, can_focus=True):
    """As many lines as are asked for, out of a few that are already painted: what Textual alone costs."""

    DEFAULT_CSS = TranscriptView.DEFAULT_CSS.replace("TranscriptView", "Ready")

    def __init__(self, strips: list[Strip], total: int) -> None:
        super().__init__()
        self._strips = strips
        self._total = total

    def on_mount(self) -> None:
        """Say how long it is."""
        self.virtual_size = Size(SIZE[0], self._total)

    def add(self, lines: int) -> None:
        """Be some lines longer, and show the end."""
        self._total += lines
        self.virtual_size = Size(SIZE[0], self._total)
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def render_line(self, y: int) -> Strip:
        """Return a line that was painted before."""
        return self._strips[(y + round(self.scroll_y)) % len(self._strips)]


class Alone(App[None]):
    """One widget, as large as the screen."""

    CSS_PATH = f"{rune.tui.__path__[0]}/rune.tcss"

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        """Show it."""
        yield self.widget


def _markdown(length: int) -> str:
    parts = -(-length // len(BLOCKS.format(100)))
    return "".join(BLOCKS.format(number) for number in range(parts))[:length]


def _conversation(messages: int) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number in range(messages // 2):
        entries.append(Said(key=f"s{number}", text=f"What does part {number} do, and how long does it take?"))
        entries.append(Answer(key=f"a{number}", text=BLOCKS.format(number)))
    return tuple(entries)


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


async def _until_painted(widget: Widget, work: Callable[[], object]) -> float:
    """Return the milliseconds of CPU until what `work` does to a widget is on the screen."""
    painted = asyncio.get_running_loop().create_future()
    began = time.process_time()
    work()
    widget.call_after_refresh(painted.set_result, None)
    await painted
    return (time.process_time() - began) * 1000


async def _resized(pilot: Pilot[None], widget: Widget, size: tuple[int, int]) -> float:
    began = time.process_time()
    await pilot.resize_terminal(*size)
    await _until_painted(widget, lambda: None)
    return (time.process_time() - began) * 1000


def _answer(text: str) -> float:
    """Return the milliseconds to draw all of an answer."""
    log = LineLog(SIZE[0])
    log.show(Transcript(settled=(Answer(key="a", text=text),)))
    return _milliseconds(lambda: [log.lines(0, part) for part in range(len(log.parts(0)))])


async def _batch(settled: tuple[Entry, ...], seen: Seen) -> None:
    """Note what is done with many messages."""
    view = TranscriptView()
    async with Alone(view).run_test(size=SIZE) as pilot:
        await pilot.pause()
        seen["open"].append(await _until_painted(view, lambda: view.show(Transcript(settled=settled))))
        await until(lambda: not view.busy)
        for number in range(RUNS):
            settled = (*settled, Said(key=f"more{number}", text="One more, and thank you."))
            shown = Transcript(settled=settled)
            seen["append"].append(await _until_painted(view, lambda shown=shown: view.show(shown)))
            seen["page"].append(await _until_painted(view, lambda: view.page(-1)))
            view.follow()
            seen["resize"].append(await _resized(pilot, view, OTHER_SIZE if number % 2 == 0 else SIZE))
            await until(lambda: not view.busy)


async def _floor_batch(strips: list[Strip], seen: Seen) -> None:
    """Note the same with lines that are ready painted."""
    ready = Ready(strips, MESSAGES * 10)
    async with Alone(ready).run_test(size=SIZE) as pilot:
        await pilot.pause()
        for number in range(RUNS):
            seen["append"].append(await _until_painted(ready, lambda: ready.add(2)))
            seen["page"].append(await _until_painted(ready, lambda: ready.scroll_page_up(animate=False)))
            seen["resize"].append(await _resized(pilot, ready, OTHER_SIZE if number % 2 == 0 else SIZE))


async def _measure(settled: tuple[Entry, ...]) -> tuple[Seen, Seen]:
    """Return floor and measured, by what was done."""
    view = TranscriptView()
    async with Alone(view).run_test(size=SIZE) as pilot:
        view.show(Transcript(settled=settled[-100:]))
        await pilot.pause()
        strips = [view.render_line(y) for y in range(SIZE[1])]
    floor, seen = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _ in range(BATCHES):
        await _floor_batch(strips, floor)
        await _batch(settled, seen)
    return floor, seen


async def _counts(settled: tuple[Entry, ...]) -> tuple[float, int]:
    """Return the lines that a delta draws, and the widgets on the screen."""
    view = TranscriptView()
    app = Alone(view)
    async with app.run_test(size=SIZE) as pilot:
        view.show(Transcript(settled=settled))
        await pilot.pause()
        await until(lambda: not view.busy)
        before, text = view.lines_drawn, ""
        for number in range(DELTAS):
            text += "\n\n" if number % 12 == 0 else f"word{number} "
            view.show(Transcript(settled=settled, live=(Answer(key="live", text=text, running=True),)))
        return (view.lines_drawn - before) / DELTAS, len(list(app.screen.walk_children()))


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    settled, text = _conversation(MESSAGES), _markdown(ANSWER_BYTES)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parsed = [_milliseconds(lambda: parser.parse(text)) for _ in range(BATCHES)]
    answers = [_answer(text) for _ in range(BATCHES)]
    floor, seen = asyncio.run(_measure(settled))
    few, few_widgets = asyncio.run(_counts(_conversation(10)))
    many, many_widgets = asyncio.run(_counts(settled))
    rows: list[Figures] = [
        figures("markdown-it alone, 100 KB", "ms CPU", parsed),
        figures("an answer of 100 KB, all of it", "ms CPU", answers),
        figures(f"open {MESSAGES:,} messages", "ms CPU", seen["open"]),
    ]
    for name in ("append", "page", "resize"):
        rows += (figures(f"{name}, lines ready", "ms CPU", floor[name]), figures(name, "ms CPU", seen[name]))
    middle = {name: statistics.median(values) for name, values in {**seen, "answer": answers}.items()}
    middle["append above the floor"] = middle["append"] - statistics.median(floor["append"])
    bars = [
        Bar(what="lines a delta, 10,000 messages to 10", limit=1, seen=many / few, holds=many <= few),
        Bar(what="widgets more", limit=0, seen=many_widgets - few_widgets, holds=many_widgets <= few_widgets),
        *(Bar(what=f"{name}, ms CPU", limit=limit, seen=middle[name], holds=None) for name, limit in LIMITS.items()),
    ]
    facts = {**fingerprint(("textual", "rich", "markdown-it-py")), "lines a delta": f"{many:.2f}"}
    return report("long", rows, bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
