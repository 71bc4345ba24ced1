"""Several Runes on one home, killed and started, their views deleted under them: each fact once, everywhere."""

from pathlib import Path

import pytest

from tests.store.campaigns.runs import run


@pytest.mark.parametrize(
    "kills", [80, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
def test_journal_views_and_leases_agree_after_all_of_it(kills: int, memory_home: Path, seed: int) -> None:
    figures = run("many_runes", memory_home, kills, seed, seconds=3500)
    assert figures["faults"] == []
    assert figures["kills"] >= kills
    assert figures["acknowledged"] > kills
    assert figures["views deleted"] > 0
