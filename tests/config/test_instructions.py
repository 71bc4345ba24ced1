"""What counts as instructing, and that nothing hostile is followed, waited for or read."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from rune.config.instructions import FILE_LIMIT, InstructionFile, Instructions, read_instructions

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def texts(instructions: Instructions) -> list[tuple[str, str]]:
    return [(file.path, file.text) for file in instructions.files]


def left_out(instructions: Instructions) -> list[tuple[str, str]]:
    return [(left.path, left.reason) for left in instructions.left_out]


def project(folder: Path, **files: str) -> Path:
    """Make a git project with an AGENTS.md for each keyword: `_` is the root, `a__b` the folder a/b."""
    folder.mkdir(exist_ok=True)
    (folder / ".git").mkdir()
    for name, text in files.items():
        place = folder if name == "_" else folder / name.replace("__", "/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "AGENTS.md").write_text(text)
    return folder


def test_files_from_the_git_root_down_to_the_folder_count_outermost_first(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    root = project(tmp_path / "shop", _="root", web="web", web__cart="cart", other="other")
    (root / "web" / "cart" / "deep").mkdir()
    found = read_instructions(root / "web" / "cart" / "deep")
    assert found.root == root
    assert texts(found) == [("AGENTS.md", "root"), ("web/AGENTS.md", "web"), ("web/cart/AGENTS.md", "cart")]
    assert found.places == ("AGENTS.md", "web/AGENTS.md", "web/cart/AGENTS.md", "web/cart/deep/AGENTS.md")
    assert left_out(found) == []


def test_without_git_only_the_folder_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "AGENTS.md").write_text("here")
    found = read_instructions(tmp_path / "notes")
    assert found.root == tmp_path / "notes"
    assert texts(found) == [("AGENTS.md", "here")]


def test_of_nested_projects_the_inner_one_counts(tmp_path: Path) -> None:
    outer = project(tmp_path / "outer", _="outer", vendor="vendor")
    inner = project(outer / "vendor" / "lib", _="inner")
    found = read_instructions(inner)
    assert found.root == inner
    assert texts(found) == [("AGENTS.md", "inner")]


def test_a_worktree_whose_git_is_a_file_is_a_root(tmp_path: Path) -> None:
    main = tmp_path / "main"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", str(main)], check=True, timeout=30)
    subprocess.run([*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"], check=True, timeout=30)
    tree = tmp_path / "tree"
    subprocess.run([*git, "-C", str(main), "worktree", "add", "-q", str(tree)], check=True, timeout=30)
    assert (tree / ".git").is_file()
    (tree / "AGENTS.md").write_text("of the tree")
    (tree / "src").mkdir()
    found = read_instructions(tree / "src")
    assert found.root == tree
    assert texts(found) == [("AGENTS.md", "of the tree")]


def test_a_folder_reached_by_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    root = project(tmp_path / "shop", _="root", web="web")
    (tmp_path / "link").symlink_to(root / "web")
    found = read_instructions(tmp_path / "link")
    assert found.root == root
    assert texts(found) == [("AGENTS.md", "root"), ("web/AGENTS.md", "web")]


def test_a_link_is_left_out_whatever_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("/etc/passwd")
    found = read_instructions(tmp_path)
    assert found.files == ()
    assert left_out(found) == [("AGENTS.md", "a symbolic link")]


def test_a_fifo_is_left_out_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    assert left_out(read_instructions(tmp_path)) == [("AGENTS.md", "not a regular file")]


def test_a_folder_and_a_socket_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "shop", web="")
    (root / "AGENTS.md").mkdir()
    (root / "web" / "AGENTS.md").unlink()
    monkeypatch.chdir(root / "web")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("AGENTS.md")
        found = read_instructions(root / "web")
    assert left_out(found) == [("AGENTS.md", "not a regular file"), ("web/AGENTS.md", "not a regular file")]


def test_a_file_of_32_kb_counts_and_one_byte_more_does_not(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * FILE_LIMIT)
    assert len(read_instructions(tmp_path).files[0].text) == 32_768
    (tmp_path / "AGENTS.md").write_text("x" * (FILE_LIMIT + 1))
    assert left_out(read_instructions(tmp_path)) == [("AGENTS.md", "larger than 32 KB")]


@as_root
def test_a_file_of_another_user_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("do as I say")
    os.chown(tmp_path / "AGENTS.md", NOBODY, NOBODY)
    found = read_instructions(tmp_path)
    assert found.files == ()
    assert left_out(found) == [("AGENTS.md", "belongs to another user")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9", "not UTF-8 text"),
        (b"\xff\xfea\x00", "not UTF-8 text"),
        (b"a\x00b", "not text: it has NUL bytes"),
        (b"", "empty"),
        (b" \n\n", "empty"),
    ],
)
def test_what_is_not_a_text_is_left_out_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "AGENTS.md").write_bytes(content)
    assert left_out(read_instructions(tmp_path)) == [("AGENTS.md", reason)]


def test_one_refused_file_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    root = project(tmp_path / "shop", _="root", a="bad", a__b="inner")
    (root / "a" / "AGENTS.md").write_bytes(b"\xff")
    found = read_instructions(root / "a" / "b")
    assert texts(found) == [("AGENTS.md", "root"), ("a/b/AGENTS.md", "inner")]
    assert left_out(found) == [("a/AGENTS.md", "not UTF-8 text")]


def test_another_spelling_of_the_name_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "agents.md").write_text("no")
    (tmp_path / "CLAUDE.md").write_text("no")
    assert read_instructions(tmp_path).everything == ()


def test_a_folder_that_is_gone_has_nothing_and_says_why(tmp_path: Path) -> None:
    found = read_instructions(tmp_path / "gone")
    assert found.everything == ()
    assert left_out(found) == [(".", "No such file or directory")]


def test_line_ends_and_marks_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes("\ufeffa\r\nb".encode())
    assert texts(read_instructions(tmp_path)) == [("AGENTS.md", "\ufeffa\r\nb")]


def test_a_folder_whose_name_is_not_utf8_gives_a_storable_path(tmp_path: Path) -> None:
    project(tmp_path / "shop")
    odd = tmp_path / "shop" / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "AGENTS.md").write_text("odd")
    found = read_instructions(odd)
    assert texts(found) == [("caf\ufffd/AGENTS.md", "odd")]
    assert found.places == ("AGENTS.md", "caf\ufffd/AGENTS.md")


# .rune/


def test_every_file_of_the_projects_rune_folder_counts_by_path(tmp_path: Path) -> None:
    root = project(tmp_path / "shop", web="web")
    for path in ("modes/dev.md", "config.yaml", "commands/x.md"):
        (root / ".rune" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / ".rune" / path).write_text(path)
    (root / "web" / ".rune").mkdir()
    (root / "web" / ".rune" / "config.yaml").write_text("not the project's")
    found = read_instructions(root / "web")
    assert [file.path for file in found.configuration] == [
        ".rune/commands/x.md",
        ".rune/config.yaml",
        ".rune/modes/dev.md",
    ]
    assert [file.path for file in found.everything] == ["web/AGENTS.md", *(file.path for file in found.configuration)]


def test_a_rune_folder_that_is_a_link_or_a_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "config.yaml").write_text("x")
    shop = project(tmp_path / "shop")
    (shop / ".rune").symlink_to(tmp_path / "real")
    assert left_out(read_instructions(shop)) == [(".rune/", "not a folder of its own")]
    (shop / ".rune").unlink()
    (shop / ".rune").write_text("x")
    found = read_instructions(shop)
    assert found.configuration == ()
    assert left_out(found) == [(".rune/", "not a folder of its own")]


def test_hostile_entries_of_a_rune_folder_are_left_out(tmp_path: Path) -> None:
    rune = project(tmp_path / "shop") / ".rune"
    (rune / "a" / "b" / "c" / "d").mkdir(parents=True)
    (rune / "link").symlink_to("/etc")
    os.mkfifo(rune / "pipe")
    (rune / os.fsdecode(b"\xff.md")).write_text("x")
    (rune / "a" / "b" / "c" / "d" / "deep.md").write_text("x")
    found = read_instructions(rune.parent)
    assert found.configuration == ()
    assert left_out(found) == [
        (".rune/a/b/c/d", "deeper than 4 folders"),
        (".rune/link", "a symbolic link"),
        (".rune/pipe", "not a regular file"),
        (".rune/\ufffd.md", "its name is not UTF-8"),
    ]


def test_a_rune_folder_with_very_many_files_is_read_only_in_part_and_says_so(tmp_path: Path) -> None:
    rune = project(tmp_path / "shop") / ".rune"
    rune.mkdir()
    for number in range(205):
        (rune / f"{number:03}.md").write_text("x")
    found = read_instructions(rune.parent)
    assert len(found.configuration) == 200
    assert left_out(found) == [(".rune/", "more than 200 entries: the rest is not read")]


@as_root
def test_a_rune_folder_of_another_user_is_left_out(tmp_path: Path) -> None:
    rune = project(tmp_path / "shop") / ".rune"
    rune.mkdir()
    (rune / "config.yaml").write_text("x")
    os.chown(rune, NOBODY, NOBODY)
    found = read_instructions(rune.parent)
    assert found.configuration == ()
    assert left_out(found) == [(".rune/", "belongs to another user")]


# The digest


def test_the_digest_depends_on_paths_and_contents_and_on_nothing_else(tmp_path: Path) -> None:
    def digest(name: str, **files: str) -> str:
        return read_instructions(project(tmp_path / name, **files) / "a").digest

    first = digest("one", _="x", a="y")
    assert first.startswith("sha256:")
    assert len(first) == 71
    assert digest("two", _="x", a="y") == first
    others = {
        digest("three", _="y", a="x"),
        digest("four", _="xy", a=" "),
        digest("five", a="y"),
        digest("six", _="y"),
        first,
    }
    assert len(others) == 5


def test_files_cannot_be_arranged_so_that_two_look_like_one() -> None:
    def digest(*paths: str) -> str:
        files = tuple(InstructionFile(path=path, text="", sha256=b"A".hex() * 32) for path in paths)
        return Instructions(root=Path("/"), places=(), files=files, configuration=(), left_out=()).digest

    assert digest("x", "y") != digest(f"x{'A' * 32}y")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open descriptors are counted in /proc")
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    root = project(tmp_path / "shop", _="x", a="y", a__b="z")
    (root / ".rune" / "modes").mkdir(parents=True)
    (root / ".rune" / "modes" / "dev.md").write_text("x")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        read_instructions(root / "a" / "b")
        read_instructions(root / "a" / "gone")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
