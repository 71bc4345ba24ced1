from pathlib import Path

import apsw
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.models.scorecard import Scorecard
from rune.records.envelope import EventEnvelope
from rune.records.models import ModelScoreRecord
from rune.store.event_store import Offset
from rune.store.ledger import Draft, Ledger
from rune.store.model_scores import ModelScoreViews
from tests.fakes.ids import CountedIds
from tests.models.side import a_model
from tests.store.spine import Reports, a_durable_store, a_memory_store, a_spine, an_event, hashes, open_views

SCORE = ModelScoreRecord(model="river:3b", provider="ollama", digest="one", protocol="native", basis="owner")


def scored(**fields: object) -> ModelScoreRecord:
    return msgspec.structs.replace(SCORE, **fields)


def card_of(ledger: Ledger, reads: object) -> Scorecard:
    async def keep(score: ModelScoreRecord, /, *, by_owner: bool) -> None:
        actor = "owner" if by_owner else "rune"
        await ledger.emit(Draft(event_type="model.score", body=score, partition="model", actor_id=actor))

    return Scorecard(reads, keep)  # pyright: ignore[reportArgumentType] - the repository, as bootstrap gives it


async def test_the_newest_record_of_exactly_these_weights_holds(tmp_path: Path) -> None:
    async with a_spine(tmp_path / "views.db") as spine:
        for score in (SCORE, scored(digest="two"), scored(valid=3), scored(provider="embedded")):
            await spine.ledger.emit(Draft(event_type="model.score", body=score, partition="model"))
        assert await spine.model_scores.newest("ollama", "river:3b", "one") == scored(valid=3)
        assert await spine.model_scores.newest("ollama", "river:3b", "two") == scored(digest="two")
        assert await spine.model_scores.newest("ollama", "river:3b", "three") is None


@settings(deadline=None, max_examples=25)
@given(st.permutations(range(5)))
def test_the_order_in_which_slots_are_read_changes_nothing(order: list[int]) -> None:
    connection = apsw.Connection(":memory:")
    views = ModelScoreViews()
    connection.execute(views.ddl)
    for number in order:
        envelope = EventEnvelope(
            event_id=f"evt_{number}", event_type="model.score", partition_key="model", pseq=0, hlc=1000 + number,
            seq=number + 1, writer="w000", more=0, parent_id=None, actor_id="rune", device_id="dev_1",
            authorization=None, timestamp="", payload_hash="", prev="", crc="", body=msgspec.Raw(b"{}"),
        )  # fmt: skip
        views.apply(connection, Offset("w000", number + 1, 1, 0), envelope, scored(valid=number))
    (row,) = connection.execute("SELECT record FROM model_scores").fetchall()
    assert msgspec.json.decode(row[0], type=ModelScoreRecord).valid == 4


async def test_what_is_known_is_there_after_a_restart_and_after_the_views_were_thrown_away(tmp_path: Path) -> None:
    home, ids, info = tmp_path / "home", CountedIds(), a_model()
    store, evidence = a_durable_store(home, ids)
    async with a_spine(tmp_path / "views.db", store, evidence=evidence, ids=ids) as spine:
        card = card_of(spine.ledger, spine.model_scores)
        await card.fix(info, "native")
        await card.count(info, valid=2, failed=1)
        before = hashes(spine.engine)
    await store.close()

    again, evidence = a_durable_store(home, ids)
    async with a_spine(tmp_path / "other-views.db", again, evidence=evidence, ids=ids) as spine:
        card = card_of(spine.ledger, spine.model_scores)
        score = await card.known(info)
        assert score is not None
        assert (score.protocol, score.basis, score.valid, score.failed) == ("native", "owner", 2, 1)
        assert (await card.protocol_for(a_model(digest="two"))).basis == "guess"
        assert hashes(spine.engine) == before
        spine.engine.rebuild()
        assert hashes(spine.engine) == before
    await again.close()


async def test_a_second_process_sees_the_choice_at_once_and_does_not_undo_it(tmp_path: Path) -> None:
    store, ids, info = a_memory_store(), CountedIds(), a_model()
    async with (
        a_spine(tmp_path / "views.db", store, ids=ids) as one,
        a_spine(tmp_path / "views.db", store, ids=ids) as two,
    ):
        await card_of(one.ledger, one.model_scores).count(info, valid=1)
        await card_of(two.ledger, two.model_scores).fix(info, "native")
        await card_of(one.ledger, one.model_scores).count(info, valid=1)
        score = await two.model_scores.newest(info.provider, info.name, info.digest)
        assert score is not None
        assert (score.basis, score.protocol, score.valid) == ("owner", "native", 2)
    await store.close()


async def test_a_score_of_a_journal_is_in_the_views_that_are_made_from_it(tmp_path: Path) -> None:
    store, reports = a_memory_store(), Reports()
    await store.append_many(
        [an_event(1, "model.score", SCORE, "model"), an_event(2, "model.score", scored(failed=1), "model")]
    )
    engine = open_views(tmp_path / "views.db", store, reports=reports)
    engine.catch_up()
    rows = engine.read(lambda connection: connection.execute("SELECT record FROM model_scores").fetchall())
    assert [msgspec.json.decode(row[0], type=ModelScoreRecord) for row in rows] == [scored(failed=1)]
    assert reports.views == []
    engine.close()
    await store.close()
