"""What a repository's configuration may set without git starting a program, and what is refused.

Each setting would have git run a program that leaves a trace. Those in NEUTRAL are common in honest repositories, so
they are allowed; that nothing comes of them is what is proved here, where strace is there by every program started.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, ToolError
from rune.tools.executor import Done
from tests.tools.git.repositories import STATUS, Trap, call, git, repository, use_all, workplace

# key, value
NEUTRAL = (
    ("core.fsmonitor", "{trap}"),
    ("core.hooksPath", "{folder}/.husky"),
    ("core.pager", "{trap}"),
    ("pager.status", "{trap}"),
    ("core.editor", "{trap}"),
    ("sequence.editor", "{trap}"),
    ("core.sshCommand", "{trap}"),
    ("core.askPass", "{trap}"),
    ("core.gitProxy", "{trap}"),
    ("core.alternateRefsCommand", "{trap}"),
    ("diff.external", "{trap}"),
    ("diff.evil.command", "{trap}"),
    ("diff.evil.textconv", "{trap}"),
    ("merge.evil.driver", "{trap} %O %A %B"),
    ("alias.status", "!{trap}"),
    ("alias.diff", "!{trap}"),
    ("credential.helper", "!{trap}"),
    ("gpg.program", "{trap}"),
    ("gpg.ssh.program", "{trap}"),
    ("gpg.x509.program", "{trap}"),
    ("gpg.ssh.defaultKeyCommand", "{trap}"),
    ("gpg.format", "ssh"),
    ("user.signingKey", "key"),
    ("commit.gpgSign", "true"),
    ("log.showSignature", "true"),
    ("format.pretty", "%G? %GS"),
    ("log.diffMerges", "remerge"),
    ("remote.origin.url", "ext::{trap}"),
    ("remote.origin.uploadpack", "{trap}"),
    ("remote.origin.receivepack", "{trap}"),
    ("remote.origin.promisor", "true"),
    ("remote.origin.partialclonefilter", "blob:none"),
    ("extensions.partialClone", "origin"),
    ("protocol.allow", "always"),
    ("interactive.diffFilter", "{trap}"),
    ("diff.tool", "evil"),
    ("difftool.evil.cmd", "{trap}"),
    ("trailer.evil.command", "{trap}"),
    ("status.submoduleSummary", "true"),
    ("diff.submodule", "diff"),
    ("submodule.recurse", "true"),
    ("gc.auto", "1"),
    ("maintenance.auto", "true"),
    ("core.splitIndex", "true"),
    ("core.untrackedCache", "true"),
    ("color.ui", "always"),
    ("diff.noprefix", "true"),
    ("diff.orderFile", "not-there"),
    ("diff.relative", "true"),
    ("log.follow", "true"),
    ("filter.lfs.required", "false"),
    ("filter.empty.clean", ""),
)
REFUSED = (
    ("filter.evil.clean", "{trap}"),
    ("filter.evil.smudge", "{trap}"),
    ("filter.evil.process", "{trap}"),
    ("FILTER.Evil.CLEAN", "{trap}"),
    ("filter.a.b.clean", "{trap}"),
    ("hook.evil.command", "{trap}"),
    ("core.virtualFilesystem", "{trap}"),
    ("core.worktree", "/"),
)
HOOKS = ("pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-index-change", "reference-transaction")
ATTRIBUTES = "*.txt diff=evil merge=evil\n"


def set_up(base: Path, settings: tuple[tuple[str, str], ...]) -> Trap:
    """Make a repository at `base`/work with these settings, hooks and attributes."""
    folder, trap = repository(base), Trap(base / "trap")
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-qm", "attributes")
    git(folder, "commit", "-q", "--amend", "-m", "signed by nobody")
    for hooks in (folder / ".husky", folder / ".git" / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in HOOKS:
            (hooks / name).unlink(missing_ok=True)
            (hooks / name).symlink_to(trap.program)
    (folder / "a.txt").write_text("three\n")
    for key, value in settings:
        git(folder, "config", "--add", key, value.format(trap=trap.program, folder=folder))
    assert not trap.ran
    return trap


def all_done(base: Path) -> list[str]:
    """Use every tool in `base`/work; return what failed."""
    return [found.message for found in asyncio.run(use_all(workplace(base))) if isinstance(found, ToolError)]


@pytest.fixture(scope="module")
def with_everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trap]:
    base = tmp_path_factory.mktemp("everything")
    return base, set_up(base, NEUTRAL)


def test_all_of_them_together_start_nothing_and_hinder_nothing(with_everything: tuple[Path, Trap]) -> None:
    base, trap = with_everything
    found = asyncio.run(use_all(workplace(base)))
    assert all(isinstance(each, Done) for each in found), found
    texts = [each.text for each in found if isinstance(each, Done)]
    assert "+three" in texts[1]
    assert "a/a.txt" in texts[1]
    assert "\x1b" not in "".join(texts)
    assert "hooks of this repository were not run: pre-commit" in texts[-1]
    assert not trap.ran


def test_the_traps_are_real(tmp_path: Path) -> None:
    """A git without this package's care runs them."""
    trap = set_up(tmp_path, (("core.fsmonitor", "{trap}"), ("diff.evil.textconv", "{trap}")))
    git(tmp_path / "work", "diff")
    assert trap.ran.count("trap.sh") >= 2


@pytest.mark.slow
def test_no_program_but_git_is_started(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    set_up(tmp_path, NEUTRAL)
    names = programs_of(tmp_path)
    assert names <= {"git", "python"}, names


@pytest.mark.slow
@pytest.mark.parametrize("setting", NEUTRAL, ids=[key for key, _ in NEUTRAL])
def test_each_alone_starts_nothing(tmp_path: Path, setting: tuple[str, str]) -> None:
    trap = set_up(tmp_path, (setting,))
    assert all_done(tmp_path) == []
    assert not trap.ran


def test_what_nothing_keeps_from_starting_is_refused_by_name(tmp_path: Path) -> None:
    trap = set_up(tmp_path, ())
    place = workplace(tmp_path)
    config = place.folder / ".git" / "config"
    plain = config.read_bytes()
    for key, value in REFUSED:
        config.write_bytes(plain)
        git(place.folder, "config", "--add", key, value.format(trap=trap.program))
        with pytest.raises(AccessDeniedError, match="refuse this repository") as refused:
            call(STATUS, place)
        section, *_, name = key.lower().split(".")
        assert section in refused.value.message
        assert name in refused.value.message
        assert "run_command" in refused.value.in_one_line
    config.write_bytes(plain)
    assert call(STATUS, place).outcome == "ok"
    assert not trap.ran


@pytest.mark.parametrize(
    "line",
    [
        "[include]\n\tpath = ../evil.inc\n",
        "[include]\n\tpath = {base}/work/evil.inc\n",
        "[include]\n\tpath = first.inc\n",
        '[includeIf "gitdir:/never/"]\n\tpath = ../evil.inc\n',
        '[includeIf "onbranch:main"]\n\tpath = ~/evil.inc\n',
        "[include]\n\tpath = ~nobody/evil.inc\n",
        "[include]\n\tpath = %(prefix)/evil.inc\n",
        "[filter]\n\tevil.clean = x\n[broken\n",
        '[filter "evil"]\n\tclean = "{trap}\n',
    ],
)
def test_what_is_included_is_read_and_what_cannot_be_understood_is_refused(tmp_path: Path, line: str) -> None:
    folder, trap = repository(tmp_path), Trap(tmp_path / "trap")
    place = workplace(tmp_path)
    evil = f'[filter "evil"]\n\tclean = {trap.program}\n'
    (folder / "evil.inc").write_text(evil)
    (tmp_path / "person" / "evil.inc").write_text(evil)
    (folder / ".git" / "first.inc").write_text("[include]\n\tpath = ../evil.inc\n")
    (folder / ".gitattributes").write_text("* filter=evil\n")
    config = folder / ".git" / "config"
    config.write_text(config.read_text() + line.format(base=tmp_path, trap=trap.program))
    with pytest.raises(AccessDeniedError, match="refuse this repository"):
        call(STATUS, place)
    assert not trap.ran


def test_an_honest_include_is_no_hindrance(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "shared.inc").write_text("[core]\n\tautocrlf = input\n")
    git(folder, "config", "include.path", "../shared.inc")
    git(folder, "config", "--add", "include.path", "../not-there.inc")
    assert call(STATUS, workplace(tmp_path)).outcome == "ok"


@pytest.mark.parametrize("what", ["pipe", "large", "folder", pytest.param("ring", marks=pytest.mark.slow)])
def test_a_configuration_that_is_no_ordinary_file_is_refused(tmp_path: Path, what: str) -> None:
    folder = repository(tmp_path)
    config = folder / ".git" / "config"
    if what == "large":
        config.write_text("#" * (1 << 20) + "\n")
    elif what == "ring":
        for number in range(25):
            (folder / f"{number}.inc").write_text(f"[include]\n\tpath = {number + 1}.inc\n")
        git(folder, "config", "include.path", "../0.inc")
    else:
        config.unlink()
        os.mkfifo(config) if what == "pipe" else config.mkdir()
    with pytest.raises(AccessDeniedError, match="cannot be checked"):
        call(STATUS, workplace(tmp_path))


def test_a_worktree_s_own_configuration_is_read_too(tmp_path: Path) -> None:
    folder, trap = repository(tmp_path), Trap(tmp_path / "trap")
    git(folder, "config", "extensions.worktreeConfig", "true")
    git(folder, "config", "--worktree", "filter.evil.clean", str(trap.program))
    with pytest.raises(AccessDeniedError, match=r"config\.worktree"):
        call(STATUS, workplace(tmp_path))


def programs_of(*bases: Path) -> set[str]:
    """Use every tool in these places under strace; return the names of all programs that were started."""
    log = bases[0] / "programs"
    ran = subprocess.run(
        [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-e",
            "trace=execve",
            "-e",
            "signal=none",
            "-o",
            log,
            sys.executable,
            "-c",
            _USE_ALL,
        ]
        + [os.fspath(base) for base in bases],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if ran.returncode and "ptrace" in ran.stderr.lower():
        pytest.skip("nobody may be traced here")
    assert ran.returncode == 0, ran.stderr
    started = [
        line.split('"')[1] for line in log.read_text().splitlines() if "execve(" in line and line.endswith("= 0")
    ]
    assert len(started) > 20
    return {"python" if "python" in Path(program).name else Path(program).name for program in started}


_USE_ALL = """
import asyncio, sys
from pathlib import Path
from tests.tools.git.repositories import use_all, workplace
for base in sys.argv[1:]:
    asyncio.run(use_all(workplace(Path(base))))
"""
