"""Where Markdown is cut: without gaps, never where the parser would not, and never anew."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rune.tui.markdown.blocks import Block, Code, Growing, Inside, Prose, Rest, Rows, split, stable_end
from tests.tui.markdown.writing import LINES, TEXTS

PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 48}).enable(["table", "strikethrough"])
PARSER.disable(["reference", "html_block", "html_inline"])

# What streams for long without a place where one would part it.
ENDLESS = {
    "fence": "```python\n" + "    x = 1  # and so on\n" * 2_000,
    "fence in an item": "1. do this\n   ```python\n" + "   x = 1  # and so on\n" * 2_000,
    "indented code": "    x = 1\n" * 2_000,
    "paragraph of lines": "words and words\n" * 2_000,
    "paragraph in one line": "words and words " * 10_000,
    "one word": "x" * 100_000,
    "Chinese": "你好世界" * 20_000,
    "list": "- an item\n" * 2_000,
    "loose list": "- an item\n\n" * 2_000,
    "nested list": "- an item\n" + "  - within\n" * 2_000,
    "table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 2_000,
    "quote": "> said\n" * 2_000,
    "code in one line": "```\n" + "x" * 100_000,
}


def parts(source: str) -> list[str]:
    return [source[block.start : block.end] for block in split(source)]


def parsed(source: str) -> list[object]:
    return [
        (token.type, token.content, token.level, token.markup, token.info, sorted(token.attrs.items()))
        for token in PARSER.parse(source)
    ]


def grown(source: str, sizes: Iterator[int]) -> Growing:
    growing, at = Growing(), 0
    while at < len(source):
        at += next(sizes)
        growing.grow(source[:at])
    growing.grow(source, ended=True)
    return growing


@given(TEXTS)
def test_blocks_cover_the_source_without_gaps(source: str) -> None:
    assert "".join(parts(source)) == source


@given(LINES)
@example("para\na | b\n--- | ---\n1 | 2\ntext")
@example("- a\n\n  b\n- c\nlazy\n---\nd")
@example("> ```\n> a\nb\n2. c\n\n   d")
def test_blocks_are_cut_only_where_the_parser_begins_something_new(source: str) -> None:
    assert [token for part in parts(source) for token in parsed(part)] == parsed(source)


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
@example("a\r\nb", [2])
def test_a_text_that_grows_has_the_blocks_of_the_whole(source: str, sizes: list[int]) -> None:
    growing = grown(source, iter(sizes * len(source)))
    assert (*growing.settled, *growing.open) == split(source)


@given(TEXTS, TEXTS)
def test_what_is_stable_stays_whatever_is_appended(source: str, more: str) -> None:
    growing = Growing()
    growing.grow(source)
    settled = tuple(growing.settled)
    assert split(source + more)[: len(settled)] == settled
    assert stable_end(source) == (settled[-1].end if settled else 0)


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS.keys())
def test_what_goes_on_and_on_is_settled_in_parts(source: str) -> None:
    chance = random.Random(7)  # noqa: S311 - sizes of deltas, no secret
    growing, at, largest = Growing(), 0, 0
    while at < len(source):
        at += chance.randint(1, 400)
        growing.grow(source[:at])
        largest = max(largest, sum(block.end - block.start for block in growing.open))
    assert largest < 9_000
    assert split(source)[: len(growing.settled)] == tuple(growing.settled)


def test_another_text_starts_anew() -> None:
    growing = Growing()
    growing.grow("# one\n\ntwo\n\nthree")
    assert growing.grow("# one\n\ntwo\n\nthree and\n\nfour") == 1
    assert growing.grow("# other\n\ntext") == 0
    assert [(block.start, block.end) for block in (*growing.settled, *growing.open)] == [(0, 9), (9, 13)]


def test_blank_lines_belong_to_the_block_before_and_the_first_ones_to_the_first() -> None:
    assert parts("\n\n# a\n\n\nb\n\n") == ["\n\n# a\n\n\n", "b\n\n"]
    assert parts("\n \n") == ["\n \n"]


@pytest.mark.parametrize(
    "whole",
    [
        "```py\n# no heading\n\n- no item\n```\n",
        "````\n```\n\nstill code\n````\n",
        "~~~\n```\n\n~~~\n",
        "  ```\n  a\n\n  b\n  ```\n",
        "- a\n\n- b\n\n  more\n\n      code\n- c\n",
        "1. a\n   ```\n   # no heading\n\n   b\n   ```\n2. b\n",
        "> a\nlazy\n> > b\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\nno pipe\n",
        "<div>\n<p>text</p>\n</div>\n",
        "Two lines\nof a heading\n===\n",
        "    a\n\n    b\n",
    ],
)
def test_these_are_one_block(whole: str) -> None:
    assert parts(f"before\n\n{whole}\nafter") == ["before\n\n", whole + "\n", "after"]


def test_a_table_may_follow_text_without_a_blank_line() -> None:
    assert parts("text\na|b\n-|-\n1|2\n\nafter") == ["text\n", "a|b\n-|-\n1|2\n\n", "after"]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert parts("a\n```py\n# b\n\n- c\n\nd") == ["a\n", "```py\n# b\n\n- c\n\nd"]


def test_parts_know_what_they_are_part_of() -> None:
    code = [block.kind for block in split("~~~c\n" + "x;\n" * 100 + "~~~\n")]
    assert code == [Code("c", opens=True), Code("c", closed=True)]
    assert split("7. x\n" * 40)[1].kind == Prose(7 + 32)
    assert split("a b\n" * 40)[1].kind == Rest(" ")
    assert split("a|b\n-|-\n" + "1|2\n" * 40)[1].kind == Rows("a|b\n-|-\n")
    assert split("- a\n" + "  b\n\n" * 40)[1].kind == Inside(2, 2)
    item = split("- a\n  ~~~c\n" + "  x;\n" * 70 + "  ~~~\n  b\n- c\n")
    assert [type(block.kind) for block in item] == [Prose, Code, Inside, Prose]
    assert split("- a\n  ~~~c\n" + "  x;\n" * 70 + "      ~~~\n")[1].kind == Code("c", 2, margin=2)
    assert item[1].kind == Code("c", 2, margin=2, closed=True)


def test_a_dash_that_comes_first_makes_no_heading_for_a_moment() -> None:
    growing = Growing()
    growing.grow("These:\n-")
    assert growing.open == (Block(0, 7), Block(7, 8, Rest()))
    growing.grow("These:\n-", ended=True)
    assert growing.open == (Block(0, 8),)


def test_gaps_are_where_blank_lines_are_and_round_what_stands_apart() -> None:
    assert [block.gap for block in split("a\n- b\n\nc\n# d\ne")] == [False, False, True, True, True]
