"""What `rune doctor` says of the journal and what is kept beside it."""

from pathlib import Path

import msgspec
import pytest

from rune.errors import ModelError, ModelUnavailableError, ServerError
from rune.models.scripted import ScriptedTransport
from rune.models.transport import ModelInfo
from rune.records.session import LeaseHolder
from rune.store.event_store import Offset
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.evidence_inspection import EvidenceState
from rune.store.mending.journal_inspection import (
    Damage,
    JournalState,
    KeptFile,
    Naming,
    SlotState,
    inspect_journal,
)
from rune.store.mending.views_inspection import ViewsState
from rune.surface import checks, journal_checks
from rune.surface.doctor import Finding, State, report
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, TIME, a_message, an_id
from tests.store.spine import a_durable_store, events

NOW = CountedClock().now_ms()
HOLDER = LeaseHolder(pid=4711, boot_id="", started=0, since=TIME)
DAMAGE = Damage(file="w000-000001.jsonl", line=7, byte=4200, reason="its checksum does not match", behind=12)


def a_slot(events: int = 3, *, holder: LeaseHolder | None = None, torn: int = 0) -> SlotState:
    return SlotState(writer="w000", events=events, last=events, segments=1, bytes=2500, holder=holder, torn=torn)


@pytest.mark.parametrize(
    ("states", "last"),
    [
        (("ok", "ok"), "all is well"),
        (("warning", "broken", "ok", "warning"), "1 broken, 2 warnings: b, a, d"),
        (("ok", "warning"), "1 warning: b"),
    ],
    ids=["well", "both", "warning"],
)
def test_the_last_line_says_what_it_comes_to(states: tuple[State, ...], last: str) -> None:
    findings = [Finding(name=name, state=state, detail="x") for name, state in zip("abcd", states, strict=False)]
    whole = report(findings)
    assert whole.text.splitlines()[-1] == last
    assert [finding["name"] for finding in whole.data["findings"]] == [finding.name for finding in findings]


def said(finding: Finding) -> str:
    return report([finding]).text


async def test_a_whole_journal_is_ok_and_shows_no_content(tmp_path: Path) -> None:
    store, evidence = a_durable_store(tmp_path, CountedIds())
    await store.append_many(
        events(("user.message", a_message(0, content="The wreck lies off Foula")), partition=CONVERSATION)
    )
    await store.close()
    finding = journal_checks.journal(inspect_journal(tmp_path / "journal", evidence), NOW)
    assert (finding.state, finding.detail, finding.mend) == ("ok", "1 event in 1 slot, each verified", "")
    assert "Foula" not in said(finding)
    assert (finding.counts["events"], finding.counts["damaged"]) == (1, 0)


def test_damage_is_named_with_file_line_and_byte_and_what_is_intact_behind_it() -> None:
    finding = journal_checks.journal(JournalState(slots=[a_slot()], damage=[DAMAGE]), NOW)
    assert finding.state == "broken"
    line = "w000-000001.jsonl, line 7, byte 4,200: its checksum does not match; 12 intact events behind it"
    assert line in finding.lines
    assert "--mend" in finding.mend
    assert finding.detail == "1 place is damaged; 3 events in 1 slot verified"


def test_of_much_damage_the_first_is_named_and_all_of_it_counted() -> None:
    finding = journal_checks.journal(JournalState(slots=[a_slot()], damage=[DAMAGE] * 12), NOW)
    assert sum("checksum" in line for line in finding.lines) == journal_checks.NAMED
    assert "and 7 more damaged places" in finding.lines
    assert finding.counts["damaged"] == 12


def test_who_writes_a_slot_a_torn_tail_and_kept_files_are_told() -> None:
    kept = KeptFile(name="w000-000001.jsonl.torn-1", bytes=120)
    running = journal_checks.journal(JournalState(slots=[a_slot(holder=HOLDER)], kept=[kept]), NOW)
    assert "written by process 4711 since" in running.lines[0]
    assert "kept: w000-000001.jsonl.torn-1 (120 bytes)" in running.lines
    torn = journal_checks.journal(JournalState(slots=[a_slot(torn=30)]), NOW)
    assert (torn.state, "a torn tail of 30 bytes" in torn.lines[0]) == ("ok", True)


def test_a_later_format_is_for_the_rune_that_wrote_it() -> None:
    finding = journal_checks.journal(JournalState(slots=[a_slot()], newer=["w001-000001.jsonl"]), NOW)
    assert finding.state == "broken"
    assert "w001-000001.jsonl: a later Rune wrote it" in finding.lines
    assert "Use the Rune that wrote it" in finding.mend


def test_lost_blobs_are_named_with_the_event_that_names_them() -> None:
    blob = f"sha256:{'a' * 64}"
    name = Naming(event_id=an_id("evt", 1), event_type="inference.traced", partition=CONVERSATION, alone=True)
    finding = journal_checks.evidence(EvidenceState(whole=2, bytes=30, missing=(blob,)), {blob: name})
    assert (finding.state, finding.detail) == ("broken", "2 blobs verified, 30 bytes; 1 lost")
    assert finding.lines == (f"missing: {blob} of {an_id('evt', 1)} (inference.traced of {CONVERSATION})",)
    assert "Everything else is intact and works" in finding.mend
    assert "backup" in finding.mend
    assert f"`rune erase {an_id('evt', 1)}`" in finding.mend
    needed = msgspec.structs.replace(name, event_type="tool.result", alone=False)
    told = journal_checks.evidence(EvidenceState(tampered=(blob,)), {blob: needed})
    assert f"`rune erase {CONVERSATION}`" in told.mend


def test_what_an_erasure_took_is_in_order() -> None:
    finding = journal_checks.evidence(EvidenceState(whole=2, bytes=30, erased=3), {})
    assert (finding.state, finding.detail) == ("ok", "2 blobs verified, 30 bytes; 3 removed by an erasure")
    assert finding.counts["erased"] == 3


def test_leftovers_are_a_warning_once_they_are_old() -> None:
    young = journal_checks.evidence(EvidenceState(unfinished=1), {})
    old = journal_checks.evidence(EvidenceState(unfinished=2, left_over=1), {})
    assert (young.state, old.state) == ("ok", "warning")


def test_an_erasure_that_was_cut_off_is_broken() -> None:
    erased = {an_id("evt", 1): an_id("evt", 2), an_id("evt", 3): an_id("evt", 2)}
    whole = journal_checks.erasing(JournalState(erased=erased))
    cut_off = journal_checks.erasing(JournalState(erased=erased, unblanked=frozenset({an_id("evt", 3)})))
    assert (whole.state, whole.detail) == ("ok", "2 bodies erased")
    assert (cut_off.state, cut_off.counts, cut_off.lines) == (
        "broken",
        {"erased": 1, "unfinished": 1},
        (an_id("evt", 3),),
    )


def test_a_turn_runs_where_its_conversation_is_held_and_was_cut_off_elsewhere() -> None:
    state = JournalState(open_turns={an_id("trn", 1): CONVERSATION, an_id("trn", 2): an_id("cnv", 2)})
    finding = journal_checks.turns(state, lambda conversation: HOLDER if conversation == CONVERSATION else None)
    assert finding.counts == {"running": 1, "left_open": 1}
    assert finding.detail == "1 turn was cut off by a kill; the next start of Rune ends it"
    two = JournalState(open_turns={an_id("trn", 1): CONVERSATION, an_id("trn", 2): CONVERSATION})
    plural = journal_checks.turns(two, lambda _: None).detail
    assert plural == "2 turns were cut off by a kill; the next start of Rune ends them"


@pytest.mark.parametrize(("behind", "state"), [(60_000, "ok"), (60_001, "warning"), (-5, "ok")])
def test_a_clock_that_was_set_back_is_said_beyond_a_minute(behind: int, state: str) -> None:
    finding = journal_checks.clock(JournalState(newest=NOW + behind), NOW)
    assert finding.state == state
    assert ("Nothing is reordered" in finding.mend) is (state == "warning")


def views_finding(events: int, seq: int, *, problem: str = "", there: bool = True) -> Finding:
    state = ViewsState(
        there=there,
        sqlite="3.50.0",
        fts5=True,
        problem=problem,
        cursor={"w000": Offset("w000", seq, 1, 9)} if seq else {},
        bytes=4096,
    )
    return journal_checks.views(state, Path("views-3.db"), JournalState(slots=[a_slot(events)]), {"views-2.db": 10})


@pytest.mark.parametrize(
    ("events", "seq", "state", "words"),
    [
        (3, 3, "ok", "in step with the journal"),
        (3, 1, "ok", "2 events behind"),
        (3, 5, "warning", "2 events that the journal lacks"),
    ],
    ids=["in-step", "behind", "ahead"],
)
def test_views_are_compared_with_the_journal(events: int, seq: int, state: str, words: str) -> None:
    finding = views_finding(events, seq)
    assert (finding.state, words in finding.detail) == (state, True)
    assert "SQLite 3.50.0" in finding.detail
    assert "views-2.db: of another Rune, 10 bytes; it may be removed" in finding.lines


def test_views_that_cannot_be_used_lose_nothing() -> None:
    finding = views_finding(3, 0, problem="file is not a database")
    assert finding.state == "warning"
    assert "Nothing is lost" in finding.mend
    assert views_finding(3, 0, there=False).state == "ok"


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    inspect_journal(tmp_path / "journal", EvidenceStore(tmp_path / "evidence", CountedClock()))
    assert list(tmp_path.iterdir()) == []


class Failing(ScriptedTransport):
    """A transport whose server cannot list its models."""

    def __init__(self, provider: str, error: ModelError) -> None:
        super().__init__()
        self._named = provider
        self._error = error

    @property
    def provider(self) -> str:
        return self._named

    async def models(self) -> list[ModelInfo]:
        raise self._error


@pytest.mark.parametrize(
    ("provider", "error", "hint"),
    [
        ("ollama", ModelUnavailableError("nobody answers", hint="`ollama serve`"), "Install Ollama"),
        ("ollama", ServerError("odd", status=500, phase="connect", hint="Look at its log."), "Look at its log."),
        ("openai", ModelUnavailableError("nobody answers", hint="Start it."), "Start it."),
    ],
    ids=["nobody answers", "it answers oddly", "another server"],
)
async def test_where_no_ollama_answers_it_may_have_to_be_installed_first(
    provider: str, error: ModelError, hint: str
) -> None:
    (check,) = checks.models([Failing(provider, error)])
    finding = await check.look()
    assert (finding.state, finding.mend.startswith(hint)) == ("warning", True)
