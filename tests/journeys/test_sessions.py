"""Conversations as a whole, out of the command line: two processes on one of them, and what follows the journal."""

import json
import os
import select
import signal
import subprocess
import time

from tests.journeys.shell import SECONDS, Shell


def begun(shell: Shell, text: str = "name a river") -> str:
    ran = shell.run("-p", text, "--output-format", "json")
    assert ran.code == 0, ran
    return ran.json()["conversation_id"]


class Holder:
    """Another Rune that has a conversation open: it answers for as long as this lasts."""

    def __init__(self, shell: Shell, conversation_id: str) -> None:
        shell.script({"text": "slow", "delay_ms": 600_000})
        self._process = shell.start("-r", conversation_id, "-p", "go on", "--output-format", "stream-json")
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline())["type"] == "turn_opened"
        self.pid = self._process.pid

    def __enter__(self) -> "Holder":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_what_another_rune_has_open_is_not_changed_and_can_be_branched_off(shell: Shell) -> None:
    shell.script({"text": "The Rhine."})
    original = begun(shell)
    with Holder(shell, original) as holder:
        renamed = shell.run("sessions", "rename", original[-8:], "mine")
        assert renamed.code == 75
        assert f"process {holder.pid}" in renamed.err
        assert f"`rune sessions fork {original[-6:]}`" in renamed.err
        forked = shell.run("sessions", "fork", original[-8:])
        fork = forked.out.strip()
        assert (forked.code, f"rune -r {fork}" in forked.err) == (0, True)
        shell.script({"text": "The Elbe."})
        answer = shell.run("-r", fork, "-p", "another")
        assert (answer.code, answer.out) == (0, "The Elbe.\n")
        told = [message["content"] for message in shell.run("sessions", "show", fork, "--json").json()]
        assert told[-2:] == ["another", "The Elbe."]
        assert told[:2] == ["name a river", "The Rhine."]
        kept = [message["content"] for message in shell.run("sessions", "show", original, "--json").json()]
        assert kept == ["name a river", "The Rhine.", "go on"]


class Following:
    """`rune events --follow --json`, read line by line."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self.process: subprocess.Popen[bytes] = shell.start("events", "--follow", "--json", *arguments)
        self._kept = b""

    def __enter__(self) -> "Following":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + SECONDS
        while b"\n" not in self._kept:
            ready, _, _ = select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "no line came"
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, "it ended"
            self._kept += piece
        line, _, self._kept = self._kept.partition(b"\n")
        return json.loads(line)

    def until(self, event_type: str) -> list[tuple[object, object]]:
        seen: list[tuple[object, object]] = []
        while True:
            event = self.line()
            seen.append((event["event_type"], event["pseq"]))
            if event["event_type"] == event_type:
                return seen


def test_following_shows_what_another_process_appends_until_it_is_interrupted(shell: Shell) -> None:
    shell.script({"text": "The Rhine."})
    conversation = begun(shell)
    with Following(shell, "--limit", "1") as following:
        first = following.line()
        assert first["event_type"] == "session.ended"
        for views in shell.home.glob("views-*.db"):
            views.unlink()  # following does without them
        shell.run("-r", conversation, "-p", "another")
        seen = following.until("session.ended")
        names, places = [name for name, _ in seen], [place for _, place in seen if place]
        assert names[0] == "session.started"
        assert names.count("user.message") == names.count("response.generated") == 1
        assert places == list(range(int(str(places[0])), int(str(places[0])) + len(places)))
        following.process.send_signal(signal.SIGINT)
        assert following.process.wait(SECONDS) == 130
        assert following.process.stderr is not None
        assert following.process.stderr.read() == b""


def test_a_reader_that_has_seen_enough_of_what_follows_is_no_failure(shell: Shell) -> None:
    shell.script({"text": "The Rhine."})
    begun(shell)
    with Following(shell, "--limit", "1") as following:
        following.line()
        assert following.process.stdout is not None
        following.process.stdout.close()
        assert following.process.wait(SECONDS) == 0
        assert following.process.stderr is not None
        assert following.process.stderr.read() == b""
        following.process.stdout = None
