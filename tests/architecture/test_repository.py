"""What holds for the repository's texts: no place of one machine, no excuse without a reason, one version."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import rune
from tests.architecture.repository import ROOT, name_of, python_files, text_files

SECTIONS = ("context", "choice", "given up")
CODES = r"(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*|\[[\w\-, ]+\])?"
SILENCER = re.compile(rf"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore){CODES}(?P<reason>.*)")


def test_no_file_names_a_place_of_this_machine() -> None:
    places = [str(ROOT), f"{ROOT.parent}/", f"{Path.home()}/"]
    # Only at the start of a path: "/src/" as the parent of a checkout is not the end of "$root/src/".
    pattern = re.compile("|".join(rf"(?<![\w.$}}~/-]){re.escape(place)}" for place in places if place != "//"))
    found = [f"{name}: {match[0]}" for name, text in text_files() for match in pattern.finditer(text)]
    assert not found


def test_no_file_names_a_package_index_because_everybody_configures_their_own() -> None:
    hosts = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian|ubuntu)\.(?:org|com)\b", re.IGNORECASE)
    assert [name for name, text in text_files() if hosts.search(text)] == []


def test_every_silenced_rule_has_its_reason_on_the_line() -> None:
    bare: list[str] = []
    for path in python_files("src", "tests", "benchmarks", "scripts"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            silencer = SILENCER.search(line)
            if silencer and not re.search(r"\w{3,}", silencer["reason"]):
                bare.append(f"{name_of(path)}:{number}: {line.strip()}")
    assert not bare


def test_each_decision_says_context_choice_and_what_was_given_up() -> None:
    incomplete: list[str] = []
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        text = path.read_text(encoding="utf-8").lower()
        starts = [re.search(rf"^\W*(?:what was )?{section}\b", text, flags=re.MULTILINE) for section in SECTIONS]
        positions = [start.start() for start in starts if start]
        if not text.startswith("# ") or len(positions) < len(SECTIONS) or positions != sorted(positions):
            incomplete.append(name_of(path))
    assert not incomplete


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/rune/version.py"
    definitions = [
        name_of(path)
        for path in python_files("src", "scripts", "benchmarks")
        if re.search(r"^__version__\s*=", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert definitions == ["src/rune/version.py"]


def test_the_changelog_begins_with_what_is_next_or_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)
    assert first
    assert first[1] in {"Unreleased", rune.__version__}


def _documents() -> list[tuple[str, str]]:
    return [(name, text) for name, text in text_files() if name.endswith(".md")]


def test_documents_name_only_scripts_that_are_there() -> None:
    missing = [
        f"{name}: {script}"
        for name, text in _documents()
        for script in re.findall(r"(?<![\w/])scripts/[a-z_]+(?:\.\w+)?", text)
        if not (ROOT / script).is_file()
    ]
    assert not missing


def test_documents_name_only_commands_that_rune_knows() -> None:
    named = {
        command
        for _, text in _documents()
        for command in re.findall(r"(?:`|^\$ |/)rune ([a-z][a-z-]+)", text, flags=re.MULTILINE)
    }
    unknown = [
        command
        for command in sorted(named)
        if subprocess.run(
            [sys.executable, "-P", "-m", "rune", command, "--help"], check=False, capture_output=True
        ).returncode
    ]
    assert named
    assert not unknown


def test_what_a_person_runs_is_executable_and_knows_its_interpreter() -> None:
    commands = [ROOT / "scripts" / name for name in ("rune", "test", "bench")] + [ROOT / ".ci" / "run"]
    for command in commands:
        assert command.stat().st_mode & 0o111 == 0o111
        assert command.read_bytes().startswith(b"#!")
