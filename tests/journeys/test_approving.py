"""`rune -p` that has to ask, and `rune approve`: each in a process of its own, on a real folder."""

import re
from typing import Any

import pytest

from tests.journeys.shell import Ran, Shell

CART = "def total(prices):\n    total = 0\n    for price in prices:\n        total = price\n    return total\n"
MENDED = CART.replace("total = price", "total += price")
APPROVAL = re.compile(r"apr_[0-9a-z]{26}")


def edit() -> dict[str, Any]:
    edits = [{"search": "        total = price", "replace": "        total += price"}]
    arguments = {"path": "src/cart.py", "edits": edits}
    return {"text": "I mend it.", "tool_calls": [{"name": "edit_file", "arguments": arguments}]}


LOOK: dict[str, Any] = {"tool_calls": [{"name": "read_file", "arguments": {"path": "src/cart.py"}}]}


@pytest.fixture
def shop(shell: Shell) -> Shell:
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "cart.py").write_text(CART)
    return shell


def cart(shop: Shell) -> str:
    return (shop.folder / "src" / "cart.py").read_text()


def asked(shop: Shell) -> tuple[str, Ran]:
    """Send a message that makes the model ask; returns the question's id, and what was said."""
    shop.script(LOOK, edit())
    ran = shop.run("-p", "Mend the cart.")
    assert ran.code == 3, ran.err
    named = APPROVAL.search(ran.err)
    assert named is not None
    return named[0], ran


def test_a_change_waits_and_is_allowed_in_another_process_once(shop: Shell) -> None:
    approval, ran = asked(shop)
    assert ran.out == "I mend it.\n"
    assert "edit_file src/cart.py" in ran.err
    assert re.search(r"^ +\| .*total \+= price$", ran.err, re.MULTILINE)
    assert f"`rune approve {approval}` allows it" in ran.err
    assert f"`rune approve {approval} --no` refuses" in ran.err
    assert cart(shop) == CART
    listed = shop.run("approve", folder=shop.home)
    assert (listed.code, f"…{approval[-6:]}" in listed.out, "edit_file src/cart.py" in listed.out) == (0, True, True)

    shop.script({"text": "Mended."})
    allowed = shop.run("approve", approval[-6:], folder=shop.home)
    assert (allowed.code, allowed.out) == (0, "Mended.\n"), allowed.err
    assert re.search(r"^rune: edit_file.* \(\d+ ms\)$", allowed.err, re.MULTILINE)
    assert cart(shop) == MENDED
    again = shop.run("approve", approval)
    assert (again.code, again.out) == (1, "")
    assert "was allowed by you" in again.err
    assert "first answer holds" in again.err
    receipts = shop.events("tool.result")
    assert [
        (receipt["body"]["tool"], receipt["body"]["outcome"], receipt["authorization"]) for receipt in receipts
    ] == [
        ("read_file", "ok", None),
        ("edit_file", "ok", f"approval:{approval}"),
    ]


def test_a_file_that_changed_meanwhile_is_left_alone_and_the_turn_goes_on(shop: Shell) -> None:
    approval, _ = asked(shop)
    changed = CART.replace("prices", "items")
    (shop.folder / "src" / "cart.py").write_text(changed)
    shop.script({"text": "I look again."})
    ran = shop.run("approve", approval)
    assert (ran.code, ran.out) == (0, "I look again.\n"), ran.err
    assert "failed: it is not any more what was approved" in ran.err
    assert cart(shop) == changed


def test_no_with_a_word_in_another_process_as_programs_read_it(shop: Shell) -> None:
    shop.script(LOOK, edit())
    ran = shop.run("-p", "Mend it.", "--output-format", "json")
    result = ran.json()
    assert (ran.code, result["stop_reason"]) == (3, "paused"), ran.err
    assert [(call["name"], call["outcome"]) for call in result["tool_calls"]] == [
        ("read_file", "ok"),
        ("edit_file", None),
    ]
    question = result["pending_approval"]
    assert [(call["name"], call["rule"]) for call in question["calls"]] == [("edit_file", "edit_file(src/**)")]
    assert "total += price" in question["calls"][0]["detail"]
    shop.script({"text": "Then not."})
    refuse = ("approve", question["id"], "--no", "--because", "use sum()", "--output-format", "stream-json")
    lines = shop.run(*refuse).lines()
    assert (lines[0]["type"], lines[0]["resumes"]) == ("turn_opened", result["turn_id"])
    ends = [line for line in lines if line["type"] == "tool_finished"]
    assert [(end["outcome"], "use sum()" in end["text"]) for end in ends] == [("denied", True)]
    assert (lines[-1]["type"], lines[-1]["stop_reason"], lines[-1]["answer"]) == (
        "turn_closed",
        "answered",
        "Then not.",
    )
    assert cart(shop) == CART


def test_the_permission_mode_decides_what_asks(shop: Shell) -> None:
    shop.script(LOOK, edit(), {"text": "Mended."})
    ran = shop.run("--permission", "edits", "-p", "Mend it.")
    assert (ran.code, ran.out, cart(shop)) == (0, "I mend it.\nMended.\n", MENDED), ran.err


def test_an_id_that_is_none_is_one_clear_line(shop: Shell) -> None:
    unknown = shop.run("approve", "zzzzzz")
    assert (unknown.code, unknown.out, unknown.err.count("rune: ")) == (1, "", 1)
    assert "nothing has the id" in unknown.err


def test_a_long_output_is_shown_and_written_whole_by_a_command_of_its_own(shop: Shell) -> None:
    command = "seq 1 9000 | sed 's/^/a line that says number /'"
    shop.script({"tool_calls": [{"name": "run_command", "arguments": {"command": command}}]})
    asked_of = shop.run("-p", "Count.")
    named = APPROVAL.search(asked_of.err)
    assert named is not None, asked_of.err
    shop.script({"text": "Counted."})
    assert shop.run("approve", named[0]).code == 0
    listed = shop.run("-p", "/artifact")
    digits = listed.out.split()[0]
    assert re.fullmatch("[0-9a-f]{12}", digits), listed.out
    shown = shop.run("-p", f"/artifact {digits[:6]}")
    assert "a line that says number 1\n" in shown.out
    assert "more lines; " in shown.out
    assert shop.run("-p", f"/artifact {digits} out.txt").code == 0
    assert (shop.folder / "out.txt").read_text().endswith("number 9000\n")


def test_what_waits_is_marked_and_refused_by_done_in_so_many_words(shop: Shell) -> None:
    asked(shop)
    assert "Mend the cart.  (waits for you)" in shop.run("sessions").out
    done = shop.run("-c", "-p", "/done")
    assert (done.code, done.err) == (0, "")
    assert "refused, since it waited for your answer: edit_file src/cart.py +1 -1\n" in done.out
    assert "waits" not in shop.run("sessions").out
    assert shop.run("approve").out == "nothing waits for an answer\n"
    assert cart(shop) == CART
