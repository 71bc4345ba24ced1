"""What becomes of single edits: found, refused, and what is said of it."""

import time

import pytest

from rune.tools.edits import Edit, Edited, Refused, apply

CODE = """\
import os


class Box:
    def open(self, key):
        if key:
            self.lid = 1

        return self.lid

    def close(self):
        self.lid = 0
        return "it's shut"
"""


def edited(text: str, *edits: tuple[str, str]) -> Edited:
    found = apply(text, [Edit(*edit) for edit in edits])
    assert isinstance(found, Edited), found
    return found


def refused(text: str, *edits: tuple[str, str]) -> Refused:
    found = apply(text, [Edit(*edit) for edit in edits])
    assert isinstance(found, Refused), found
    return found


def test_an_exact_search_is_replaced_character_by_character_and_nothing_is_said() -> None:
    found = edited(CODE, ("self.lid = 1", "self.lid = 2"))
    assert found.text == CODE.replace("self.lid = 1", "self.lid = 2")
    assert found.notes == ()


def test_other_indentation_is_taken_over_from_the_file_and_said() -> None:
    found = edited(
        CODE, ("if key:\n    self.lid = 1", "if key:\n    self.lid = 1\n    print(key)\nelse:\n    return 0")
    )
    assert "            self.lid = 1\n            print(key)\n        else:\n            return 0\n\n" in found.text
    assert found.notes == (
        "line 6: matched in spite of other indentation; the replacement was indented as the file is",
    )


def test_a_line_moved_to_another_depth_goes_there() -> None:
    found = edited(CODE, ('self.lid = 0\nreturn "it\'s shut"', 'if self:\n  self.lid = 0\nreturn "it\'s shut"'))
    assert "        if self:\n            self.lid = 0\n        return" in found.text


def test_tabs_of_the_file_are_kept_for_lines_that_were_put_in_with_blanks() -> None:
    text = "def f():\n\tif a:\n\t\treturn 1\n\treturn 2\n"
    found = edited(text, ("    if a:\n        return 1", "    if a:\n        b()\n        if c:\n            return 1"))
    assert found.text == "def f():\n\tif a:\n\t\tb()\n\t\tif c:\n\t\t\treturn 1\n\treturn 2\n"


def test_indentation_that_cannot_be_known_is_refused() -> None:
    flat = "if key:\nself.lid = 1\nreturn self.lid"
    found = refused(CODE, (flat, "if key:\nself.lid = 1\nnew()\nreturn self.lid"))
    assert found.reason == "doubtful"
    assert "'new()'" in found.message


def test_flattened_lines_that_are_only_changed_keep_their_places() -> None:
    found = edited(CODE, ("if key:\nself.lid = 1\nreturn self.lid", "if key:\nself.lid = 7\nreturn self.lid"))
    assert found.text == CODE.replace("lid = 1", "lid = 7")


def test_two_places_are_refused_with_their_lines_and_those_before_them() -> None:
    found = refused("a\nx = 1\nb\nx = 1\n", ("x = 1", "x = 2"))
    assert (found.reason, found.lines) == ("ambiguous", (2, 4))
    assert "lines 2, 4" in found.message
    assert "1: a\n3: b" in found.message


def test_two_places_that_differ_in_indentation_only_are_refused_when_neither_is_meant_exactly() -> None:
    assert refused("  x = (1,\n    2)\nif a:\n    x = (1,\n      2)\n", ("x = (1,\n2)", "y")).reason == "ambiguous"


def test_places_that_overlap_are_two() -> None:
    assert refused("aaa", ("aa", "b")).reason == "ambiguous"


def test_the_place_that_differs_in_blanks_at_line_ends_only_is_meant_before_others() -> None:
    text = "if a:\n    b(1)\n    c(2)\nif d:\n        b(1)\n        c(2)\n"
    assert edited(text, ("    b(1)  \n    c(2)  ", "    e()")).text == text.replace(
        "    b(1)\n    c(2)\nif", "    e()\nif"
    )


def test_blank_lines_that_the_search_lost_where_something_changes_are_not_guessed() -> None:
    text = "one()\n\ntwo()\n"
    assert refused(text, ("one()\ntwo()", "one()\nmore()\ntwo()")).reason == "doubtful"
    assert edited(text, ("one()\ntwo()", "one()\ntwo(2)")).text == "one()\n\ntwo(2)\n"


def test_what_is_not_there_is_refused_with_the_nearest_lines() -> None:
    found = refused(CODE, ("self.lid = one", "self.lid = 2"))
    assert found.reason == "not_found"
    assert "7:             self.lid = 1" in found.message


def test_all_edits_are_carried_out_or_none() -> None:
    found = refused(CODE, ("import os", "import sys"), ("nowhere to be found", "x"))
    assert (found.reason, found.edit) == ("not_found", 1)
    assert "The other 1 would fit" in found.message
    assert "edit 2: " in found.message


def test_several_edits_are_counted_in_the_text_as_it_was() -> None:
    found = edited(CODE, ("self.lid = 0", "self.lid = 9"), ("import os", "import sys"))
    assert found.text == CODE.replace("lid = 0", "lid = 9").replace("import os", "import sys")
    assert [change.text for change in found.changes] == ["import sys", "self.lid = 9"]


def test_edits_that_touch_are_carried_out_and_those_that_overlap_are_not() -> None:
    assert edited("ab", ("a", "1"), ("b", "2")).text == "12"
    found = refused("abc", ("ab", "1"), ("bc", "2"))
    assert (found.reason, found.lines) == ("overlapping", (1, 1))


def test_an_edit_given_twice_is_carried_out_once_and_said() -> None:
    found = edited(CODE, ("import os", "import sys"), ("import os", "import sys"))
    assert found.text == CODE.replace("import os", "import sys")
    assert "same as edit 1" in found.notes[0]


@pytest.mark.parametrize(
    ("search", "replace", "reason"), [("", "x", "empty"), ("import os", "import os", "changes_nothing")]
)
def test_an_edit_that_says_nothing_is_refused(search: str, replace: str, reason: str) -> None:
    assert refused(CODE, (search, replace)).reason == reason


def test_one_that_changes_nothing_beside_one_that_does_is_only_said() -> None:
    found = edited(CODE, ("import os", "import os"), ("lid = 0", "lid = 4"))
    assert found.text == CODE.replace("lid = 0", "lid = 4")
    assert "changes nothing" in found.notes[0]


def test_no_edits_at_all_are_refused() -> None:
    assert refused(CODE).reason == "empty"


@pytest.mark.parametrize("search", ["import os", "import os  ", "import os\n", "import ox"])
def test_what_stands_there_already_is_not_put_in_twice(search: str) -> None:
    text = "import os\nimport sys\n\nrun()\n"
    found = refused(text, (search, "import os\nimport sys\n"))
    assert (found.reason, found.lines) == ("already_there", (1,))


def test_left_out_code_is_never_written_into_the_file() -> None:
    found = refused(CODE, ("        self.lid = 0\n", "        self.lid = 3\n        # ... rest of the code ...\n"))
    assert found.reason == "doubtful"
    assert "# ... rest of the code ..." in found.message


def test_an_ellipsis_keeps_what_it_stands_for() -> None:
    found = edited(
        CODE,
        (
            "    def open(self, key):\n        ...\n        return self.lid",
            "    def open(self, k):\n        ...\n        return 1",
        ),
    )
    assert found.text == CODE.replace("open(self, key)", "open(self, k)").replace("return self.lid", "return 1")
    assert found.notes == ("line 5: the lines that '...' stands for were kept as they are",)


def test_an_ellipsis_does_not_reach_into_another_function() -> None:
    text = "def f():\n    a()\n\ndef g():\n    b()\n    return 1\n"
    assert refused(text, ("def f():\n    ...\n    return 1", "def f():\n    ...\n    return 2")).reason == "not_found"


def test_an_ellipsis_that_is_code_is_found_as_such() -> None:
    text = "class P:\n    def f(self):\n        ...\n\n    def g(self):\n        ...\n"
    found = edited(text, ("    def f(self):\n        ...", "    def f(self):\n        return 1"))
    assert found.text == text.replace("        ...", "        return 1", 1)


def test_line_numbers_are_no_line_numbers_where_the_file_has_them() -> None:
    text = "ports:\n  80: web\n  443: tls\n"
    assert edited(text, ("80: web", "80: site")).text == text.replace("web", "site")


def test_a_line_number_is_never_read_out_of_a_part_of_a_line() -> None:
    assert refused("x = web + 1\n", ("80: web", "80: site")).reason == "not_found"


def test_quotes_of_the_file_are_kept_in_a_line_that_is_changed() -> None:
    text = "Say \u201cyes\u201d or don\u2019t.\n"
    assert edited(text, ('Say "yes" or don\'t.', 'Say "yes" and don\'t.')).text == text.replace("or", "and")


def test_a_part_of_a_line_is_found_in_spite_of_other_blanks() -> None:
    found = edited("total = price  *  count  # of all\n", ("price * count", "price * number"))
    assert found.text == "total = price  *  number  # of all\n"


def test_a_part_of_a_word_is_not_taken_for_it() -> None:
    assert refused("total = price  * counted\n", ("price * count", "price * 2")).reason == "doubtful"


def test_a_search_with_a_line_end_that_the_file_has_not_yet_there_is_a_part_of_a_line() -> None:
    assert edited(CODE, ("def close(self\n", "def shut(self\n")).text == CODE.replace("close(self", "shut(self")


def test_a_further_line_of_a_search_without_indentation_is_not_guessed() -> None:
    assert refused(CODE, ("self.lid = 0", "self.lid = 0.5\nself.key = 1")).reason == "doubtful"
    assert refused(CODE, ("self.lid = 0", "        self.lid = 2")).reason == "doubtful"
    assert edited(CODE, ("self.lid = 0", "self.lid = 0.5\n        self.key = 1")).text == CODE.replace(
        "lid = 0", "lid = 0.5\n        self.key = 1"
    )


def test_a_lost_line_end_does_not_join_two_lines() -> None:
    found = edited(CODE, ("        self.lid = 0\n", "        self.lid = 3"))
    assert found.text == CODE.replace("lid = 0", "lid = 3")
    assert "line end" in found.notes[0]


def test_an_escape_that_may_be_part_of_a_string_is_refused() -> None:
    text = "def f():\n    g()\n"
    found = refused(text, ("def f():\\n    g()", 'def f():\\n    g("a\\n")'))
    assert (found.reason, found.lines) == ("doubtful", (1,))


def test_lines_are_taken_out_with_their_ends() -> None:
    assert edited("a\n  b\nc\n", (" b \n", "")).text == "a\nc\n"
    assert edited("a\n  b\nc\n", ("  b\n", "")).text == "a\nc\n"


def test_a_text_with_cr_is_searched_exactly_only() -> None:
    assert edited("a\r\nb\r\n", ("a\r\n", "c\r\n")).text == "c\r\nb\r\n"
    assert refused("a  x\r\nb\r\n", ("a x y", "c")).reason == "not_found"


def test_twenty_edits_of_fifty_thousand_lines_take_less_than_a_second() -> None:
    lines = [f"{' ' * (4 * (n % 4))}value_{n} = compute({n}, 'x')" if n % 3 else "" for n in range(50_000)]
    text = "\n".join(lines)
    fine = [Edit(f"value_{n}  = compute({n}, \u2018x\u2019)", f"value_{n} = 0") for n in range(1, 48_000, 3_000)]
    missing = [Edit(f"valu_{n} = compote({n})", "x") for n in range(100, 105)]
    began = time.perf_counter()
    done = apply(text, fine)
    refusal = apply(text, [*fine, *missing])
    assert time.perf_counter() - began < 2
    assert isinstance(done, Edited)
    assert isinstance(refusal, Refused)


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("x\n" * 50_000, "x\n" * 500 + "y"),
        ("x\n" * 50_000, "\n".join(["x"] * 500)),
        ("a" * 1_000_000, "aaaa  aaaab"),
        (" " * 1_000_000, "a  " * 100),
        ("a b " * 250_000, "a  b " * 100 + "c"),
        ("x\ny\n" * 25_000, "x\n...\ny\n...\nx\n...\nz"),
        ("x\ny\n" * 25_000, "x\n...\ny\n...\nx\n...\ny"),
        ("12: x\n" * 50_000, "\n".join(f"{n}: y" for n in range(2_000))),
        ("x\n" * 50_000, "```\n" + " " * 50_000 + "\n```"),
        ("word " * 100_000, "word " * 5_000 + "end"),
        ("\n".join(f"the same line {n % 7}" for n in range(50_000)), "the same line 8"),
    ],
    ids=[
        "one line again and again",
        "a run of it",
        "one long line",
        "only blanks",
        "blanks between",
        "ellipsis without an end",
        "ellipsis with many ends",
        "numbers",
        "a fence of blanks",
        "a long search in a long line",
        "nearest of many alike",
    ],
)
def test_texts_made_to_take_long_do_not(text: str, search: str) -> None:
    began = time.perf_counter()
    found = apply(text, [Edit(search, "other")])
    assert time.perf_counter() - began < 2
    assert isinstance(found, Refused)
