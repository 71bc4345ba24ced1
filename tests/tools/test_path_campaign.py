"""Five hundred generated paths, four operations each: none reaches what lies outside."""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rune.errors import ToolError
from rune.tools.files import WorkspaceFiles
from tests.tools.workspace import MARK, SECRET, WAYS, Canary, files_of, make_tree, sha

PATHS = 500
INSIDE = {"src/a.py": b"a = 1\n", "src/deep/b.py": b"b = 2\n"}
# fmt: off
STEPS = [
    "..", "..", ".", "", "src", "deep", "code", "out", "out-abs", "far", "chain1", "chain2", "up", "loop", "self",
    "cwd", "fds", "gitlink", "ws-evil", "ws", "SRC", "Code", "OUT", "\uff53rc", "\u2025", "\u2024\u2024",
    "\uff0e\uff0e", "..\u200b", "%2e%2e", "..\\", "~", "...", "-",
]
LEAVES = [
    "a.py", "secret.txt", "b.py", "out.txt", ".env", ".ENV", "innocent.txt", "a-link.py", "loop", "new.txt",
    "\u0430.py", "a.py\0", "src", "..", ".", "", "a.py/", "new/", "n" * 255, "n" * 256, "b\udcff", "\ud800",
    "two\nlines", "a.py/.", "a.py/..",
]
# fmt: on


def generated(choose: random.Random, ws: Path, canary: Canary) -> str:
    starts = [
        "",
        "",
        "",
        "./",
        "/",
        "//",
        f"{ws}/",
        f"{ws}//",
        f"/{ws}/",
        f"{ws}-evil/",
        f"{canary.folder}/",
        f"{ws}/../",
    ]
    starts += [
        f"/proc/self/root{canary.folder}/",
        "/proc/self/cwd/",
        f"self{canary.folder}/",
        f"src/../self/{canary.folder}/",
    ]
    separator = choose.choice(["/", "/", "/", "//", "/./"])
    steps = choose.choices(STEPS, k=choose.choice([0, 0, 1, 1, 2, 3, 5]))
    if choose.random() < 0.4:
        steps.insert(0, choose.choice(["src", "code", "src/deep/.."]))
    if choose.random() < 0.05:
        steps *= 900
    return choose.choice(starts) + separator.join([*steps, choose.choice(LEAVES)])


def operations(files: WorkspaceFiles, path: str) -> dict[str, Callable[[], bytes]]:
    def read() -> bytes:
        return files.read(path).data

    def listed() -> bytes:
        return os.fsencode("\n".join(entry.name for entry in files.list(path).entries))

    def written() -> bytes:
        target = files.target(path)
        files.replace(os.fspath(target.path), b"written", target.facts.sha256 if target.facts else None)
        return b""

    def removed() -> bytes:
        for data in (b"written", SECRET, *INSIDE.values()):
            try:
                files.remove(path, sha(data))
            except ToolError:
                continue
            return b""
        return b"nothing"

    return {"read": read, "list": listed, "write": written, "remove": removed}


@pytest.mark.parametrize("way", list(WAYS))
def test_no_generated_path_escapes(tmp_path: Path, way: str) -> None:
    ws, canary = make_tree(tmp_path)
    choose = random.Random(2026)  # noqa: S311 - the same every time
    done: Counter[str] = Counter()
    secret_file = (ws / ".env").read_bytes()
    with files_of(ws, way) as files:
        for _ in range(PATHS):
            for inside, data in INSIDE.items():
                (ws / inside).parent.mkdir(exist_ok=True)
                (ws / inside).write_bytes(data)
            path = generated(choose, ws, canary)
            for name, act in operations(files, path).items():
                try:
                    told = act()
                except ToolError as error:
                    assert SECRET.decode() not in error.in_one_line, path
                else:
                    done[name] += told != b"nothing"
                    assert SECRET not in told, path
                    assert MARK.encode() not in told, path
            assert canary.untouched, path
            assert (ws / ".env").read_bytes() == secret_file, path
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ws", "ws-evil"]
    assert min(done[name] for name in ("read", "list", "write", "remove")) > 5, done
