"""What an earlier version kept is brought in, looked at, gone on with, and erased."""

import json
from pathlib import Path

from tests.journeys.shell import Shell
from tests.store.imports.older import SECRET, a_line, written


def test_an_older_version_moves_in(shell: Shell, tmp_path: Path) -> None:
    shell.script({"text": "the Elbe"})
    journal = written(
        tmp_path / "old.jsonl",
        a_line(1, "session.started", {"session_id": "s", "title": "Rivers"}),
        a_line(2, "user_message", {"session_id": "s", "content": f"name a river \x1b[2J {SECRET}"}),
        a_line(3, "assistant.message", {"session_id": "s", "content": "Danube", "model": "qwen"}),
        a_line(4, "skill.loaded", {"name": "x"}, source={"channel": "chat"}),
        b"no json",
    )
    first = shell.run("import", "events", str(journal))
    assert first.code == 1
    assert first.out.splitlines()[0] == (
        "5 lines: 2 messages, 1 beginning of a conversation, 1 kept as event.imported, 1 left (see above)"
    )
    assert "line 5: left: it is not JSON" in first.err
    before = {path: path.read_bytes() for path in (shell.home / "journal").glob("*.jsonl")}
    again = shell.run("import", "events", str(journal), "--json").json()
    assert (again["new"], again["already_there"], again["left"]) == (0, 4, 1)
    assert {path: path.read_bytes() for path in before} == before
    assert not any(SECRET.encode() in path.read_bytes() for path in shell.home.rglob("*") if path.is_file())

    (kept, begun) = sorted(shell.events("event.imported"), key=lambda event: event["body"]["became"])
    assert (kept["body"]["original_type"], kept["body"]["channel"]) == ("skill.loaded", "chat")
    conversation = begun["body"]["became"]
    assert "Danube" in shell.run("sessions", "show", conversation).out
    assert shell.run("-r", conversation, "-p", "and one more").out == "the Elbe\n"

    (tmp_path / "tasks.json").write_text(json.dumps([{"task_id": 7, "description": "count rivers", "status": "open"}]))
    assert shell.run("import", "operator", str(tmp_path / "tasks.json")).code == 0
    listed = shell.run("sessions", "list", "--all").out
    assert "count rivers" in listed
    assert "Rivers" in listed
    own = shell.home / "journal" / "w000-000001.jsonl"
    assert shell.run("import", "events", str(own)).code == 2

    assert shell.run("erase", conversation, "--yes").code == 0
    assert shell.run("import", "events", str(journal), "--json").json()["already_there"] == 4
    assert not any(b"Danube" in path.read_bytes() for path in shell.home.rglob("*") if path.is_file())
