"""Markdown as lines: what is written is there, safe, and nothing is too wide, whatever the text."""

import time
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.text.safe_text import safe_text
from rune.tui.lines import STYLES, Line, copied
from rune.tui.markdown.blocks import Block, Growing, Kind, split
from rune.tui.markdown.render import document, render
from tests.tui.markdown.writing import TEXTS, WIDTHS

DEEP = {
    "quotes": ">" * 200 + " deep",
    "quotes of lists": "> - " * 200 + "deep",
    "lists": "- " * 200 + "deep",
    "nested lists": "\n".join("  " * depth + "- deep" for depth in range(200)),
    "brackets": "[" * 20_000 + "deep",
    "images": "![" * 2_000 + "deep" + "]()" * 2_000,
    "emphasis": "*" * 3_000 + "deep" + "_" * 3_000,
    "links": "[deep](" * 3_000,
    "pipes": "|deep" * 3_000 + "\n" + "|-" * 3_000 + "\n" + "|\n" * 40,
    "backticks": "deep " + " ".join("`" * size for size in range(120)),
    "one line": "deep " + "x" * 60_000,
    "entities": "deep " + "&#x202e;" * 2_000,
    "fence of one line": "```python\n# deep " + "(" * 60_000,
}


def told(source: str, width: int = 80) -> list[str]:
    return [line.text.rstrip() for line in document(source, width)]


def styled(source: str) -> list[tuple[str, str]]:
    return [(span.text, span.style) for line in document(source, 80) for span in line.spans]


def holds(lines: tuple[Line, ...], width: int) -> None:
    """Hold what holds of all lines."""
    for line in lines:
        assert line.cells <= width
        assert line.gutter <= width
        for span in line.spans:
            assert span.text == safe_text(span.text, newlines=False, tabs=False)
            assert not span.style or set(span.style.split()) <= set(STYLES)


@given(TEXTS, WIDTHS)
@example("![&#10;](a)", 3)
@example("[](http://a)", 4)
@example("[a](http://\ud83d.b/\ud83d)", 9)
@example("|a|\n|-|\n|👨\u200d👩\u200d👧|", 1)
def test_no_line_is_too_wide_and_every_span_is_safe(source: str, width: int) -> None:
    holds(document(source, width), width)


@given(TEXTS, WIDTHS, st.integers(0, 60))
def test_any_source_may_be_drawn_as_any_kind(source: str, width: int, seed: int) -> None:
    kinds: list[Kind] = [block.kind for text in DEEP.values() for block in split(text)[:3]]
    holds(render(source, width, kinds[seed % len(kinds)]), width)


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP.keys())
@pytest.mark.parametrize("width", [1, 40])
def test_what_is_made_to_be_hard_is_drawn_in_time_and_nothing_of_it_is_lost(source: str, width: int) -> None:
    began = time.process_time()
    lines = document(source, width)
    assert time.process_time() - began < 10
    holds(lines, width)
    assert "deep" in copied(lines).replace("\n", "")


@given(TEXTS, WIDTHS, st.integers(1, 7))
@example("word\n\nword\r", 9, 1)
def test_a_growing_text_ends_as_the_whole_is_drawn(source: str, width: int, step: int) -> None:
    growing, lines = Growing(), list[Line]()

    def draw(blocks: Iterable[Block]) -> None:
        for block in blocks:
            lines.extend([Line()] if block.gap else [])
            lines.extend(render(source[block.start : block.end], width, block.kind))

    for end in (*range(step, len(source), step), len(source)):
        known = growing.grow(source[:end])
        draw(growing.settled[known:])
    draw(growing.settled[growing.grow(source, ended=True) :])
    draw(growing.open)
    assert tuple(lines) == document(source, width)


def test_text_has_its_styles() -> None:
    assert styled("**b** *i* `c` ~~s~~") == [
        ("b", "strong"),
        (" ", ""),
        ("i", "emphasis"),
        (" ", ""),
        ("c", "code"),
        (" ", ""),
        ("s", "strike"),
    ]
    assert styled("# *Head*")[0] == ("Head", "heading strong emphasis")
    assert styled("Head\n===") == [("Head", "heading strong")]


def test_brackets_are_text() -> None:
    assert told("[bracketed] [/x] [@click=app.boom()]no[/] list[int]") == [
        "[bracketed] [/x] [@click=app.boom()]no[/] list[int]"
    ]


def test_links_and_images_say_where_they_go() -> None:
    assert told("[text](http://a.b/c)") == ["text (http://a.b/c)"]
    assert told("[http://a.b](http://a.b) <http://c.d> <me@a.b>") == ["http://a.b http://c.d me@a.b"]
    assert told("![alt](x.png)") == ["[image: alt] (x.png)"]
    assert told("[a]: http://b\n[c]: http://d") == ["[a]: http://b", "[c]: http://d"]


def test_entities_bring_nothing_hostile() -> None:
    assert told("&#x202e;&amp;&#10;&#xad;x") == ["<U+202E>&\\n<U+00AD>x"]


def test_html_is_text_and_keeps_its_lines() -> None:
    assert told("<div>\n<b>x</b>\n</div>") == ["<div>", "<b>x</b>", "</div>"]


def test_lines_of_a_paragraph_flow_and_hard_breaks_stay() -> None:
    assert told("a\nb  \nc") == ["a b", "c"]
    assert copied(document("one two three", 7)) == "one two three"


def test_lists_are_nested_numbered_and_spaced_as_written() -> None:
    source = "3. a\n3. b\n   - c\n     - [x] d\n\n     e\n\n9. f"
    assert told(source) == ["3. a", "4. b", "   - c", "     - [x] d", "", "     e", "", "5. f"]
    assert told("-\n- a") == ["-", "- a"]


def test_a_wrapped_item_hangs_and_is_copied_as_one_line() -> None:
    lines = document("- one two three\n  - four five", 9)
    assert [line.text for line in lines] == ["- one two", "  three", "  - four", "    five"]
    assert copied(lines) == "- one two three\n  - four five"


def test_long_lists_keep_their_numbers_and_look_like_one() -> None:
    source = "1. x\n" * 100
    assert told(source) == [f"{number}. x" for number in range(1, 101)]


def test_a_long_item_stays_an_item() -> None:
    source = "1. a\n   ```py\n" + "   x = 1\n" * 200 + "   ```\n   b\n2. c"
    lines = document(source, 40)
    assert [line.text.rstrip() for line in lines[:3]] == ["1. a", "     py", "     x = 1"]
    assert copied(lines) == "1. a\n" + "x = 1\n" * 200 + "   b\n2. c"


def test_quotes_have_a_bar_that_is_not_copied() -> None:
    lines = document("> one two\n> > three\n\nafter", 8)
    assert [line.text for line in lines] == ["▌ one", "▌ two", "▌ ▌ thre", "▌ ▌ e", "", "after"]
    assert copied(lines) == "one two\nthree\n\nafter"


def test_a_container_gives_way_where_there_is_no_room() -> None:
    assert told("> ab", 4) == ["ab"]
    assert told("10. ab", 2) == ["10", ".", "ab"]


def test_a_long_paragraph_is_copied_as_one_line() -> None:
    for text in ("word " * 3_000, "x" * 9_000, "你好" * 3_000):
        assert copied(document(text, 33)) == text.rstrip()


@pytest.mark.parametrize("before", range(5))
def test_a_cut_tears_no_character(before: int) -> None:
    family = "👨\u200d👩\u200d👧"
    lines = document("x" * before + family * 3_000, 40)
    assert all(line.text.lstrip("x").replace(family, "") == "" for line in lines)


def test_more_brackets_than_anybody_writes_are_shown_as_they_stand() -> None:
    assert told("[" * 400 + "*a*", 500) == ["[" * 400 + "*a*"]


def test_rules_fill_the_line() -> None:
    assert told("a\n\n---\n\nb", 5) == ["a", "", "─────", "", "b"]
