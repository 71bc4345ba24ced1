"""The broken projects, given to a model that a person names: `pytest -m live --model=NAME tests/journeys`.

NAME is a model of a server that runs on this machine (Ollama; RUNE_OPENAI_URL), or the path of a GGUF file, which the
embedded worker runs. A table of how it went is printed.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from rune.models.openai_compatible.address import KEY_VARIABLE, URL_VARIABLE
from tests.journeys.projects import NAMES, Mended, Project, mend, services_on

pytestmark = [pytest.mark.live, pytest.mark.timeout(3600)]

MAX_STEPS: Final = 24
_RUNS: Final = [*((name, 1) for name in NAMES if name != "calc"), *(("calc", number) for number in range(1, 6))]
_ROW: Final = "{:<8} {:<7} {:>5} {:>5} {:>8} {:<12} {}"
_HEAD: Final = _ROW.format(
    "project", "solved", "steps", "calls", "seconds", "ended", "calls in order, ! where one failed"
)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> str:
    name = request.config.getoption("--model")
    if not isinstance(name, str) or not name:
        pytest.skip("no model is named: --model=NAME")
    return name


@pytest.mark.parametrize(("name", "number"), _RUNS)
async def test_a_model_mends_a_broken_project(
    name: str, number: int, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    project = Project(name, tmp_path / "project")
    project.need_programs()
    chosen, environ = _named(model)
    async with services_on(tmp_path / "home", environ=environ) as services:
        mended = await mend(services.surface, project, model=chosen, max_steps=MAX_STEPS)
    solved = project.works() and project.tests_untouched
    with capsys.disabled():
        print(f"\n{_HEAD}" if (name, number) == _RUNS[0] else "", _row(name, mended, solved=solved), sep="\n", end="")
    assert solved, (mended.told(), mended.closed.answer, mended.closed.error)


def _named(model: str) -> tuple[str | None, dict[str, str]]:
    """Return the name to ask for, and where it is found."""
    if model.endswith(".gguf"):
        return Path(model).stem.lower(), {"RUNE_EMBEDDED_MODEL": model}
    found = {key: os.environ[key] for key in ("OLLAMA_HOST", URL_VARIABLE, KEY_VARIABLE) if key in os.environ}
    return model, {"OLLAMA_HOST": "127.0.0.1:11434"} | found


def _row(name: str, mended: Mended, *, solved: bool) -> str:
    calls = " ".join(call.name if call.outcome == "ok" else f"{call.name}!" for call in mended.calls)
    return _ROW.format(
        name,
        "yes" if solved else "no",
        mended.steps,
        len(mended.calls),
        f"{mended.seconds:.1f}",
        mended.closed.stop_reason.value,
        calls,
    )
