"""What a very small model chooses instead of writing it: a line to edit, and the end of its work."""

import msgspec

from rune.models.text_tools.arguments import fitted
from rune.tools.executors.edit_file import EditFile
from rune.tools.moves import Situation, legal_moves, situation_of
from tests.tools.test_moves import CHECKS, FILES, FIX, FOLDER, SCHEMAS, Made, made


def situation(*calls: Made, lines: tuple[str, ...] = ()) -> Situation:
    found = situation_of(FIX, calls=calls, folder=FOLDER, files=FILES, checks=CHECKS)
    return msgspec.structs.replace(found, lines=lines)


def test_a_search_is_one_of_the_lines_that_there_are() -> None:
    read = made("read_file", {"path": "cart.py"}, "cart.py")
    moves = legal_moves(SCHEMAS, situation(read, lines=("a = 1", "    b = 2")))
    edit = next(move for move in moves.schemas if move.name == "edit_file")
    given = {"path": "cart.py", "edits": [{"search": "    b = 2", "replace": "    b = 3"}]}
    assert fitted(edit, given) == given
    assert edit.parameters["properties"]["edits"]["items"]["properties"]["search"]["enum"] == ["a = 1", "    b = 2"]
    free = legal_moves(SCHEMAS, situation(read))
    assert (
        next(move for move in free.schemas if move.name == "edit_file").parameters["properties"]["edits"]
        == (EditFile.schema.parameters["properties"]["edits"])
    )


def test_once_a_short_repair_is_proved_there_is_nothing_left_but_to_say_so() -> None:
    read = made("read_file", {"path": "cart.py"}, "cart.py")
    edit = made("edit_file", {"path": "cart.py"}, "cart.py", changed=True)
    passed = made("run_tests", {}, exit_code=0)
    moves = legal_moves(SCHEMAS, situation(read, edit, passed))
    assert moves.answer
    assert [move.name for move in moves.schemas] == []


def test_a_long_task_goes_on_after_a_proof() -> None:
    read = made("read_file", {"path": "cart.py"}, "cart.py")
    edit = made("edit_file", {"path": "cart.py"}, "cart.py", changed=True)
    passed = made("run_tests", {}, exit_code=0)
    task = f"{FIX}, and then go through the rest of the module with care: {'each function, ' * 20}"
    found = situation_of(task, calls=(read, edit, passed), folder=FOLDER, files=FILES, checks=CHECKS)
    assert "edit_file" in [move.name for move in legal_moves(SCHEMAS, found).schemas]
