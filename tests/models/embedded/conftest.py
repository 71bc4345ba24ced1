"""What the tests of real models share."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rune.models.embedded.transport import EmbeddedTransport
from tests.embedded_model import real_model_file
from tests.models.embedded.calls import (
    left_in,
    transport_for,
)


@pytest.fixture(scope="session")
def model_file() -> Path:
    return real_model_file()


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    # Not tmp_path: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        yield Path(folder)


@pytest.fixture
async def transport(model_file: Path, runtime_dir: Path, tmp_path: Path) -> AsyncIterator[EmbeddedTransport]:
    transport = transport_for(model_file, runtime_dir, tmp_path)
    yield transport
    await transport.close()
    assert left_in(runtime_dir) == []
