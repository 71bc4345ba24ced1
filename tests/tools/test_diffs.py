"""Unified diffs: their form, their counts, and that `git apply` makes the new file of the old one."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.tools.diffs import diff

OLD = "".join(f"line {number}\n" for number in range(1, 31))


def test_a_change_is_shown_with_three_lines_round_it_and_counted() -> None:
    found = diff(OLD, OLD.replace("line 10\n", "line ten\nand more\n"), "src/a.txt")
    assert found.text == (
        "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n"
        "+and more\n line 11\n line 12\n line 13\n"
    )
    assert found.counts == "+2 -1"


def test_changes_near_each_other_are_one_hunk_and_others_their_own() -> None:
    near = OLD.replace("line 10\n", "x\n").replace("line 17\n", "y\n")
    far = OLD.replace("line 10\n", "x\n").replace("line 18\n", "y\n")
    assert diff(OLD, near, "a").text.count("@@ -") == 1
    assert diff(OLD, far, "a").text.count("@@ -") == 2


def test_what_did_not_change_has_no_diff() -> None:
    assert diff(OLD, OLD, "a").text == ""


@pytest.mark.parametrize(
    ("old", "new", "head"),
    [
        (None, "a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"),
        ("a\n", None, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
    ],
)
def test_a_file_that_comes_or_goes(old: str | None, new: str | None, head: str) -> None:
    assert diff(old, new, "f").text == head


def test_a_missing_newline_at_the_end_is_marked() -> None:
    found = diff("a\nb", "a\nb\n", "f").text
    assert found.endswith(" a\n-b\n\\ No newline at end of file\n+b\n")


def test_other_characters_that_end_lines_elsewhere_do_not_here() -> None:
    assert diff("a\x0cb\u2028c\n", "a\x0cb\u2028d\n", "f").counts == "+1 -1"


def test_a_path_that_would_write_lines_of_its_own_is_quoted() -> None:
    assert diff("a\n", "b\n", 'x\n+++ b/"y').text.startswith('--- "a/x\\n+++ b/\\"y"\n+++ ')


def test_a_large_diff_is_cut_and_says_how_much_is_left_out() -> None:
    found = diff(None, "".join(f"{number}\n" for number in range(100)), "f")
    cut = found.cut(12)
    lines = cut.split("\n")
    assert len(lines) == 13
    assert lines[0] == "--- /dev/null"
    assert lines[8] == "... 92 lines of the diff left out (+92 -0) ..."
    assert lines[-2] == "+99"
    assert found.cut(103) == found.text


def test_a_large_file_takes_little_time() -> None:
    old = [f"line {number % 40}\n" for number in range(50_000)]
    new = [line for number, line in enumerate(old) if number % 2_500]
    found = diff("".join(old), "".join(new), "f")
    assert found.removed - found.added == 20


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=25).map("".join)


@given(LINES, LINES)
def test_the_counts_are_those_of_the_marked_lines(old: str, new: str) -> None:
    found = diff(old, new, "f")
    body = found.text.split("\n")[2:]
    assert found.added == sum(line.startswith("+") for line in body)
    assert found.removed == sum(line.startswith("-") for line in body)
    assert found.added - found.removed == len(_lines(new)) - len(_lines(old))


def test_git_makes_the_new_file_of_the_old_one(tmp_path: Path) -> None:
    pairs = [
        (OLD, OLD.replace("line 3\n", "").replace("line 20\n", "x\ny")),
        ("a", "b"),
        ("a\nb", "a\nb\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("x\n" * 40, "x\n" * 20 + "y\n" + "x\n" * 25),
        ("", "new\n"),
    ]
    for number, (old, new) in enumerate(pairs):
        path = tmp_path / f"f{number}"
        path.write_bytes(old.encode())
        patch = diff(old, new, path.name).text.encode()
        subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=patch, cwd=tmp_path, check=True)
        assert path.read_bytes() == new.encode()


def _lines(text: str) -> list[str]:
    return text.splitlines()
