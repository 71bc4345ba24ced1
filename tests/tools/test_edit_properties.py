"""Of any text and any edits: nothing is raised, nothing is carried out in part, and an exact search is exact."""

from hypothesis import assume, given
from hypothesis import strategies as st

from rune.tools.edits import Edit, Edited, Refused, apply
from rune.tools.line_ends import changed

PLAIN = ["a", "b", "foo", "x = 1", "\n", "\n", " ", "    ", "\t", "<", "}", "\r\n", "\r", '"', "'", "\\"]
ODD = [
    "...",
    "# ... existing code ...",
    "```",
    "1: ",
    "2| ",
    "&lt;",
    "\\n",
    "\u201c",
    "é",
    "e\u0301",
    "\u00a0",
    "\ud800",
    "\0",
]
PIECE = st.sampled_from([*PLAIN, *ODD])
TEXT = st.one_of(st.lists(PIECE, max_size=25).map("".join), st.text(max_size=40))
EDIT = st.builds(Edit, TEXT, TEXT)


@given(TEXT, st.lists(EDIT, max_size=4))
def test_any_edits_of_any_text_are_carried_out_whole_or_not_at_all(text: str, edits: list[Edit]) -> None:
    result = apply(text, edits)
    if isinstance(result, Edited):
        assert result.text == changed(text, result.changes)
        starts = [change.start for change in result.changes]
        assert starts == sorted(starts)
        assert result.text != text
    else:
        assert result.message.startswith("Nothing was changed")
        assert all(1 <= line <= text.count("\n") + 1 for line in result.lines)


@given(TEXT, st.data())
def test_edits_of_parts_of_a_text_raise_nothing(text: str, data: st.DataObject) -> None:
    """Searches that are there, garbled by what is put between their lines."""
    lines = text.split("\n")
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines)))
    between = data.draw(st.sampled_from(["\n", "\n    ", "  \n", "\n\n", "\r\n", "\\n", "\n...\n", "\n1: "]))
    search = between.join(line.strip() for line in lines[first:last])
    apply(text, [Edit(search, data.draw(TEXT))])


@given(st.lists(st.sampled_from(["a", "bc", "d e", "\n", "(", ")", "f"]), min_size=2, max_size=30), st.data())
def test_an_exact_search_at_one_place_inside_a_line_is_replaced_as_it_is(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    start = data.draw(st.integers(0, len(text) - 1))
    search = text[start : data.draw(st.integers(start + 1, len(text)))]
    replace = data.draw(st.sampled_from(["", "X", "X Y", "X\nY", "Z(a)"]))
    assume(sum(text.startswith(search, at) for at in range(len(text))) == 1)
    assume(not search.endswith("\n") and search not in replace)
    result = apply(text, [Edit(search, replace)])
    if replace.startswith("X\n") and _indented(text, start):
        return  # how far its second line belongs is not known
    assert isinstance(result, Edited), result
    assert result.text == text.replace(search, replace)
    assert result.notes == ()


@given(TEXT, TEXT, TEXT)
def test_one_edit_that_is_not_there_keeps_all_others_back(text: str, search: str, replace: str) -> None:
    result = apply(text, [Edit(search, replace), Edit("\u2603 nowhere \u2603", "\u2603 and not there \u2603")])
    assert isinstance(result, Refused)


@given(TEXT, TEXT)
def test_a_search_that_stands_twice_is_refused(part: str, between: str) -> None:
    assume(part)
    result = apply(f"{part}{between}{part}", [Edit(part, "\u2603")])
    assert isinstance(result, Refused)
    assert result.reason == "ambiguous"


def _indented(text: str, start: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return bool(before) and not before.strip()
