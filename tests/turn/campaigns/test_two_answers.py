"""One question, answered by two processes at the same moment: one of them is heard, and what it allows runs once."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(900)])], ids=["short", "long"]
)
def test_of_two_answers_at_once_one_is_heard(tmp_path: Path, rounds: int) -> None:
    (tmp_path / "project").mkdir()
    command = [sys.executable, "-m", "tests.turn.campaigns.two_answers", str(tmp_path / "home"), str(rounds)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, timeout=800, check=True)
    fared: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    print(Counter(map(tuple, fared)))
    assert len(fared) == rounds
    assert set(map(tuple, fared)) <= {("AlreadyDecidedError", "won"), ("LeaseHeldError", "won")}
    ran = (tmp_path / "project" / "ran.txt").read_text().split()
    assert sorted(ran) == sorted(f"round{number}" for number in range(rounds))
