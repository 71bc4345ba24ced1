"""Which line of a transcript is where, and what is drawn for it."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from rune.tui import line_log
from rune.tui.line_log import LineLog, Spot
from rune.tui.transcript_state import Answer, Entry, Said, Thought, Told, Transcript

WINDOW = 20


def _conversation(pairs: int, text: str = "Some words about it. " * 12) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number in range(pairs):
        entries.append(Said(key=f"s{number}", text=f"question {number}"))
        entries.append(Answer(key=f"a{number}", text=f"# answer {number}\n\n{text}\n\n- one\n- two\n"))
    return tuple(entries)


def _shown(settled: tuple[Entry, ...], live: tuple[Entry, ...] = (), *, width: int = 80) -> LineLog:
    log = LineLog(width)
    log.show(Transcript(settled=settled, live=live))
    return log


def _window(log: LineLog, top: int) -> list[str]:
    rows: list[str] = []
    for line in range(top, min(top + WINDOW, log.total)):
        spot = log.at(line)
        assert spot is not None
        rows.append(log.lines(spot.entry, spot.part)[spot.line].text.rstrip())
    return rows


def _all(log: LineLog) -> list[str]:
    """Draw everything, and return it."""
    for entry in range(len(log.entries)):
        for part in range(len(log.parts(entry))):
            log.lines(entry, part)
    return [
        line.text.rstrip()
        for entry in range(len(log.entries))
        for part in range(len(log.parts(entry)))
        for line in log.lines(entry, part)
    ]


def test_only_the_end_of_a_long_conversation_is_drawn_to_show_it() -> None:
    log = _shown(_conversation(5_000))
    top = log.fill_end(WINDOW)
    assert top == log.total - WINDOW
    assert log.lines_drawn < 3 * WINDOW
    assert _window(log, top)[-1].strip().endswith("two")


def test_what_is_seen_does_not_depend_on_what_was_drawn_before() -> None:
    log, other = _shown(_conversation(50)), _shown(_conversation(50))
    everything = _all(other)
    assert _window(log, log.fill_end(WINDOW)) == everything[-WINDOW:]


def test_drawing_ahead_moves_nothing_that_is_seen() -> None:
    log = _shown(_conversation(100, "word " * 300))
    log.fill_end(WINDOW)
    log.look_at(log.total - 200)
    top = log.fill(WINDOW)
    seen = _window(log, top)
    tops = {top}
    for _ in log.ahead(WINDOW):
        top = log.fill(WINDOW)
        tops.add(top)
        assert _window(log, top) == seen
    assert len(tops) > 1  # heights above did turn out otherwise


def test_drawing_ahead_stops_before_it_has_drawn_everything() -> None:
    log = _shown(_conversation(5_000))
    log.fill_end(WINDOW)
    for _ in log.ahead(WINDOW):
        pass
    assert line_log.AHEAD_LINES < log.lines_drawn < line_log.AHEAD_LINES + 200
    log.look_at(1_000)
    log.fill(WINDOW)
    before = log.lines_drawn
    for _ in log.ahead(WINDOW):
        pass
    assert log.lines_drawn - before < 2 * line_log.AHEAD_LINES + 200


def test_scrolling_up_line_by_line_passes_every_line_once() -> None:
    settled = _conversation(30, "word " * 300)
    everything = _all(_shown(settled))
    log = _shown(settled)
    top = log.fill_end(WINDOW)
    seen = _window(log, top)
    while top > 0:
        log.move(-1)
        top = log.fill(WINDOW)
        seen.insert(0, _window(log, top)[0])
    assert seen == everything


def test_memory_is_bounded_however_much_was_looked_at() -> None:
    log = _shown(_conversation(1_000))
    everything = len(_all(log))
    assert everything > line_log.KEPT_LINES
    assert log.kept_lines <= line_log.KEPT_LINES


def test_a_delta_costs_the_same_with_any_history() -> None:
    drawn: list[int] = []
    for pairs in (5, 5_000):
        settled = _conversation(pairs)
        log = _shown(settled)
        log.fill_end(WINDOW)
        text = ""
        before = log.lines_drawn
        for number in range(200):
            text += f"word{number} " if number % 20 else "\n\n"
            log.show(Transcript(settled=settled, live=(Answer(key="live", text=text, running=True),)))
            log.fill_end(WINDOW)
        drawn.append(log.lines_drawn - before)
    assert drawn[0] == drawn[1]


def test_a_stream_that_nobody_looks_at_is_not_drawn() -> None:
    settled = _conversation(50)
    log = _shown(settled)
    log.look_at(0)
    log.fill(WINDOW)
    before = log.lines_drawn
    for number in range(100):
        log.show(Transcript(settled=settled, live=(Answer(key="live", text="word " * number, running=True),)))
        assert log.fill(WINDOW) == 0
    assert log.lines_drawn == before


def test_an_answer_that_settles_keeps_what_was_drawn() -> None:
    settled = _conversation(3)
    live = Answer(key="live", text="one\n\n" * 30 + "end", running=True)
    log = _shown(settled, (Said(key="q", text="why"), live))
    log.fill_end(WINDOW)
    before = log.lines_drawn
    done = (*settled, Said(key="q", text="why"), Answer(key="live", text=live.text))
    log.show(Transcript(settled=done))
    log.fill_end(WINDOW)
    assert log.lines_drawn - before <= 2


def test_the_first_change_is_told_so_that_only_it_is_painted() -> None:
    settled = _conversation(3)
    text = "one\n\ntwo\n\nthree"
    log = _shown(settled, (Answer(key="live", text=text, running=True),))
    log.fill_end(WINDOW)
    changed = log.show(Transcript(settled=settled, live=(Answer(key="live", text=text + " four", running=True),)))
    assert changed is not None
    assert changed.entry == len(settled)
    assert changed.part >= 1
    same = Transcript(settled=settled, live=(Answer(key="live", text=text + " four", running=True),))
    assert log.show(same) is None


def test_an_entry_that_shrinks_leaves_no_lines_behind() -> None:
    log = _shown((), (Answer(key="live", text="one\n\n" * 50, running=True),))
    log.fill_end(WINDOW)
    log.show(Transcript(live=(Answer(key="live", text="one", running=True),)))
    assert log.fill_end(WINDOW) == 0
    assert log.total == 1


def test_an_entry_that_goes_takes_its_lines_with_it() -> None:
    log = _shown(_conversation(1), (Said(key="x", text="on its way"),))
    total = _shown(_conversation(1)).total
    log.show(Transcript(settled=_conversation(1)))
    assert log.total == total


def test_what_follows_an_entry_that_became_another_begins_as_it_should() -> None:
    said, answer = Said(key="q", text="x"), Answer(key="a", text="words")
    log = _shown((), (said, Told(key="n", text="news"), answer))
    _all(log)
    live = (said, Thought(key="t", text="hm"), answer)
    log.show(Transcript(live=live))
    assert _all(log) == _all(_shown((), live))


def test_an_answer_that_became_another_of_the_same_length_is_drawn_anew() -> None:
    log = _shown((Answer(key="a", text="one"),))
    assert _all(log) == ["rune   one"]
    log.show(Transcript(settled=(Answer(key="a", text="two"),)))
    assert _all(log) == ["rune   two"]


class _Walked(tuple[Entry, ...]):
    """Settled entries that notice when somebody goes through them."""

    walks = 0

    def __iter__(self) -> Iterator[Entry]:
        self.walks += 1
        return super().__iter__()


def test_settled_entries_that_are_the_same_object_are_not_gone_through() -> None:
    settled = _Walked(_conversation(5))
    log = _shown(settled)
    before = settled.walks
    log.show(Transcript(settled=settled, live=(Said(key="n", text="x"),)))
    assert settled.walks == before


def test_what_follows_an_entry_that_went_begins_as_it_should() -> None:
    thought = Told(key="n", text="news")
    answer = Answer(key="a", text="words")
    log = _shown((), (Said(key="q", text="x"), thought, answer))
    _all(log)
    log.show(Transcript(live=(thought, answer)))
    assert _all(log) == _all(_shown((), (thought, answer)))


def test_another_conversation_begins_anew() -> None:
    log = _shown(_conversation(20))
    log.fill_end(WINDOW)
    log.look_at(5)
    other = tuple(Said(key=f"other{number}", text="x") for number in range(3))
    log.show(Transcript(settled=other))
    assert log.spot == Spot()
    assert _all(log) == _all(_shown(other))


def test_another_width_keeps_what_stands_at_the_top() -> None:
    log = _shown(_conversation(100, "word " * 200))
    log.fill_end(WINDOW)
    log.look_at(300)
    top = log.fill(WINDOW)
    entry, part, _ = log.spot
    log.resize(50)
    top = log.fill(WINDOW)
    spot = log.at(top)
    assert spot is not None
    assert spot[:2] == (entry, part)
    log.resize(80)
    assert log.fill(WINDOW) > 0


def test_a_folded_thing_opens_and_folds_again() -> None:
    log = _shown((Thought(key="t", text="a\nb\nc"), Answer(key="a", text="x")))
    folded = _all(log)
    log.toggle(0)
    assert log.opened(0)
    assert len(_all(log)) == len(folded) + 4
    log.toggle(0)
    assert _all(log) == folded


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["grow", "settle", "say", "look", "move", "resize", "ahead"]), st.integers(0, 400))
    )
)
def test_in_any_order_of_events_the_window_shows_what_drawing_everything_would(steps: list[tuple[str, int]]) -> None:
    log = LineLog(60)
    settled = _conversation(8)
    live: tuple[Answer, ...] = ()
    log.show(Transcript(settled=settled))
    for what, value in steps:
        if what == "grow":
            text = live[-1].text if live else ""
            live = (Answer(key=f"l{len(settled)}", text=text + "word " * (value % 30) + "\n\n", running=True),)
        elif what == "settle":
            settled, live = settled + live, ()
        elif what == "say":
            settled, live = (*settled, *live, Said(key=f"n{len(settled)}", text="x" * value)), ()
        elif what == "look":
            log.look_at(value)
        elif what == "move":
            log.move(value - 200)
        elif what == "resize":
            log.resize(20 + value % 80)
        else:
            for _ in zip(log.ahead(WINDOW), range(value), strict=False):
                pass
        log.show(Transcript(settled=settled, live=live))
        top = log.fill(WINDOW)
        plain = LineLog(log.width)
        plain.show(Transcript(settled=settled, live=live))
        everything = _all(plain)
        seen = _window(log, top)
        assert len(seen) == min(WINDOW, len(everything))
        assert any(everything[at : at + len(seen)] == seen for at in range(len(everything)))
