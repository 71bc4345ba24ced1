"""run_tests: the project's own tests by its own runner, with real ones."""

import json
import shutil
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, DigestMismatchError, InvalidArgumentsError, ToolError
from rune.tools.executors.run_tests import RunTests
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, plan, watch, workplace
from tests.tools.projects import give_venv, write

TESTS = RunTests()
BROKEN = {
    "cart.py": "def total(a, b):\n    return a - b\n",
    "tests/test_cart.py": (
        "import unittest\nimport cart\n\n\nclass CartTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(cart.total(1, 2), 3)\n\n"
        "    def test_nothing(self):\n        self.assertEqual(cart.total(0, 0), 0)\n"
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


async def test_pytest_of_the_project_s_own_environment(place: Workplace) -> None:
    write(place.folder, {**BROKEN, "pytest.ini": "[pytest]\npythonpath = .\n"})
    give_venv(place.folder)
    this = await plan(TESTS, place)
    assert this.effect == "pytest"
    assert "found by: pytest.ini is there; pytest of .venv/bin/python" in this.detail
    assert this.detail.endswith(f"\n\n{place.folder}/.venv/bin/python -m pytest -q")
    result = await TESTS.execute(this, place, watch())
    assert (result.outcome, result.exit_code) == ("failed", 1)
    assert result.summary.startswith("1 failed, 1 passed (pytest, exit code 1 (")
    assert "-m pytest -q (pytest.ini is there" in result.text.splitlines()[1]
    # As long as before and in the same second: nothing that was compiled may be believed.
    write(place.folder, {"cart.py": "def total(a, b):\n    return a + b\n"})
    result = await done(TESTS, place, target="tests/test_cart.py")
    assert (result.outcome, result.summary.split(" (")[0]) == ("ok", "2 passed")
    assert list(place.folder.glob("**/cart*.pyc")) == []


async def test_unittest_where_pytest_is_not_installed(place: Workplace) -> None:
    write(place.folder, BROKEN)
    give_venv(place.folder, pytest=False)
    place.environment = {"PATH": ""}
    result = await done(TESTS, place)
    assert result.summary.startswith("1 failed, 1 passed (unittest")
    result = await done(TESTS, place, target=str(place.folder / "tests" / "test_cart.py"))
    assert result.summary.startswith("1 failed, 1 passed (unittest")


async def test_no_test_at_all_is_no_success(place: Workplace) -> None:
    write(place.folder, {"test_nothing.py": ""})
    give_venv(place.folder, pytest=False)
    place.environment = {"PATH": ""}
    result = await done(TESTS, place)
    assert (result.outcome, result.summary.split(" (")[0]) == ("failed", "no tests ran")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_node_s_own_test_runner(place: Workplace) -> None:
    write(place.folder, {"sum.test.mjs": "import test from 'node:test';\ntest('a', () => {});\n"})
    result = await done(TESTS, place)
    assert result.summary.startswith("1 passed (node --test, exit code 0")


async def test_a_shell_script(place: Workplace) -> None:
    write(place.folder, {"tests/run.sh": 'test "$1" = "a; touch x" && echo right\n'})
    result = await done(TESTS, place, target="a; touch x")
    assert (result.outcome, result.text.splitlines()[-1]) == ("ok", "right")
    assert not (place.folder / "x").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
async def test_a_makefile(place: Workplace) -> None:
    write(place.folder, {"Makefile": "test:\n\t@echo made; exit 2\n"})
    result = await done(TESTS, place)
    assert (result.outcome, result.exit_code) == ("failed", 2)
    assert "made" in result.text


async def test_nothing_is_run_to_find_a_runner(place: Workplace) -> None:
    write(place.folder, {"tests/run.sh": "touch ran\n", "package.json": '{"scripts": {"pretest": "touch ran"}}'})
    first, second = await plan(TESTS, place), await plan(TESTS, place)
    assert (first.preconditions, first.detail) == (second.preconditions, second.detail)
    assert not (place.folder / "ran").exists()


async def test_another_runner_is_another_call(place: Workplace) -> None:
    write(place.folder, {"tests/run.sh": "true\n"})
    before = await plan(TESTS, place)
    write(place.folder, {"test.sh": "true\n"})
    assert (await plan(TESTS, place)).preconditions != before.preconditions


async def test_where_there_is_none_it_says_so(place: Workplace) -> None:
    with pytest.raises(ToolError, match="no test runner of this project was found"):
        await plan(TESTS, place)


@pytest.mark.parametrize("target", ["/etc", "../x", "a/../../x"])
async def test_a_target_outside_is_refused(place: Workplace, target: str) -> None:
    write(place.folder, {"test.sh": ""})
    with pytest.raises(AccessDeniedError):
        await plan(TESTS, place, target=target)


async def test_an_option_is_no_target(place: Workplace) -> None:
    write(place.folder, {"test.sh": ""})
    with pytest.raises(InvalidArgumentsError):
        await plan(TESTS, place, target="-x")


async def test_a_link_in_the_place_of_the_folder_changes_nothing(place: Workplace) -> None:
    write(place.folder, {"test.sh": "touch ran\n"})
    this = await plan(TESTS, place)
    place.folder.rename(place.folder.parent / "away")
    (place.folder.parent / "other").mkdir()
    place.folder.symlink_to("other")
    with pytest.raises(DigestMismatchError):
        await TESTS.execute(this, place, watch())
    assert not (place.folder.parent / "away" / "ran").exists()


def test_its_schema_is_short() -> None:
    assert TESTS.kind == "run"
    assert len(json.dumps(TESTS.schema.parameters)) + len(TESTS.schema.description) < 440
