"""kill -9 at random moments: what was acknowledged is there, once, and no half batch is."""

from pathlib import Path

import pytest

from tests.store.campaigns.runs import run


@pytest.mark.parametrize(
    "kills", [500, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_nine(kills: int, memory_home: Path, seed: int) -> None:
    figures = run("kill_loop", memory_home, kills, seed, seconds=3500)
    assert figures["faults"] == []
    assert figures["kills"] == kills
    # A campaign in which nothing was written, or nobody died early, would prove nothing.
    assert figures["batches acknowledged"] > kills
    assert figures["killed while opening"] > kills // 100


@pytest.mark.parametrize(
    "kills", [10, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
def test_nor_on_a_real_disk(kills: int, tmp_path: Path, seed: int) -> None:
    figures = run("kill_loop", tmp_path, kills, seed, seconds=3500)
    assert figures["faults"] == []
    assert figures["kills"] == kills
