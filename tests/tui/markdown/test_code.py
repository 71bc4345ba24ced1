"""Code as a block: every cell of it, the language named, copied as it was written."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.text.safe_text import safe_text
from rune.tui.lines import Line, copied
from rune.tui.markdown import code
from rune.tui.markdown.blocks import Code, split
from rune.tui.markdown.render import code_text, document
from rune.tui.markdown.wrapping import TOO_WIDE, expanded
from tests.tui.markdown.writing import TEXTS, WIDTHS

PYTHON = 'def say(x: int) -> str:\n    """Say."""\n    return f"{x}"  # so\n\n\nclass A:\n    pass'
LANGUAGES = st.sampled_from(["", "python", "js", "html", "diff", "json", "bash", "nonsense", "console", "{.rust}"])


def styles(lines: list[Line]) -> dict[str, str]:
    return {span.text: span.style for line in lines for span in line.spans}


@given(TEXTS, LANGUAGES, WIDTHS, st.booleans(), st.booleans())
@example("a\tb\n  c", "python", 4, True, False)
def test_code_fills_its_block_and_comes_back(
    text: str, language: str, width: int, named: bool, continues: bool
) -> None:
    lines = code.drawn(text, language, width, named=named, continues=continues)
    for line in lines:
        assert line.cells == width
        for span in line.spans:
            assert span.text == safe_text(span.text, newlines=False, tabs=False)
            assert span.style.split()[0] == "block"
    if not any(TOO_WIDE in line.text for line in lines):
        whole = "\n".join(expanded(line, 4).rstrip() for line in safe_text(text).split("\n"))
        assert copied(lines) == whole


def test_words_of_the_language_have_styles() -> None:
    found = styles(code.drawn(PYTHON, "python", 80))
    assert found["def"] == "block keyword"
    assert found["say"] == "block function"
    assert found["int"] == "block function"
    assert found["A"] == "block type"
    assert found["# so"] == "block comment"
    assert found["python"] == "block dim"


@pytest.mark.parametrize("language", ["", "nonsense", "../etc", "\x1b[31m"])
def test_an_unknown_language_is_plain(language: str) -> None:
    assert set(styles(code.drawn(PYTHON, language, 80)).values()) <= {"block", "block dim"}


def test_much_code_and_long_lines_are_plain() -> None:
    assert set(styles(code.drawn("x = 1\n" * 9_000, "python", 80, named=False)).values()) == {"block"}
    assert set(styles(code.drawn("x = 1 " * 900, "python", 80, named=False)).values()) <= {"block", "block dim"}


def test_a_long_line_is_marked_where_it_goes_on() -> None:
    lines = code.drawn("abcdefghij", "", 8)
    assert [line.text for line in lines] == ["  abcdef", "↳ ghij  "]
    assert [line.continues for line in lines] == [None, ""]


@pytest.mark.parametrize("fence", ["```python", "~~~ python", "   ````python extra"])
@pytest.mark.parametrize("copies", [1, 40])
def test_fenced_code_is_copied_as_it_was_written(fence: str, copies: int) -> None:
    text = "\n".join([PYTHON] * copies)
    opening = fence.strip()
    within = text if opening == fence else "   " + text.replace("\n", "\n   ")
    source = f"{fence}\n{within}\n{opening.partition('p')[0].strip()}\n"
    assert copied(document(source, 30)) == text
    blocks = split(source)
    kinds = [block.kind for block in blocks]
    assert all(isinstance(kind, Code) for kind in kinds)
    texts = [code_text(source[b.start : b.end], b.kind) for b in blocks if isinstance(b.kind, Code)]
    assert "\n".join(texts).rstrip() == text


def test_indented_and_unclosed_code_is_code() -> None:
    assert copied(document("    a\n\n      b\n", 20)) == "a\n\n  b"
    assert copied(document("```\na\n  b", 20)) == "a\n  b"
    assert [line.text for line in document("```\n```", 6)] == ["      "]


def test_a_line_of_code_that_was_cut_is_copied_as_one() -> None:
    text = "x = [" + "1, " * 5_000 + "]"
    assert copied(document(f"```python\n{text}\n```", 30)) == text
    assert copied(document("    " + text, 30)) == text


def test_code_with_tabs_is_kept_by_its_text() -> None:
    source = "```make\nall:\n\tcc x.c\n```"
    [block] = split(source)
    assert isinstance(block.kind, Code)
    assert code_text(source, block.kind) == "all:\n\tcc x.c"
