"""What a person reads before something is erased: by what it is known, on one screen, with nothing done yet."""

import textwrap
from pathlib import Path

import msgspec
import pytest

from rune.bootstrap.erasing import open_erasure
from rune.errors import StorageUnavailableError
from rune.host.paths import resolve_home
from rune.records.messages import ConversationRecord
from rune.surface.erasure import Erasure, plan_result, report_result
from rune.surface.shared_messages import missing_share
from tests.store.builders import a_conversation, a_message, an_id
from tests.store.erasing.erasing_homes import Told, an_eraser, tell

WORDS = "buy the old mill by the river"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def opened(home: Path) -> Erasure:
    return open_erasure({"RUNE_HOME": str(home)})


def test_a_conversation_is_named_as_a_person_knows_it_and_only_to_a_person(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    with opened(home).prepared([mine.id]) as plan:
        shown, counted = plan_result(plan, named=True), plan_result(plan)
    heading, known_as, *rest = shown.text.splitlines()
    assert heading == f"to be erased for good: {mine.id}"
    assert known_as.startswith('  "buy the old mill by the…", begun 20')
    assert " in /" in known_as
    assert any("2 messages, " in line for line in rest)
    assert WORDS[:12] not in counted.text + str(counted.data) + str(shown.data)


def test_it_fits_a_screen_whatever_it_touches(home: Path) -> None:
    told = [Told(number, f"{WORDS}, the {number}. time") for number in range(1, 16)]
    tell(home, Told(30, WORDS), *told, blobs=[f"recalled: {WORDS}".encode()])
    ids = [an_id("cnv", 30), *(each.id for each in told[:6])]
    with opened(home).prepared(ids) as plan:
        forks = frozenset(an_id("cnv", number) for number in range(60, 70))
        text = plan_result(msgspec.structs.replace(plan, forks=forks, resumed=True), named=True).text
    rows = [row for line in text.splitlines() for row in textwrap.wrap(line, 80) or [""]]
    assert len(rows) <= 22, text  # and the question, and the prompt that follows
    assert rows[0] == f"to be erased for good: {ids[0]} and 6 more"
    assert "  and 4 more conversations" in rows
    assert "  and 8 more branches" in rows
    for past in (" was ", " were ", "looked through:", "removed", "blanked"):
        assert past not in text.replace("will be looked through", "").replace("that was interrupted", "")


def test_what_was_done_is_counted_in_plain_words(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine, blobs=[f"recalled: {WORDS}".encode()])
    trace = an_id("evt", "17")
    erasure = opened(home)
    with erasure.prepared([trace]) as plan:
        assert "1 record of a model call, 1 file of evidence" in plan_result(plan).text
        text = report_result(plan, erasure.erase(plan)).text
    assert "1 entry emptied" in text
    assert "1 file removed" in text


def test_where_nothing_can_be_written_it_says_what_is_wrong_with_the_place(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    full = StorageUnavailableError("/home: the disk is full", hint="Free some space there and start Rune again.")
    erasure = Erasure(resolve_home({"RUNE_HOME": str(home)}), an_eraser(home), lambda: None, lambda: full)
    (home / "leases").write_text("in the way")
    with pytest.raises(StorageUnavailableError, match="the disk is full") as caught, erasure.prepared([mine.id]):
        pass
    assert caught.value.hint == full.hint  # it was not for want of room


@pytest.mark.parametrize(
    ("kept", "expected"),
    [((), "the messages that it shares"), ((1,), "some of the messages"), ((1, 2), "")],
    ids=["none", "some", "all"],
)
def test_a_branch_tells_that_what_it_shares_is_gone(kept: tuple[int, ...], expected: str) -> None:
    parent = an_id("cnv", 1)
    record: ConversationRecord = msgspec.structs.replace(
        a_conversation(an_id("cnv", 2)), forked_from=parent, fork_msg_id=an_id("msg", 2)
    )
    text = missing_share(record, [a_message(number, parent) for number in kept])
    assert (expected in text, bool(text), parent in text) == (True, bool(expected), bool(expected))
