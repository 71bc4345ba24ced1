"""What Rune suggests is what the person who started it can type."""

import pytest

from rune.text.invocation import command_of, suggested


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({}, "rune"),
        ({"RUNE_COMMAND": ""}, "rune"),
        ({"RUNE_COMMAND": "./scripts/rune"}, "./scripts/rune"),
        ({"RUNE_COMMAND": "my clone/scripts/rune"}, "'my clone/scripts/rune'"),
        ({"RUNE_COMMAND": "/x\x1b[2J/rune"}, "rune"),
    ],
    ids=["not told", "empty", "as it was typed", "quoted", "not for a terminal"],
)
def test_the_command_is_as_a_shell_reads_it(environ: dict[str, str], command: str) -> None:
    assert command_of(environ) == command


def test_commands_in_backticks_and_the_line_on_leaving_name_it() -> None:
    assert (
        suggested("Run `rune doctor` (`rune -c`).", "./scripts/rune")
        == "Run `./scripts/rune doctor` (`./scripts/rune -c`)."
    )
    assert suggested("rune -r cnv_1   # the task", "./scripts/rune") == "to go on: ./scripts/rune -r cnv_1   # the task"


def test_other_words_stay_as_they_are() -> None:
    text = "rune: a rune is a letter; `runes` too"
    assert suggested(text, "./scripts/rune") == text
