import pytest

from rune.store.imports.foreign_times import read_time

SAME = "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize(
    "value",
    [1_700_000_000, 1_700_000_000.0, 1_700_000_000_000, 1_700_000_000_000_000, 1_700_000_000_000_000_000,
     "1700000000", "1700000000000", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20",
     "20231114T221320Z"],
    ids=str,
)  # fmt: skip
def test_a_time_is_read_in_any_usual_form(value: object) -> None:
    assert read_time(value) == SAME


def test_fractions_are_kept_to_the_millisecond() -> None:
    assert read_time(1_700_000_000.123) == "2023-11-14T22:13:20.123Z"
    assert read_time("2023-11-14T22:13:20.123456Z") == "2023-11-14T22:13:20.123Z"


@pytest.mark.parametrize(
    "value",
    [None, True, "", "yesterday", 0, -5, float("nan"), float("inf"), 10**40, -(10**400), 10**400, "1" * 400,
     "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "1712010112345678901234", [], {}],
    ids=lambda value: str(value)[:12] or "empty",
)  # fmt: skip
def test_what_is_no_time_is_not_known(value: object) -> None:
    assert read_time(value) == ""
