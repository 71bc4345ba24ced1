"""At least nine of ten garbled edits are carried out right, none wrong; what is ambiguous or impossible is refused."""

from collections import Counter, defaultdict

import pytest

from rune.tools.edits import Edited, apply
from rune.tools.text_file import TextFile, decode
from tests.tools.garbler import garbled, garbled_together
from tests.tools.refusable_edits import refusable
from tests.tools.right_edits import Case


def outcome(case: Case, end: str) -> str:
    """Carry a case out in a file with these line ends, from bytes to bytes."""
    before = case.text.replace("\n", end).encode()
    file = decode(before)
    assert isinstance(file, TextFile)
    result = apply(file.text, case.edits)
    if not isinstance(result, Edited):
        return "refused"
    if case.expected is None:
        return "wrong"
    return "right" if file.with_changes(result.changes) == case.expected.replace("\n", end).encode() else "wrong"


def table(cases: list[Case]) -> tuple[Counter[str], dict[str, Counter[str]]]:
    by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, case in enumerate(cases):
        found = outcome(case, "\r\n" if number % 4 == 0 else "\n")
        by_kind[case.kind][found] += 1
    total = sum(by_kind.values(), Counter[str]())
    print(f"\n{'kind':30} {'cases':>6} {'right':>6} {'wrong':>6} {'refused':>8}")
    for kind, counts in (*by_kind.items(), ("all", total)):
        print(f"{kind:30} {counts.total():6} {counts['right']:6} {counts['wrong']:6} {counts['refused']:8}")
    return total, by_kind


def assert_holds(cases: list[Case]) -> None:
    total, by_kind = table(cases)
    assert total["wrong"] == 0
    assert total["right"] >= 0.9 * total.total()
    assert min(counts["right"] / counts.total() for counts in by_kind.values()) >= 0.5, "a kind is mostly refused"


def test_garbled_edits_are_carried_out_right_or_refused_table() -> None:
    cases = [*garbled(seed=1, each=8), *garbled_together(seed=1, count=12)]
    assert len(cases) >= 200
    assert_holds(cases)


def test_ambiguous_and_impossible_edits_are_refused_table() -> None:
    cases = refusable(seed=1, each=7)
    assert len(cases) >= 100
    total, _ = table(cases)
    assert total == Counter({"refused": len(cases)})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_garbled_edits_of_other_seeds_table(seed: int) -> None:
    assert_holds([*garbled(seed, each=60), *garbled_together(seed, count=60)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_impossible_edits_of_other_seeds_table(seed: int) -> None:
    total, _ = table(refusable(seed, each=40))
    assert set(total) == {"refused"}
