"""`rune -p`: what a person and a script see."""

import re
from pathlib import Path

import pytest

from tests.journeys.shell import Shell


def test_an_answer_and_nothing_else_goes_to_stdout(shell: Shell) -> None:
    shell.script({"text": "the Danube, the Rhine, the Elbe"})
    ran = shell.run("-p", "Name three rivers")
    assert (ran.code, ran.out, ran.err) == (0, "the Danube, the Rhine, the Elbe\n", "")


def test_json_is_one_object_with_the_documented_keys(shell: Shell) -> None:
    shell.script({"text": "Füße"})
    ran = shell.run("-p", "hello", "--output-format", "json")
    result = ran.json()
    assert result["answer"] == "Füße"
    assert ran.out.isascii()
    assert set(result) >= {
        "version", "conversation_id", "task_id", "turn_id", "model", "answer", "complete", "stop_reason",
        "usage", "tool_calls", "pending_approval", "degraded", "trace_id",
    }  # fmt: skip
    assert (result["complete"], result["stop_reason"]) == (True, "answered")


def test_stream_json_is_the_turn_event_by_event(shell: Shell) -> None:
    shell.script({"text": "one two", "thinking": "hm"})
    types = [line["type"] for line in shell.run("-p", "hello", "--output-format", "stream-json").lines()]
    assert types == ["turn_opened", "step_taken", "thinking_delta", "text_delta", "text_delta", "turn_closed"]


def test_what_is_piped_in_is_the_message(shell: Shell) -> None:
    shell.script({"text": "yes"})
    assert shell.run("-p", stdin=b"from a pipe").code == 0
    assert shell.run(stdin="and without -p, é".encode()).code == 0
    assert shell.run("-p", "Review this:", stdin=b"the diff").code == 0
    said = [event["body"] for event in shell.events("user.message")]
    assert [body["content"] for body in said] == ["from a pipe", "and without -p, é", "Review this:\n\nthe diff"]
    assert {body["provenance"] for body in said} == {"piped"}


def test_a_conversation_goes_on_with_c_and_r(shell: Shell) -> None:
    shell.script({"text": "yes"})
    first = shell.run("-p", "the first", "--output-format", "json").json()
    second = shell.run("-c", "-p", "the second", "--output-format", "json").json()
    assert second["conversation_id"] == first["conversation_id"]
    elsewhere = shell.folder.parent / "elsewhere"
    elsewhere.mkdir()
    third = shell.run(
        "-r", first["conversation_id"][-8:], "-p", "third", "--output-format", "json", folder=elsewhere
    ).json()
    assert third["conversation_id"] == first["conversation_id"]
    shown = shell.run("sessions", "show", first["conversation_id"]).out
    assert re.findall(r"the first|the second|third", shown) == ["the first", "the second", "third"]
    listed = shell.run("sessions", "list", "--json").json()
    assert [row["record"]["title"] for row in listed] == ["the first"]


def test_c_with_nothing_to_continue_starts_and_says_so(shell: Shell) -> None:
    shell.script({"text": "yes"})
    ran = shell.run("-c", "-p", "hello")
    assert (ran.code, ran.out) == (0, "yes\n")
    assert "nothing to continue" in ran.err


def test_slash_commands_work(shell: Shell) -> None:
    shell.script({"text": "yes"})
    assert "/health" in shell.run("-p", "/help").out
    assert "healthy" in shell.run("-p", "/health").out
    assert shell.run("-p", "hello").code == 0
    assert "scripted" in shell.run("-p", "/trace").out
    assert shell.run("-p", "/done").out == "done: hello\n"
    assert "started cnv_" in shell.run("-p", "/new").out
    unknown = shell.run("-p", "/helth")
    assert (unknown.code, "/health" in unknown.err) == (2, True)
    assert shell.run("-p", "/etc/hosts is odd").out == "yes\n"
    assert shell.run("-p", stdin=b"/done").out == "yes\n"


def test_the_prompt_can_be_rebuilt_from_the_trace(shell: Shell) -> None:
    shell.script({"text": "the Danube"}, {"text": "the Rhine"})
    trace = shell.run("-p", "name a river", "--output-format", "json").json()["trace_id"]
    shell.run("-c", "-p", "another")
    shown = shell.run("trace", "--show", trace)
    assert shown.code == 0
    assert "name a river" in shown.out
    assert "rebuilt byte for byte" in shown.err
    last = shell.run("trace", "--show", "last", "--json").json()
    assert last["matches"] is True
    first, answer, second = [message["content"] for message in last["prompts"][0]][1:]
    assert (first, "the Danube" in answer, second) == ("name a river", True, "another")
    assert trace in shell.run("trace").out


def test_the_journal_is_plain_lines(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.run("-p", "hello")
    lines = (shell.home / "journal" / "w000-000001.jsonl").read_text("ascii").splitlines()
    assert any('"event_type":"user.message"' in line and '"hello"' in line for line in lines)
    assert "user.message" in shell.run("events").out


def test_doctor_finds_a_healthy_home(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.run("-p", "hello")
    ran = shell.run("doctor", "--json")
    findings = {finding["name"]: finding for finding in ran.json()["findings"]}
    assert ran.code == 0, ran.out
    assert findings["journal"]["state"] == "ok"


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ({"text": "half", "error": "stream_broken"}, 1, "is kept"),
        ({"error": "unavailable"}, 4, "nobody answers"),
        ({"error": "model_not_found"}, 4, "not found"),
        ({"error": "busy"}, 75, "busy"),
        ({"error": "server"}, 1, "500"),
        ({"text": "half", "reason": "length"}, 5, "length limit"),
        ({"text": "half", "error": "context_truncated"}, 5, "does not fit"),
    ],
)
def test_each_end_has_its_exit_code_and_one_clear_line(
    shell: Shell, answer: dict[str, str], code: int, says: str
) -> None:
    shell.script(answer)
    ran = shell.run("-p", "hello")
    assert ran.code == code, ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == (f"{answer['text']}\n" if "text" in answer else "")
    # The message is kept and the task is open: the next one goes on with both.
    assert shell.run("sessions", "list").out.count("hello") == 1


def test_no_model_and_no_network_is_one_clear_line(shell: Shell) -> None:
    ran = shell.run("-p", "hello")
    assert ran.code == 4
    assert ran.out == ""
    assert "no model" in ran.err
    assert "fetch-embedded" in ran.err
    assert [event["body"]["content"] for event in shell.events("user.message")] == ["hello"]


def test_wrong_usage_exits_with_two(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("--nonsense").code == 2
    assert shell.run("-p", stdin=b"").code == 2
    assert shell.run("-p", "   ").code == 2
    assert shell.run("-c", "-r", "abc", "-p", "x").code == 2
    assert shell.run("--max-steps", "0", "-p", "x").code == 2
    assert shell.run("-p", "x", "sessions", "list").code == 2
    binary = shell.run("-p", stdin=b"\x7fELF\x02\x01\x00\x00")
    assert (binary.code, "binary" in binary.err) == (2, True)
    latin = shell.run("-p", stdin="Füße".encode("latin-1"))
    assert (latin.code, "UTF-8" in latin.err) == (2, True)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_broken_config_names_file_line_and_key(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.home.mkdir(mode=0o700)
    (shell.home / "config.yaml").write_text("model:\n  local_only: yes\nturn:\n  iteration_budget: 999\n")
    ran = shell.run("-p", "hello")
    assert ran.code == 2
    assert re.search(r"config\.yaml:4.*iteration_budget", ran.err)
    assert "200" in ran.err


def test_a_command_is_about_the_newest_conversation_here_and_leaves_stdin_alone(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.run("-p", "hello")
    done = shell.run("-p", "/done", stdin=b"what a script reads")
    assert (done.code, done.out) == (0, "done: hello\n")


def test_a_turn_without_an_answer_says_why_where_it_is_shown(shell: Shell) -> None:
    shell.script({"error": "server"})
    conversation = shell.run("-p", "hello", "--output-format", "json").json()["conversation_id"]
    assert "[no answer: failed: " in shell.run("sessions", "show", conversation).out


def test_words_without_p_are_met_with_how_to_ask(shell: Shell) -> None:
    ran = shell.run("Name three rivers")
    assert (ran.code, 'rune -p "..."' in ran.err) == (2, True)


def test_a_broken_config_does_not_lock_anybody_out_of_what_is_stored(shell: Shell) -> None:
    shell.script({"text": "yes"})
    shell.run("-p", "hello")
    (shell.home / "config.yaml").write_text("nonsense: 1\n")
    ran = shell.run("sessions", "list")
    assert (ran.code, "hello" in ran.out, "config.yaml" in ran.err) == (0, True, True)
