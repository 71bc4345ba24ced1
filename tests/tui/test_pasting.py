"""A paste that comes as keys is known by the times of its keys, and its Enters send nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.tui.pasting import (
    BY_HAND,
    ENTER,
    FALTER_SECONDS,
    GAP_SECONDS,
    HOLD_SECONDS,
    QUICK_ENTER_SECONDS,
    SEAM_HOLD_SECONDS,
    SEAM_SECONDS,
    TAB,
    Burst,
    Bursts,
    block_label,
    is_block,
    is_heavy,
    lines_of,
    normalised,
)


def typed(bursts: Bursts, keys: str, *, gap: float = 0.0001, start: float = 1.0) -> str:
    """Type the keys; return S for each that was shown (or done) at once, H for each that was held."""
    return "".join("H" if bursts.takes(key, start + place * gap) else "S" for place, key in enumerate(keys))


def test_what_a_person_types_is_shown_and_enter_done_at_once() -> None:
    bursts = Bursts()
    assert typed(bursts, "a long line of text" + ENTER, gap=GAP_SECONDS * 2) == "S" * 20
    assert bursts.end() is None


def test_one_line_and_enter_in_one_write_is_typed_and_sent() -> None:
    bursts = Bursts()
    assert typed(bursts, "/help" + ENTER) == "SSSSSH"
    assert bursts.end() == Burst("/help", "", pasted=False, key=ENTER)


def test_a_long_line_is_held_after_its_first_keys_and_sent_by_the_enter_at_its_end() -> None:
    bursts = Bursts()
    line = "what does this do?"
    assert typed(bursts, line + ENTER) == "S" * BY_HAND + "H" * (len(line) - BY_HAND + 1)
    assert bursts.end() == Burst(line[:BY_HAND], line[BY_HAND:], pasted=False, key=ENTER)


@pytest.mark.parametrize("keys", [f"one{ENTER}two", f"one{ENTER}two{ENTER}", f"one{ENTER}{ENTER}", "a long line\nx"])
def test_an_enter_with_more_behind_it_makes_all_of_it_a_paste_that_sends_nothing(keys: str) -> None:
    bursts = Bursts()
    typed(bursts, keys)
    burst = bursts.end()
    assert burst is not None
    assert burst.pasted
    assert burst.key == ""
    assert burst.text == normalised(keys)


def test_a_shell_command_in_a_burst_is_a_paste_that_sends_nothing() -> None:
    bursts = Bursts()
    typed(bursts, "!rm -rf /" + ENTER)
    burst = bursts.end()
    assert burst is not None
    assert (burst.pasted, burst.key, burst.text) == (True, "", "!rm -rf /\n")


def test_a_very_long_line_is_a_block_and_its_enter_still_sends() -> None:
    bursts = Bursts()
    typed(bursts, "x" * 2_000 + ENTER)
    burst = bursts.end()
    assert burst is not None
    assert (burst.pasted, burst.key) == (True, ENTER)


def test_a_tab_at_the_end_of_a_line_is_the_key() -> None:
    bursts = Bursts()
    typed(bursts, "/sessions" + TAB)
    assert bursts.end() == Burst("/session", "s", pasted=False, key=TAB)


def test_a_tab_is_text_only_where_the_burst_is_surely_one() -> None:
    bursts = Bursts()
    typed(bursts, "/he")
    assert not bursts.flows(1.0005)
    typed(bursts, "a long line")
    assert bursts.flows(1.0015)
    assert not bursts.flows(2.0)


def test_an_enter_by_itself_is_done_at_once_whatever_comes_behind_it() -> None:
    bursts = Bursts()
    assert typed(bursts, ENTER + "x") == "SS"


def test_an_enter_with_more_read_behind_it_waits_for_what_that_is() -> None:
    bursts = Bursts()
    assert bursts.takes(ENTER, 1.0, more=True)
    typed(bursts, "x", start=1.0001)
    assert bursts.end() == Burst("", ENTER + "x", pasted=True)
    assert bursts.takes(ENTER, 2.0, more=True)
    assert bursts.is_over(2.0 + GAP_SECONDS * 2)  # the next key was typed later: the Enter was one by itself
    assert bursts.end() == Burst("", "", pasted=False, key=ENTER)


def test_what_comes_just_behind_a_paste_goes_on_with_it() -> None:
    bursts = Bursts()
    typed(bursts, "first line\rsecond li")
    assert bursts.end() == Burst("first li", "ne\rsecond li", pasted=True)
    typed(bursts, "ne\r", start=1.8)
    assert bursts.end() == Burst("ne", "\r", pasted=True, goes_on=True)
    typed(bursts, "help\r", start=1.8 + SEAM_SECONDS * 2)
    assert bursts.end() == Burst("help", "", pasted=False, key=ENTER)


def test_an_enter_all_by_itself_just_behind_a_paste_sends_a_moment_later() -> None:
    bursts = Bursts()
    typed(bursts, "one\rtwo\r")
    assert bursts.end() is not None
    assert typed(bursts, ENTER, start=1.6) == "H"
    assert bursts.patience == SEAM_HOLD_SECONDS
    assert bursts.end() == Burst("", "", pasted=False, key=ENTER)


def test_an_enter_soon_behind_a_burst_comes_from_the_same_program() -> None:
    bursts = Bursts()
    typed(bursts, "/new")
    assert bursts.is_quick(bursts.last + QUICK_ENTER_SECONDS / 2)
    assert not bursts.is_quick(bursts.last + QUICK_ENTER_SECONDS * 2)
    typed(bursts, "/new", start=2.0, gap=GAP_SECONDS * 2)
    assert not bursts.is_quick(bursts.last + 0.001)


def test_what_is_held_can_be_read_without_ending_the_burst() -> None:
    bursts = Bursts()
    typed(bursts, "one\rtwo")
    assert (bursts.held, bursts.holds) == ("\ntwo", True)


def test_a_pause_ends_a_burst() -> None:
    bursts = Bursts()
    typed(bursts, "/help")
    assert not bursts.is_over(bursts.last + GAP_SECONDS / 2)
    assert bursts.is_over(bursts.last + GAP_SECONDS * 2)
    assert bursts.patience == HOLD_SECONDS


def test_a_burst_that_is_surely_one_may_falter() -> None:
    bursts = Bursts()
    typed(bursts, "a long line of text")
    assert not bursts.is_over(bursts.last + FALTER_SECONDS / 2)
    assert bursts.is_over(bursts.last + FALTER_SECONDS * 2)
    assert FALTER_SECONDS < bursts.patience < FALTER_SECONDS * 1.2
    assert bursts.end() is not None
    typed(bursts, "x" * 5_000)
    assert not bursts.is_over(bursts.last + FALTER_SECONDS * 4)
    assert bursts.is_over(bursts.last + FALTER_SECONDS * 6)
    assert typed(bursts, "x" + ENTER, start=5.0, gap=1.0) == "SS"


@given(st.text(st.sampled_from("ab \t\r\n!/é"), min_size=1))
def test_a_burst_gives_every_key_back(keys: str) -> None:
    bursts = Bursts()
    shown = typed(bursts, keys)
    burst = bursts.end()
    rest = shown.rstrip("S")
    if burst is None:
        assert rest == ""
        return
    # Enter at the beginning was done; what was shown before it is no part of the burst.
    given_back = burst.shown + burst.held + burst.key
    assert keys.endswith(given_back)
    assert len(given_back) >= len(rest.lstrip("S"))


def test_line_ends_are_normalised() -> None:
    assert normalised("a\r\nb\rc\n\r\n") == "a\nb\nc\n\n"


def test_what_is_a_block() -> None:
    assert not is_block("\n".join("abcde"))
    assert is_block("\n".join("abcdef"))
    assert not is_block("x" * 1_000)
    assert is_block("x" * 1_001)
    assert lines_of("a\nb\n") == 2
    assert block_label("a\n" * 42) == "[Pasted 42 lines]"
    assert block_label("x" * 1_234) == "[Pasted 1,234 characters]"


def test_what_is_too_heavy_to_be_edited() -> None:
    assert not is_heavy("x" * 5_000)
    assert is_heavy("x" * 5_001)
    assert not is_heavy("a line\n" * 2_000)
    assert is_heavy("a line\n" * 3_000)
