"""What was sent is kept by folder, by several processes at once, and no damage takes all of it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rune.errors import StorageUnavailableError
from rune.surface.prompt_history import BYTES, ENTRIES, LONGEST, PromptHistory, Sent
from rune.text.storable import storable


def texts(history: PromptHistory, folder: str = "/a") -> list[str]:
    return [entry.text for entry in history.load(folder).entries]


def test_what_was_sent_comes_back_oldest_first_and_only_in_its_folder(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "state")
    assert history.load("/a").entries == ()
    for folder, text in (("/a", "one"), ("/b", "other"), ("/a", "two\nlines")):
        assert history.add(folder, text)
    assert texts(PromptHistory(tmp_path / "state")) == ["one", "two\nlines"]
    assert texts(history, "/b") == ["other"]


def test_a_command_is_kept_as_one(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    history.add("/a", "/help", command=True)
    history.add("/a", "/help")
    assert history.load("/a").entries == (Sent("/help", command=True), Sent("/help"))


def test_the_same_twice_in_a_row_is_kept_once_whatever_other_folders_do(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    for folder, text in (("/a", "x"), ("/b", "y"), ("/a", "x"), ("/a", "z"), ("/a", "x")):
        history.add(folder, text)
    assert texts(history) == ["x", "z", "x"]


def test_the_file_is_private(tmp_path: Path) -> None:
    PromptHistory(tmp_path / "new" / "state").add("/a", "secret")
    file = tmp_path / "new" / "state" / "prompt_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec=None, categories=None), min_size=1))
def test_any_text_can_be_kept(tmp_path: Path, text: str) -> None:
    history = PromptHistory(tmp_path)
    history.add(text, text)
    assert texts(history, text)[-1] == storable(text)


def test_damaged_lines_are_passed_over_counted_and_not_thrown_away(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    history.add("/a", "one")
    file = tmp_path / "prompt_history"
    file.write_bytes(file.read_bytes() + b'{"folder": "/a", "te\n\xff\xfe\n[]\n\n{"folder":"/a","text":"t\\ud800"}\n')
    history.add("/a", "two")
    remembered = history.load("/a")
    assert [entry.text for entry in remembered.entries] == ["one", "two"]
    assert remembered.damaged == 4
    assert b'{"folder": "/a", "te\n' in file.read_bytes()


def test_a_file_without_a_line_end_at_its_end_takes_another_entry(tmp_path: Path) -> None:
    (tmp_path / "prompt_history").write_bytes(b'{"folder":"/a","text":"one"}')
    history = PromptHistory(tmp_path)
    history.add("/a", "two")
    assert texts(history) == ["one", "two"]


def test_the_oldest_entries_go_when_there_are_too_many(tmp_path: Path) -> None:
    line = b'{"folder":"/a","text":"%d"}\n'
    (tmp_path / "prompt_history").write_bytes(b"".join(line % number for number in range(ENTRIES + 5)))
    history = PromptHistory(tmp_path)
    history.add("/a", "new")
    assert texts(history) == [*(str(number) for number in range(6, ENTRIES + 5)), "new"]


def test_the_oldest_entries_go_when_they_take_too_much_room(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    large = b'{"folder":"/a","text":"%s"}\n' % (b"x" * (LONGEST - 100))
    (tmp_path / "prompt_history").write_bytes(large * 60)
    history.add("/a", "new")
    assert (tmp_path / "prompt_history").stat().st_size <= BYTES
    assert texts(history)[-1] == "new"
    assert 30 <= len(texts(history)) <= 41


def test_a_text_that_is_a_file_of_its_own_is_not_kept_and_that_is_said(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    assert not history.add("/a", "x" * (LONGEST + 1))
    assert history.add("/a", "x" * LONGEST)
    assert len(texts(history)) == 1


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom rune.surface.prompt_history import PromptHistory\n"
        "history = PromptHistory(Path(sys.argv[1]))\n"
        "for number in range(20): history.add('/a', f'{sys.argv[2]} {number}')"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    assert sorted(texts(PromptHistory(tmp_path))) == sorted(
        f"{name} {number}" for name in ("one", "two") for number in range(20)
    )


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailableError, match="cannot be changed") as caught:
        PromptHistory(tmp_path / "file" / "state").add("/a", "x")
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint


def test_a_folder_in_the_place_of_the_file_is_said_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "prompt_history").mkdir()
    with pytest.raises(StorageUnavailableError, match="cannot be read"):
        PromptHistory(tmp_path).load("/a")
    (tmp_path / "prompt_history").rmdir()
    os.mkfifo(tmp_path / "prompt_history")
    with pytest.raises(StorageUnavailableError, match="not a regular file"):
        PromptHistory(tmp_path).add("/a", "x")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path)
    history.add("/a", "one")
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom rune.errors import StorageUnavailableError\n"
        "from rune.surface.prompt_history import PromptHistory\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))\n"
        "try: PromptHistory(Path(sys.argv[1])).add('/a', 'x' * 100)\n"
        "except StorageUnavailableError as error: print(error.message)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "cannot be changed" in done.stdout
    assert texts(history) == ["one"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prompt_history", "prompt_history.lock"]
