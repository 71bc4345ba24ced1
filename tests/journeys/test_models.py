"""`rune models` as a person uses it: a server that comes later, a pull that is stopped and goes on, /model too."""

import signal
import subprocess
from typing import Any

from tests.journeys.shell import Shell
from tests.journeys.test_bad_days import ollama, read_until

SCRIPT: dict[str, Any] = {
    "models": [{"name": "qwen3:4b", "size": 2_500_000_000, "digest": "1"}],
    "loaded": {"qwen3:4b": 8192},
    "answers": [{"text": "the Danube"}],
    "fetchable": {"qwen2.5-coder:1.5b": {"size": 1_000_000, "step": 20_000, "delay_ms": 20}},
}


def test_a_server_that_is_started_later_is_there_then(shell: Shell) -> None:
    before = shell.run("models")
    assert (before.code, "fetch-embedded" in before.out) == (0, True)
    assert "nobody answers" in before.err
    assert shell.run("models", "show", "qwen3:4b").code == 4
    with ollama(shell, SCRIPT):
        after = shell.run("models")
        assert (after.code, after.err) == (0, "")
        assert "qwen3:4b" in after.out
        assert "Traceback" not in shell.run("models", "show", "qwen3:4b").err


def test_ctrl_c_stops_a_pull_and_the_next_one_goes_on(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        pulling = subprocess.Popen(
            shell.command("models", "pull", "qwen2.5-coder:1.5b", "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=shell.folder,
            env=shell.environ,
        )
        with pulling:
            read_until(pulling.stdout, b'"done": 200000')
            pulling.send_signal(signal.SIGINT)
            out, err = pulling.communicate(timeout=30)
        assert pulling.returncode == 130
        assert out.splitlines()[-1] == b'{"version": 1, "type": "interrupted", "model": "qwen2.5-coder:1.5b"}'
        assert b"goes on where it was" in err
        assert b"Traceback" not in err
        again = shell.run("models", "pull", "qwen2.5-coder:1.5b", "--json")
        assert again.code == 0
        assert again.lines()[1]["done"] >= 200_000
        assert again.lines()[-1]["type"] == "done"
        gone = shell.run("models", "rm", "qwen2.5-coder:1.5b")
        assert gone.out == "removed qwen2.5-coder:1.5b; up to 1 MB are free again\n"


def test_the_same_by_a_slash_command(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        pulled = shell.run("-p", "/model pull qwen2.5-coder:1.5b")
        assert (pulled.code, pulled.out) == (0, "qwen2.5-coder:1.5b is there (1 MB)\n")
        assert "50 %" in pulled.err
        as_json = shell.run("-p", "/model pull qwen2.5-coder:1.5b", "--output-format", "json")
        assert [line["type"] for line in as_json.lines()] == ["done"]
        assert "qwen2.5-coder:1.5b" in shell.run("-p", "/model").out
        assert shell.run("-p", "/model rm qwen2.5-coder:1.5b").code == 0
        unknown = shell.run("-p", "/model pull nonsense:1b")
        assert (unknown.code, "ollama.com/library" in unknown.err) == (4, True)


def test_a_protocol_that_was_fixed_is_known_to_the_next_process(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        assert shell.run("models", "probe", "qwen3:4b", "--protocol", "native").code == 0
        assert "native (your choice)" in shell.run("models", "show", "qwen3:4b").out
        assert shell.events("model.score")[-1]["body"]["basis"] == "owner"


def test_what_is_mistyped_is_met_with_its_use(shell: Shell) -> None:
    assert shell.run("models", "rm").code == 2
    assert "Did you mean `rune models pull`?" in shell.run("models", "pul", "x").err
    assert shell.run("models", "pull", "two words").code == 2
