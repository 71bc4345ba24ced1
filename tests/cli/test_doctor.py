"""How `rune doctor` speaks to a person and to a program."""

import json
from collections.abc import Callable, Sequence

import msgspec
import pytest

from rune.bootstrap.mending import Mended
from rune.cli.doctor import run_doctor
from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output
from rune.surface.checks import blocking
from rune.surface.doctor import Check, Finding, State
from tests.fakes.streams import KeptStream


def checks_that_find(state: State, *, progress: str = "") -> Callable[[Callable[[str], None]], Sequence[Check]]:
    """Return what makes one check, which tells of its progress first."""

    def make(told: Callable[[str], None]) -> Sequence[Check]:
        def look() -> Finding:
            if progress:
                told(progress)
            return Finding(name="journal", state=state, detail="2 events", lines=("w000: 2 events",), counts={"n": 2})

        return [blocking("journal", look)]

    return make


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_how_far_it_is_is_said_on_a_terminal_only(*, terminal: bool) -> None:
    out, err = KeptStream(is_terminal=terminal), KeptStream(is_terminal=terminal)
    code = run_doctor(checks_that_find("ok", progress="verifying"), None, Output(out, err), as_json=False)
    assert code == ExitCode.DONE
    assert out.text == "ok      journal: 2 events\n          w000: 2 events\nall is well\n"
    assert err.text == ("rune: verifying ...\n" if terminal else "")


def test_what_is_broken_ends_with_1_and_json_has_counts() -> None:
    out = KeptStream()
    code = run_doctor(checks_that_find("broken"), None, Output(out, KeptStream()), as_json=True)
    said = json.loads(out.text)
    assert code == ExitCode.FAILED
    assert (said["version"], said["findings"][0]["counts"], "mended" in said) == (1, {"n": 2}, False)


def test_each_thing_is_said_before_it_is_mended_and_then_the_checks_are_shown() -> None:
    out, err = KeptStream(), KeptStream()

    def mend(say: Callable[[str], None]) -> Sequence[msgspec.Struct]:
        say("closing a place")
        assert out.text == ""
        return (Mended(what="closing a place"),)

    run_doctor(checks_that_find("ok"), mend, Output(out, err), as_json=True)
    assert err.text == "rune: closing a place\n"
    assert json.loads(out.text)["mended"] == [{"what": "closing a place", "problem": ""}]


def test_where_nothing_could_be_mended_that_is_said() -> None:
    err = KeptStream()
    run_doctor(checks_that_find("ok"), lambda _: (), Output(KeptStream(), err), as_json=False)
    assert "nothing that could be mended" in err.text
