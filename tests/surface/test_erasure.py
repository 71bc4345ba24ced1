"""Every place of a home is cleaned and looked through, also after a kill, also beside a Rune that runs."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.bootstrap.erasing import open_erasure
from rune.host.clock import SystemClock
from rune.host.files import lock_file
from rune.records.messages import ConversationRecord
from rune.store.erasing.eraser import unfinished
from rune.store.evidence_store import EvidenceStore
from rune.surface.drafts import DraftBook
from rune.surface.erasure import Report, plan_result, report_result
from rune.surface.prompt_history import PromptHistory
from tests.store.erasing.erasing_homes import Told, files_with, read_back, tell

WORDS = "buy the old mill by the river"
STAGES = ("body.erased", "places", "evidence", "segment", "bodies", "views", "note")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def erased(home: Path, *ids: str) -> Report:
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared(ids) as plan:
        return erasure.erase(plan)


def left_unfinished(home: Path) -> tuple[str, ...]:
    return unfinished(home / "journal", EvidenceStore(home / "evidence", SystemClock()))


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_place_loses_the_text_and_keeps_the_rest(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine, Told(2, "name three rivers, please"))
    state = home / "state"
    torn = put(home / "journal" / "w000-000001.jsonl.torn-1", f'{{"content":"{WORDS[:-3]}\n{{"content":"rivers"}}\n')
    PromptHistory(state).add("/", WORDS)
    PromptHistory(state).add("/", f"please {WORDS}")
    PromptHistory(state).add("/", "rivers")
    logs = put(home / "logs" / "w000.log", f"INFO a: {WORDS}\nINFO b: rivers\n")
    traces = put(state / "inference_traces-w000.jsonl.1", f'{{"error":"{WORDS}"}}\n{{"error":"rivers"}}\n')
    undo = put(home / "undo" / "a" / "1", WORDS)
    put(home / "backups" / "b1" / "journal" / "w000-000001.jsonl", WORDS)
    kept = put(home / "backups" / "b2" / "journal" / "w000-000001.jsonl", "rivers")
    put(home / "evidence" / "unfinished" / "1-2-3", WORDS)
    put(state / ".prompt_history.0123.tmp", f'{{"text":"{WORDS[:-2]}')
    report = erased(home, mine.said.id)
    assert report.left == ()
    assert files_with(home, WORDS.encode(), WORDS[:-3].encode()) == []
    assert (logs.read_text(), traces.read_text()) == ("INFO b: rivers\n", '{"error":"rivers"}\n')
    assert [sent.text for sent in PromptHistory(state).load("/").entries] == ["rivers"]
    assert torn.read_text() == '{"content":"rivers"}\n'
    assert (undo.exists(), (home / "backups" / "b1").exists(), kept.exists()) == (False, False, True)
    done = {place.name: place.done for place in report.places}
    assert done["backups"] == "1 removed whole: b1"
    assert done["history of messages"] == "2 entries removed"
    assert (done["views"], done["undo"]) == ("made anew", "1 file removed")
    assert (done["logs"], done["copies of traces"], done["torn and quarantined lines"]) == ("1 line removed",) * 3


def test_unsent_text_goes_unless_a_running_process_holds_it(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    book = DraftBook(home / "state")
    running, gone = book.open("/"), book.open("/")
    gone.save({"task": f"{WORDS}, today", "chat": "rivers"}, {"task": ["lakes", WORDS]})
    gone.close()
    running.save({"task": WORDS}, {})
    report = erased(home, mine.said.id)
    assert [name.startswith("state/drafts/") for name in report.left] == [True]
    running.close()
    held, left = sorted(book.left_behind("/"), key=lambda draft: "chat" in draft.prompts)
    assert held.prompts == {"task": WORDS}
    assert (left.prompts, left.waiting) == ({"chat": "rivers"}, {"task": ["lakes"]})


def test_what_is_left_is_named_and_not_ok(home: Path) -> None:
    mine, longer = Told(1, WORDS), Told(2, f"{WORDS}, and paint it green")
    tell(home, mine, longer)
    put(home / "persona.md", f"You know: {WORDS}")
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared([mine.said.id]) as plan:
        told = plan_result(plan)
        result = report_result(plan, erasure.erase(plan))
    assert f"the same text is in these, which stay unless you name them too:\n    {longer.said.id} in " in told.text
    assert not result.ok
    assert {"persona.md", "journal/w000-000001.jsonl"} <= set(result.data["left"])
    assert "LEFT in persona.md" in result.text
    assert WORDS not in told.text + result.text + json.dumps([told.data, result.data])


def test_a_short_text_goes_where_it_is_a_whole_field_and_nowhere_else(home: Path) -> None:
    mine, other = Told(1, "yes"), Told(2, "yes, three rivers, please")
    tell(home, mine, other)
    history = PromptHistory(home / "state")
    history.add("/", "yes")
    history.add("/", "yes, three rivers, please")
    log = put(home / "logs" / "w000.log", "INFO yes\n")
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared([mine.said.id]) as plan:
        result = report_result(plan, erasure.erase(plan))
    assert result.ok
    assert "shorter than 12 characters" in result.text
    assert [sent.text for sent in history.load("/").entries] == ["yes, three rivers, please"]
    assert log.read_text() == "INFO yes\n"
    assert mine.said not in [body for _, body in read_back(home)]


def test_a_backup_goes_when_it_holds_the_line_of_a_short_text(home: Path) -> None:
    mine = Told(1, "yes")
    tell(home, mine)
    for name in ("of-before", "of-others"):
        (home / "backups" / name).mkdir(parents=True)
    shutil.copy(home / "journal" / "w000-000001.jsonl", home / "backups" / "of-before" / "w000-000001.jsonl")
    erased(home, mine.said.id)
    assert [path.name for path in (home / "backups").iterdir()] == ["of-others"]


@pytest.fixture(scope="module")
def breeder() -> Iterator["subprocess.Popen[bytes]"]:
    """Run one process that forks a child for each erasing: starting Python takes longer than all the rest."""
    command = [sys.executable, "-m", "tests.surface.erasing_process", "breed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def bred(breeder: "subprocess.Popen[bytes]", *words: str) -> int:
    assert breeder.stdin is not None
    assert breeder.stdout is not None
    breeder.stdin.write((" ".join(words) + "\n").encode())
    breeder.stdin.flush()
    return int(breeder.stdout.readline())


@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_any_stage_the_same_again_finishes_it(
    home: Path, stage: str, breeder: "subprocess.Popen[bytes]"
) -> None:
    mine = Told(1, f"{WORDS} " + "and tell nobody of it, " * 400)
    tell(home, mine, Told(2, "name three rivers, please"), segment_bytes=20_000)
    PromptHistory(home / "state").add("/", mine.said.content)
    events = len(read_back(home))
    assert bred(breeder, str(home), mine.said.id, stage) == -9
    assert len(read_back(home)) >= events
    assert bool(left_unfinished(home)) == (stage != "body.erased")
    report = erased(home, mine.said.id)
    assert report.left == ()
    assert files_with(home, WORDS.encode(), b"tell nobody") == []
    assert left_unfinished(home) == ()
    assert len(read_back(home)) == events + 3  # body.erased, and title and task told again, once


def test_finish_needs_no_id(home: Path, breeder: "subprocess.Popen[bytes]") -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    assert open_erasure({"RUNE_HOME": str(home)}).finish().places == ()
    assert bred(breeder, str(home), mine.id, "segment") == -9
    assert open_erasure({"RUNE_HOME": str(home)}).finish().left == ()
    assert files_with(home, WORDS.encode()) == []
    assert left_unfinished(home) == ()


def test_what_was_interrupted_is_finished_with_the_next_erasing(home: Path, breeder: "subprocess.Popen[bytes]") -> None:
    mine, other = Told(1, WORDS, answer="the mill is not for sale"), Told(2, "name three rivers, please")
    tell(home, mine, other)
    assert bred(breeder, str(home), mine.id, "segment") == -9
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared([other.said.id]) as plan:
        assert "that was interrupted will be finished with it" in plan_result(plan).text
        assert erasure.erase(plan).left == ()
    assert left_unfinished(home) == ()
    listed = [body.id for _, body in read_back(home) if isinstance(body, ConversationRecord)]
    assert listed == [other.id]  # told again for the one, and never for the other


def test_a_rune_beside_it_sees_that_its_views_were_replaced(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    lock = lock_file(home / "journal" / "w000.lock")
    assert lock is not None  # so that the other one writes elsewhere
    command = [sys.executable, "-m", "tests.surface.erasing_process", "look-on", str(home), "mill"]
    with lock, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "2 1\n"
        lock.release()
        assert erased(home, mine.said.id).left == ()
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "1 0\n"
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "answered\n"
        assert other.wait(30) == 0
    assert files_with(home, WORDS.encode()) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_killed_at_any_syscall_that_changes_something_the_same_again_finishes_it(home: Path) -> None:
    calls = "rename,unlink,unlinkat,fsync,fdatasync,write,pwrite64,ftruncate"
    mine = Told(1, f"{WORDS} " + "and tell nobody of it, " * 400)
    tell(home, mine, Told(2, "name three rivers, please"))
    PromptHistory(home / "state").add("/", mine.said.content)
    for number in range(1, 2000):
        copy = home.with_name(f"home-{number}")
        shutil.copytree(home, copy)
        inject = f"inject={calls}:signal=SIGKILL:when={number}"
        program = [sys.executable, "-m", "tests.surface.erasing_process", "erase", str(copy), mine.said.id]
        done = subprocess.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject, *program],
            check=False,
            capture_output=True,
            timeout=60,
        )
        read_back(copy)
        assert erased(copy, mine.said.id).left == (), number
        assert files_with(copy, WORDS.encode(), b"tell nobody") == [], number
        assert left_unfinished(copy) == (), number
        shutil.rmtree(copy)
        if done.returncode == 0:
            assert number > 20
            return
    pytest.fail("it never came to its end")
