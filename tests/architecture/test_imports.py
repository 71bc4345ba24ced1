"""Modules form no cycles, and what starts headless loads no terminal library, client or database."""

import graphlib
import json
import re
import subprocess
import sys
import time

import grimp
import pytest

from tests.architecture.repository import PACKAGE, ROOT

OPERATOR = PACKAGE / "turn" / "operator.py"
MAIN = PACKAGE / "cli" / "main.py"

TIMES_BARE_PYTHON = 4
SLACK = 2  # machines are shared and noisy; scripts/bench start holds the bar itself


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # -P: as scripts/rune starts it, without the current folder in the way.
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done


def _loaded_by(statement: str) -> set[str]:
    """Top-level names of all modules in a fresh process after `statement`."""
    shown = _run("-c", f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))").stdout
    return {name.partition(".")[0] for name in json.loads(shown)}


def _loaded_by_version() -> set[str]:
    """Top-level names of all modules that `rune --version` imports."""
    report = _run("-X", "importtime", "-m", "rune", "--version").stderr
    names = re.findall(r"^import time:.*\|\s*([\w.]+)$", report, flags=re.MULTILINE)
    assert len(names) > 20, "Python's import report has another form now"
    return {name.partition(".")[0] for name in names}


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    _run(*arguments)
    return time.perf_counter() - began


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("rune", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, which shows the cycle


@pytest.mark.skipif(not OPERATOR.exists(), reason="rune.turn.operator is not there yet")
def test_the_operator_loads_no_terminal_library_and_no_http_client() -> None:
    assert _loaded_by("import rune.turn.operator") & {"textual", "rich", "httpx", "numpy"} == set()


@pytest.mark.skipif(not MAIN.exists(), reason="rune.cli.main is not there yet")
def test_rune_version_loads_only_what_it_prints_with() -> None:
    heavy = {"textual", "rich", "httpx", "apsw", "numpy", "pydantic", "xllamacpp", "platformdirs", "yaml"}
    assert _loaded_by_version() & heavy == set()


@pytest.mark.skipif(not MAIN.exists(), reason="rune.cli.main is not there yet")
def test_rune_version_takes_a_small_multiple_of_bare_python() -> None:
    pairs = [(_seconds("-c", "pass"), _seconds("-m", "rune", "--version")) for _ in range(5)]
    floor, taken = (min(column) for column in zip(*pairs, strict=True))
    assert taken <= floor * TIMES_BARE_PYTHON * SLACK
