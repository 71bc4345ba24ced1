"""Slash commands about conversations and models, from the shell."""

from pathlib import Path

from tests.journeys.shell import Shell


def test_resume_and_model_without_the_app(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.script({"text": "the Danube"})
    nowhere = shell.run("-p", "/model scripted")
    assert nowhere.code == 0
    assert "begin one with `-m`" in nowhere.err
    assert shell.run("-p", "/resume").out == "no conversation in this folder yet\n"

    shell.run("-p", "name a river")
    listed = shell.run("-p", "/resume")
    assert "name a river" in listed.out
    conversation = listed.out.split()[1]
    one = shell.run("-p", f"/resume {conversation}", "--output-format", "json")
    assert one.json()["title"] == "name a river"
    kept = shell.run("-p", "/model scripted")
    assert kept.out == "scripted answers from the next message on\n"
    assert kept.err == ""
    assert "your message" in shell.run("-p", "/context").out

    unknown = shell.run("-p", "/model nonsense")
    assert (unknown.code, unknown.out) == (4, "")
    assert "scripted" in unknown.err
    assert shell.run("-p", "/resume zzzz").code == 1
