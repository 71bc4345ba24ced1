"""`-c` when the conversation that was free a moment ago is taken by the time it is."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager

from tests.journeys.shell import Shell


@contextmanager
def looks_free(shell: Shell, conversation_id: str) -> Generator[None]:
    """Hold a lease in the way that a look does not see and a taker is refused by: a shared lock."""
    with (shell.home / "leases" / f"{conversation_id}.lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def conversation(shell: Shell, *arguments: str) -> str:
    ran = shell.run(*arguments, "--output-format", "json")
    assert ran.code == 0, ran
    return ran.json()["conversation_id"]


def test_the_next_free_one_is_taken_and_what_was_passed_over_is_said(shell: Shell) -> None:
    shell.script({"text": "yes"})
    older, newer = conversation(shell, "-p", "older"), conversation(shell, "-p", "newer")
    with looks_free(shell, newer):
        ran = shell.run("-c", "-p", "and on", "--output-format", "json")
    assert (ran.code, ran.json()["conversation_id"]) == (0, older)
    assert newer in ran.err
    assert len(ran.err.splitlines()) == 1


def test_with_none_left_a_new_one_begins(shell: Shell) -> None:
    shell.script({"text": "yes"})
    taken = {conversation(shell, "-p", "one"), conversation(shell, "-p", "two")}
    first, second = taken
    with looks_free(shell, first), looks_free(shell, second):
        ran = shell.run("-c", "-p", "and on", "--output-format", "stream-json")
    assert ran.code == 0, ran
    opened = [line for line in ran.lines() if line["type"] == "turn_opened"]
    assert len(opened) == 1
    assert opened[0]["conversation_id"] not in taken
    assert all(identity in ran.err for identity in taken)
    assert "this starts a conversation" in ran.err


def test_one_that_was_named_is_refused_all_the_same(shell: Shell) -> None:
    shell.script({"text": "yes"})
    named = conversation(shell, "-p", "one")
    with looks_free(shell, named):
        assert shell.run("-r", named, "-p", "mine").code == 75
        # The person's move about one conversation is not made on another instead.
        assert shell.run("-c", "-p", "/done").code == 75


def test_many_at_once_all_get_an_answer(shell: Shell) -> None:
    shell.script({"text": "yes", "delay_ms": 300})
    conversation(shell, "-p", "the first")
    running = [shell.start("-c", "-p", f"again {number}") for number in range(4)]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, b"yes\n"), err
    assert len(shell.events("user.message")) == 5
