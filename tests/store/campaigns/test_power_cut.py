"""The power goes while something is written: what was acknowledged is on the disk. Without syncs it is not."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.store.campaigns.runs import run


def can_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="needs root to mount an image of a disk")


def cuts_of(folder: Path, what: str, cuts: int, seed: int) -> dict[str, Any]:
    # In a mount namespace of its own: nothing stays mounted, and no loop device taken, whatever happens.
    figures = run("power_cut", folder, what, cuts, seed, before=("unshare", "--mount"), seconds=1700)
    if "cannot mount" in figures:
        pytest.skip(f"no loop device can be mounted here: {figures['cannot mount']}")
    return figures


@pytest.mark.parametrize("what", ["append", "rotate", "evidence", "replace"])
@pytest.mark.parametrize(
    "cuts", [10, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])], ids=["short", "long"]
)
def test_a_power_cut_takes_nothing_that_was_acknowledged(cuts: int, what: str, memory_home: Path, seed: int) -> None:
    figures = cuts_of(memory_home, what, cuts, seed)
    assert figures["faults"] == []
    assert figures["cuts"] == cuts
    assert figures["acknowledged"] >= cuts


def test_the_same_without_a_sync_loses_what_was_acknowledged(memory_home: Path, seed: int) -> None:
    figures = cuts_of(memory_home, "nosync", 5, seed)
    # Otherwise a cut here is none, and what the others say is void.
    assert figures["cuts that lost"] > 0
