"""Trust is exact: what was shown is what was trusted, and every difference asks again."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rune.config.trust import TrustBook
from rune.errors import ConfigError, StorageUnavailableError, UsageError
from tests.config.test_instructions import project

NOBODY = 65534


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    (tmp_path / "config").mkdir(mode=0o700)
    return TrustBook(trust_file(tmp_path))


def trust_file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "trust.yaml"


def kept_texts(tmp_path: Path) -> list[str]:
    return sorted(copy.read_text() for copy in (tmp_path / "config" / "trusted").iterdir())


def test_a_folder_is_untrusted_until_the_person_says_yes(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="be brief")
    before = book.status(shop)
    assert (before.state, [file.text for file in before.files], before.changes) == ("untrusted", ["be brief"], ())
    assert book.grant(before).state == "trusted"
    after = book.status(shop)
    assert (after.state, after.digest, after.folder) == ("trusted", before.digest, str(shop))


def test_looking_writes_nothing(book: TrustBook, tmp_path: Path) -> None:
    book.status(project(tmp_path / "shop", _="x"))
    assert list((tmp_path / "config").iterdir()) == []


def test_a_folder_without_instructing_files_has_nothing_to_trust(book: TrustBook, tmp_path: Path) -> None:
    status = book.status(project(tmp_path / "shop"))
    assert status.state == "nothing_to_trust"
    with pytest.raises(UsageError, match="could instruct"):
        book.grant(status)


def test_a_refused_file_is_shown_with_its_reason(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")
    (shop / "AGENTS.md").symlink_to("/etc/passwd")
    status = book.status(shop)
    assert status.state == "nothing_to_trust"
    assert [(left.path, left.reason) for left in status.left_out] == [("AGENTS.md", "a symbolic link")]


def test_a_change_is_shown_as_a_difference_and_asks_again(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="one\ntwo\nthree\n")
    book.grant(book.status(shop))
    (shop / "AGENTS.md").write_text("one\n2\nthree\n")
    status = book.status(shop)
    assert status.state == "changed"
    assert status.changes == (
        "--- trusted/AGENTS.md",
        "+++ now/AGENTS.md",
        "@@ -1,4 +1,4 @@",
        " one",
        "-two",
        "+2",
        " three",
        " ",
    )
    book.grant(status)
    assert book.status(shop).state == "trusted"


def test_a_change_that_is_taken_back_is_trusted_again(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="one")
    book.grant(book.status(shop))
    (shop / "AGENTS.md").write_text("two")
    assert book.status(shop).state == "changed"
    (shop / "AGENTS.md").write_text("one")
    assert book.status(shop).state == "trusted"


def test_what_changed_after_it_was_shown_is_not_trusted(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="what the person reads")
    shown = book.status(shop)
    (shop / "AGENTS.md").write_text("what came a moment later")
    book.grant(shown)
    status = book.status(shop)
    assert status.state == "changed"
    assert "-what the person reads" in status.changes


def test_trust_of_a_root_covers_folders_that_bring_nothing_of_their_own(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root")
    (shop / "src").mkdir()
    book.grant(book.status(shop))
    assert book.status(shop / "src").state == "trusted"


def test_a_folder_below_with_a_file_of_its_own_asks_and_shows_that_file(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root", web="web")
    book.grant(book.status(shop))
    status = book.status(shop / "web")
    assert status.state == "changed"
    assert status.changes == ("--- trusted/web/AGENTS.md", "+++ now/web/AGENTS.md", "@@ -0,0 +1 @@", "+web")
    book.grant(status)
    assert book.status(shop / "web").state == "trusted"
    assert book.status(shop).state == "trusted"


def test_trusting_in_one_folder_keeps_what_was_trusted_in_its_neighbour(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root", web="web", api="api")
    book.grant(book.status(shop / "web"))
    book.grant(book.status(shop / "api"))
    assert [book.status(shop / name).state for name in ("web", "api", ".")] == ["trusted"] * 3


def test_a_file_that_goes_away_is_a_change(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="never push", web="web")
    book.grant(book.status(shop / "web"))
    (shop / "AGENTS.md").unlink()
    status = book.status(shop / "web")
    assert status.state == "changed"
    assert "-never push" in status.changes


def test_a_trusted_file_replaced_by_a_link_is_a_change(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root", web="web")
    book.grant(book.status(shop / "web"))
    (shop / "AGENTS.md").rename(shop / "elsewhere.md")
    (shop / "AGENTS.md").symlink_to("elsewhere.md")
    assert book.status(shop / "web").state == "changed"


@pytest.mark.parametrize("change", ["edited", "added", "removed"])
def test_a_change_in_the_rune_folder_is_a_change(book: TrustBook, tmp_path: Path, change: str) -> None:
    shop = project(tmp_path / "shop", _="root")
    config = shop / ".rune" / "config.yaml"
    config.parent.mkdir()
    config.write_text("model: {}\n")
    granted = book.grant(book.status(shop))
    assert [file.path for file in granted.configuration] == [".rune/config.yaml"]
    match change:
        case "edited":
            config.write_text("model: {host: evil}\n")
        case "added":
            (config.parent / "modes.md").write_text("new")
        case _:
            config.unlink()
    status = book.status(shop)
    assert status.state == "changed"
    assert any(line.startswith(("+++ now/.rune/", "--- trusted/.rune/")) for line in status.changes)
    assert not any("AGENTS.md" in line for line in status.changes)


def test_a_rune_folder_alone_is_something_to_trust(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")
    (shop / ".rune").mkdir()
    (shop / ".rune" / "config.yaml").write_text("x: 1\n")
    status = book.status(shop)
    assert (status.state, status.files) == ("untrusted", ())


def test_the_same_files_in_another_folder_are_not_trusted(book: TrustBook, tmp_path: Path) -> None:
    book.grant(book.status(project(tmp_path / "mine", _="same")))
    assert book.status(project(tmp_path / "theirs", _="same")).state == "untrusted"


def test_an_inner_project_is_not_covered_by_the_outer_ones_trust(book: TrustBook, tmp_path: Path) -> None:
    outer = project(tmp_path / "outer", _="outer")
    inner = project(outer / "inner", _="outer")
    book.grant(book.status(outer))
    assert book.status(inner).state == "untrusted"


def test_a_project_reached_by_a_link_is_the_same_project(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root")
    (tmp_path / "link").symlink_to(shop)
    book.grant(book.status(tmp_path / "link"))
    assert book.status(shop).state == "trusted"


def test_all_trusted_projects_can_be_listed(book: TrustBook, tmp_path: Path) -> None:
    assert book.projects() == ()
    shops = [project(tmp_path / name, _=name) for name in ("b", "a")]
    for shop in shops:
        book.grant(book.status(shop))
    assert book.projects() == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_where_nothing_could_instruct_a_broken_trust_file_is_no_matter(book: TrustBook, tmp_path: Path) -> None:
    trust_file(tmp_path).write_text("folders: [")
    assert book.status(project(tmp_path / "shop")).state == "nothing_to_trust"
    with pytest.raises(ConfigError):
        book.projects()


def test_what_another_process_or_the_person_changes_holds_at_once(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root")
    book.grant(book.status(shop))
    assert book.status(shop).state == "trusted"
    TrustBook(trust_file(tmp_path)).revoke(shop)
    assert book.status(shop).state == "untrusted"
    TrustBook(trust_file(tmp_path)).grant(book.status(shop))
    assert book.status(shop).state == "trusted"
    trust_file(tmp_path).write_text("")
    assert book.status(shop).state == "untrusted"
    trust_file(tmp_path).unlink()
    assert book.status(shop).state == "untrusted"


def test_revoking_takes_trust_and_kept_texts_away(book: TrustBook, tmp_path: Path) -> None:
    shop, other = project(tmp_path / "shop", _="shop"), project(tmp_path / "other", _="other")
    for folder in (shop, other):
        book.grant(book.status(folder))
    assert kept_texts(tmp_path) == ["other", "shop"]
    assert book.revoke(shop).state == "untrusted"
    assert book.status(shop).state == "untrusted"
    assert book.status(other).state == "trusted"
    assert kept_texts(tmp_path) == ["other"]


def test_revoking_what_was_never_trusted_changes_nothing(book: TrustBook, tmp_path: Path) -> None:
    assert book.revoke(project(tmp_path / "shop", _="x")).state == "untrusted"
    assert not trust_file(tmp_path).exists()


def test_a_text_is_kept_while_any_project_is_trusted_with_it(book: TrustBook, tmp_path: Path) -> None:
    one, two = project(tmp_path / "one", _="same"), project(tmp_path / "two", _="same")
    book.grant(book.status(one))
    book.grant(book.status(two))
    book.revoke(one)
    assert kept_texts(tmp_path) == ["same"]


def test_the_file_is_yaml_that_a_person_can_read_and_edit(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "läden", _="root")
    status = book.grant(book.status(shop))
    text = trust_file(tmp_path).read_text()
    assert text.startswith("# Folders whose files may instruct Rune")
    assert "läden:" in text
    assert yaml.safe_load(text) == {
        "folders": {str(shop): {"files": {"AGENTS.md": f"sha256:{status.files[0].sha256}"}}}
    }
    assert stat.S_IMODE(trust_file(tmp_path).stat().st_mode) == 0o600
    trust_file(tmp_path).write_text("# nothing is trusted any more\nfolders:\n")
    assert book.status(shop).state == "untrusted"


def test_a_folder_whose_name_is_not_utf8_can_be_trusted(book: TrustBook, tmp_path: Path) -> None:
    odd = project(tmp_path / os.fsdecode(b"caf\xe9"), _="odd")
    status = book.grant(book.status(odd))
    assert status.folder == f"{tmp_path}/caf\ufffd"
    assert book.status(odd).state == "trusted"
    assert book.status(project(tmp_path / os.fsdecode(b"caf\xe8"), _="odd")).state == "untrusted"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("folders:\n  /a: {files: [}\n", 2, "not valid YAML"),
        ("folder:\n  /a: {}\n", 1, "did you mean folders"),
        ("folders:\n  a/b: {}\n", 2, "expected an absolute path"),
        ("folders:\n  /a:\n    file: {}\n", 3, "did you mean files"),
        ("folders:\n  /a:\n    files:\n      AGENTS.md: yes\n", 4, "expected text, got true/false"),
        ("folders:\n  /a:\n    files:\n      AGENTS.md: sha256:abc\n", 4, "64 hex digits"),
        ("folders:\n  /a: {}\n  /a: {}\n", 3, "twice"),
        ("folders: [/a]\n", 1, "expected a group of keys, got a list"),
    ],
)
def test_a_broken_trust_file_names_the_line_and_trusts_nothing(
    book: TrustBook, tmp_path: Path, text: str, line: int, words: str
) -> None:
    shop = project(tmp_path / "shop", _="root")
    status = book.status(shop)
    trust_file(tmp_path).write_text(text)
    for act in (lambda: book.status(shop), lambda: book.grant(status), lambda: book.revoke(shop)):
        with pytest.raises(ConfigError) as caught:
            act()
        assert (caught.value.file, caught.value.line) == (str(trust_file(tmp_path)), line)
        assert words in caught.value.message
    assert trust_file(tmp_path).read_text() == text


def test_a_trust_file_that_others_may_write_is_not_believed(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root")
    book.grant(book.status(shop))
    trust_file(tmp_path).chmod(0o666)
    with pytest.raises(ConfigError, match="others may write this file"):
        book.status(shop)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_trust_file_of_another_user_is_not_believed(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="root")
    book.grant(book.status(shop))
    os.chown(trust_file(tmp_path), NOBODY, NOBODY)
    with pytest.raises(ConfigError, match="others may write this file"):
        book.status(shop)


def test_a_trust_file_behind_a_link_stays_behind_it(book: TrustBook, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "trust.yaml").write_text("")
    trust_file(tmp_path).symlink_to(tmp_path / "dotfiles" / "trust.yaml")
    shop = project(tmp_path / "shop", _="root")
    book.grant(book.status(shop))
    assert trust_file(tmp_path).is_symlink()
    assert book.status(shop).state == "trusted"


def test_trust_that_cannot_be_kept_is_an_error_and_not_trust(tmp_path: Path) -> None:
    book = TrustBook(tmp_path / "nowhere" / "trust.yaml")
    shop = project(tmp_path / "shop", _="root")
    with pytest.raises(StorageUnavailableError, match="nowhere"):
        book.grant(book.status(shop))
    assert book.status(shop).state == "untrusted"


def test_a_kept_text_that_is_gone_or_altered_is_said_and_not_shown(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="before")
    book.grant(book.status(shop))
    (shop / "AGENTS.md").write_text("after")
    copies = list((tmp_path / "config" / "trusted").iterdir())
    copies[0].write_text("altered")
    altered = book.status(shop).changes
    copies[0].unlink()
    assert book.status(shop).changes == altered
    assert altered[0] == "# AGENTS.md: the text that was trusted is no longer kept"
    assert altered[-1] == "+after"


def test_a_file_made_to_be_slow_to_compare_is_shown_whole(book: TrustBook, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", _="\n".join(str(n % 101) for n in range(3_000)))
    book.grant(book.status(shop))
    (shop / "AGENTS.md").write_text("\n".join(str(n * 7 % 101) for n in range(2_999)))
    changes = book.status(shop).changes
    assert len(changes) == 3 + 3_000 + 2_999


def test_processes_that_trust_at_once_lose_nothing(book: TrustBook, tmp_path: Path) -> None:
    shops = [project(tmp_path / f"shop{number}", _=f"text {number}") for number in range(4)]
    # Each says that it is loaded, then waits for the word to go; some trust and revoke several times.
    code = (
        "import sys\nfrom pathlib import Path\nfrom rune.config.trust import TrustBook\n"
        "book, shop = TrustBook(Path(sys.argv[1])), Path(sys.argv[2])\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "for _ in range(2):\n    book.grant(book.status(shop))\n    book.revoke(shop)\n"
        "book.grant(book.status(shop))\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(trust_file(tmp_path)), str(shop)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for shop in shops
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert [book.status(shop).state for shop in shops] == ["trusted"] * 4
    assert kept_texts(tmp_path) == [f"text {number}" for number in range(4)]
