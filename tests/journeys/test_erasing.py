"""A person says what should not have been said, and takes it back: a grep over the whole home finds nothing."""

import json
import os
import pty
import subprocess

from tests.journeys.shell import SECONDS, Ran, Shell
from tests.small_disk import needs_root, small_disk
from tests.store.erasing.erasing_homes import files_with

SECRETS = {
    "ascii": "my plan is to buy the old mill by the river",
    "german": "die Größe der Füße über dem Fluß bleibt geheim",
    "emoji": "nobody may know of the \U0001f98a in the \U0001f3e1 garden",
    "quotes": 'she said "never" to me\n\tand \\ left\r\nfor good, she did',
    "long": "this is the first line of it\n" + "a word of the long secret, " * 800,
}


def forms(text: str) -> list[bytes]:
    """Return what grep looks for: the text and its ends, each also as JSON holds it."""
    pieces = (text, text[:25], text[-25:])
    escaped = (json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in pieces for ascii_only in (True, False))
    return [each.encode() for each in (*pieces, *escaped)]


def last_user_message(shell: Shell) -> str:
    trace = shell.run("trace", "--limit", "1", "--json").json()[0]
    return trace["requests"][-1]["history"][-1]["message_id"]


def test_messages_are_erased_from_every_file_and_the_conversation_goes_on(shell: Shell) -> None:
    shell.script({"text": "I understand, and so on and so forth."}, window=65_536)
    said: list[str] = []
    for text in SECRETS.values():
        assert shell.run(*(("-c", "-p") if said else ("-p",)), stdin=text.encode()).code == 0
        said.append(last_user_message(shell))
        assert files_with(shell.home, *forms(text)) != []
    assert shell.run("-c", "-p", "and what else is there?").code == 0
    ran = shell.run("erase", *said, "--yes", "--json")
    assert (ran.code, ran.json()["left"]) == (0, []), ran
    for text in SECRETS.values():
        assert files_with(shell.home, *forms(text)) == []
    (listed,) = shell.run("sessions", "list", "--json").json()
    assert listed["record"]["title"] == "(erased)"
    shown = shell.run("sessions", "show", listed["record"]["id"]).out
    assert shown.count("I understand") == len(SECRETS) + 1
    assert "and what else is there?" in shown
    findings = shell.run("doctor", "--json").json()["findings"]
    broken = [each for each in findings if each["state"] == "broken"]
    assert [each["name"] for each in broken if "model" not in each["name"] and each["name"] != "answers"] == []
    assert f"message {said[-1]} was erased" in shell.run("trace", "--show", "last").err
    assert shell.run("-c", "-p", "it goes on").code == 0


def test_a_conversation_is_erased_whole_and_another_that_begins_alike_stays(shell: Shell) -> None:
    shell.script({"text": "I understand, and so on and so forth."})
    text = SECRETS["ascii"]
    assert shell.run("-p", text).code == 0
    first = shell.run("sessions", "list", "--json").json()[0]["record"]["id"]
    assert shell.run("-p", f"{text}, and paint it green").code == 0
    ran = shell.run("erase", first[-8:], "--yes")
    assert ran.code == 1, ran
    assert "which stay unless you name them too" in ran.out
    listed = shell.run("sessions", "list", "--json").json()
    assert [row["record"]["title"] for row in listed] == [f"{text}, and paint it green"]
    longer = listed[0]["record"]["id"]
    assert shell.run("erase", longer, "--yes").code == 0
    assert files_with(shell.home, text.encode()) == []
    assert shell.run("sessions", "list", "--json").json() == []
    again = shell.run("erase", longer, "--yes")
    assert (again.code, again.out) == (0, f"already erased: {longer}; nothing was changed\n")


def asked(shell: Shell, answer: bytes, *arguments: str) -> Ran:
    """Run with a terminal on stdin, on which somebody types an answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        shell.command(*arguments),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=shell.environ,
    )
    os.close(theirs)
    try:
        os.write(ours, answer)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        os.close(ours)
    return Ran(process.returncode, out.decode(), err.decode())


def test_it_asks_first_and_only_yes_is_yes(shell: Shell) -> None:
    shell.script({"text": "I understand, and so on and so forth."})
    text = SECRETS["ascii"]
    assert shell.run("-p", text).code == 0
    secret = last_user_message(shell)
    refused = shell.run("erase", secret)
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    for answer in (b"\n", b"yesterday\n", b"\x04"):
        ran = asked(shell, answer, "erase", secret)
        assert (ran.code, ran.out) == (130, ""), ran
        assert "erase for good? [y/N]" in ran.err
        assert "1 message" in ran.err
        assert f'"{text[:23]}…", begun ' in ran.err
        assert ran.err.endswith("nothing was changed\n")
    assert files_with(shell.home, text.encode()) != []
    assert asked(shell, b"y\n", "erase", secret).code == 0
    assert files_with(shell.home, text.encode()) == []


def test_what_cannot_be_erased_is_refused_in_one_line(shell: Shell) -> None:
    shell.script({"text": "yes"})
    assert shell.run("-p", "hello there, whoever you are").code == 0
    started = shell.events("turn.started")[0]["event_id"]
    for name, code, more in (("cnv_nothing", 1, ["--yes"]), ("cnv_nothing", 1, []), (started, 2, ["--yes"])):
        ran = shell.run("erase", name, *more)
        assert (ran.code, ran.out) == (code, ""), ran
        assert ran.err.startswith("rune: ")
        assert len(ran.err.splitlines()) == 2


@needs_root
def test_on_a_full_disk_it_says_so_and_what_to_free(shell: Shell) -> None:
    shell.script({"text": "I understand, and so on and so forth."})
    with small_disk(shell.home) as disk:
        assert shell.run("-p", SECRETS["ascii"]).code == 0
        secret = last_user_message(shell)
        disk.fill()
        ran = shell.run("erase", secret, "--yes")
        assert (ran.code, ran.out) == (1, "")
        assert f"{shell.home}: the disk is full" in ran.err
        assert "make some room there" in ran.err
        assert "lease" not in ran.err
        disk.make_room()
        assert shell.run("erase", secret, "--yes").code == 0
