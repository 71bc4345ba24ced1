"""A few letters find what a person means, in time that no text can make long."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rune.tui.ranking import ranked


def names(query: str, *texts: str) -> list[str]:
    return [texts[position] for position in ranked(query, texts)]


def test_without_a_query_all_stay_in_order() -> None:
    assert names("  ", "b", "a") == ["b", "a"]


def test_the_better_kind_of_match_comes_first() -> None:
    assert names("qw", "big query weight", "xqw", "my-qwen", "qwen3", "other") == [
        "qwen3",
        "my-qwen",
        "xqw",
        "big query weight",
    ]


def test_letters_may_lie_apart_and_the_closest_are_first() -> None:
    assert names("q8", "q....8", "q.8", "8q") == ["q.8", "q....8"]


def test_every_word_must_be_found_and_case_does_not_count() -> None:
    assert names("CART fix", "fix the cart", "fix the shop") == ["fix the cart"]


def test_a_text_made_to_hold_it_up_does_not() -> None:
    texts = ["ab" * 5000 for _ in range(2000)]
    began = time.perf_counter()
    assert ranked("abbaabbaabbaabbac", texts) == []
    assert ranked("abbaabbaabbaabba", texts) == list(range(2000))
    assert time.perf_counter() - began < 5


@given(query=st.text(max_size=10), texts=st.lists(st.text(max_size=30), max_size=10))
def test_no_position_is_given_twice_and_a_text_is_found_by_itself(query: str, texts: list[str]) -> None:
    found = ranked(query, texts)
    assert len(set(found)) == len(found)
    for position, text in enumerate(texts):
        assert position in ranked(text, texts)
