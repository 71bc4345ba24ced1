"""What cannot be asked for is refused with what could be meant, before anything is opened."""

import pytest

from tests.journeys.shell import Shell

LIMITS = [["events"], ["trace"], ["sessions", "list"]]
NUMBERS = ["0", "-5", "100001", "9" * 30, "9" * 5000, "٣", "1.5", "", "x"]


@pytest.mark.parametrize("command", LIMITS)
def test_a_limit_is_a_number_from_1_to_100000(shell: Shell, command: list[str]) -> None:
    for number in NUMBERS:
        ran = shell.run(*command, f"--limit={number}")
        assert ran.code == 2, (number, ran)
        assert "from 1 to 100,000" in ran.err
        assert len(ran.err) < 1000
    assert shell.run(*command, "--limit", "100000").code == 0
    assert shell.run(*command, "--limit", "1").code == 0


def test_steps_are_a_number_from_1_to_200(shell: Shell) -> None:
    shell.script({"text": "yes"})
    for number in (*NUMBERS, "201"):
        ran = shell.run(f"--max-steps={number}", "-p", "x")
        assert ran.code == 2, (number, ran)
        assert "from 1 to 200" in ran.err
    assert shell.run("--max-steps", "200", "-p", "x").code == 0


def test_an_event_type_that_is_none_is_refused_with_the_near_ones(shell: Shell) -> None:
    ran = shell.run("events", "--type", "turn.finish")
    assert ran.code == 2
    assert "turn.finished" in ran.err
    assert not shell.home.exists()
    assert shell.run("events", "--type", "turn.finished", "--type", "memory.created").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
        (["import"], "KIND"),
        (["sessions", "show"], "id"),
        (["--channel", "other", "-p", "x"], "chat"),
        (["events", "\x1b[2J"], "unrecognized"),
    ],
)
def test_wrong_usage_is_a_line_and_a_hint(shell: Shell, arguments: list[str], says: str) -> None:
    ran = shell.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    first, second = ran.err.splitlines()
    assert first.startswith("rune: ")
    assert says in first
    assert "--help" in second
