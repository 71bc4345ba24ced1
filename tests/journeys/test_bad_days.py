"""Kills, signals, broken servers, full disks, a second Rune: one clear line each, and nothing lost."""

import json
import os
import pty
import random
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.journeys.shell import SECONDS, Ran, Shell

LONG = {"text": "word " * 400, "delay_ms": 20}


def end(process: subprocess.Popen[bytes]) -> Ran:
    out, err = process.communicate(timeout=SECONDS)
    return Ran(process.returncode, out.decode(), err.decode())


def read_until(stream: IO[bytes] | None, wanted: bytes) -> bytes:
    """Return what comes from a pipe, up to and with `wanted`."""
    assert stream is not None
    got = b""
    deadline = time.monotonic() + SECONDS
    while wanted not in got:
        ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"{wanted!r} never came, only {got!r}"
        piece = os.read(stream.fileno(), 65536)
        assert piece, f"the stream ended after {got!r}"
        got += piece
    return got


def test_after_kill_9_in_mid_answer_the_conversation_goes_on(shell: Shell) -> None:
    shell.script(LONG)
    dying = shell.start("-p", "the first")
    read_until(dying.stdout, b"word word")
    dying.kill()
    assert end(dying).code == -signal.SIGKILL
    shell.script({"text": "here again"})
    ran = shell.run("-c", "-p", "the second", "--output-format", "json").json()
    assert ran["answer"] == "here again"
    finished = [event["body"] for event in shell.events("turn.finished")]
    assert [body["stop_reason"] for body in finished] == ["interrupted", "answered"]
    assert {body["task_id"] for body in finished} == {ran["task_id"]}
    said = [event["body"]["content"] for event in shell.events("user.message")]
    assert said == ["the first", "the second"]


def test_a_disk_that_is_full_in_mid_answer_leaves_no_promise_that_is_not_kept(shell: Shell) -> None:
    shell.script({"text": "word " * 50, "delay_ms": 20})
    answering = shell.start("-p", "tell me")
    read_until(answering.stdout, b"word word")
    largest = max(path.stat().st_size for path in shell.home.rglob("*.jsonl"))
    resource.prlimit(answering.pid, resource.RLIMIT_FSIZE, (largest, largest))
    ran = end(answering)
    assert ran.code == 1
    (said,) = [line for line in ran.err.splitlines() if "could not be saved" in line]
    assert said.endswith(". What is shown above of the answer is not stored. Your message is kept.")
    assert "came is kept" not in ran.err
    assert [event["body"]["content"] for event in shell.events("user.message")] == ["tell me"]
    assert shell.events("response.generated") == []


def test_killed_at_random_moments_nothing_acknowledged_is_lost(shell: Shell) -> None:
    generator = random.Random(20)  # noqa: S311  # moments, not secrets
    shell.script({"text": "a b c d e f", "delay_ms": 10})
    acknowledged: set[str] = set()
    for number in range(10):
        dying = shell.start("-c", "-p", f"message {number}", "--output-format", "stream-json")
        if generator.random() < 0.7:
            read_until(dying.stdout, b"turn_opened")
            acknowledged.add(f"message {number}")
            time.sleep(generator.random() * 0.1)  # a random moment is the point
        else:
            time.sleep(generator.random() * 0.4)
        dying.kill()
        end(dying)
    ran = shell.run("-c", "-p", "the last")
    assert ran.code == 0, ran.err
    said = [event["body"]["content"] for event in shell.events("user.message")]
    assert acknowledged | {"the last"} <= set(said)
    assert len(said) == len(set(said))
    started = [event["body"]["id"] for event in shell.events("turn.started")]
    finished = [event["body"]["id"] for event in shell.events("turn.finished")]
    assert sorted(started) == sorted(finished)
    doctor = shell.run("doctor")
    assert doctor.code == 0, doctor.out


@pytest.mark.parametrize("times", [1, 2, 5])
def test_ctrl_c_in_mid_answer_keeps_what_came(shell: Shell, times: int) -> None:
    shell.script(LONG)
    running = shell.start("-p", "hello")
    read_until(running.stdout, b"word word")
    for _ in range(times):
        running.send_signal(signal.SIGINT)
    ran = end(running)
    assert ran.code == 130
    assert "Traceback" not in ran.err
    assert "interrupted" in ran.err
    messages = shell.events("response.generated")
    assert messages[0]["body"]["complete"] is False
    assert messages[0]["body"]["content"].startswith("word word")
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "cancelled"


def test_ctrl_c_at_any_moment_ends_quietly_with_130(shell: Shell) -> None:
    shell.script(LONG)
    for number in range(8):
        running = shell.start("-p", "hello")
        time.sleep(0.06 * number)  # from before the first import to after the first word
        running.send_signal(signal.SIGINT)
        ran = end(running)
        if "Traceback" in ran.err:  # only the interpreter's own, before Rune's first line
            assert "/rune/" not in ran.err, ran.err
        else:
            assert ran.code in {130, -signal.SIGINT}, ran
    started, finished = shell.events("turn.started"), shell.events("turn.finished")
    assert len(started) == len(finished)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_a_terminal_that_closes_end_a_turn_like_ctrl_c(shell: Shell, number: signal.Signals) -> None:
    shell.script(LONG)
    running = shell.start("-p", "hello")
    read_until(running.stdout, b"word")
    running.send_signal(number)
    assert end(running).code == 130
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "cancelled"


def test_a_signal_that_was_ignored_from_outside_stays_ignored(shell: Shell) -> None:
    shell.script({"text": "one two three", "delay_ms": 100})
    ignoring = ["/bin/bash", "-c", 'trap "" HUP INT; exec "$@"', "bash", *shell.command("-p", "hello")]
    with subprocess.Popen(
        ignoring,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=shell.environ,
    ) as running:
        first = read_until(running.stdout, b"one")
        running.send_signal(signal.SIGHUP)
        running.send_signal(signal.SIGINT)
        ran = end(running)
    assert (ran.code, first.decode() + ran.out, ran.err) == (0, "one two three\n", "")


def test_a_reader_that_goes_away_ends_the_turn_without_a_traceback(shell: Shell) -> None:
    shell.script(LONG)
    running = shell.start("-p", "hello")
    read_until(running.stdout, b"word")
    assert running.stdout is not None
    running.stdout.close()
    running.wait(SECONDS)
    assert running.stderr is not None
    assert b"Traceback" not in running.stderr.read()
    running.stderr.close()
    assert len(shell.events("turn.finished")) == 1


def test_two_at_once_in_one_folder_have_a_conversation_each(shell: Shell) -> None:
    shell.script(LONG)
    first = shell.start("-p", "the first")
    read_until(first.stdout, b"word")
    shell.script({"text": "yes"})
    second = shell.run("-p", "the second")
    assert (second.code, second.out) == (0, "yes\n")
    first.send_signal(signal.SIGINT)
    assert end(first).code == 130
    events = shell.events("user.message")
    assert {event["writer"] for event in events} == {"w000", "w001"}
    assert len({event["partition_key"] for event in events}) == 2


def test_a_conversation_that_is_open_elsewhere_is_refused_with_75(shell: Shell) -> None:
    shell.script({"text": "yes"})
    older = shell.run("-p", "older", "--output-format", "json").json()["conversation_id"]
    shell.script(LONG)
    holder = shell.start("-p", "newer", "--output-format", "stream-json")
    line = read_until(holder.stdout, b"\n").splitlines()[0]
    opened = json.loads(line)
    shell.script({"text": "yes"})
    refused = shell.run("-r", opened["conversation_id"], "-p", "mine")
    assert refused.code == 75
    assert str(holder.pid) in refused.err
    assert shell.run("sessions", "show", opened["conversation_id"]).code == 0
    went_on = shell.run("-c", "-p", "and on", "--output-format", "json")
    assert went_on.json()["conversation_id"] == older
    assert str(holder.pid) in went_on.err
    holder.kill()
    end(holder)
    assert shell.run("-r", opened["conversation_id"], "-p", "now").code == 0


@contextmanager
def ollama(shell: Shell, script: dict[str, Any]) -> Generator[subprocess.Popen[bytes]]:
    """Run the loopback Ollama and point Rune at it."""
    path = shell.folder.parent / "ollama.json"
    path.write_text(json.dumps(script))
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.ollama_server", "--script", str(path)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as server:
        try:
            line = read_until(server.stdout, b"\n").decode()
            shell.environ["OLLAMA_HOST"] = line.split()[-1]
            yield server
        finally:
            server.kill()


def test_ollama_answers_and_is_preferred(shell: Shell) -> None:
    with ollama(shell, {"models": ["llama3:latest"], "answers": [{"text": "the Danube"}]}):
        ran = shell.run("-p", "name a river", "--output-format", "json").json()
        assert (ran["answer"], ran["model"], ran["complete"]) == ("the Danube", "llama3:latest", True)
        assert shell.run("-m", "llama3", "-p", "again").code == 0
        missing = shell.run("-m", "nope", "-p", "hello")
        assert (missing.code, "llama3" in missing.err) == (4, True)
        assert "llama3:latest" in shell.run("models", "list").out


def test_ollama_that_dies_in_mid_answer_leaves_what_came(shell: Shell) -> None:
    script = {"models": ["m"], "answers": [{"text": "one two three four", "die_after": 2}]}
    with ollama(shell, script):
        ran = shell.run("-p", "count")
    assert ran.code == 1
    assert ran.out.split() == ["one", "two"]
    assert "Traceback" not in ran.err
    answer = shell.events("response.generated")[0]["body"]
    assert (answer["content"].split(), answer["complete"]) == (["one", "two"], False)
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "incomplete"
    assert shell.events("task.transition")[-1]["body"]["status"] == "open"
    gone = shell.run("-c", "-p", "go on")
    assert gone.code == 4
    with ollama(shell, {"models": ["m"], "answers": [{"text": "three four"}]}):
        assert shell.run("-c", "-p", "go on").out == "three four\n"


def test_a_home_that_is_no_folder_is_one_clear_line(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.home.write_text("a file")
    ran = shell.run("-p", "hello")
    assert ran.code == 1
    assert str(shell.home) in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_home_that_cannot_be_written_loses_nothing(shell: Shell, kind: str) -> None:
    shell.home.mkdir()
    options = "size=8m,mode=0700"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "rune", str(shell.home)], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        shell.script({"text": "yes"})
        assert shell.run("-p", "before").code == 0
        if kind == "full":
            with (shell.home / "filler").open("wb", buffering=0) as filler:
                try:
                    while filler.write(b"\0" * 4096):
                        pass
                except OSError:
                    pass  # it is full now, which is what is wanted
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(shell.home)], check=True)
        ran = shell.run("-p", "lost?")
        assert ran.code == 1
        assert "Traceback" not in ran.err
        assert ran.out == ""
        assert ran.err.startswith("rune: ")
        if kind == "full":
            (shell.home / "filler").unlink()
        else:
            subprocess.run(["mount", "-o", "remount,rw", str(shell.home)], check=True)
        assert shell.run("-c", "-p", "after").code == 0
        said = [event["body"]["content"] for event in shell.events("user.message")]
        assert said == ["before", "after"]
    finally:
        subprocess.run(["umount", "-l", str(shell.home)], check=True)


def test_on_a_terminal_an_answer_cannot_drive_it(shell: Shell) -> None:
    shell.script({"text": "\x1b]52;c;ZXZpbA==\x07 \x1b[2J red\u202e hidden \u200b end\r over"})
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        shell.command("-p", "hello"),
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        cwd=shell.folder,
        env=shell.environ,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break  # the terminal's other side is closed: the process has ended
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert running.wait(SECONDS) == 0
    text = shown.decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "red" in text
    assert "\r over" not in text


def test_secrets_that_are_typed_or_piped_are_masked_everywhere(shell: Shell) -> None:
    shell.script({"text": "fine"})
    shell.environ["DEPLOY_TOKEN"] = "correct-horse-battery-staple-42"  # noqa: S105  # made up for this
    shell.run("-p", "use correct-horse-battery-staple-42", stdin=b"and correct-horse-battery-staple-42 again")
    for path in shell.home.rglob("*"):
        if path.is_file():
            assert b"correct-horse-battery" not in path.read_bytes(), path
