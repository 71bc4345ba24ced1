"""kill -9 in mid-turn: no call acts twice, no result is without its call, and what nobody can know is said."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.store.journals import memory_folder

_ROOT = Path(__file__).parents[3]


@pytest.fixture
def homes() -> Generator[Path]:
    folder = memory_folder()
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def killed(homes: Path, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.turn.campaigns.kill_turns", str(homes), str(folder), str(kills), str(seed)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, timeout=3500, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(figures)
    return figures


@pytest.mark.parametrize(
    "kills", [25, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
def test_no_call_acts_twice_and_none_is_lost_by_kill_nine(homes: Path, tmp_path: Path, kills: int, seed: int) -> None:
    figures = killed(homes, tmp_path, kills, seed)
    assert figures["faults"] == []
    assert figures["kills"] == kills
    # A campaign in which nothing acted, or nobody was killed while something did, would prove nothing.
    assert figures["calls that acted"] > kills // 3
    assert figures["unknown"] > kills // 25
    assert figures["recoveries"] > kills // 3
    assert figures["questions answered later"] > kills // 25
