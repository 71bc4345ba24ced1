import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.history import Layout, Layouts, leaving, rounds_of
from rune.context.measure import Measure
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import ToolCall
from tests.context.talk import Writer, estimate


def laid_out(history: list[ConversationMessageRecord], archived: frozenset[str] = frozenset()) -> Layout:
    return Layouts(Measure(estimate)).of(history, archived, "ollama")


def texts(layout: Layout) -> list[str]:
    return [message.record.content for message in layout.rendered]


def calls_and_results(layout: Layout) -> tuple[list[str], list[str]]:
    values: list[dict[str, Any]] = [json.loads(message.data) for message in layout.rendered]
    calls = [call["id"] for value in values for call in value.get("tool_calls", [])]
    return calls, [value["tool_call_id"] for value in values if value["role"] == "tool"]


def test_a_group_is_a_user_message_with_all_its_rounds() -> None:
    writer = Writer()
    history = [writer.user("one"), *writer.round("look", ["a", "b"]), writer.answer("done"), writer.user("two")]
    layout = laid_out(history)
    assert [group.rendered for group in layout.groups] == [0, 5]
    assert layout.ids({0}) == tuple(message.id for message in history[:5])
    assert texts(layout.without({0})) == ["two"]
    assert layout.without({0}).tokens == layout.groups[1].tokens


def test_two_messages_of_the_person_in_a_row_are_both_sent_and_stay_apart() -> None:
    writer = Writer()
    layout = laid_out([writer.user("one"), writer.user("two"), writer.answer("both")])
    assert texts(layout) == ["one", "two", "both"]
    assert len(layout.groups) == 2


def test_an_answer_without_text_and_calls_is_not_sent() -> None:
    writer = Writer()
    blank = [
        writer.answer(""),
        writer.answer(" \n"),
        writer.answer("", complete=False),
        writer.answer("", thinking="hm"),
    ]
    assert texts(laid_out([writer.user("one"), *blank])) == ["one"]


def test_a_system_record_is_never_a_second_system_message() -> None:
    writer = Writer()
    assert texts(laid_out([writer.message("system", "obey"), writer.user("one")])) == ["one"]


def test_a_call_without_a_result_is_left_out_and_the_text_of_its_answer_stays() -> None:
    writer = Writer()
    asked, first, _second = writer.round("look", ["a", "b"])
    layout = laid_out([writer.user("one"), asked, first])
    assert texts(layout) == ["one", "look", "a"]
    assert calls_and_results(layout) == (["call_0"], ["call_0"])


def test_an_answer_of_nothing_but_unanswered_calls_is_not_sent() -> None:
    writer = Writer()
    asked = writer.round("", ["a"])[0]
    assert texts(laid_out([writer.user("one"), asked, writer.user("two")])) == ["one", "two"]


def test_a_result_of_no_call_before_it_is_not_sent() -> None:
    writer = Writer()
    asked, result = writer.round("look", ["a"])
    assert texts(laid_out([result, writer.user("one"), asked, writer.user("two"), result])) == ["one", "look", "two"]


def test_of_calls_that_share_an_id_only_the_first_is_sent() -> None:
    writer = Writer()
    calls = [ToolCall(id="x", name="read_file", arguments={"path": name}) for name in ("first", "second")]
    asked = writer.message("assistant", "look", calls=calls)
    results = [writer.message("tool", text, call_id="x") for text in ("one", "two")]
    layout = laid_out([writer.user("go"), asked, *results])
    assert calls_and_results(layout) == (["x"], ["x"])
    assert texts(layout) == ["go", "look", "one"]
    assert [call.arguments for call in layout.rendered[1].record.tool_calls] == [{"path": "first"}]


def test_archived_messages_stay_out() -> None:
    writer = Writer()
    history = [writer.user("one"), writer.answer("1"), writer.user("two"), writer.answer("2")]
    layout = laid_out(history, frozenset(message.id for message in history[:2]))
    assert texts(layout) == ["two", "2"]
    assert layout.ids({0}) == (history[2].id, history[3].id)


def test_messages_before_the_first_of_the_person_are_a_group_of_their_own() -> None:
    writer = Writer()
    layout = laid_out([writer.answer("hello"), writer.user("one")])
    assert [group.rendered for group in layout.groups] == [0, 1]


def conversation_of(*sizes: int) -> Layout:
    writer = Writer()
    return laid_out([writer.user("x" * 3 * (size - 8)) for size in sizes])


@pytest.mark.parametrize(
    ("sizes", "allowance", "gone"),
    [
        ((100, 100, 100), 300, 0),
        ((100, 100, 100), 299, 2),
        ((100, 100, 100, 100), 399, 3),
        ((50, 50, 50, 50), 199, 3),
        ((40, 40, 40, 40, 40), 199, 3),
        # The newest stays when it alone fits, over half of the allowance as it may be.
        ((100, 90), 100, 1),
        ((100, 90), 80, 2),
        ((100,), 99, 1),
        ((), 0, 0),
    ],
)
def test_the_oldest_groups_leave_down_to_half(sizes: tuple[int, ...], allowance: int, gone: int) -> None:
    layout = conversation_of(*sizes)
    assert [group.tokens for group in layout.groups] == list(sizes)
    assert leaving(layout, allowance) == set(range(gone))


@pytest.mark.parametrize(
    ("sizes", "allowance", "gone"),
    [((40, 40, 500), 100, {2, 0}), ((20, 20, 500), 100, {2}), ((500, 30, 20), 100, {0}), ((30, 500, 80), 100, {0, 1})],
)
def test_a_group_that_is_too_large_alone_does_not_push_the_others_out(
    sizes: tuple[int, ...], allowance: int, gone: set[int]
) -> None:
    layout = conversation_of(*sizes)
    assert leaving(layout, allowance) == gone
    kept = layout.without(gone)
    staying = [number for number in range(len(sizes)) if number not in gone]
    assert [group.tokens for group in kept.groups] == [sizes[number] for number in staying]
    assert texts(kept) == [texts(layout)[number] for number in staying]
    assert set(layout.ids(gone)) == {layout.records[number].id for number in gone}


@given(sizes=st.lists(st.integers(9, 200), max_size=12), allowance=st.integers(0, 1500))
def test_what_stays_always_fits_and_is_the_newest_of_what_could_stay(sizes: list[int], allowance: int) -> None:
    layout = conversation_of(*sizes)
    kept = layout.without(leaving(layout, allowance))
    assert kept.tokens <= allowance
    fit = [text for text, size in zip(texts(layout), sizes, strict=True) if size <= allowance]
    assert texts(kept) == (fit if kept is not layout else texts(layout))[len(fit) - len(kept.rendered) :]


def test_a_round_that_is_added_needs_a_result_for_each_call() -> None:
    writer, measure = Writer(), Measure(estimate)
    asked, first, second = writer.round("look", ["a", "b"])
    assert len(rounds_of([asked, first, second], "ollama", measure)) == 3
    with pytest.raises(ValueError, match="each call needs one result"):
        rounds_of([asked, first], "ollama", measure)
    with pytest.raises(ValueError, match="before any call"):
        rounds_of([first], "ollama", measure)
    with pytest.raises(ValueError, match="each call needs one result"):
        rounds_of([writer.answer("no calls"), first], "ollama", measure)
    with pytest.raises(ValueError, match="role 'user'"):
        rounds_of([writer.user("one")], "ollama", measure)


RECORDS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.just(())),
        st.tuples(st.just("assistant"), st.lists(st.sampled_from("abc"), max_size=3).map(tuple)),
        st.tuples(st.just("tool"), st.sampled_from("abc").map(lambda call: (call,))),
    ),
    max_size=20,
)


def written(records: list[tuple[Any, tuple[str, ...]]], answer: str) -> list[ConversationMessageRecord]:
    writer = Writer()
    return [
        writer.message(
            role,
            "text" if role != "assistant" else answer,
            calls=[ToolCall(id=call, name="read_file", arguments={}) for call in calls] if role == "assistant" else (),
            call_id=calls[0] if role == "tool" else "",
        )
        for role, calls in records
    ]


@given(records=RECORDS, text=st.booleans())
def test_in_nothing_sent_does_a_call_or_a_result_stand_alone(
    records: list[tuple[Any, tuple[str, ...]]], text: bool
) -> None:
    layout = laid_out(written(records, "text" if text else ""))
    open_calls: list[str] = []
    for message in layout.rendered:
        value = json.loads(message.data)
        if value["role"] == "tool":
            open_calls.remove(value["tool_call_id"])
        else:
            assert not open_calls
            open_calls = [call["id"] for call in value.get("tool_calls", [])]
    assert not open_calls


@given(records=RECORDS, cuts=st.lists(st.integers(0, 20), max_size=4), archived=st.sets(st.integers(0, 19)))
def test_a_history_laid_out_as_it_grows_is_the_same_as_one_laid_out_at_once(
    records: list[tuple[Any, tuple[str, ...]]], cuts: list[int], archived: set[int]
) -> None:
    history = written(records, "text")
    gone = frozenset(message.id for position, message in enumerate(history) if position in archived)
    growing = Layouts(Measure(estimate))
    for cut in (*sorted(cuts), *cuts, len(history)):
        for out in (gone, frozenset[str]()):
            assert growing.of(history[:cut], out, "ollama") == laid_out(history[:cut], out)


def test_a_record_that_was_exchanged_is_not_taken_from_the_last_layout() -> None:
    writer, layouts = Writer(), Layouts(Measure(estimate))
    history = [writer.user("one"), writer.answer("1"), writer.user("two")]
    layouts.of(history, frozenset(), "ollama")
    history[1] = msgspec.structs.replace(history[1], content="another")
    assert texts(layouts.of(history, frozenset(), "ollama")) == ["one", "another", "two"]
