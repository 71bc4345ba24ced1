"""A conversation with the real embedded model, over processes and a kill."""

import json
import signal

import pytest

from tests.embedded_model import real_model_file
from tests.journeys.shell import Shell
from tests.journeys.test_bad_days import end, read_until

pytestmark = pytest.mark.model


@pytest.fixture
def real(shell: Shell) -> Shell:
    shell.environ["RUNE_EMBEDDED_MODEL"] = str(real_model_file())
    return shell


def test_a_conversation_goes_on_over_three_processes_and_a_kill(real: Shell) -> None:
    first = real.run("-p", "Name three rivers.", "--output-format", "json").json()
    assert (first["model"], first["complete"]) == ("smollm2-135m-instruct", True)
    assert first["answer"].strip()

    dying = real.start("-c", "-p", "Tell me a long story about one of them.", "--output-format", "stream-json")
    read_until(dying.stdout, b'"text_delta"')
    dying.kill()
    assert end(dying).code == -signal.SIGKILL

    last = real.run("-c", "-p", "Go on.", "--output-format", "json").json()
    assert last["conversation_id"] == first["conversation_id"]
    assert last["task_id"] == first["task_id"]
    reasons = [event["body"]["stop_reason"] for event in real.events("turn.finished")]
    assert reasons[:2] == ["answered", "interrupted"]

    traces = [event["body"] for event in real.events("inference.traced")]
    assert [trace["prefix_reuse"] for trace in traces] == [None, 1.0]
    for trace in traces:
        assert 0 < trace["prompt_tokens_served"] <= trace["prompt_tokens_estimated"]
    shown = real.run("trace", "--show", last["trace_id"], "--json").json()
    assert shown["matches"] is True
    said = [message["content"] for message in shown["prompts"][0] if message["role"] == "user"]
    assert said == ["Name three rivers.", "Tell me a long story about one of them.", "Go on."]


def test_the_stand_in_says_that_it_is_one_and_its_worker_ends_with_it(real: Shell) -> None:
    ran = real.run("-p", "Say yes.", "--output-format", "stream-json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    notices = [line["text"] for line in lines if line["type"] == "notice"]
    assert any("stand-in" in text and "ollama" in text for text in notices)
    assert ran.code == 0
