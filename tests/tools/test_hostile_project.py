"""What a project brings may be made to stop Rune: patterns and configurations that take for ever, or all memory."""

import os
import re
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from rune.errors import FileUnavailableError
from rune.models.text_tools.essay import described_instead_of_acting
from rune.tools.demand import commands_in, demand_of, repairs, wants_new, wants_run, wants_tests_changed
from rune.tools.files import WorkspaceFiles
from rune.tools.globs import name_pattern
from rune.tools.ignoring import Ignoring
from rune.tools.places import Places
from rune.tools.project_commands import detect
from rune.tools.project_facts import ProjectFacts, Python

pytestmark = pytest.mark.timeout(20)  # each takes milliseconds, or for ever

PIECES = ("a", "b", "*", "**", "/", "/**/", "?", "[ab]", "*a", "\\*", "[]a]", ".")
ENDLESS = (
    ("*a*a*a*a*a*a*a*a*a*a*a*a*b", "a" * 250),
    ("**a*?*a*?*a*?*a*?*a*?*a*?*b", "a" * 250),
    ("a/**/a/**/a/**/a/**/a/**/a/**/b", "/".join("a" * 2_000)),
    ("**/a/**/a/**/a/**/a/**/b/*", "a/" * 2_000),
    ("a/**/*a*a*a*b/**/*a*a*b/**/c", "/".join(["a" * 60] * 60)),
)


@pytest.mark.parametrize(("pattern", "path"), ENDLESS, ids=lambda text: text[:12])
def test_no_pattern_takes_for_ever(pattern: str, path: str) -> None:
    found = name_pattern(pattern)
    assert found is not None
    assert not found.fits(path)


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join),
    st.lists(st.text("ab.*]", min_size=1, max_size=4), min_size=1, max_size=6).map("/".join),
    st.sampled_from(["", "/"]),
)
def test_a_pattern_still_fits_what_the_library_says(pattern: str, path: str, end: str) -> None:
    assume(not pattern.endswith("/**/"))  # there git means something else than the library does (test_ignoring)
    regex, _ = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    found = name_pattern(pattern)
    assert (regex is None) == (found is None)
    if regex is None or found is None:
        return
    theirs, ours = re.search(regex, path + end), found.regex.search(path + end)
    assert (None if theirs is None else theirs.span()) == (None if ours is None else ours.span())


def test_a_class_of_characters_takes_no_slash() -> None:
    found = name_pattern("a[!b]c")
    assert found is not None
    assert (found.fits("axc"), found.fits("a/c")) == (True, False)


def test_of_a_gitignore_without_end_only_so_much_is_read() -> None:
    lines = b"".join(b"x%d\n" % number for number in range(4_000))
    ignoring = Ignoring().within("/w", b"*" * 5_000 + b"\n" + lines, repository=True)
    assert ignoring.leaves_out("/w/x7", folder=False)
    assert not ignoring.leaves_out("/w/x3999", folder=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", "[" * 200_000),
        ("package.json", '{"scripts": {"test": ' + "1" * 5_000 + "}}"),
        ("pyproject.toml", "a=" + "[" * 100_000),
        ("pyproject.toml", ".".join("a" * 100_000) + "=1"),
        ("pyproject.toml", '"a" . ' * 40_000 + "b=1"),
        ("pyproject.toml", "a=" + "1" * 5_000),
    ],
    ids=["deep json", "long number", "deep toml", "deep key", "quoted key", "long toml number"],
)
def test_a_configuration_that_cannot_be_read_is_no_sign(name: str, text: str) -> None:
    python = Python(program="/py", modules=frozenset({"pytest"}), named="py")
    facts = ProjectFacts(paths=frozenset({name, "test_a.py"}), texts={name: text}, pythons=(python,))
    assert detect("test", facts).argv[0] == "/py"


def essay(text: str) -> bool:
    return described_instead_of_acting(text, asked_for_work=True)


LOOKS: tuple[Callable[[str], object], ...] = (
    *(demand_of, repairs, wants_new, wants_run, wants_tests_changed, commands_in, essay),
)


@pytest.mark.parametrize("piece", ["a", "a.", "a/", "~~~", "`", "kannst du ", "- x\n", "\n", "1. open\n"])
@pytest.mark.parametrize("look", LOOKS)
def test_what_is_pasted_takes_no_time(look: Callable[[str], object], piece: str) -> None:
    look(piece * (200_000 // len(piece)))


def test_what_is_wanted_is_heard_around_what_is_pasted() -> None:
    blob = string.ascii_letters * 4_000
    assert demand_of(f"Fix the bug in src/cart.py.\n{blob}") == "change"
    assert demand_of(f"{blob}\nFix the bug in src/cart.py.") == "change"


@pytest.mark.parametrize(
    "path",
    [
        *(".bare/config", "x.git/config", "sub/HEAD", "a/hooks/post-checkout", ".hg/hgrc", "config.worktree"),
        *("AGENTS.override.md", ".codex/config.toml", ".aider.conf.yml", ".github/copilot-instructions.md"),
        *(".venv/bin/pytest", "node_modules/.bin/eslint", "x/y.pth", ".npmrc", ".yarnrc.yml", ".cargo/config.toml"),
        *(".envrc.local", "mise.toml", ".clangd", ".lvimrc"),
    ],
)
def test_what_other_programs_obey_is_asked_about(path: str) -> None:
    places = Places(reading=(), writing=(Path("/w"),), own=())
    assert places.ruling("write", Path("/w") / path).verdict == "ask"


@pytest.mark.parametrize("path", ["head/style.css", "src/hooks/use-cart.ts", "bin/tool", "binary/a.c", "config"])
def test_what_is_only_named_alike_is_not(path: str) -> None:
    places = Places(reading=(), writing=(Path("/w"),), own=(), home=Path("/home/me"))
    assert places.ruling("write", Path("/w") / path).verdict == "allow"


@pytest.mark.parametrize("opened", ["/home/me", "/home", "/"])
def test_a_home_that_is_opened_as_a_whole_is_no_project(opened: str) -> None:
    places = Places(reading=(), writing=(Path(opened),), own=(), home=Path("/home/me"))

    def verdict(path: str) -> str:
        return places.ruling("write", Path(path)).verdict

    assert [verdict(f"/home/me/{path}") for path in ("notes.txt", "binary/a.c", "work/src/a.py")] == ["allow"] * 3
    assert [verdict(f"/home/me/{path}") for path in ("bin/ls", ".config/sway/config", ".newrc")] == ["ask"] * 3
    if opened == "/":
        assert verdict("/var/spool/cron/crontabs/me") == "ask"


def test_a_folder_that_became_a_link_is_not_written_through(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
    places = Places(reading=(), writing=(folder,), own=())
    with WorkspaceFiles(folder, places) as files:
        target = files.target("a.txt")
        folder.rename(tmp_path / "moved")
        folder.symlink_to(elsewhere)
        with pytest.raises(FileUnavailableError):
            files.replace(os.fspath(target.path), b"x", None)
    assert not list(elsewhere.iterdir())


def test_a_folder_that_was_made_anew_is_the_one_that_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with WorkspaceFiles(folder, Places(reading=(), writing=(folder,), own=())) as files:
        files.replace("a.txt", b"old", None)
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        files.replace("a.txt", b"new", None)
    assert (folder / "a.txt").read_bytes() == b"new"
    assert (tmp_path / "moved" / "a.txt").read_bytes() == b"old"
