"""What every campaign shares: its seed."""

import os

import pytest

_SEED = "RUNE_CAMPAIGN_SEED"
_ALWAYS = 20261130


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return what all choices of a campaign follow from: always the same in the short form, a new one in the long
    form, and the one in RUNE_CAMPAIGN_SEED in both. It is printed: pytest shows it when the campaign fails.
    """
    fresh = int.from_bytes(os.urandom(4)) if "slow" in request.keywords else _ALWAYS
    chosen = int(os.environ.get(_SEED, fresh))
    print(f"{_SEED}={chosen}")
    return chosen
