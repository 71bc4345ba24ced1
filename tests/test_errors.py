"""What errors say to a person."""

import time
from collections.abc import Generator
from datetime import UTC, datetime

import pytest

from rune.errors import LeaseHeldError

CONVERSATION = "cnv_01m8pwt3mx7ngg4bpph0wz4dpe"


@pytest.fixture
def east(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Live five hours east of Greenwich."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EAST-5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("east")
def test_a_conversation_that_is_held_is_said_in_the_persons_own_time() -> None:
    error = LeaseHeldError(CONVERSATION, pid=31950, since="2025-01-31T20:30:59.123Z")
    assert error.message == "this conversation is open in another Rune (process 31950, since 2025-02-01 01:30)"
    assert (error.conversation_id, error.pid, error.since) == (CONVERSATION, 31950, "2025-01-31T20:30:59.123Z")


@pytest.mark.usefixtures("east")
def test_what_is_held_since_today_needs_no_date() -> None:
    now = datetime.now(UTC)
    error = LeaseHeldError(CONVERSATION, pid=0, since=now.isoformat())
    assert error.message == f"this conversation is open in another Rune (since {now.astimezone():%H:%M})"


@pytest.mark.parametrize("since", ["", "soon", "0001-01-01T00:00:00Z"])
def test_what_is_not_known_of_the_holder_is_left_out(since: str) -> None:
    known = LeaseHeldError(CONVERSATION, pid=7, since=since).message
    assert known.startswith("this conversation is open in another Rune (process 7")
    assert LeaseHeldError(CONVERSATION, pid=0, since="").message == "this conversation is open in another Rune"
