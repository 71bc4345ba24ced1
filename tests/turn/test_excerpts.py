"""What of a long text goes into a window."""

from hypothesis import given
from hypothesis import strategies as st

from rune.text.tokens import estimate
from rune.turn.excerpts import excerpt, fits, room_for

ID = "sha256:" + "0123456789abcdef" * 4


def test_a_quarter_of_the_window_within_bounds() -> None:
    assert [room_for(window) for window in (1_024, 8_192, 16_384, 262_144)] == [400, 2_048, 4_096, 10_000]


def test_head_and_tail_are_whole_lines_and_the_note_says_what_is_missing() -> None:
    text = "\n".join(f"line {number}" for number in range(10_000))
    cut = excerpt(text, 500, estimate, ID)
    lines = cut.split("\n")
    assert (lines[0], lines[-1]) == ("line 0", "line 9999")
    assert all(line.startswith(("line ", "[... left out: ")) for line in lines)
    assert "read_artifact 0123456789ab shows them" in cut
    assert estimate(cut) <= 500


@given(st.text(min_size=1, max_size=3_000), st.integers(100, 2_000))
def test_what_fits_fits_and_what_is_cut_is_not_longer(text: str, room: int) -> None:
    if not fits(text, room, estimate):
        assert len(excerpt(text, room, estimate, ID)) <= len(text) + 200


def test_one_endless_line_is_cut_too() -> None:
    cut = excerpt("x" * 1_000_000, 1_000, estimate, ID)
    assert len(cut) < 10_000
    assert cut.startswith("xxx")
    assert cut.endswith("xxx")
