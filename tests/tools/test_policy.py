"""Which prepared call runs, asks or is refused: mode, rules, and what asks whatever they say."""

from pathlib import Path

import pytest

from rune.tools.executor import Plan
from rune.tools.policy import Rule, judge, rule_for

WORK = Path("/projects/shop")
CART = Plan(effect="", touches=(WORK / "src/cart.py",))


def rules(*texts: str) -> list[Rule]:
    return [Rule(id=f"rul_{number}", text=text) for number, text in enumerate(texts)]


@pytest.mark.parametrize("kind", ["read", "session"])
@pytest.mark.parametrize("mode", ["ask", "edits", "read"])
def test_what_changes_nothing_runs_in_every_mode(kind: str, mode: str) -> None:
    verdict = judge(kind, Plan(effect=""), mode=mode, rules=(), folder=WORK)  # pyright: ignore[reportArgumentType] - parametrized
    assert (verdict.decision, verdict.by) == ("allow", None)


@pytest.mark.parametrize(
    ("mode", "texts", "decision", "by"),
    [
        ("ask", (), "ask", None),
        ("edits", (), "allow", "owner"),
        ("read", ("edit_file(src/**)",), "deny", None),
        ("ask", ("edit_file(src/**)",), "allow", "rule:rul_0"),
        ("edits", ("edit_file(src/**)",), "allow", "rule:rul_0"),
        ("ask", ("edit_file(src/cart.py)",), "allow", "rule:rul_0"),
        ("ask", ("edit_file(tests/**)", "edit_file(src/**)"), "allow", "rule:rul_1"),
        ("ask", ("edit_file(s/**)",), "ask", None),
        ("ask", ("edit_file(sr/**)",), "ask", None),
        ("ask", ("edit_file(src/cart)",), "ask", None),
        ("ask", ("edit_file(**)",), "ask", None),
        ("ask", ("edit_file(../shop/src/**)",), "ask", None),
        ("ask", ("edit_file(/projects/shop/src/**)",), "ask", None),
        ("ask", ("run_command(rm *)",), "ask", None),
        ("ask", ("nonsense",), "ask", None),
    ],
)
def test_edits_go_by_mode_and_rules(mode: str, texts: tuple[str, ...], decision: str, by: str | None) -> None:
    verdict = judge("edit", CART, mode=mode, rules=rules(*texts), folder=WORK)  # pyright: ignore[reportArgumentType] - parametrized
    assert (verdict.decision, verdict.by) == (decision, by)


def test_what_always_asks_asks_whatever_mode_and_rules_say() -> None:
    plan = Plan(effect="", touches=CART.touches, asks="it is protected")
    verdict = judge("edit", plan, mode="edits", rules=rules("edit_file(src/**)"), folder=WORK)
    assert (verdict.decision, verdict.reason) == ("ask", "it is protected")


def test_each_command_asks() -> None:
    for mode in ("ask", "edits"):
        verdict = judge("run", Plan(effect=""), mode=mode, rules=rules("edit_file(src/**)"), folder=WORK)  # pyright: ignore[reportArgumentType] - a loop over modes
        assert verdict.decision == "ask"


def test_an_edit_outside_the_workspace_asks_and_so_does_one_that_names_no_file() -> None:
    for plan in (Plan(effect="", touches=(Path("/projects/other/x"),)), Plan(effect="")):
        assert judge("edit", plan, mode="edits", rules=(), folder=WORK).decision == "ask"


def test_one_of_two_files_outside_a_rule_asks() -> None:
    plan = Plan(effect="", touches=(WORK / "src/cart.py", WORK / "tests/test_cart.py"))
    assert judge("edit", plan, mode="ask", rules=rules("edit_file(src/**)"), folder=WORK).decision == "ask"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("src/cart.py", "edit_file(src/**)"),
        ("src/shop/cart.py", "edit_file(src/shop/**)"),
        ("setup.cfg", "edit_file(setup.cfg)"),
        ("../other/x.py", ""),
        ("odd(name)/x.py", ""),
        ("two\nlines/x.py", ""),
        ("st*r/x.py", ""),
    ],
)
def test_always_offers_a_folder_of_what_is_touched_and_nothing_wider(path: str, rule: str) -> None:
    real = WORK / path if not path.startswith("..") else WORK.parent / path.removeprefix("../")
    assert rule_for(real, WORK) == rule
    if rule:
        plan = Plan(effect="", touches=(real,))
        assert judge("edit", plan, mode="ask", rules=rules(rule), folder=WORK).decision == "allow"
