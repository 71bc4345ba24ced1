"""The real small model for tests that are marked `model`: fetched once, kept between runs.

RUNE_TEST_MODELS names the folder; without it, `~/.cache/rune-tests`. Only a missing network is a reason to skip.
"""

import os
from pathlib import Path

import pytest

from rune.errors import ModelUnavailableError
from rune.models.embedded.model_file import fetch_embedded


def real_model_file() -> Path:
    """Return the model's path, or skip the test with the reason why it cannot be had."""
    folder = Path(os.environ.get("RUNE_TEST_MODELS") or Path.home() / ".cache" / "rune-tests")
    try:
        return fetch_embedded(folder, progress=print)
    except ModelUnavailableError as error:
        pytest.skip(f"the embedded model is not here and cannot be fetched: {error.message}")
