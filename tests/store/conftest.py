"""What tests of journals and of views share."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.ids import CountedIds
from tests.store.journals import memory_folder


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


@pytest.fixture
def memory_home() -> Iterator[Path]:
    folder = memory_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"
