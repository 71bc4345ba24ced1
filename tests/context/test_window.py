import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.window import WindowBook
from rune.models.transport import ModelInfo

GIB = 1024**3
MODEL = ModelInfo(
    name="small:8b",
    provider="ollama",
    capabilities=frozenset({"chat"}),
    context_length=131072,
    size=5 * GIB,
    digest="d1",
)


def model(**changes: object) -> ModelInfo:
    return msgspec.structs.replace(MODEL, **changes)


def test_the_window_is_the_least_of_what_limits_it(tmp_path: Path) -> None:
    book = WindowBook(tmp_path)
    assert book.choose(model(digest="a"), 16384, 64 * GIB).num_ctx == 16384
    assert book.choose(model(digest="b", context_length=2048), 16384, 64 * GIB).num_ctx == 2048
    short = book.choose(model(digest="c"), 131072, 8 * GIB)
    assert 4096 < short.num_ctx < 16384
    assert short.reason == "what fits the free memory"


@pytest.mark.parametrize(("length", "expected"), [(40_000, 39_936), (1500, 1024), (512, 512)])
def test_the_window_is_a_multiple_of_1024_where_one_fits(tmp_path: Path, length: int, expected: int) -> None:
    assert WindowBook(tmp_path).choose(model(context_length=length), 65536, None).num_ctx == expected


@given(
    size=st.integers(0, 500 * GIB),
    memory=st.integers(0, 500 * GIB),
    length=st.integers(1, 10**6),
    most=st.integers(1, 10**6),
)
def test_the_window_never_exceeds_a_limit_and_is_never_nothing(size: int, memory: int, length: int, most: int) -> None:
    book = WindowBook(Path("unused"))
    choice = book.choose(model(digest="", size=size, context_length=length), most, memory)
    assert 1 <= choice.num_ctx <= min(length, most)
    assert choice.num_ctx % 1024 == 0 or choice.num_ctx < 1024
    assert choice.num_ctx >= min(4096, length, most) // 1024 * 1024


@pytest.mark.parametrize(
    ("weights", "memory", "least"), [(0.1, 1, 16384), (1, 4, 16384), (5, 16, 16384), (9, 32, 32768), (40, 80, 32768)]
)
def test_a_usual_model_gets_a_usable_window_on_a_usual_machine(
    tmp_path: Path, weights: float, memory: int, least: int
) -> None:
    info = model(digest=str(weights), size=int(weights * GIB))
    assert WindowBook(tmp_path).choose(info, 131072, memory * GIB).num_ctx >= least


def test_a_choice_holds_for_every_later_process_whatever_memory_is_free_then(tmp_path: Path) -> None:
    first = WindowBook(tmp_path).choose(MODEL, 131072, 10 * GIB)
    assert WindowBook(tmp_path).choose(MODEL, 131072, 64 * GIB) == first
    assert WindowBook(tmp_path).choose(model(name="other name"), 131072, 64 * GIB) == first


def test_another_setting_is_the_person_asking_for_another_window(tmp_path: Path) -> None:
    WindowBook(tmp_path).choose(MODEL, 8192, None)
    assert WindowBook(tmp_path).choose(MODEL, 32768, None).num_ctx == 32768


def test_what_was_not_discovered_is_not_kept(tmp_path: Path) -> None:
    book = WindowBook(tmp_path)
    unknown = book.choose(model(context_length=None), 16384, 64 * GIB)
    assert (unknown.num_ctx, unknown.discovered) == (8192, False)
    known = book.choose(MODEL, 16384, None)
    assert (known.num_ctx, known.discovered) == (16384, True)
    assert WindowBook(tmp_path / "other").choose(model(context_length=None), 4096, None).num_ctx == 4096


def test_a_window_that_the_server_lowered_stays_lowered_until_another_is_asked_for(tmp_path: Path) -> None:
    book = WindowBook(tmp_path)
    book.choose(MODEL, 16384, None)
    assert book.lower(MODEL, 5000, 16384).num_ctx == 5000
    assert book.lower(MODEL, 9000, 16384).num_ctx == 5000
    again = WindowBook(tmp_path).choose(MODEL, 16384, None)
    assert (again.num_ctx, again.discovered) == (5000, True)
    assert again.reason == "the server gave 5,000 tokens"
    assert WindowBook(tmp_path).choose(MODEL, 32768, None).num_ctx > 5000


def test_a_lowered_window_also_holds_where_nothing_was_discovered(tmp_path: Path) -> None:
    WindowBook(tmp_path).lower(MODEL, 4096, 16384)
    assert WindowBook(tmp_path).choose(model(context_length=None), 16384, None).num_ctx == 4096


def test_a_model_without_a_digest_keeps_its_window_in_this_process_only(tmp_path: Path) -> None:
    book, info = WindowBook(tmp_path), model(digest="")
    first = book.choose(info, 131072, 10 * GIB)
    assert book.choose(info, 131072, 64 * GIB) == first
    assert book.lower(info, 4096, 131072).num_ctx == 4096
    assert book.choose(info, 131072, 64 * GIB).num_ctx == 4096
    assert WindowBook(tmp_path).choose(info, 131072, 64 * GIB).num_ctx > first.num_ctx
    assert not (tmp_path / "windows.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":1,"windows":{"d1":{"num_ctx":"x"}}}', b"\xff\x00"])
def test_a_damaged_file_is_said_and_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "windows.json").write_bytes(content)
    choice = WindowBook(tmp_path).choose(MODEL, 16384, None)
    assert choice.num_ctx == 16384
    assert "windows.json" in choice.problem
    assert WindowBook(tmp_path).choose(MODEL, 16384, None).problem == ""


def test_a_home_that_cannot_be_written_gives_a_window_that_says_so_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    book = WindowBook(tmp_path / "file" / "state")
    first = book.choose(MODEL, 131072, 10 * GIB)
    assert "cannot be kept" in first.problem
    assert book.choose(MODEL, 131072, 64 * GIB).num_ctx == first.num_ctx
    assert book.lower(MODEL, 4096, 131072).problem
    assert book.choose(MODEL, 131072, 64 * GIB).num_ctx == 4096


def test_the_file_is_private_and_readable_for_a_person(tmp_path: Path) -> None:
    WindowBook(tmp_path / "state").choose(MODEL, 16384, None)
    file = tmp_path / "state" / "windows.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_bytes())["windows"]["d1"]["num_ctx"] == 16384
    assert file.read_text().endswith("}\n")


RACE_SCRIPT = """
import sys
from pathlib import Path
from rune.context.window import WindowBook
from rune.models.transport import ModelInfo
book, mine = WindowBook(Path(sys.argv[1])), int(sys.argv[2])
for number in range(25):
    info = ModelInfo(
        name="m", provider="p", capabilities=frozenset(), context_length=131072, size=5 * 2**30, digest=f"d{number}"
    )
    choice = book.choose(info, 131072, (8 + mine) * 2**30)
    assert not choice.problem, choice.problem
    sys.stdout.write(f"{choice.num_ctx} ")
"""


def test_processes_that_choose_at_once_agree_and_lose_nothing(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", RACE_SCRIPT, str(tmp_path), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    answers = [process.communicate(timeout=30)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert answers[0] == answers[1] == answers[2]
    assert len(json.loads((tmp_path / "windows.json").read_bytes())["windows"]) == 25


def test_who_only_looks_sees_the_kept_window_and_keeps_none(tmp_path: Path) -> None:
    book = WindowBook(tmp_path)
    assert book.expect(MODEL, 16384, 64 * GIB).num_ctx == 16384
    assert [*tmp_path.iterdir()] == []
    book.choose(MODEL, 16384, 6 * GIB)
    kept = book.choose(MODEL, 16384, 64 * GIB)
    assert kept.num_ctx < 16384
    assert WindowBook(tmp_path).expect(MODEL, 16384, 64 * GIB) == kept
    assert book.expect(MODEL, 32768, 64 * GIB).num_ctx == 32768
    assert WindowBook(tmp_path).choose(MODEL, 16384, 64 * GIB) == kept


def test_who_only_looks_sees_what_this_process_holds_of_a_model_without_a_digest(tmp_path: Path) -> None:
    book, bare = WindowBook(tmp_path), model(digest="")
    held = book.choose(bare, 16384, 6 * GIB)
    assert book.expect(bare, 16384, 64 * GIB) == held


def test_who_only_looks_is_told_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "windows.json").write_text("{")
    assert "not readable" in WindowBook(tmp_path).expect(MODEL, 16384, None).problem
    assert (tmp_path / "windows.json").read_text() == "{"
