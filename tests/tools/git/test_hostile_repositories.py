"""Twenty repositories that would have git run a program, or show what lies outside: none gets its way.

Each is made by hand, as one that is unpacked from an archive would be: git itself would not clone such a thing.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, ToolError
from rune.tools.executor import Done
from tests.tools.git.repositories import STATUS, Trap, at_home, call, git, repository, use_all, workplace
from tests.tools.git.test_git_configurations import programs_of

CANARY = "canary-7f3a"


class Attack:
    """A repository at `base`/work, and beside it another one that holds a secret."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.trap = Trap(base / "trap")
        self.victim = repository(base, name="victim")
        (self.victim / "a.txt").write_text(CANARY)
        git(self.victim, "commit", "-qam", f"{CANARY} subject")
        self.work = repository(base)
        self.dot_git = self.work / ".git"

    def config(self, text: str, *, at: str = ".git/config") -> None:
        file = self.work / at
        file.write_text((file.read_text() if file.exists() else "") + text.replace("TRAP", str(self.trap.program)))

    def everywhere(self, attributes: str) -> None:
        (self.work / ".gitattributes").write_text(attributes)
        info = self.dot_git / "info"
        info.mkdir(exist_ok=True)
        (info / "attributes").write_text(attributes)


def clean_filter(attack: Attack) -> None:
    attack.everywhere("* filter=evil\n")
    attack.config('[filter "evil"]\n\tclean = TRAP\n\trequired\n')


def process_filter(attack: Attack) -> None:
    attack.everywhere("* filter=evil\n")
    attack.config('[filter "evil"]\n\tprocess = TRAP\n')


def filter_behind_an_include(attack: Attack) -> None:
    attack.everywhere("* filter=evil\n")
    attack.config('[filter "evil"]\n\tclean = TRAP\n', at="src/settings.txt")
    attack.config("[include]\n\tpath = ../src/settings.txt\n")


def filter_behind_a_linked_configuration(attack: Attack) -> None:
    attack.everywhere("* filter=evil\n")
    attack.config('[filter "evil"]\n\tclean = TRAP\n', at="evil.inc")
    (attack.dot_git / "config").rename(attack.dot_git / "other")
    attack.config("[include]\n\tpath = ../evil.inc\n", at=".git/other")
    (attack.work / "src" / "deep").mkdir()
    shutil.copy(attack.dot_git / "other", attack.work / "src" / "deep" / "c")
    (attack.dot_git / "config").symlink_to("../src/deep/c")


def watcher_and_hooks(attack: Attack) -> None:
    attack.config("[core]\n\tfsmonitor = TRAP\n\thooksPath = hooks\n")
    for hooks in (attack.work / "hooks", attack.dot_git / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-commit", "commit-msg", "post-index-change", "reference-transaction"):
            (hooks / name).unlink(missing_ok=True)
            (hooks / name).symlink_to(attack.trap.program)


def programs_for_differences(attack: Attack) -> None:
    attack.everywhere("* diff=evil\n")
    attack.config('[diff]\n\texternal = TRAP\n[diff "evil"]\n\tcommand = TRAP\n\ttextconv = TRAP\n\tcachetextconv\n')


def signatures(attack: Attack) -> None:
    attack.config("[format]\n\tpretty = %G?\n[log]\n\tshowSignature\n[gpg]\n\tformat = ssh\n")
    attack.config('[gpg "ssh"]\n\tprogram = TRAP\n\tallowedSignersFile = /dev/null\n')
    attack.config("[gpg]\n\tprogram = TRAP\n[commit]\n\tgpgSign\n[user]\n\tsigningKey = x\n")
    body = git(attack.work, "cat-file", "commit", "HEAD")
    head, _, message = body.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END SSH SIGNATURE-----\n\n{message}"
    (attack.base / "commit").write_text(signed)
    made = git(attack.work, "hash-object", "-t", "commit", "-w", str(attack.base / "commit")).strip()
    git(attack.work, "update-ref", "HEAD", made, more={"GIT_CONFIG_COUNT": "0"})


def merge_driver_by_remerging(attack: Attack) -> None:
    attack.everywhere("* merge=evil\n")
    git(attack.work, "checkout", "-q", "-f", "-b", "side", "HEAD~1")
    (attack.work / "a.txt").write_text("side\n")
    git(attack.work, "commit", "-qam", "side")
    git(attack.work, "checkout", "-q", "main")
    (attack.work / "a.txt").write_text("main\n")
    git(attack.work, "commit", "-qam", "main")
    git(attack.work, "merge", "-q", "side", code=1)
    (attack.work / "a.txt").write_text("merged\n")
    git(attack.work, "commit", "-qam", "merge")
    (attack.work / "a.txt").write_text("more\n")
    attack.config('[merge "evil"]\n\tdriver = TRAP %A\n[log]\n\tdiffMerges = remerge\n')


def missing_objects_of_a_partial_clone(attack: Attack) -> None:
    attack.config('[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor\n\turl = ../victim\n')
    attack.config('[remote "origin"]\n\tuploadpack = TRAP\n[protocol]\n\tallow = always\n')
    blob = git(attack.work, "rev-parse", "HEAD:a.txt").strip()
    (attack.dot_git / "objects" / blob[:2] / blob[2:]).unlink()


def aliases_pagers_and_editors(attack: Attack) -> None:
    words = ("status", "diff", "log", "show", "commit", "config", "rev-parse", "ls-files", "nothing")
    attack.config("".join(f"[alias]\n\t{word} = !TRAP\n[pager]\n\t{word} = TRAP\n" for word in words))
    attack.config("[core]\n\tpager = TRAP\n\teditor = TRAP\n[sequence]\n\teditor = TRAP\n[color]\n\tpager\n")


def bare_repository_in_disguise(attack: Attack) -> None:
    """`.git` is none, so that git would take the folder itself, which has all that makes one."""
    for name in ("HEAD", "objects", "refs", "config"):
        (attack.dot_git / name).rename(attack.work / name)
    attack.config("[core]\n\tbare = false\n\tfsmonitor = TRAP\n\tworktree = .\n", at="config")
    (attack.dot_git / "HEAD").write_text("no head\n")


def files_elsewhere(attack: Attack) -> None:
    attack.config(f"[core]\n\tworktree = {attack.victim}\n")


def git_file_that_leads_to_another(attack: Attack) -> None:
    shutil.rmtree(attack.dot_git)
    attack.dot_git.write_text("gitdir: ../victim/.git\n")


def link_that_leads_to_another(attack: Attack) -> None:
    shutil.rmtree(attack.dot_git)
    attack.dot_git.symlink_to("../victim/.git")


def common_folder_of_another(attack: Attack) -> None:
    (attack.dot_git / "commondir").write_text("../../victim/.git\n")


def history_of_another(attack: Attack) -> None:
    for name in ("objects", "refs"):
        shutil.rmtree(attack.dot_git / name)
        (attack.dot_git / name).symlink_to(f"../../victim/.git/{name}")


def objects_borrowed_of_another(attack: Attack) -> None:
    (attack.dot_git / "objects" / "info").mkdir(exist_ok=True)
    (attack.dot_git / "objects" / "info" / "alternates").write_text("../../../victim/.git/objects\n")
    commit = git(attack.victim, "rev-parse", "HEAD")
    (attack.dot_git / "refs" / "heads" / "main").write_text(commit)


def submodule_with_a_mind_of_its_own(attack: Attack) -> None:
    inner = repository(attack.work, name="inner")
    (inner / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(attack.work, "add", "inner")
    git(attack.work, "commit", "-qm", "inner")
    program = str(attack.trap.program)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external", "diff.evil.textconv"):
        git(inner, "config", key, program)
    (inner / "a.txt").write_text("changed\n")
    attack.config("[status]\n\tsubmoduleSummary\n[diff]\n\tsubmodule = diff\n\tignoreSubmodules = none\n")


def untracked_repository_inside(attack: Attack) -> None:
    inner = repository(attack.work, name="inner")
    git(inner, "config", "core.fsmonitor", str(attack.trap.program))
    git(inner, "config", "filter.evil.clean", str(attack.trap.program))
    (inner / ".gitattributes").write_text("* filter=evil\n")


def virtual_files_and_hooks_of_later_versions(attack: Attack) -> None:
    attack.config('[core]\n\tvirtualFilesystem = TRAP\n[hook "evil"]\n\tevent = pre-commit\n\tcommand = TRAP\n')


ATTACKS: tuple[Callable[[Attack], None], ...] = (
    clean_filter,
    process_filter,
    filter_behind_an_include,
    filter_behind_a_linked_configuration,
    watcher_and_hooks,
    programs_for_differences,
    signatures,
    merge_driver_by_remerging,
    missing_objects_of_a_partial_clone,
    aliases_pagers_and_editors,
    bare_repository_in_disguise,
    files_elsewhere,
    git_file_that_leads_to_another,
    link_that_leads_to_another,
    common_folder_of_another,
    history_of_another,
    objects_borrowed_of_another,
    submodule_with_a_mind_of_its_own,
    untracked_repository_inside,
    virtual_files_and_hooks_of_later_versions,
)
ALLOWED = frozenset(
    {
        watcher_and_hooks,
        programs_for_differences,
        signatures,
        merge_driver_by_remerging,
        missing_objects_of_a_partial_clone,
        aliases_pagers_and_editors,
        submodule_with_a_mind_of_its_own,
        untracked_repository_inside,
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_attack_gets_its_way(tmp_path: Path, attack: Callable[[Attack], None]) -> None:
    made = Attack(tmp_path)
    attack(made)
    _check(made, attack, asyncio.run(use_all(workplace(tmp_path))))


# The long form is a minute's; here are three that git would act upon at the first look.
@pytest.mark.parametrize(
    "attack",
    [filter_behind_an_include, bare_repository_in_disguise, submodule_with_a_mind_of_its_own],
    ids=lambda attack: attack.__name__,
)
def test_some_attacks_in_the_short_form(tmp_path: Path, attack: Callable[[Attack], None]) -> None:
    made = Attack(tmp_path)
    attack(made)
    _check(made, attack, asyncio.run(use_all(workplace(tmp_path), looks=2)))


def test_what_would_show_another_repository_is_refused(tmp_path: Path) -> None:
    made = Attack(tmp_path)
    kept = tmp_path / "kept"
    shutil.copytree(made.work, kept, symlinks=True)
    for attack in ATTACKS[11:17]:
        shutil.rmtree(made.work)
        shutil.copytree(kept, made.work, symlinks=True)
        attack(made)
        with pytest.raises(AccessDeniedError, match="refuse this repository") as refused:
            call(STATUS, workplace(tmp_path))
        assert CANARY not in refused.value.in_one_line


# What needs a later git, or shows and starts nothing.
@pytest.mark.slow
@pytest.mark.parametrize(
    "attack", [*ATTACKS[:11], submodule_with_a_mind_of_its_own], ids=lambda attack: attack.__name__
)
def test_the_attacks_are_real(tmp_path: Path, attack: Callable[[Attack], None]) -> None:
    """A git without this package's care runs the program."""
    made = Attack(tmp_path)
    attack(made)
    for words in (("status",), ("diff",), ("log", "-p", "-m"), ("show",), ("nothing",), ("commit", "-qam", "m")):
        with suppress(subprocess.TimeoutExpired):  # one waits for the program, which is no server
            subprocess.run(["git", *words], cwd=made.work, capture_output=True, check=False, timeout=3)
    assert made.trap.ran


@pytest.mark.slow
def test_all_of_them_start_no_program_but_git(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    bases: list[Path] = []
    for attack in ATTACKS:
        base = tmp_path / attack.__name__
        base.mkdir()
        attack(Attack(base))
        bases.append(base)
    names = programs_of(*bases)
    assert names <= {"git", "python"}, names


def test_git_does_not_work_in_a_repository_further_up(tmp_path: Path) -> None:
    """Where `.git` is none, git looks above: there may be anybody's."""
    made = Attack(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.fsmonitor", str(made.trap.program))
    (made.dot_git / "HEAD").write_text("no head\n")
    with pytest.raises(AccessDeniedError, match="git would work in another one"):
        call(STATUS, workplace(tmp_path))
    assert not made.trap.ran


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_of_another_user_is_told_plainly(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    with pytest.raises(ToolError, match="belongs to another user"):
        call(STATUS, workplace(tmp_path))


def test_a_person_s_own_configuration_starts_nothing_either(tmp_path: Path) -> None:
    repository(tmp_path)
    trap = Trap(tmp_path / "trap")
    place = workplace(tmp_path)
    own = tmp_path / "person" / ".gitconfig"
    program = str(trap.program)
    text = f'[core]\n\tfsmonitor = {program}\n[filter "x"]\n\tclean = {program}\n[alias]\n\tconfig = !{program}\n'
    own.write_text(own.read_text() + text)
    (tmp_path / "work" / ".gitattributes").write_text("*.md filter=x\n")
    found = asyncio.run(use_all(at_home(place, tmp_path / "person"), looks=2))
    assert all(isinstance(each, Done) for each in found), found
    assert not trap.ran


def _check(made: Attack, attack: Callable[[Attack], None], found: list[Done | ToolError]) -> None:
    said = [each.text if isinstance(each, Done) else each.in_one_line for each in found]
    assert not made.trap.ran
    assert CANARY not in "\n".join(said)
    if attack in ALLOWED:
        assert isinstance(found[0], Done), said
    else:
        assert not any(isinstance(each, Done) for each in found), said
