"""Where things are kept, that the places are safe, and that a home has one device id."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rune.errors import InvalidRecordError, StorageUnavailableError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.paths import Home, device_id, prepare, resolve_home, runtime_dir
from tests.fakes.ids import CountedIds

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def home_at(folder: Path) -> Home:
    return resolve_home({"RUNE_HOME": str(folder)})


def refusal(home: Home) -> StorageUnavailableError:
    with pytest.raises(StorageUnavailableError) as caught:
        prepare(home)
    assert caught.value.hint
    return caught.value


def run_python(code: str, environ: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=dict(environ),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Give a folder with a short path that others may pass through: pytest's own may be neither."""
    folder = Path(tempfile.mkdtemp(prefix="rt", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# resolve_home


def test_rune_home_holds_everything(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    assert home.config_file == tmp_path / "config.yaml"
    assert home.trust_file == tmp_path / "trust.yaml"
    assert home.views_file(3) == tmp_path / "views-3.db"
    places = [home.journal, home.evidence, home.leases, home.models, home.logs, home.state]
    assert [place.relative_to(tmp_path).name for place in places] == [
        "journal",
        "evidence",
        "leases",
        "models",
        "logs",
        "state",
    ]


def test_a_relative_rune_home_is_taken_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_home({"RUNE_HOME": "there/../here"}).data_dir == tmp_path / "here"


def test_a_tilde_in_rune_home_is_the_persons_home() -> None:
    assert resolve_home({"RUNE_HOME": "~/rune-home"}).data_dir == Path.home() / "rune-home"


@pytest.mark.parametrize("environ", [{"RUNE_HOME": "~nobody-of-that-name/x"}, {"RUNE_HOME": "~/x", "HOME": ""}])
def test_a_tilde_that_names_no_home_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(StorageUnavailableError, match="RUNE_HOME is '~"):
        resolve_home(environ)


def test_a_relative_rune_home_in_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    code = (
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "from rune.host.paths import resolve_home\n"
        "try: resolve_home({'RUNE_HOME': 'x'})\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    result = run_python(code, os.environ, tmp_path)
    assert "StorageUnavailableError" in result.stdout
    assert "current folder is gone" in result.stdout


def platform_home(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    code = (
        "import os\nfrom rune.host.paths import resolve_home\n"
        "home = resolve_home(os.environ)\nprint(home.config_file, home.journal, home.logs, sep='\\n')"
    )
    return run_python(code, {"PATH": os.environ["PATH"], **environ})


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG places")
def test_without_rune_home_the_platforms_places_are_used(tmp_path: Path) -> None:
    given = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "RUNE_HOME": ""}
    assert platform_home(given).stdout.split() == [
        f"{tmp_path}/.config/rune/config.yaml",
        f"{tmp_path}/.local/share/rune/journal",
        f"{tmp_path}/state/rune/logs",
    ]


def test_without_home_the_accounts_home_is_used() -> None:
    assert platform_home({}).returncode == 0


def test_an_empty_home_is_refused_and_not_taken_for_the_root_folder() -> None:
    result = platform_home({"HOME": ""})
    assert "StorageUnavailableError: there is no home folder" in result.stderr


@as_root
def test_a_user_without_account_and_home_is_told_to_set_one(short_folder: Path) -> None:
    code = (
        "import os\nfrom rune.host.paths import resolve_home\nimport platformdirs\n"
        "os.setuid(54321)\nresolve_home(os.environ)"
    )
    result = run_python(code, {"PATH": os.environ["PATH"]}, short_folder)
    assert "StorageUnavailableError: there is no home folder" in result.stderr


def test_platformdirs_is_not_loaded_for_a_named_home() -> None:
    code = (
        "import sys\nfrom rune.host.paths import resolve_home\nresolve_home({'RUNE_HOME': '/x'})\n"
        "print('platformdirs' in sys.modules)"
    )
    assert run_python(code, os.environ).stdout == "False\n"


# prepare


def test_prepare_makes_every_folder_private(tmp_path: Path) -> None:
    home = home_at(tmp_path / "a" / "home")
    prepare(home)
    made = [home.data_dir, home.journal, home.evidence, home.leases, home.models, home.logs, home.state]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}
    prepare(home)


def test_a_home_that_the_person_made_is_left_as_it_is(tmp_path: Path) -> None:
    top = tmp_path / "home"
    top.mkdir(mode=0o755)
    prepare(home_at(top))
    assert stat.S_IMODE(top.stat().st_mode) == 0o755


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    assert refusal(home_at(tmp_path / "home")).message == f"{tmp_path}/home is not a folder"


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert f"{tmp_path}/file" in refusal(home_at(tmp_path / "file" / "home")).message


@pytest.mark.parametrize("name", ["", "journal", "state"])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    prepare(home_at(tmp_path / "home"))
    folder = tmp_path / "home" / name
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert refusal(home_at(tmp_path / "home")).message == f"{folder} is a symbolic link"


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(tmp_path / "nowhere")
    assert "is a symbolic link" in refusal(home_at(tmp_path / "home")).message


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    home = home_at(tmp_path / "home")
    prepare(home)
    home.journal.chmod(mode)
    error = refusal(home)
    assert error.message == f"{home.journal} may be written by other users"
    assert str(home.journal) in error.hint


@as_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    prepare(home)
    os.chown(home.evidence, NOBODY, NOBODY)
    assert f"{home.evidence} belongs to another user (uid {NOBODY}" in refusal(home).message


def prepare_as_someone_else(top: Path) -> subprocess.CompletedProcess[str]:
    # Imported before the user changes: it may not read this checkout.
    code = (
        "import os, sys\nimport rune.host.paths as paths\n"
        f"os.geteuid() or (os.setgid({NOBODY}), os.setuid({NOBODY}))\n"
        "try: paths.prepare(paths.resolve_home({'RUNE_HOME': sys.argv[1]}))\n"
        "except paths.StorageUnavailableError as error: print(error.message, '|', error.hint)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, str(top)], capture_output=True, text=True, timeout=30, check=False, cwd="/"
    )


def test_a_folder_that_cannot_be_written_is_refused_by_name(short_folder: Path) -> None:
    top = short_folder / "home"
    top.mkdir(mode=0o500)
    if os.geteuid() == 0:
        os.chown(top, NOBODY, NOBODY)
    result = prepare_as_someone_else(top)
    assert result.stdout.startswith(f"{top} cannot be written | ")
    assert "RUNE_HOME" in result.stdout


def test_a_home_that_cannot_be_made_is_refused_by_name(short_folder: Path) -> None:
    short_folder.chmod(0o555)
    result = prepare_as_someone_else(short_folder / "home")
    assert result.stdout.startswith(f"{short_folder}/home: Permission denied | ")


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "too long" in refusal(home_at(tmp_path / ("n" * 300))).message


# runtime_dir


def test_sockets_go_below_the_runtime_folder(short_folder: Path) -> None:
    short_folder.chmod(0o700)
    first, second = (runtime_dir({"XDG_RUNTIME_DIR": str(short_folder)}) for _ in range(2))
    assert first != second
    assert {first.parent, second.parent} == {short_folder}
    assert stat.S_IMODE(first.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["relative", "missing", "file", "writable by all", "too long", "without permission"])
def test_an_unsafe_runtime_folder_is_passed_over(
    short_folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(short_folder)
    bad = short_folder / "run"
    match kind:
        case "relative":
            bad.mkdir(mode=0o700)
            bad = Path("run")
        case "file":
            bad.write_text("x")
        case "writable by all":
            bad.mkdir()
            bad.chmod(0o777)
        case "too long":
            bad = bad / ("n" * 80)
            bad.mkdir(parents=True)
        case "without permission":
            bad = Path("/proc/self")
        case _:
            pass
    good = short_folder / "tmp"
    good.mkdir(mode=0o700)
    made = runtime_dir({"XDG_RUNTIME_DIR": str(bad), "TMPDIR": str(good)})
    assert made.parent == good
    assert len(os.fsencode(made)) <= 72


@as_root
def test_a_runtime_folder_of_another_user_is_passed_over(short_folder: Path) -> None:
    (short_folder / "run").mkdir(mode=0o700)
    os.chown(short_folder / "run", NOBODY, NOBODY)
    good = short_folder / "tmp"
    good.mkdir(mode=0o700)
    assert runtime_dir({"XDG_RUNTIME_DIR": str(short_folder / "run"), "TMPDIR": str(good)}).parent == good


def test_without_any_environment_the_folder_is_below_tmp() -> None:
    made = runtime_dir({})
    made.rmdir()
    assert made.parent == Path("/tmp")  # noqa: S108 - what is promised


# device_id


def test_a_home_keeps_the_device_id_it_was_given_first(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    prepare(home)
    ids = CountedIds()
    first = device_id(home, ids)
    assert first == "dev_00000000000000000000000001"
    assert device_id(home, ids) == first
    assert stat.S_IMODE((home.state / "device.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"id": 1}', '{"id": "dev_x"}', '{"id": "msg_' + "0" * 26 + '"}']
)
def test_a_damaged_device_file_is_said_and_not_replaced(tmp_path: Path, content: str) -> None:
    home = home_at(tmp_path)
    prepare(home)
    (home.state / "device.json").write_text(content)
    with pytest.raises(InvalidRecordError, match=r"device\.json: id: expected dev_") as caught:
        device_id(home, CountedIds())
    assert "Delete that file" in caught.value.hint
    assert (home.state / "device.json").read_text() == content


def test_a_device_file_that_cannot_be_read_is_unavailable_storage(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    prepare(home)
    (home.state / "device.json").mkdir()
    with pytest.raises(StorageUnavailableError):
        device_id(home, CountedIds())


def test_processes_that_start_at_once_agree_on_the_device_id(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    prepare(home)
    # Each says that it is loaded, then waits for the word to go.
    code = (
        "import sys\nfrom rune.host.paths import *\nfrom rune.host.ids import UlidSource\n"
        "from rune.host.clock import SystemClock\nids = UlidSource(SystemClock())\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "print(device_id(resolve_home({'RUNE_HOME': sys.argv[1]}), ids))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = {process.communicate(timeout=30)[0] for process in processes}
    assert len(answers) == 1
    assert answers == {device_id(home, UlidSource(SystemClock())) + "\n"}


def test_a_configuration_folder_that_is_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir(mode=0o700)
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "rune").symlink_to(dotfiles)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    home = resolve_home({"HOME": str(tmp_path)})
    assert home.config_dir == dotfiles
    prepare(home)
