"""CI runs every canary by its name, and nothing that it does not find in this repository."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.repository import PACKAGE, ROOT, tree_of

WORKFLOW = ROOT / ".gitea" / "workflows" / "ci.yml"


def _steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def _claims_on_disk() -> set[str]:
    """Return the modules that make a claim: the others in that folder serve them."""
    return {path.stem for path in (PACKAGE / "canaries").glob("*.py") if _makes_a_claim(path)}


def _makes_a_claim(path: Path) -> bool:
    targets = [target for node in tree_of(path).body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id == "CLAIM" for target in targets)


def _claims_in_ci() -> set[str]:
    commands = "\n".join(step.get("run", "") for step in _steps())
    return set(re.findall(r"\brune canary ([a-z_]+)", commands))


def test_ci_names_every_canary_on_disk() -> None:
    assert _claims_on_disk() - _claims_in_ci() == set()


def test_every_canary_that_ci_names_is_on_disk() -> None:
    if not _claims_on_disk():
        pytest.skip("there are no canaries yet")
    assert _claims_in_ci() - _claims_on_disk() == set()


def test_ci_runs_the_script_that_a_person_runs_and_no_foreign_action() -> None:
    assert any(step.get("run", "").strip() == "./.ci/run" for step in _steps())
    assert [step["uses"] for step in _steps() if "uses" in step] == []
