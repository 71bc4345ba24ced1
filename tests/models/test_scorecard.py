import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.models.first_guess import first_guess, parameters_of
from rune.models.scorecard import better
from rune.records.models import ActionProtocol, ProbeOutcome
from tests.models.side import SideRig, a_model


def outcomes(*, native: int, constrained: int, tasks: int = 10) -> list[ProbeOutcome]:
    passed: dict[ActionProtocol, int] = {"native": native, "constrained": constrained}
    return [
        ProbeOutcome(task=f"task {number}", protocol=protocol, passed=number < count, seen="", milliseconds=1)
        for protocol, count in passed.items()
        for number in range(tasks)
    ]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("1.5B", 1_500_000_000),
        ("135M", 135_000_000),
        ("8x7B", 56_000_000_000),
        ("8 x 22B", 176_000_000_000),
        ("4.3B", 4_300_000_000),
        ("30B-A3B", 30_000_000_000),
        ("7.6 b", 7_600_000_000),
        ("1T", 1_000_000_000_000),
        ("8030261248", 8_030_261_248),
        ("0.5B", 500_000_000),
        ("", None),
        ("medium", None),
        ("2", None),
    ],
)
def test_a_size_is_read_as_servers_write_it(text: str, parameters: int | None) -> None:
    assert parameters_of(text) == parameters


@given(st.text(max_size=12))
def test_no_text_of_a_server_makes_the_guess_fail(text: str) -> None:
    size = parameters_of(text)
    assert size is None or size >= 0


@pytest.mark.parametrize(
    ("fields", "protocol", "why"),
    [
        ({"parameters": "3.2B"}, "constrained", "below 8B"),
        ({"parameters": "7.6B"}, "constrained", "below 8B"),
        ({"parameters": "8.0B"}, "native", "8.0B"),
        ({"parameters": "8x7B"}, "native", "8x7B"),
        ({"parameters": ""}, "constrained", "not known"),
        ({"parameters": "70B", "capabilities": frozenset({"chat"})}, "constrained", "no way to offer"),
        ({"parameters": "70B", "capabilities": frozenset[str]()}, "constrained", "no way to offer"),
        ({"parameters": "27B", "family": "gemma3"}, "constrained", "gemma3"),
    ],
)
def test_the_first_guess_goes_by_capabilities_family_and_size(
    fields: dict[str, Any], protocol: ActionProtocol, why: str
) -> None:
    guessed, because = first_guess(a_model(**fields))
    assert guessed == protocol
    assert why in because


async def test_what_was_measured_counts_before_a_guess_and_the_owners_choice_before_both() -> None:
    rig, info = SideRig(), a_model(parameters="3.2B")
    assert (await rig.card.protocol_for(info)).basis == "guess"

    await rig.card.measured(info, outcomes(native=9, constrained=6))
    choice = await rig.card.protocol_for(info)
    assert (choice.protocol, choice.basis) == ("native", "measured")
    assert choice.why == "9 of 10 tasks native, 6 constrained"

    await rig.card.fix(info, "constrained")
    choice = await rig.card.protocol_for(info)
    assert (choice.protocol, choice.basis, choice.why) == ("constrained", "owner", "its owner chose it")
    assert [by_owner for _, by_owner in rig.scores.kept] == [False, True]


async def test_a_probe_does_not_touch_the_owners_choice_and_holds_once_that_is_taken_back() -> None:
    rig, info = SideRig(), a_model()
    await rig.card.fix(info, "constrained")
    kept = await rig.card.measured(info, outcomes(native=10, constrained=2))
    assert (kept.protocol, kept.basis, len(kept.probe)) == ("constrained", "owner", 20)
    free = await rig.card.fix(info, None)
    assert (free.protocol, free.basis) == ("native", "measured")
    assert await rig.card.known(info) == free


async def test_a_choice_taken_back_before_any_probe_leaves_the_guess() -> None:
    rig, info = SideRig(), a_model(parameters="3.2B")
    await rig.card.fix(info, "native")
    free = await rig.card.fix(info, None)
    assert (free.protocol, free.basis) == ("constrained", "guess")


async def test_a_model_that_was_fetched_again_begins_anew() -> None:
    rig = SideRig()
    await rig.card.fix(a_model(digest="one"), "native")
    await rig.card.count(a_model(digest="one"), valid=3)
    again = a_model(digest="two")
    assert await rig.card.known(again) is None
    assert (await rig.card.protocol_for(again)).basis == "guess"
    assert (await rig.card.protocol_for(a_model(digest="one"))).basis == "owner"


async def test_a_stored_guess_does_not_outlive_what_the_server_says_of_the_model() -> None:
    rig = SideRig()
    await rig.card.count(a_model(parameters=""), valid=1)
    assert (await rig.card.protocol_for(a_model(parameters="70B"))).protocol == "native"


async def test_calls_add_up_and_a_turn_without_any_is_not_kept() -> None:
    rig, info = SideRig(), a_model()
    await rig.card.count(info)
    assert rig.scores.kept == []
    await rig.card.count(info, valid=2, repaired=1)
    await rig.card.count(info, valid=1, failed=4)
    score = await rig.card.known(info)
    assert score is not None
    assert (score.valid, score.repaired, score.failed) == (3, 1, 4)
    assert len(rig.scores.kept) == 2


async def test_changes_at_the_same_time_lose_nothing() -> None:
    rig, info = SideRig(), a_model()
    await asyncio.gather(
        *(rig.card.count(info, valid=1) for _ in range(5)),
        rig.card.fix(info, "native"),
        rig.card.measured(info, outcomes(native=1, constrained=2)),
        *(rig.card.count(info, failed=1) for _ in range(5)),
    )
    score = await rig.card.known(info)
    assert score is not None
    assert (score.valid, score.failed, score.basis, len(score.probe)) == (5, 5, "owner", 20)


@pytest.mark.parametrize(
    ("native", "constrained", "fields", "protocol"),
    [
        (8, 7, {"parameters": "3B"}, "native"),
        (7, 8, {"parameters": "70B"}, "constrained"),
        (8, 8, {"parameters": "3B"}, "constrained"),
        (8, 8, {"parameters": ""}, "constrained"),
        (8, 8, {"parameters": "70B"}, "native"),
        (0, 0, {"parameters": "70B", "capabilities": frozenset({"chat"})}, "constrained"),
    ],
)
def test_the_better_protocol_has_more_tasks_and_a_tie_goes_by_size(
    native: int, constrained: int, fields: dict[str, Any], protocol: ActionProtocol
) -> None:
    assert better(a_model(**fields), outcomes(native=native, constrained=constrained)) == protocol
