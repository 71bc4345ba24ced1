"""Texts to draw: any text, and Markdown that is likely to go wrong."""

from hypothesis import strategies as st

# Lines that mean something to one another.
MARKDOWN_LINES = (
    "", "   ", "a", "b c", "- a", "* b", "1. x", "2. y", "2) z", "10. t", "  more", "   three", "    four",
    "        eight", "> q", "> - q", "# h", "##", "---", "***", "- - -", "-", "```", "````", "~~~", "```py", "a | b",
    "--- | ---", "| a |", "|---|", "- a | b", "> a | b", "\tt", "-\tt", "1.\tx", "  - n", "    - n", "   - n",
    "> ```", "<div>", "[a]: /u", "a\\|b | c",
)  # fmt: skip

# Pieces of text that are wide, joined, marked, turned, or markup to somebody.
PIECES = (
    "word",
    " ", "  ", "\n", "\n\n", "\r\n", "\r", "\t", "- ", "1. ", "> ", "# ", "```", "``", "`", "**", "*", "_", "~~",
    "[x](http://y)", "![i](j)", "[bracketed]", "[/]", "[@click=app.boom()]", "<b>", "<http://a.b>", "|", "---", "===",
    "&#x202e;", "&#10;", "&#9;", "\x1b[31m", "\x9b", "\u202e", "\u200d", "\ufe0f", "\u0301", "\u200c", "\ud83d", "\x00",
    "你好", "、", "한글", "\u1112\u1161\u11ab", "e\u0301", "👨\u200d👩\u200d👧", "❤\ufe0f", "1\ufe0f\u20e3", "🇩🇪",
    "👍🏽",
    "שלום", "\u06cc\u200c\u062e\u0648", "क्\u200dष", "ที่น้ำ", "\u00a0", "\u3000", "x" * 90, "“quoted”", "\\",
)  # fmt: skip

SOUP = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
LINES = st.lists(st.sampled_from(MARKDOWN_LINES), max_size=12).map("\n".join)
TEXTS = st.one_of(SOUP, LINES, st.text(st.characters(), max_size=60))
WIDTHS = st.one_of(st.integers(1, 12), st.integers(1, 120))
