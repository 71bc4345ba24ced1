"""`scripts/rune` in a checkout that is set up: it adds nothing of its own to what Rune says and does.

The checkout here is a copy with a stand-in for the interpreter in `.venv`, which tells how it was started. What sets a
checkout up for real is in `test_fresh_checkout.py`.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT

INTERPRETER = """#!/bin/sh
case "$*" in
    *"models fetch-embedded"*)
        echo "fetch" >>"$CALLS"
        [ -z "${OFFLINE-}" ] || exit 1
        : >"$CALLS.gguf"
        echo "$CALLS.gguf"
        exit 0
        ;;
esac
[ -z "${TELL_COMMAND-}" ] || printf 'command <%s>\\n' "$RUNE_COMMAND"
pwd
for argument in "$@"; do printf '<%s>\\n' "$argument"; done
cat
exit 7
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "a [check] out"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    shutil.copy(ROOT / "pyproject.toml", root)
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(INTERPRETER, encoding="utf-8")
    python.chmod(0o755)
    stamp = subprocess.run(
        ["sh", "-c", 'root=$1; . "$root/scripts/environment.sh"; wanted_stamp', "sh", str(root)],
        check=True,
        capture_output=True,
    ).stdout
    (root / ".venv" / "stamps").mkdir()
    (root / ".venv" / "stamps" / "embedded").write_bytes(stamp + b"\n")
    return root


def start(
    checkout: Path,
    *arguments: str,
    command: Path | None = None,
    stdin: str = "",
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RUNE_", "XDG_"))}
    folder = checkout.parent / "a project"
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [command or checkout / "scripts" / "rune", *arguments],
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=30,
        env={**kept, "HOME": str(checkout.parent), "CALLS": str(checkout.parent / "calls"), **(environment or {})},
    )


def fetches(checkout: Path) -> int:
    calls = checkout.parent / "calls"
    return len(calls.read_text(encoding="utf-8").splitlines()) if calls.exists() else 0


def test_arguments_folder_stdin_and_exit_code_are_those_of_the_person(checkout: Path) -> None:
    done = start(checkout, "-p", "two words", "", "*", stdin="piped\n")
    folder = checkout.parent / "a project"
    assert done.stdout == f"{folder}\n<-P>\n<-m>\n<rune>\n<-p>\n<two words>\n<>\n<*>\npiped\n"
    assert (done.stderr, done.returncode) == ("", 7)


def test_it_finds_its_checkout_through_links_to_links(checkout: Path) -> None:
    there = checkout.parent / "bin"
    there.mkdir()
    (there / "one").symlink_to(Path("..") / checkout.name / "scripts" / "rune")
    (there / "two").symlink_to(there / "one")
    done = start(checkout, "--version", command=there / "two")
    assert done.stdout.endswith("<-m>\n<rune>\n<--version>\n")


def test_rune_is_told_by_what_it_was_started(checkout: Path) -> None:
    there = checkout.parent / "bin"
    there.mkdir()
    (there / "rune").symlink_to(checkout / "scripts" / "rune")
    found = {"TELL_COMMAND": "1", "PATH": f"{there}{os.pathsep}{os.environ['PATH']}"}
    for command, told in (
        (checkout / "scripts" / "rune", str(checkout / "scripts" / "rune")),
        (Path("..") / checkout.name / "scripts" / "rune", f"../{checkout.name}/scripts/rune"),
        (there / "rune", "rune"),
    ):
        done = start(checkout, "--version", command=command, environment=found)
        assert done.stdout.startswith(f"command <{told}>\n")
    elsewhere = start(checkout, "--version", command=there / "rune", environment={"TELL_COMMAND": "1"})
    assert elsewhere.stdout.startswith(f"command <{there / 'rune'}>\n")


def test_the_model_file_is_fetched_once_for_calls_that_talk_to_a_model(checkout: Path) -> None:
    start(checkout, "--version")
    start(checkout, "doctor")
    assert fetches(checkout) == 0
    start(checkout, "-p", "hello")
    start(checkout)
    assert fetches(checkout) == 1


def test_the_model_file_is_fetched_again_for_another_home_or_when_it_is_gone(checkout: Path) -> None:
    start(checkout, "-p", "hello")
    start(checkout, "-p", "hello", environment={"RUNE_HOME": str(checkout.parent / "other")})
    (checkout.parent / "calls.gguf").unlink()
    start(checkout, "-p", "hello", environment={"RUNE_HOME": str(checkout.parent / "other")})
    assert fetches(checkout) == 3


@pytest.mark.parametrize("switch", ["RUNE_NO_FETCH", "RUNE_EMBEDDED_MODEL"])
def test_nothing_is_fetched_for_those_who_say_so_or_have_a_file(checkout: Path, switch: str) -> None:
    start(checkout, "-p", "hello", environment={switch: "1"})
    assert fetches(checkout) == 0


def test_a_failed_fetch_says_what_to_run_goes_on_and_is_not_repeated_at_once(checkout: Path) -> None:
    first = start(checkout, "-p", "hello", environment={"OFFLINE": "1"})
    again = start(checkout, "-p", "hello", environment={"OFFLINE": "1"})
    assert f"'{checkout}/scripts/rune' models fetch-embedded" in first.stderr
    assert (first.returncode, again.returncode, again.stderr) == (7, 7, "")
    assert fetches(checkout) == 1


def _folder_with_tools(tmp_path: Path) -> Path:
    """Make a folder that has what a shell script needs, and no Python."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cksum", "dirname", "readlink", "cat", "find", "tail"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    return tools


def test_without_a_python_that_is_new_enough_it_says_which_is_needed(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    tools = _folder_with_tools(checkout.parent)
    done = start(checkout, "--version", environment={"PATH": str(tools)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "Python 3.11 or newer" in done.stderr


def test_a_python_without_ensurepip_is_told_what_to_install(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    tools = _folder_with_tools(checkout.parent)
    python = tools / "python3"
    python.write_text('#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n', encoding="utf-8")
    python.chmod(0o755)
    done = start(checkout, "--version", environment={"PATH": str(tools)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "apt install python3-venv" in done.stderr


def test_a_python_that_was_named_and_is_none_is_not_replaced_by_another(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    done = start(checkout, "--version", environment={"RUNE_PYTHON": "/bin/false"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "'/bin/false'" in done.stderr
    assert not (checkout / ".venv").exists()
