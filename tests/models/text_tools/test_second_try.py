"""Which failed calls of a model are asked once more."""

import pytest

from rune.errors import (
    BusyError,
    CapabilityMissingError,
    EmptyOutputError,
    ModelError,
    ServerError,
    StreamBrokenError,
    UnusableCallError,
)
from rune.models.text_tools.second_try import deserves_second_try

WORTH = [
    UnusableCallError("read_file", "the text ends in the middle of the call"),
    EmptyOutputError(generated=12),
    CapabilityMissingError("m", "tools"),
    ServerError("error parsing tool call: raw='x', err=y", status=500, phase="first_byte"),
    ServerError("Failed to parse input at pos 12: <tool_call>", status=500, phase="token"),
]
NOT_WORTH = [
    EmptyOutputError(generated=None),
    EmptyOutputError(generated=0),
    CapabilityMissingError("m", "thinking"),
    ServerError("out of memory", status=500, phase="first_byte"),
    StreamBrokenError("it broke"),
    BusyError("busy"),
]


@pytest.mark.parametrize("error", WORTH, ids=str)
def test_a_call_that_was_lost_on_the_way_deserves_one(error: ModelError) -> None:
    assert deserves_second_try(error, protocol="native", tools_offered=True, shown=False, tried=False)


@pytest.mark.parametrize("error", NOT_WORTH, ids=str)
def test_what_has_nothing_to_do_with_tools_does_not(error: ModelError) -> None:
    assert not deserves_second_try(error, protocol="native", tools_offered=True, shown=False, tried=False)


@pytest.mark.parametrize("error", WORTH, ids=str)
def test_never_after_text_was_shown_nor_twice_nor_without_tools_nor_when_it_was_constrained(error: ModelError) -> None:
    assert not deserves_second_try(error, protocol="native", tools_offered=True, shown=True, tried=False)
    assert not deserves_second_try(error, protocol="native", tools_offered=True, shown=False, tried=True)
    assert not deserves_second_try(error, protocol="native", tools_offered=False, shown=False, tried=False)
    assert not deserves_second_try(error, protocol="constrained", tools_offered=True, shown=False, tried=False)
