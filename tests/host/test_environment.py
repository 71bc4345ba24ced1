"""What a command is given of Rune's environment, and what git is given on top."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rune.host.environment import command_environment, git_environment

CANARY = "q8Zp2xLmK4vT"


def given(environ: dict[str, str], *writable: Path, secrets: tuple[str, ...] = ()) -> dict[str, str]:
    return command_environment(environ, writable=writable, secrets=secrets)


@pytest.mark.parametrize(
    "name",
    [
        *("OLLAMA_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "PGPASSWORD"),
        *("NPM_AUTH", "SENTRY_DSN", "MY_CREDENTIALS", "SSH_AUTH_SOCK", "LC_TOKEN", "LC_API_KEY", "DATABASE_URL"),
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "RUBYOPT"),
        *("PERL5OPT", "GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS", "http_proxy", "HTTPS_PROXY", "OLDPWD"),
        *("RUNE_HOME", "PROMPT_COMMAND", "PS4", "IFS", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
        *("VIRTUAL_ENV", "JAVA_TOOL_OPTIONS", "MAKEFLAGS", "CC", "RUSTC_WRAPPER", "LESSOPEN", "GREP_OPTIONS"),
    ],
)
def test_what_is_not_on_the_list_is_not_given(name: str) -> None:
    assert not any(CANARY in value for value in given({name: CANARY}).values())


def test_what_programs_need_is_given(tmp_path: Path) -> None:
    environ = {
        "HOME": "/home/anna",
        "LANG": "de_DE.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "TMPDIR": "/var/tmp",  # noqa: S108 - a value, nothing is opened there
        "USER": "anna",
        "SHELL": "/bin/sh",
        "CARGO_HOME": "/opt/cargo",
    }
    assert environ.items() <= given(environ, tmp_path).items()


@pytest.mark.parametrize("value", [f"postgres://me:{CANARY}@db/x", f"prefix-{CANARY}", ""])
def test_a_name_on_the_list_does_not_save_a_secret_value(value: str) -> None:
    assert "LC_ALL" not in given({"LC_ALL": value}, secrets=(CANARY, ""))


def test_the_search_path_holds_only_absolute_folders_outside_what_the_model_may_write(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "ws-tools"
    (workspace / "bin").mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "link").symlink_to(workspace / "bin")
    (workspace / "out").symlink_to("/usr/bin")
    entries = [
        *(".", "", "bin", "~/bin", str(workspace), f"{workspace}/bin", f"{outside}/../ws/bin", f"{tmp_path}/link"),
        *(f"{workspace}/out", f"{workspace}/not/there", "/usr/bin", str(outside), "/usr/bin", "/bin"),
    ]
    assert given({"PATH": ":".join(entries)}, workspace)["PATH"] == f"/usr/bin:{outside}:/bin"


@pytest.mark.parametrize("path", ["", ".", ":::", "relative/bin"])
def test_a_search_path_of_which_nothing_is_left_becomes_the_usual_one(path: str) -> None:
    assert given({"PATH": path})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert given({})["PATH"] == "/usr/local/bin:/usr/bin:/bin"


def test_a_toolchain_that_the_model_could_write_is_not_named(tmp_path: Path) -> None:
    environ = {"CARGO_HOME": f"{tmp_path}/cargo", "JAVA_HOME": "jdk", "SHELL": f"{tmp_path}/sh", "GOPATH": "/opt/go"}
    left = given(environ, tmp_path)
    assert {name for name in environ if name in left} == {"GOPATH"}


def test_nothing_asks_and_nothing_pages() -> None:
    left = given({"PAGER": "less", "EDITOR": "vi", "CI": "", "GIT_PAGER": "less -R"})
    assert (left["PAGER"], left["GIT_PAGER"], left["EDITOR"], left["CI"]) == ("cat", "cat", "false", "true")


# --- git ---------------------------------------------------------------------------------------

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

ONLY_TEXT = ("--no-ext-diff", "--no-textconv")
LOCAL_SETTINGS = (
    ("core.fsmonitor", "{trap}"),
    ("core.pager", "{trap}"),
    ("core.editor", "{trap}"),
    ("core.sshCommand", "{trap}"),
    ("core.askPass", "{trap}"),
    ("core.hooksPath", "{folder}/hooks"),
    ("diff.external", "{trap}"),
    ("credential.helper", "!{trap}"),
    ("gpg.program", "{trap}"),
    ("commit.gpgSign", "true"),
    ("log.showSignature", "true"),
    ("pager.log", "{trap}"),
    ("sequence.editor", "{trap}"),
)


def git(folder: Path, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home or folder)}
    return subprocess.run(
        ["git", *words],
        cwd=folder,
        env=git_environment(command_environment(environ, writable=())),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    identity = ("-c", "user.name=Anna", "-c", "user.email=anna@example.com")
    assert git(folder, *identity, "commit", "-qm", "first").returncode == 0
    (folder / "a.txt").write_text("two\n")
    return folder


def trap(folder: Path) -> tuple[Path, Path]:
    """Return a program that leaves a trace when it is run, and the trace."""
    trace = folder / "it-ran"
    program = folder / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
    program.chmod(0o755)
    return program, trace


@needs_git
def test_settings_of_a_repository_start_no_program(tmp_path: Path) -> None:
    program, trace = trap(tmp_path)
    folder = repository(tmp_path / "project")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-commit", "commit-msg", "post-index-change", "reference-transaction"):
        (hooks / name).symlink_to(program)
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / name).symlink_to(program)
    for key, value in LOCAL_SETTINGS:
        assert git(folder, "config", key, value.format(trap=program, folder=tmp_path)).returncode == 0
    identity = ("-c", "user.name=Anna", "-c", "user.email=anna@example.com")
    asked = [
        git(folder, "status", "--porcelain"),
        git(folder, "diff", *ONLY_TEXT),
        git(folder, "log", "-p", *ONLY_TEXT),
        git(folder, "show", "HEAD", *ONLY_TEXT),
        git(folder, *identity, "commit", "-qam", "second"),
    ]
    assert [each.returncode for each in asked] == [0] * 5, [each.stderr for each in asked]
    assert "+two" in asked[1].stdout
    git(folder, "ls-remote", "ssh://host.invalid/x")
    git(folder, "fetch", f"ext::{program}")
    assert git(folder, "commit", "--amend").returncode != 0
    assert not trace.exists()


@needs_git
def test_the_person_s_own_configuration_is_not_read(tmp_path: Path) -> None:
    program, trace = trap(tmp_path)
    (tmp_path / ".gitconfig").write_text(f"[alias]\n\tpwn = !{program}\n[core]\n\tfsmonitor = {program}\n")
    folder = repository(tmp_path / "project")
    assert git(folder, "pwn", home=tmp_path).returncode != 0
    assert git(folder, "config", "--global", "--list", home=tmp_path).stdout == ""
    assert not trace.exists()


@needs_git
def test_a_bare_repository_inside_the_project_is_not_taken_for_one(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    inner = folder / "fixture"
    inner.mkdir()
    git(inner, "init", "-q", "--bare")
    assert git(inner, "rev-parse", "--git-dir").returncode != 0


@needs_git
def test_a_look_at_the_status_writes_nothing(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    (folder / "a.txt").write_text("one\n")
    before = (folder / ".git" / "index").read_bytes()
    os.utime(folder / "a.txt", (1, 1))
    assert git(folder, "status").returncode == 0
    assert (folder / ".git" / "index").read_bytes() == before


def test_settings_of_git_in_the_given_environment_do_not_survive() -> None:
    left = git_environment({"GIT_DIR": "/x", "GIT_CONFIG_PARAMETERS": "'a.b=c'", "GIT_PAGER": "less", "HOME": "/h"})
    assert "GIT_DIR" not in left
    assert "GIT_CONFIG_PARAMETERS" not in left
    assert (left["GIT_PAGER"], left["HOME"]) == ("cat", "/h")
