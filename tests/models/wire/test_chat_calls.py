"""Fragments of tool calls, cut anywhere, in the ways that servers number them."""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ProtocolError, UnusableCallError
from rune.models.wire.chat_calls import MOST_CALLS, CallAssembly, Fragment, Function

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=6,
)
_CALLS = st.lists(
    st.tuples(st.sampled_from(["read", "list_files", "a.b"]), st.dictionaries(_TEXTS, _VALUES, max_size=3)),
    min_size=1,
    max_size=3,
)


class Manner(NamedTuple):
    """How a server writes a fragment: whether it gives the index, and the id and name again each time."""

    indexed: bool
    ids: bool
    repeats: bool


_BY_THE_BOOK = Manner(indexed=True, ids=True, repeats=False)
_MANNERS = [
    _BY_THE_BOOK,
    Manner(indexed=True, ids=False, repeats=False),
    Manner(indexed=True, ids=True, repeats=True),
    Manner(indexed=True, ids=False, repeats=True),
    Manner(indexed=False, ids=True, repeats=False),
    Manner(indexed=False, ids=True, repeats=True),
    Manner(indexed=False, ids=False, repeats=False),
]


def fragments(number: int, name: str, text: str, cuts: list[int], manner: Manner) -> list[Fragment]:
    places = sorted({cut % (len(text) + 1) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found: list[Fragment] = []
    for place, piece in enumerate(pieces):
        named = place == 0 or manner.repeats
        found.append(
            Fragment(
                index=number if manner.indexed else None,
                id=f"id{number}" if manner.ids and named else None,
                function=Function(name=name if named else None, arguments=piece),
            )
        )
    return found


@given(_CALLS, st.lists(st.integers(0, 200), max_size=6), st.sampled_from(_MANNERS))
def test_calls_are_the_same_however_their_arguments_are_cut(
    calls: list[tuple[str, dict[str, Any]]], cuts: list[int], manner: Manner
) -> None:
    assembly = CallAssembly()
    for number, (name, arguments) in enumerate(calls):
        for fragment in fragments(number, name, json.dumps(arguments), cuts, manner):
            assembly.add(fragment)
    whole = assembly.whole()
    assert [(call.name, call.arguments) for call in whole] == calls
    assert len({call.id for call in whole}) == len(calls)


@given(_CALLS, st.lists(st.integers(0, 200), max_size=6), st.randoms(use_true_random=False))
def test_with_indexes_the_fragments_of_several_calls_may_come_mixed(
    calls: list[tuple[str, dict[str, Any]]], cuts: list[int], order: Any
) -> None:
    queues = [
        fragments(number, name, json.dumps(arguments), cuts, _BY_THE_BOOK)
        for number, (name, arguments) in enumerate(calls)
    ]
    assembly = CallAssembly()
    for queue in queues:  # calls begin in their order, by the book
        assembly.add(queue.pop(0))
    while any(queues):
        assembly.add(order.choice([queue for queue in queues if queue]).pop(0))
    assert [(call.id, call.name, call.arguments) for call in assembly.whole()] == [
        (f"id{number}", name, arguments) for number, (name, arguments) in enumerate(calls)
    ]


@given(st.lists(st.builds(
    Fragment,
    index=st.none() | st.integers(0, 2),
    id=st.none() | st.sampled_from(["", "a", "b"]),
    function=st.none() | st.builds(
        Function, name=st.none() | st.sampled_from(["", "read"]),
        arguments=st.none() | st.sampled_from(["", "{", "}", "{}", "[1]", '"{}"', "null"]) | st.just({"n": 1}),
    ),
), max_size=8))  # fmt: skip
def test_whatever_comes_ends_in_calls_with_ids_of_their_own_or_in_one_that_cannot_be_used(
    given_fragments: list[Fragment],
) -> None:
    assembly = CallAssembly()
    for fragment in given_fragments:
        assembly.add(fragment)
    try:
        calls = assembly.whole()
    except UnusableCallError:
        return
    assert all(call.name for call in calls)
    assert len({call.id for call in calls}) == len(calls)


@pytest.mark.parametrize("arguments", ["{", "[1]", '"{"', "1", "{}{}", '{"a":1,"a":2}', '"x'])
def test_arguments_that_are_no_object_make_a_call_that_cannot_be_used(arguments: str) -> None:
    assembly = CallAssembly()
    assembly.add(Fragment(index=0, id="a", function=Function(name="read", arguments=arguments)))
    with pytest.raises(UnusableCallError, match="'read'"):
        assembly.whole()


@pytest.mark.timeout(20)
def test_a_call_in_a_hundred_thousand_fragments_that_look_like_its_end_costs_linear_time() -> None:
    calls = CallAssembly()
    calls.add(Fragment(index=0, id="a", function=Function(name="read", arguments='{"path":"')))
    for number in range(100_000):
        calls.add(Fragment(index=0, id=f"id{number}", function=Function(name="read", arguments="if {x} {y} {z}")))
    calls.add(Fragment(index=0, function=Function(arguments='"}')))
    assert [call.name for call in calls.whole()] == ["read"]


def test_calls_without_an_end_are_no_answer() -> None:
    calls = CallAssembly()
    one = Function(name="read", arguments="{}")
    for number in range(MOST_CALLS):
        calls.add(Fragment(index=number, function=one))
    assert len({call.id for call in calls.whole()}) == MOST_CALLS
    with pytest.raises(ProtocolError, match="more than 1,000 times"):
        calls.add(Fragment(index=MOST_CALLS, function=one))


def test_arguments_without_an_end_do_not_fill_the_memory() -> None:
    calls = CallAssembly()
    piece = Fragment(index=0, function=Function(name="read", arguments="a" * 1_000_000))
    with pytest.raises(ProtocolError, match="characters"):
        for _ in range(20):
            calls.add(piece)
