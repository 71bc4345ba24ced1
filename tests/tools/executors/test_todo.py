"""todo: a checklist that the person sees as the model keeps it."""

from pathlib import Path

import pytest

from rune.errors import InvalidArgumentsError
from rune.tools.executors.todo import LONGEST_ITEM, Todo
from tests.tools.executors.places import done, plan, workplace

TODO = Todo()


async def test_the_whole_list_is_handed_on(tmp_path: Path) -> None:
    items = [
        {"text": "read the test", "state": "done"},
        {"text": "mend  it\nnow", "state": "doing"},
        {"text": "run the tests"},
    ]
    result = await done(TODO, workplace(tmp_path), items=items)
    assert result.checklist == (("read the test", "done"), ("mend it now", "doing"), ("run the tests", "open"))
    assert result.summary == "1 of 3 steps done"
    assert result.text == "1 of 3 steps done. Next: mend it now"


async def test_a_finished_and_an_empty_list_have_no_next_step(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    assert (await done(TODO, place, items=[{"text": "a", "state": "done"}])).text == "1 of 1 steps done."
    result = await done(TODO, place, items=[])
    assert (result.text, result.checklist) == ("the checklist is empty.", ())


async def test_a_long_step_is_cut(tmp_path: Path) -> None:
    result = await done(TODO, workplace(tmp_path), items=[{"text": "x" * 500}])
    assert result.checklist is not None
    assert len(result.checklist[0][0]) == LONGEST_ITEM


@pytest.mark.parametrize(
    "items",
    [[{"text": " "}], [{"text": "a", "state": "later"}], ["a"], [{"state": "open"}], [{"text": "a"}] * 51, "a"],
)
async def test_what_is_no_list_of_steps_is_refused(tmp_path: Path, items: object) -> None:
    with pytest.raises(InvalidArgumentsError, match="todo"):
        await plan(TODO, workplace(tmp_path), items=items)


def test_it_changes_nothing_that_asks() -> None:
    assert TODO.kind == "session"
