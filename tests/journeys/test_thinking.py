"""`--think` and /thinking on the command line: kept with the conversation, refused for a model that cannot think."""

from typing import Any

from tests.journeys.shell import Shell
from tests.journeys.test_bad_days import ollama

SCRIPT: dict[str, Any] = {
    "models": [
        {"name": "qwen3:4b", "capabilities": ["completion", "thinking"], "digest": "1"},
        {"name": "smol:135m", "capabilities": ["completion"], "digest": "2"},
    ],
    "answers": [{"text": "the Danube", "thinking": "a river"}],
}


def test_a_level_is_sent_kept_and_taken_back(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        opened = shell.run("-m", "qwen3:4b", "--think", "low", "-p", "hi", "--output-format", "stream-json").lines()[0]
        assert (opened["type"], opened["thinking"]) == ("turn_opened", "low")
        assert "* low" in shell.run("-p", "/thinking").out
        assert shell.run("-c", "-p", "again", "--output-format", "stream-json").lines()[0]["thinking"] == "low"
        assert shell.run("-p", "/thinking auto").code == 0
        assert shell.run("-c", "-p", "third", "--output-format", "stream-json").lines()[0]["thinking"] == "auto"
        chosen = [event["body"]["thinking"] for event in shell.events("thinking.selected")]
        assert chosen == ["low", "auto"]


def test_a_model_that_cannot_think_is_refused_and_off_is_not(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        refused = shell.run("-m", "smol:135m", "--think", "high", "-p", "hi")
        assert (refused.code, refused.out) == (4, "")
        assert "smol:135m does not support thinking" in refused.err
        assert "--think auto" in refused.err
        assert shell.run("-m", "smol:135m", "--think", "off", "-p", "hi").out == "the Danube\n"
        assert shell.run("--think", "loud", "-p", "hi").code == 2


def test_without_a_conversation_it_says_how_one_is_begun_with_it(shell: Shell) -> None:
    with ollama(shell, SCRIPT):
        ran = shell.run("-p", "/thinking high", "-m", "qwen3:4b")
        assert (ran.code, "begin one with `--think`" in ran.err) == (0, True)
