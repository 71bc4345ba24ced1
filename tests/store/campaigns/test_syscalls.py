"""A kill, and each error, at every system call of a run: a typed error or success, and nothing acknowledged is lost."""

import shutil
from pathlib import Path

import pytest

from tests.store.campaigns.runs import run


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize(
    "share", [0.02, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
def test_a_kill_or_an_error_at_any_system_call_loses_nothing_acknowledged(
    share: float, memory_home: Path, seed: int
) -> None:
    figures = run("traced_run", memory_home, share, seed, seconds=3500)
    if "cannot trace" in figures:
        pytest.skip(f"no process may trace another here: {figures['cannot trace']}")
    assert figures["faults"] == []
    assert figures["refused"] > figures["runs"] // 2
    assert figures["killed"] > 0.9 * figures["to be killed"]
