"""The legal moves of a model that is held to a schema."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.host.paths import storable_path
from rune.models.text_tools.constrained import answer_schema
from rune.records.tools import FileTouch, Outcome, ToolCall, ToolResult, ToolSchema
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.list_directory import ListDirectory
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.run_command import RunCommand
from rune.tools.executors.run_tests import RunTests
from rune.tools.executors.write_file import WriteFile
from rune.tools.moves import ENDINGS, MOST_FILES, Made, Moves, Situation, legal_moves, situation_of

FOLDER = Path("/shop")
SCHEMAS = tuple(tool().schema for tool in (ReadFile, ListDirectory, EditFile, WriteFile, RunCommand, RunTests))
FILES = ("README.md", "cart.py", "tests/test_cart.py")
CHECKS = ("/usr/bin/python3 -m unittest discover",)
FIX = "the test in tests/test_cart.py fails, find out why and fix it"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def made(
    tool: str,
    arguments: Mapping[str, Any],
    path: str = "",
    *,
    changed: bool = False,
    removed: bool = False,
    exit_code: int | None = None,
    outcome: Outcome = "ok",
) -> Made:
    after = None if removed else hashed("new") if changed else hashed("old")
    touch = FileTouch(path=storable_path(FOLDER / path), before=hashed("old"), after=after)
    result = ToolResult(
        id="cal_1",
        turn_id="trn_1",
        tool=tool,
        digest="",
        outcome=outcome,
        summary="",
        output=None,
        milliseconds=1,
        confinement="none",
        exit_code=exit_code,
        files=(touch,) if path else (),
    )
    return ToolCall(id="call_1", name=tool, arguments=dict(arguments)), result


def read(path: str) -> Made:
    return made("read_file", {"path": path}, path)


def edit(path: str = "cart.py") -> Made:
    return made("edit_file", {"path": path, "edits": []}, path, changed=True)


def checked(exit_code: int = 0) -> Made:
    return made("run_tests", {}, exit_code=exit_code, outcome="failed" if exit_code else "ok")


def ran(command: str, exit_code: int = 0) -> Made:
    return made("run_command", {"command": command}, exit_code=exit_code, outcome="failed" if exit_code else "ok")


def after(
    *calls: Made,
    task: str = FIX,
    earlier: tuple[Made, ...] = (),
    files: tuple[str, ...] = FILES,
    checks: tuple[str, ...] = CHECKS,
    schemas: tuple[ToolSchema, ...] = SCHEMAS,
) -> Moves:
    situation = situation_of(task, calls=calls, earlier=earlier, folder=FOLDER, files=files, checks=checks)
    return legal_moves(schemas, situation)


def names(moves: Moves) -> set[str]:
    return {schema.name for schema in moves.schemas}


def paths(moves: Moves, tool: str) -> list[str] | None:
    """Return what the path of a tool is held to; None where it is free."""
    schema = next(schema for schema in moves.schemas if schema.name == tool)
    return schema.parameters["properties"]["path"].get("enum")


def test_what_can_be_read_is_what_is_there() -> None:
    assert paths(after(), "read_file") == list(FILES)


def test_too_many_files_are_not_enumerated() -> None:
    many = tuple(f"src/m{number}.py" for number in range(MOST_FILES + 1))
    assert paths(after(files=many), "read_file") is None


def test_only_what_was_read_can_be_edited() -> None:
    assert "edit_file" not in names(after())
    assert paths(after(read("cart.py")), "edit_file") == ["cart.py"]
    assert paths(after(earlier=(read("cart.py"),)), "edit_file") == ["cart.py"]


def test_a_file_that_was_removed_cannot_be_edited() -> None:
    gone = made("run_command", {"command": "rm cart.py"}, "cart.py", removed=True, exit_code=0)
    assert "edit_file" not in names(after(read("cart.py"), gone))


def test_tests_are_not_edited_to_mend_code_unless_the_person_asks_for_it() -> None:
    calls = (read("cart.py"), read("tests/test_cart.py"))
    assert paths(after(*calls), "edit_file") == ["cart.py"]
    wanted = "the test is wrong: fix the tests in tests/test_cart.py, change the tests to expect 261"
    assert paths(after(*calls, task=wanted), "edit_file") == ["cart.py", "tests/test_cart.py"]
    rename = "Rename total to subtotal in cart.py"
    assert paths(after(*calls, task=rename), "edit_file") == ["cart.py", "tests/test_cart.py"]


def test_whole_files_are_written_where_something_new_is_asked_for() -> None:
    assert "write_file" not in names(after(read("cart.py")))
    assert "write_file" in names(after(task="Create a file hello.py that prints hello"))
    assert "write_file" in names(after(task="Add a docstring to cart.py"))


def test_after_an_edit_that_failed_the_file_is_read_again_and_after_two_it_is_written_as_a_whole() -> None:
    failed = made("edit_file", {"path": "cart.py", "edits": []}, outcome="failed")
    once = after(read("cart.py"), failed)
    assert not names(once) & {"edit_file", "write_file"}
    assert paths(once, "read_file") == list(FILES)
    assert once.temperature > after(read("cart.py")).temperature == 0
    again = after(read("cart.py"), failed, read("cart.py"))
    assert paths(again, "edit_file") == ["cart.py"]
    twice = after(read("cart.py"), failed, read("cart.py"), failed, read("cart.py"))
    assert "edit_file" not in names(twice)
    assert paths(twice, "write_file") == ["cart.py"]
    written = made("write_file", {"path": "cart.py", "content": ""}, "cart.py", changed=True)
    assert paths(after(read("cart.py"), failed, failed, written), "edit_file") == ["cart.py"]


def test_chance_is_let_in_while_the_last_edit_was_wrong() -> None:
    assert after(read("cart.py"), checked(1)).temperature == 0
    assert after(read("cart.py"), edit(), checked(1)).temperature > 0
    assert after(read("cart.py"), edit(), checked(1), edit()).temperature == 0
    assert after(read("cart.py"), edit(), checked()).temperature == 0


def test_tests_are_run_where_there_are_some() -> None:
    assert "run_tests" in names(after())
    assert "run_tests" not in names(after(checks=()))
    assert "run_command" in names(after(checks=()))


def test_a_run_without_any_test_proves_nothing_and_can_be_made_again() -> None:
    none = made("run_tests", {"target": "cart.py"}, exit_code=0, outcome="failed")
    assert "run_tests" in names(after(read("cart.py"), edit(), none))
    assert not after(read("cart.py"), edit(), none).answer


def test_all_tests_of_a_small_project_are_run() -> None:
    def target(moves: Moves) -> object:
        schema = next(schema for schema in moves.schemas if schema.name == "run_tests")
        return schema.parameters["properties"].get("target")

    assert target(after()) is None
    assert target(after(files=tuple(f"src/m{number}.py" for number in range(50))))
    assert target(after(task="Run the tests of cart.py"))


def test_what_would_say_the_same_again_is_no_move() -> None:
    assert paths(after(read("cart.py")), "read_file") == ["README.md", "tests/test_cart.py"]
    assert paths(after(read("cart.py"), edit()), "read_file") == list(FILES)
    assert "run_tests" not in names(after(checked(1), read("cart.py")))
    assert "run_tests" in names(after(checked(1), read("cart.py"), edit()))


def test_a_file_can_be_read_again_when_an_edit_of_it_failed_or_it_was_read_long_ago() -> None:
    failed = made("edit_file", {"path": "cart.py", "edits": []}, outcome="failed")
    assert paths(after(read("cart.py"), failed), "read_file") == list(FILES)
    looks = (made("list_directory", {"path": "."}),) * 8
    assert paths(after(read("cart.py"), *looks), "read_file") == list(FILES)
    part = made("read_file", {"path": "cart.py", "limit": 5}, "cart.py")
    assert paths(after(part), "read_file") == list(FILES)


def test_who_mends_neither_searches_among_few_files_nor_runs_other_commands() -> None:
    assert not names(after()) & {"list_directory", "run_command"}
    many = tuple(f"src/m{number}.py" for number in range(50))
    assert "list_directory" in names(after(files=many))
    assert {"list_directory", "run_command"} <= names(after(task="Add a docstring to cart.py"))


def test_who_mends_leaves_git_alone_unless_it_is_spoken_of() -> None:
    schemas = (*SCHEMAS, *(ToolSchema(name=name, description="", parameters={}) for name in ("git_commit", "todo")))
    assert not names(after(schemas=schemas)) & {"git_commit", "todo"}
    assert "git_commit" in names(after(task=f"{FIX}, then commit it", schemas=schemas))
    assert "todo" in names(after(task="Add a docstring to cart.py", schemas=schemas))


def test_a_command_that_is_asked_for_can_be_run() -> None:
    task = "cart.py is broken, fix it and prove it by running cart.py, then run `make demo`"
    schema = next(schema for schema in after(task=task).schemas if schema.name == "run_command")
    assert schema.parameters["properties"] == {"command": {"type": "string", "enum": ["make demo", "python3 cart.py"]}}


def test_an_answer_waits_until_the_work_is_proved() -> None:
    assert not after().answer
    assert not after(read("cart.py")).answer
    assert not after(read("cart.py"), edit()).answer
    assert not after(read("cart.py"), edit(), checked(1)).answer
    assert after(read("cart.py"), edit(), checked()).answer
    assert not after(read("cart.py"), edit(), checked(), edit()).answer


@pytest.mark.parametrize(
    "command", ["python -m unittest", "python3 tests/test_cart.py", "sh -c 'x' && python3 -m unittest"]
)
def test_the_projects_own_check_proves_however_it_is_started(command: str) -> None:
    assert after(read("cart.py"), edit(), ran(command)).answer


@pytest.mark.parametrize("command", ["echo done", "ls", "python3 cart.py"])
def test_another_command_proves_nothing_where_there_is_a_check(command: str) -> None:
    assert not after(read("cart.py"), edit(), ran(command)).answer
    assert after(read("cart.py"), edit(), ran(command), checks=()).answer


def test_prose_needs_no_proof() -> None:
    task = "Change the first line of README.md"
    assert after(read("README.md"), edit("README.md"), task=task).answer


def test_where_nothing_can_be_run_a_change_is_enough() -> None:
    schemas = tuple(schema for schema in SCHEMAS if schema.name not in {"run_command", "run_tests"})
    assert after(read("cart.py"), edit(), schemas=schemas).answer


def test_where_nothing_can_be_changed_a_look_is_enough() -> None:
    schemas = tuple(schema for schema in SCHEMAS if schema.name in {"read_file", "list_directory"})
    assert not after(schemas=schemas).answer
    assert after(read("cart.py"), schemas=schemas).answer


def test_talk_is_answered_at_once_and_a_question_about_a_file_after_a_look() -> None:
    assert after(task="Name three rivers.").answer
    assert not after(task="What does cart.py do?").answer
    assert after(read("cart.py"), task="What does cart.py do?").answer
    assert after(earlier=(read("cart.py"),), task="What does cart.py do?").answer


def test_who_is_asked_to_run_something_may_answer_once_it_ran() -> None:
    assert not after(task="Run the tests and tell me what fails").answer
    assert after(checked(1), task="Run the tests and tell me what fails").answer


def test_a_call_that_was_not_allowed_can_be_told() -> None:
    denied = made("edit_file", {"path": "cart.py", "edits": []}, outcome="denied")
    assert after(read("cart.py"), denied).answer
    assert not after(earlier=(denied,)).answer


def test_nothing_to_change_is_a_move_once_the_check_passed_untouched() -> None:
    assert "nothing_to_change" not in names(after(read("cart.py")))
    assert "nothing_to_change" in names(after(checked()))
    assert "nothing_to_change" not in names(after(read("cart.py"), edit(), checked(1)))
    assert "nothing_to_change" not in names(after(read("cart.py"), edit(), ran("ls")))


def test_being_stuck_is_a_move_after_some_tries() -> None:
    assert "stuck" not in names(after(read("cart.py")))
    tries = (read("cart.py"), *(edit(), checked(1)) * 5)
    assert "stuck" in names(after(*tries))
    assert "stuck" not in names(after(*tries, edit(), checked()))


def test_a_command_that_the_message_quotes_is_a_check() -> None:
    task = "add() in cart.py subtracts; fix it and run `make demo`"
    assert after(read("cart.py"), edit(), ran("make demo"), task=task, checks=()).answer
    assert not after(read("cart.py"), edit(), ran("ls"), task=task, checks=()).answer


calls = st.lists(
    st.sampled_from(
        [
            *(read(path) for path in FILES),
            edit(),
            checked(),
            checked(1),
            ran("ls"),
            made("edit_file", {"path": "cart.py", "edits": []}, outcome="failed"),
            made("list_directory", {"path": "."}),
            made("run_command", {"command": "x"}, outcome="denied"),
        ]
    ),
    max_size=12,
)
tasks = st.sampled_from([FIX, "hi", "What does cart.py do?", "Run the tests", "Create hello.py", "x" * 50, ""])


@given(calls=calls, task=tasks, files=st.sampled_from([(), FILES]), checks=st.sampled_from([(), CHECKS]))
def test_there_is_always_a_move_that_a_schema_can_say(
    calls: list[Made], task: str, files: tuple[str, ...], checks: tuple[str, ...]
) -> None:
    moves = after(*calls, task=task, files=files, checks=checks)
    assert moves.schemas or moves.answer
    answer_schema(moves.schemas, answer=moves.answer)


@given(task=tasks)
def test_without_tools_an_answer_is_the_move(task: str) -> None:
    moves = legal_moves((), Situation(task=task))
    assert moves == Moves((), answer=True)


def test_endings_that_stand_in_the_prompt_are_legal_only_in_their_time() -> None:
    assert not {ending.name for ending in ENDINGS} & names(after(schemas=(*SCHEMAS, *ENDINGS)))
