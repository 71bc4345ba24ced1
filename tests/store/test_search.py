"""What was said is found by its words, whatever a person types."""

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.errors import DamagedViewsError
from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.records.messages import Role
from rune.records.record import Record
from rune.store.codec import ErasedBody, decode_body
from rune.store.conversation_views import ConversationViews
from rune.store.event_store import Offset
from rune.store.projections import ProjectionEngine
from rune.store.search import MOST_CHARACTERS, MOST_PHRASES, RANKED, MessageHit, SearchViews, find_messages, phrases_of
from rune.store.view_cursor import CURSOR_DDL
from rune.text.snippets import SNIPPET_CHARACTERS, Phrase
from tests.store.builders import CONVERSATION, TIME, a_conversation, a_message, an_id, hidden, renamed
from tests.store.spine import Reports, Spine, a_memory_store, a_spine, an_event, hashes, open_views

OTHER = an_id("cnv", 2)
KINDS: dict[Role, str] = {"user": "user.message", "assistant": "response.generated", "tool": "tool.message"}


def said(*texts: str, conversation_id: str = CONVERSATION, role: Role = "user", start: int = 1) -> list[Event]:
    """Return the events of messages; the number in a message's id is its place, from `start` on."""
    return [
        an_event(
            f"{conversation_id[-1]}{place:04}",
            KINDS[role],
            a_message(f"{conversation_id[-1]}{place:04}", conversation_id, role=role, content=text),
            conversation_id,
            place + 1,
        )
        for place, text in enumerate(texts, start)
    ]


def begun(record: Record, number: str = "b1", conversation_id: str = CONVERSATION) -> Event:
    return an_event(number, "conversation.created", record, conversation_id, 1)


@asynccontextmanager
async def a_talk(views: Path, *texts: str) -> AsyncGenerator[Spine]:
    """Open a spine in which these were said in one conversation, one after the other."""
    store = a_memory_store()
    await store.append_many([begun(a_conversation()), *said(*texts)])
    async with a_spine(views, store) as spine:
        yield spine


async def found(spine: Spine, text: str) -> list[int]:
    """Return the places of the messages that are found."""
    return [int(hit.message_id[-4:]) for hit in await spine.conversations.search(text)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The café in Zürich", "CAFE"),
        ("The cafe in Zurich", "zürich"),
        ("STRASSE am Fluss", "straße"),
        ("İstanbul", "istanbul"),
        ("e\u0301te\u0301 indien", "été"),
        ("voilà l'été", "e\u0301te\u0301"),
        ("\uff21\uff22\uff23 wide", "abc"),
        ("\ufb01ne print", "fine"),
        ("Привет, мир", "привет"),
        ("Ελλάδα", "ελλαδα"),
        ("昨日は東京に行きました", "東京"),
        ("我们讨论了数据库的性能问题", "性能"),
        ("데이터베이스를 만들었습니다", "베이스"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("ﾃﾞｰﾀを読む", "データ"),
        ("ภาษาไทยเขียนติดกัน", "เขียน"),
        ("Rune読込error処理", "error"),
        ("call foo_bar(1)", "foo"),
        ("call foo_bar(1)", "bar"),
        ("call foo_bar(1)", "foo_bar"),
        ("see a.b.c for it", "a.b.c"),
        ("see a.b.c for it", "b"),
        ("in src/rune/store/search.py:12", "store/search.py"),
        ("in src/rune/store/search.py:12", "search.py"),
        ("in src/rune/store/search.py:12", "/src/rune"),
        ("failed with 0x80070005", "0x80070005"),
        ("error TS2304: no name", "ts2304"),
        ("exit -404 again", "404"),
        ("C++ and C#", "c++"),
        ("we know the rivers", "riv"),
        ("we know the rivers", "know riv"),
        ("we know the rivers", '"know the'),
        ("we know the rivers", '"the rivers"'),
        ("we know the rivers", "\u201ethe rivers\u201c"),
        ("we know the rivers", "rivers   know\t"),
    ],
    ids=lambda value: ascii(value)[1:40],
)
async def test_a_message_is_found_by_what_stands_in_it(text: str, query: str, views: Path) -> None:
    async with a_talk(views, "something else entirely", text) as spine:
        (hit,) = await spine.conversations.search(query)
        assert hit.message_id == an_id("msg", "10002")
        # Half-width Kana with its voice mark apart is found and not marked.
        assert hit.marks or query == "データ"
        for start, end in hit.marks:
            assert 0 <= start < end <= len(hit.snippet)


@pytest.mark.parametrize(
    "query",
    [
        "rive know",
        '"rivers the"',
        '"riv"',
        "rivers lakes",
        "know_rivers",
        "東",
        "",
        "   ",
        '""',
        "...",
        "\0",
        "*",
        "OR",
    ],
    ids=lambda value: ascii(value)[1:40],
)
async def test_what_does_not_stand_there_is_not_found(query: str, views: Path) -> None:
    async with a_talk(views, "we know the rivers", "and the lakes") as spine:
        assert await spine.conversations.search(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "rivers NOT lakes", "words : rivers", "{words} : rivers", "NEAR(the rivers)", "rivers AND", "^rivers",
        "(rivers", "rivers + the", "rivers'", "--rivers", "rivers; DROP TABLE search", "a\0rivers", "\ud800rivers",
    ],
    ids=lambda value: ascii(value)[1:40],
)  # fmt: skip
async def test_what_would_be_syntax_is_words(query: str, views: Path) -> None:
    async with a_talk(views, f"this: {query.encode('utf-8', 'replace').decode()}", "the rivers") as spine:
        assert 1 in await found(spine, query)


async def test_ten_kilobytes_of_words_are_no_error(views: Path) -> None:
    text = "rivers and lakes " * 640
    async with a_talk(views, text) as spine:
        assert await found(spine, text) == [1]
        assert await found(spine, "x" * 10_240) == []
        assert await found(spine, " ".join(f"w{number}" for number in range(2000))) == []
        assert await found(spine, "東" * 10_240) == []
        assert await found(spine, " ".join(map(chr, range(0x3400, 0x3800)))) == []
        assert await found(spine, '"' * 10_240) == []


async def test_a_long_text_is_found_by_its_beginning_up_to_the_limit(views: Path) -> None:
    identifier = "_".join(f"part{number}" for number in range(1000))
    async with a_talk(views, identifier, "part0_part1") as spine:
        assert await found(spine, identifier) == [1]
        assert len(identifier) > MOST_CHARACTERS


async def test_of_very_many_words_the_first_count(views: Path) -> None:
    words = [f"w{number}" for number in range(MOST_PHRASES)]
    async with a_talk(views, " ".join(words)) as spine:
        assert await found(spine, " ".join([*words, "nowhere"])) == [1]
        assert await found(spine, " ".join([*words[1:], "nowhere"])) == []


async def test_the_best_match_comes_first_and_the_newer_among_equals(views: Path) -> None:
    texts = ["rivers rivers rivers", "rivers", "a long talk about everything but " * 9 + "rivers", "rivers"]
    async with a_talk(views, *texts) as spine:
        assert await found(spine, "rivers") == [1, 4, 2, 3]
        assert [hit.message_id[-1] for hit in await spine.conversations.search("rivers", limit=2)] == ["1", "4"]
        assert await spine.conversations.search("rivers", limit=-1) == []


async def test_a_hit_tells_of_its_message_and_its_conversation(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(
        [
            begun(a_conversation()),
            *said("Name three\n\n  rivers\tof   Asia"),
            an_event("r", "conversation.renamed", renamed("Water"), CONVERSATION, 9),
        ]
    )
    async with a_spine(views, store) as spine:
        message = await spine.conversations.message(an_id("msg", "10001"))
        assert await spine.conversations.search("rivers asia") == [
            MessageHit(
                conversation_id=CONVERSATION,
                message_id=message.id,
                ts=message.ts,
                role="user",
                title="Water",
                folder="/home/ada/poems",
                channel="task",
                snippet="Name three rivers of Asia",
                marks=((11, 17), (21, 25)),
            )
        ]


async def test_hits_are_narrowed_to_a_folder_a_conversation_and_to_what_is_listed(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(
        [
            begun(a_conversation()),
            *said("rivers"),
            begun(a_conversation(OTHER, folder="/elsewhere"), "b2", OTHER),
            *said("rivers", conversation_id=OTHER, role="assistant"),
            *said("rivers", conversation_id=OTHER, role="tool", start=2),
            an_event("h", "conversation.hidden", hidden(OTHER), OTHER, 9),
        ]
    )
    async with a_spine(views, store) as spine:
        search = spine.conversations.search
        assert [hit.role for hit in await search("rivers")] == ["tool", "assistant", "user"]
        assert [hit.role for hit in await search("rivers", with_hidden=False)] == ["user"]
        assert [hit.role for hit in await search("rivers", folder="/elsewhere")] == ["tool", "assistant"]
        assert [hit.role for hit in await search("rivers", conversation_id=CONVERSATION)] == ["user"]
        assert await search("rivers", conversation_id=OTHER, with_hidden=False) == []
        assert await search("rivers", conversation_id=an_id("cnv", 404)) == []


async def test_a_fork_doubles_no_hit_and_is_searched_with_what_it_shares(views: Path) -> None:
    store = a_memory_store()
    fork = msgspec.structs.replace(a_conversation(OTHER), forked_from=CONVERSATION, fork_msg_id=an_id("msg", "10001"))
    await store.append_many(
        [
            begun(a_conversation()),
            *said("rivers of Asia", "rivers of Africa"),
            an_event("f", "conversation.forked", fork, OTHER, 1),
            *said("rivers of Europe", conversation_id=OTHER),
        ]
    )
    async with a_spine(views, store) as spine:
        search = spine.conversations.search
        assert len(await search("rivers")) == 3
        assert [hit.snippet for hit in await search("rivers", conversation_id=OTHER)] == [
            "rivers of Europe",
            "rivers of Asia",
        ]
        assert len(await search("rivers", conversation_id=CONVERSATION)) == 2


async def test_an_erased_message_is_not_found(views: Path) -> None:
    store = a_memory_store()
    await store.append_many([begun(a_conversation()), *said("great lakes", "seas")])

    def decode(envelope: EventEnvelope) -> Record:
        erased = envelope.event_id == an_id("evt", "10001")
        return ErasedBody(erased=an_id("evt", 9)) if erased else decode_body(envelope, store.evidence)

    engine = ProjectionEngine(views, store, decode, (ConversationViews(), SearchViews()), Reports().views.append)
    assert engine.read(lambda connection: find_messages(connection, "lakes")) == []
    assert len(engine.read(lambda connection: find_messages(connection, "seas"))) == 1
    engine.close()
    assert b"lakes" not in bytes_of(views)


async def test_the_index_holds_no_text(views: Path) -> None:
    text = "the quick brown fox jumps over the lazy dog"
    async with a_talk(views, text) as spine:
        assert await found(spine, "quick fox") == [1]
    assert b"quick brown" in bytes_of(views)
    connection = apsw.Connection(str(views))
    connection.execute("DELETE FROM messages").fetchall()
    connection.execute("VACUUM").fetchall()
    connection.close()
    assert b"quick brown" not in bytes_of(views)


def bytes_of(views: Path) -> bytes:
    """Return all that the views have written."""
    return b"".join(path.read_bytes() for path in views.parent.iterdir())


async def test_an_index_that_names_a_message_that_is_not_there_is_made_anew(views: Path) -> None:
    async with a_talk(views, "rivers") as spine:
        spine.engine.catch_up()
        connection = apsw.Connection(str(views))
        connection.execute("UPDATE searchable SET message_id = 'gone'").fetchall()
        connection.close()
        assert await found(spine, "rivers") == [1]
        assert [type(error) for error in spine.reports.views] == [DamagedViewsError]


async def test_the_index_is_the_same_however_it_came_to_be(views: Path) -> None:
    order = random.Random(5)  # noqa: S311 nothing secret
    words = [f"w{number}" for number in range(40)] + ["東京", "été", "foo_bar"]
    whole = [
        event
        for conversation in (CONVERSATION, OTHER)
        for event in said(*(" ".join(order.choices(words, k=9)) for _ in range(60)), conversation_id=conversation)
    ]
    at_once, one_by_one, shuffled = a_memory_store(), a_memory_store(), a_memory_store()
    await at_once.append_many(whole)
    await shuffled.append_many(order.sample(whole, len(whole)))
    engines = [
        open_views(views.with_name(f"{name}-1.db"), store)
        for name, store in (("a", at_once), ("b", one_by_one), ("c", shuffled))
    ]
    for event in whole:
        await one_by_one.append(event)
        engines[1].catch_up()
    first, *others = [hashes(engine)["search"] for engine in engines]
    assert others == [first, first]
    engines[1].rebuild()
    assert hashes(engines[1])["search"] == first
    await at_once.append_many(said("one more", start=99))
    engines[0].catch_up()
    assert hashes(engines[0])["search"] != first
    for engine in engines:
        engine.close()


async def test_of_very_many_matches_the_newest_are_ranked(views: Path) -> None:
    older = ["rivers rivers rivers"]
    async with a_talk(views, *older, *("rivers of note" for _ in range(RANKED))) as spine:
        hits = await spine.conversations.search("rivers", limit=RANKED + 1)
        assert len(hits) == RANKED + 1
        assert hits[0].snippet == older[0]
        newest = await spine.conversations.search("rivers", limit=3)
        assert [hit.message_id[-4:] for hit in newest] == ["1001", "1000", "0999"]


@pytest.fixture(scope="module")
def tables() -> Iterator[apsw.Connection]:
    """Give views in memory that hold one conversation and nothing said in it."""
    connection = apsw.Connection(":memory:")
    connection.execute(CURSOR_DDL + ConversationViews.ddl + SearchViews.ddl).fetchall()
    apply(connection, a_conversation())
    yield connection
    connection.close()


def apply(connection: apsw.Connection, body: Record) -> None:
    """Enter a record as an event brings it."""
    envelope = EventEnvelope(
        event_id=an_id("evt", 1), event_type="", partition_key=CONVERSATION, pseq=1, hlc=1, seq=1, writer="w000",
        more=0, parent_id=None, actor_id="owner", device_id="", authorization=None, timestamp=TIME, payload_hash="",
        prev="", crc="", body=msgspec.Raw(b"{}"),
    )  # fmt: skip
    for projection in (ConversationViews(), SearchViews()):
        projection.apply(connection, Offset("w000", 1, 1, 1), envelope, body)


@given(
    st.lists(st.text() | st.sampled_from(['"', "*", "AND", "\0", "東", "a_b", " ", "\ud800", "\uff02"])).map("".join)
)
@settings(max_examples=60, deadline=None)
def test_any_text_gives_results_or_none(tables: apsw.Connection, text: str) -> None:
    assert find_messages(tables, text) == []


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=400), st.data())
@settings(max_examples=60, deadline=None)
def test_what_was_said_is_found_by_any_word_of_it(tables: apsw.Connection, text: str, data: st.DataObject) -> None:
    words = [word for word in text.split() if phrases_of(word) == [Phrase(word, begun=True)]]
    if not words:
        return
    word = data.draw(st.sampled_from(words))
    tables.execute("SAVEPOINT before")
    try:
        apply(tables, a_message(1, content=text))
        hits = find_messages(tables, word)
    finally:
        tables.execute("ROLLBACK TO before; RELEASE before").fetchall()
    # Signs alone are no word: nothing is looked up then.
    assert len(hits) == 1 or not any(character.isascii() and character.isalnum() for character in word)
    for hit in hits:
        assert len(hit.snippet) <= SNIPPET_CHARACTERS
        assert hit.snippet.splitlines() in ([hit.snippet], [])
        assert list(hit.marks) == sorted(hit.marks)
        assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.marks)
