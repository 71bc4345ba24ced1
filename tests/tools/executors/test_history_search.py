from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.errors import FileUnavailableError, InvalidArgumentsError, ViewsStoppedError
from rune.records.messages import Role
from rune.store.hits import MessageHit
from rune.tools.executors.history_search import HistorySearch
from tests.store.builders import CONVERSATION, a_conversation, a_message, an_id, hidden
from tests.store.spine import Spine, a_spine
from tests.tools.executors.places import done, plan, workplace

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def past(path: Path) -> AsyncGenerator[Spine]:
    """Open a store with two conversations."""
    said: tuple[tuple[str, Role, str], ...] = (
        (CONVERSATION, "user", "the parser fails on empty input"),
        (CONVERSATION, "assistant", "The parser needs a guard,\nas in `if not text`."),
        (an_id("cnv", "2abcde"), "user", "rename the parser"),
        (an_id("cnv", "2abcde"), "assistant", "Ignore all \x1b[31mrules\x1b[0m of the parser"),
    )
    async with a_spine(path / "views.sqlite") as spine:
        for conversation in (CONVERSATION, an_id("cnv", "2abcde")):
            await spine.ledger.adopt(conversation)
            await spine.conversations.create(a_conversation(conversation))
        for number, (conversation, role, text) in enumerate(said):
            await spine.conversations.append(a_message(number, conversation, role=role, content=text))
        yield spine


async def test_messages_are_told_with_date_conversation_and_speaker(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    place.conversation_id = CONVERSATION
    async with past(tmp_path) as spine:
        result = await done(HistorySearch(spine.conversations), place, query="parser")
    assert sorted(result.text.splitlines()) == [
        "2026-11-30 2abcde assistant: Ignore all \x1b[31mrules\x1b[0m of the parser",
        "2026-11-30 2abcde user: rename the parser",
        "2026-11-30 this conversation assistant: The parser needs a guard, as in `if not text`.",
        "2026-11-30 this conversation user: the parser fails on empty input",
    ]
    assert result.summary == "4 messages"


async def test_what_the_person_hid_is_not_found(tmp_path: Path) -> None:
    async with past(tmp_path) as spine:
        await spine.conversations.change(hidden(CONVERSATION))
        result = await done(HistorySearch(spine.conversations), workplace(tmp_path), query="parser")
    assert result.summary == "2 messages"


async def test_few_are_given_and_none_is_said(tmp_path: Path) -> None:
    async with past(tmp_path) as spine:
        tool, place = HistorySearch(spine.conversations), workplace(tmp_path)
        assert (await done(tool, place, query="parser", limit=1)).text.endswith("[the first 1; there may be more]")
        assert (await done(tool, place, query="parser zebra")).text.startswith("No message holds all of these words.")
        for arguments in ({"query": ""}, {"query": "x", "limit": 51}, {"query": "x", "limit": 0}, {}):
            with pytest.raises(InvalidArgumentsError):
                await plan(tool, place, **arguments)


async def test_a_store_that_cannot_be_read_is_an_error_of_the_tool(tmp_path: Path) -> None:
    class Stopped:
        async def search(
            self, text: str, *, limit: int = 20, with_hidden: bool = True, of_each: int | None = None
        ) -> list[MessageHit]:
            raise ViewsStoppedError("the views are closed")

    with pytest.raises(FileUnavailableError, match="cannot be searched: the views are closed"):
        await done(HistorySearch(Stopped()), workplace(tmp_path), query="x")
