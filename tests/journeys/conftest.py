"""Fixtures of the journeys."""

from pathlib import Path

import pytest

from tests.journeys.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
