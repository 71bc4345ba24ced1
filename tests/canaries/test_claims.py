"""Every canary holds here, and one that does not says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from rune.canaries.claim import expect, verdict
from rune.canaries.runner import names, run_canaries
from rune.errors import UsageError


@pytest.mark.parametrize("name", names())
def test_a_canary_holds_when_run_alone(name: str, tmp_path: Path) -> None:
    environ = {"RUNE_HOME": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-m", f"rune.canaries.{name}"]
    done = subprocess.run(command, capture_output=True, env=environ, timeout=60, check=False)
    assert done.stdout.startswith(b"holds "), done.stdout + done.stderr
    assert done.stdout.count(b"\n") == 1
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_claim_that_does_not_hold_says_what_was_seen() -> None:
    async def check(folder: Path) -> None:
        expect(folder.name == "", f"the folder is {folder.name.split('-')[0]}")

    held, line = verdict("a folder has no name", check)
    assert not held
    assert line == "BROKEN  a folder has no name: the folder is rune"


def test_a_canary_that_cannot_run_is_broken_with_its_reason() -> None:
    async def check(folder: Path) -> None:
        (folder / "missing").read_text()

    held, line = verdict("it reads", check)
    assert not held
    assert "FileNotFoundError" in line


def test_all_are_run_with_a_line_each() -> None:
    lines: list[str] = []
    assert run_canaries("broker_admission", lines.append)
    assert len(lines) == 1
    with pytest.raises(UsageError, match="nonsense"):
        run_canaries("nonsense", lines.append)
