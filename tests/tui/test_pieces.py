"""A prompt's text is drawn without harm, and stands for exactly what went in."""

from hypothesis import given
from hypothesis import strategies as st

from rune.text.safe_text import safe_text
from rune.tui.pieces import Pieces, around, begins_command, command_mark, is_plain

ANY = st.text(st.characters(codec=None, categories=None))
ODD = st.text(st.sampled_from("ab \n\t\x1b\x07\x9b\r\x00\u202e\u200d\ufe0f\u0301\U0001f468\U000e0041\ud800\udc00\\<"))
OURS = st.text(st.sampled_from("a\U000f0000\U000f0001\U00100041\U0010fff0\U0010fffd"))
TEXTS = st.one_of(ANY, ODD, OURS)


@given(TEXTS)
def test_any_text_comes_out_as_it_went_in(text: str) -> None:
    pieces = Pieces()
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert pieces.original(pieces.written(text)) == joined


@given(TEXTS)
def test_what_is_drawn_is_as_long_as_what_is_held_and_harmless(text: str) -> None:
    pieces = Pieces()
    for line in pieces.written(text.replace("\r", "")).split("\n"):
        shown = pieces.shown(line)
        assert len(shown) == len(line)
        assert safe_text(shown, newlines=False) == shown


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_what_is_left_of_a_cut_text_is_drawn_harmlessly_too(text: str, start: int, end: int) -> None:
    pieces = Pieces()
    line = pieces.written(text).replace("\n", "")
    start, _ = around(line, min(start, len(line)))
    shown = pieces.shown(line[:start] + line[around(line, min(end, len(line)))[1] :])
    assert safe_text(shown, newlines=False) == shown


def test_what_is_hostile_is_drawn_by_its_name() -> None:
    pieces = Pieces()
    assert pieces.shown(pieces.written("a\x1b[31m\u202eb\x85")) == "a\\x1b[31m<U+202E>b\\x85"


def test_a_piece_is_drawn_as_its_label_and_stands_for_its_text() -> None:
    pieces = Pieces()
    written = "a" + pieces.whole("x\ny", "[two]") + "b"
    assert pieces.shown(written) == "a[two]b"
    assert pieces.original(written) == "ax\nyb"
    assert "\n" not in written


def test_words_that_look_like_a_piece_are_none() -> None:
    pieces = Pieces()
    pieces.whole("secret", "[two]")
    assert pieces.original(pieces.written("[two]")) == "[two]"


def test_private_characters_from_outside_stand_for_themselves() -> None:
    pieces = Pieces()
    real = pieces.whole("secret", "[two]")
    written = pieces.written(real)
    assert written != real
    assert pieces.original(written) == real
    assert not begins_command(pieces.written(command_mark("/") + "help"))


def test_inside_of_a_piece_is_between_its_characters() -> None:
    pieces = Pieces()
    line = "a" + pieces.whole("x", "[x]") + pieces.whole("y", "[y]")
    assert [around(line, column) for column in range(8)] == [
        (0, 0),
        (1, 1),
        (1, 4),
        (1, 4),
        (4, 4),
        (4, 7),
        (4, 7),
        (7, 7),
    ]


def test_marks_that_are_typed_join_what_stands_before_them() -> None:
    pieces = Pieces()
    typed = "".join(pieces.written(char) for char in "e\u0301\U0001f468\u200d\U0001f469")
    assert pieces.shown(typed) == "e\u0301\U0001f468\u200d\U0001f469"
    assert pieces.shown(typed[1:]) == "\ufffd\U0001f468\u200d\U0001f469"
    assert pieces.shown("a\u200db") == "a\ufffdb"


def test_a_typed_slash_says_that_it_began_a_command() -> None:
    pieces = Pieces()
    written = command_mark("/") + "help"
    assert begins_command(written)
    assert is_plain(written)
    assert pieces.shown(written) == pieces.original(written) == "/help"
    assert not begins_command("/help")
    assert not begins_command("x" + written)
    assert not is_plain(written + pieces.written("\x1b"))
    assert command_mark("x") == ""


def test_after_many_pieces_it_is_time_to_begin_anew() -> None:
    pieces = Pieces()
    for number in range(33_000):
        pieces.whole(str(number), "[x]")
    assert pieces.many
    pieces.forget()
    assert not pieces.many
    assert pieces.original(pieces.whole("new", "[x]")) == "new"
