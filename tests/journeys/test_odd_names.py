"""Bytes that are no text: in arguments, in folders' names, in a locale that knows only ASCII."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.journeys.shell import SECONDS, Shell

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
BROKEN = os.fsdecode(b"caf\xe9 \xff")


def folder(shell: Shell, name: bytes) -> Path:
    made = shell.folder.parent / os.fsdecode(name)
    made.mkdir()
    return made


def test_what_no_text_can_hold_is_asked_with_its_place_kept(shell: Shell) -> None:
    shell.script({"text": "yes"})
    ran = shell.run("-p", BROKEN)
    assert (ran.code, ran.out, ran.err) == (0, "yes\n", "")
    assert shell.events("user.message")[0]["body"]["content"] == "caf\ufffd \ufffd"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-r", BROKEN, "-p", "x"], 1),
        (["-m", BROKEN, "-p", "x"], 4),
        (["events", "--type", BROKEN], 2),
        (["sessions", "show", BROKEN], 1),
        (["trace", "--show", BROKEN], 1),
        (["canary", BROKEN], 2),
        ([BROKEN], 2),
        (["--" + BROKEN], 2),
        (["-p", "/" + BROKEN], 0),
        (["--max-steps", BROKEN, "-p", "x"], 2),
        (["events", "--limit", BROKEN], 2),
    ],
)
def test_no_argument_ends_in_a_traceback(shell: Shell, arguments: list[str], code: int) -> None:
    shell.script({"text": "yes"})
    for environment in ({}, ASCII):
        shell.environ |= environment
        ran = shell.run(*arguments)
        assert ran.code == code, ran
        assert "Traceback" not in ran.err
        assert "surrogate" not in ran.err


def test_an_ascii_locale_changes_nothing(shell: Shell) -> None:
    shell.script({"text": "Füße \U0001f98a"})
    here = folder(shell, "Größe".encode())
    assert shell.run("-p", "Grüße", folder=here).code == 0
    shell.environ |= ASCII
    ran = shell.run("-c", "-p", "Grüße", folder=here)
    assert (ran.code, ran.out, ran.err) == (0, "Füße \U0001f98a\n", "")
    assert shell.run("-p", stdin="Grüße".encode(), folder=here).out == "Füße \U0001f98a\n"
    assert {event["body"]["content"] for event in shell.events("user.message")} == {"Grüße"}
    assert len({event["body"]["folder"] for event in shell.events("conversation.created")}) == 1
    assert "Grüße" in shell.run("sessions", "list", folder=here).out


def test_folders_whose_names_are_no_text_are_told_apart(shell: Shell) -> None:
    shell.script({"text": "yes"})
    names = [b"pr\xffj", b"pr\xfej", b"pr%FFj", "pr\ufffdj".encode()]
    for name in names:
        here = folder(shell, name)
        ran = shell.run("-p", "in " + ascii(name), folder=here)
        assert (ran.code, ran.out, ran.err) == (0, "yes\n", "")
        again = shell.run("-c", "-p", "again", folder=here)
        assert (again.code, again.err) == (0, "")
    assert len({event["body"]["folder"] for event in shell.events("conversation.created")}) == len(names)


def test_a_folder_whose_name_is_no_text_can_be_trusted(shell: Shell) -> None:
    shell.script({"text": "yes"})
    here, other = folder(shell, b"pr\xffj"), folder(shell, b"pr\xfej")
    for each in (here, other):
        (each / "AGENTS.md").write_text("Answer in French.")
    assert "trusted" in shell.run("-p", "/trust yes", folder=here).out
    assert "not trusted" in shell.run("-p", "/trust", folder=other).out
    shell.run("-p", "hello", folder=here)
    assert "French" in shell.run("trace", "--show", "last").out
    shell.run("-p", "hello", folder=other)
    assert "French" not in shell.run("trace", "--show", "last").out
    assert shell.run("-p", "/trust no", folder=here).code == 0
    assert "not trusted" in shell.run("-p", "/trust", folder=here).out
    doctor = shell.run("doctor", folder=here)
    assert doctor.code == 0, doctor


@pytest.mark.parametrize("arguments", [["-p", "hello"], ["sessions", "list"], ["events"], ["doctor"], ["-p", "/trust"]])
def test_a_current_folder_that_is_gone_is_no_traceback(shell: Shell, arguments: list[str]) -> None:
    shell.script({"text": "yes"})
    gone = folder(shell, b"gone")
    script = f'cd "{gone}"; rmdir "{gone}"; exec "$@"'
    done = subprocess.run(
        ["/bin/bash", "-c", script, "bash", *shell.command(*arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=shell.environ,
        timeout=SECONDS,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    if arguments in (["-p", "hello"], ["sessions", "list"], ["-p", "/trust"]):
        assert done.returncode == 2
        assert b"current folder" in done.stderr


@pytest.mark.parametrize("arguments", [["-p", "hello"], ["sessions", "list"], ["doctor"], ["models", "fetch-embedded"]])
def test_a_home_whose_name_is_no_text_is_refused_in_one_clear_line(shell: Shell, arguments: list[str]) -> None:
    shell.script({"text": "yes"})
    shell.environ["RUNE_HOME"] = str(shell.folder.parent / os.fsdecode(b"ho\xffme"))
    ran = shell.run(*arguments)
    assert ran.code == 1
    assert "ho%FFme" in ran.err
    assert "not UTF-8" in ran.err
    assert "Traceback" not in ran.err
