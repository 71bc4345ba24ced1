"""What holds for every test of the app."""

import logging
from collections.abc import Generator

import pytest

from tests.tui.pictures import clock, folder, shows

__all__ = ("clock", "every_style_is_named", "folder", "shows")


class _Missed(logging.Handler):
    """Keeps what the painter says of styles that a widget paints and does not name."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture(autouse=True)
def every_style_is_named() -> Generator[None]:
    """Fail a test in which a widget paints a style that is not among its component classes."""
    missed = _Missed()
    logger = logging.getLogger("rune.tui.painting")
    logger.addHandler(missed)
    yield
    logger.removeHandler(missed)
    assert not missed.said
