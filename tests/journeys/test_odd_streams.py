"""Streams that are closed, full or broken: one clear line, a documented exit code, no traceback."""

import os
import signal
import subprocess
import time

import pytest

from tests.journeys.shell import SECONDS, Ran, Shell

CODES = {0, 1, 2, 3, 4, 5, 75, 130}


def redirected(shell: Shell, redirection: str, *arguments: str) -> Ran:
    """Run it out of a shell that arranges its streams."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'exec "$@" {redirection}', "bash", *shell.command(*arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=shell.folder,
        env=shell.environ,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["-p", "hello"], ["events"], ["doctor"]])
@pytest.mark.parametrize(
    ("redirection", "says"),
    [(">&-", "stdout is closed"), (">/dev/full", "No space left"), ("1</dev/null", "Bad file descriptor")],
)
def test_a_stdout_that_takes_nothing_is_one_line_and_1(
    shell: Shell, arguments: list[str], redirection: str, says: str
) -> None:
    shell.script({"text": "yes"})
    shell.run("-p", "before")
    ran = redirected(shell, redirection, *arguments)
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert says in ran.err


def test_a_full_stdout_loses_no_answer(shell: Shell) -> None:
    shell.script({"text": "yes"})
    redirected(shell, ">/dev/full", "-p", "hello")
    assert [event["body"]["content"] for event in shell.events("user.message")] == ["hello"]
    assert len(shell.events("turn.finished")) == 1


def test_a_full_stdout_ends_the_turn_at_once(shell: Shell) -> None:
    shell.script({"text": "one two three", "delay_ms": 20_000})
    began = time.monotonic()
    ran = redirected(shell, ">/dev/full", "-p", "hello", "--output-format", "stream-json")
    assert ran.code == 1
    assert time.monotonic() - began < 15
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "cancelled"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2</dev/null", "2> >(exec <&-)"])
def test_without_a_stderr_the_answer_comes_all_the_same(shell: Shell, redirection: str) -> None:
    shell.script({"text": "yes"})
    ran = redirected(shell, redirection, "-c", "-p", "hello")
    assert (ran.code, ran.out) == (0, "yes\n")
    assert redirected(shell, redirection, "-r", "nothing", "-p", "hello").code == 1
    assert redirected(shell, redirection, "--nonsense").code == 2


@pytest.mark.parametrize("arguments", [["--version"], ["-p", "hello"], ["doctor"], ["--nonsense"]])
def test_with_no_streams_at_all_there_is_still_a_documented_code(shell: Shell, arguments: list[str]) -> None:
    shell.script({"text": "yes"})
    assert redirected(shell, "<&- >&- 2>&-", *arguments).code == 1


@pytest.mark.parametrize("redirection", ["<&-", "0>/dev/null", "</dev/null"])
def test_a_stdin_that_cannot_be_read_has_nothing_piped_in(shell: Shell, redirection: str) -> None:
    shell.script({"text": "yes"})
    ran = redirected(shell, redirection, "-p", "hello")
    assert (ran.code, ran.out, ran.err) == (0, "yes\n", "")
    alone = redirected(shell, redirection)
    assert (alone.code, len(alone.err.splitlines())) == (2, 2)
    assert "there is no message" in alone.err


def test_no_file_of_rune_ends_up_as_its_stdout(shell: Shell) -> None:
    shell.script({"text": "yes"})
    for redirection in ("<&- >&- 2>&-", "<&- 2>&-", "2>&-"):
        redirected(shell, redirection, "-p", "hello")
        redirected(shell, redirection, "--nonsense")
    doctor = shell.run("doctor")
    assert doctor.code == 0, doctor.out


def test_a_stdin_that_does_not_block_is_waited_for(shell: Shell) -> None:
    shell.script({"text": "yes"})
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(
        shell.command("-p"),
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=shell.environ,
    ) as running:
        assert running.stderr is not None
        assert b"reading stdin" in running.stderr.readline()  # it has found nothing there
        os.write(writing, b"text")
        os.close(writing)
        os.close(reading)
        out, err = running.communicate(timeout=SECONDS)
    assert (running.returncode, out, err) == (0, b"yes\n", b"")
    assert shell.events("user.message")[0]["body"]["content"] == "text"


def test_more_than_four_megabytes_are_refused_and_the_limit_is_said(shell: Shell) -> None:
    shell.script({"text": "yes"})
    ran = shell.run("-p", stdin=b"x" * (4 * 1024 * 1024 + 1))
    assert ran.code == 2
    assert "4 MB" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_stdin_is_read_ends_with_130(shell: Shell, number: signal.Signals) -> None:
    running = shell.start("-p", stdin=subprocess.PIPE)
    assert running.stderr is not None
    assert b"reading stdin" in running.stderr.readline()
    running.send_signal(number)
    out, err = running.communicate(timeout=SECONDS)
    assert (running.returncode, out, err) == (130, b"", b"rune: interrupted\n")


def test_help_names_every_code(shell: Shell) -> None:
    ran = shell.run("--help")
    assert ran.code == 0
    assert all(f"\n  {code:<5}" in ran.out for code in CODES)
