"""What every test shares."""

from collections.abc import Generator

import pytest

# Projects that are broken on purpose, with tests of their own.
collect_ignore = ["data/projects"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--model", default="", help="the model that tests marked `live` give their tasks to")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make what a test logged sendable: tests log lone surrogates on purpose, and a report travels as UTF-8."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
