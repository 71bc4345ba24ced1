"""Nothing is collected while modules are loaded, and what they made is not looked through later."""

import gc
import subprocess
import sys

import pytest

from rune.cli.loading import Loading

LOADED = """
import sys
import rune.tui.app
print(*(name for name in sys.modules if name.startswith("rune.tui.markdown.")))
"""


def test_garbage_is_left_until_everything_is_loaded() -> None:
    gc.unfreeze()
    try:
        with Loading():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_what_cannot_be_loaded_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), Loading():
        raise ImportError
    assert gc.isenabled()
    gc.unfreeze()


def test_an_app_without_an_answer_loads_nothing_that_draws_markdown() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert set(loaded) == {"rune.tui.markdown.wrapping"}
