"""The command line: what it takes, and how it refuses the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.cli.arguments import HelpAskedError, parse
from rune.cli.commands import check_types
from rune.errors import UsageError
from rune.records.events import EVENT_KINDS


@given(st.lists(st.text(), max_size=4))
def test_whatever_is_typed_is_understood_or_refused_in_short(arguments: list[str]) -> None:
    try:
        parse(arguments)
    except UsageError as error:
        assert len(error.message) <= 300
        assert "--help" in error.hint
    except HelpAskedError as asked:
        assert asked.text.startswith("usage: rune")


def test_each_command_has_a_help_of_its_own() -> None:
    for command in (
        ["sessions"],
        ["sessions", "list"],
        ["trace"],
        ["events"],
        ["models"],
        ["doctor"],
        ["canary"],
        ["approve"],
    ):
        with pytest.raises(HelpAskedError) as asked:
            parse([*command, "--help"])
        assert " ".join(["usage: rune", *command]) in asked.value.text


def test_sessions_alone_lists_them() -> None:
    listed, named = parse(["sessions"]), parse(["sessions", "list"])
    assert (listed.action, listed.all, listed.hidden, listed.limit, listed.json) == ("list", False, False, 20, False)
    assert vars(named) == vars(listed) | {"prog": named.prog}
    for arguments in (["--all", "--limit", "3"], ["list", "--all", "--limit", "3"], ["--all", "list", "--limit", "3"]):
        options = parse(["sessions", *arguments])
        assert (options.all, options.limit) == (True, 3)


@given(st.integers(1, 100_000))
def test_a_limit_in_its_range_is_taken(limit: int) -> None:
    for command in (["events"], ["trace"], ["sessions", "list"]):
        assert parse([*command, "--limit", str(limit)]).limit == limit


@given(st.integers() | st.text())
def test_a_limit_out_of_its_range_is_refused(limit: int | str) -> None:
    if str(limit).isascii() and str(limit).isdecimal() and 1 <= int(limit) <= 100_000:
        return
    with pytest.raises(UsageError):
        parse(["events", f"--limit={limit}"])


def test_every_registered_event_type_may_be_asked_for() -> None:
    check_types(list(EVENT_KINDS))


def test_an_unknown_type_is_refused_with_those_that_are_near() -> None:
    with pytest.raises(UsageError) as refused:
        check_types(["turn.started", "user.mesage"])
    assert "user.message" in refused.value.hint
    assert "turn.started" not in refused.value.hint
    with pytest.raises(UsageError) as refused:
        check_types(["zzzzzz"])
    assert sum(name in refused.value.hint for name in EVENT_KINDS) == 3
    assert "`rune events --help` names all" in refused.value.hint
    with pytest.raises(HelpAskedError) as asked:
        parse(["events", "--help"])
    assert set(EVENT_KINDS) <= set(asked.value.text.replace(",", " ").split())


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["docter"], "rune doctor"),
        (["sesions"], "rune sessions"),
        (["sessions", "lst"], "rune sessions list"),
        (["import", "evnts", "x"], "rune import events"),
    ],
    ids=["doctor", "sessions", "list", "events"],
)
def test_a_command_that_is_nearly_right_is_named(typed: list[str], meant: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(typed)
    assert f"Did you mean `{meant}`?" in refused.value.hint
    assert "choose from" not in refused.value.message


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["sessions", "rename", "ID"], "rune sessions rename"),
        (["sessions", "list", "extra"], "rune sessions list"),
        (["sessions", "hide", "ID", "--bad"], "rune sessions hide"),
        (["events", "--bad"], "rune events"),
        (["import"], "rune import"),
        (["--bad"], "rune"),
    ],
    ids=["too-few", "extra", "option", "events", "no-action", "root"],
)
def test_wrong_usage_names_the_help_of_what_was_used(typed: list[str], command: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(typed)
    assert f"`{command} --help`" in refused.value.hint
