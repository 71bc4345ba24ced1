"""Generated folders for searches: odd names, ignored files, hidden and denied ones, every encoding."""

import os
import random
from pathlib import Path

from tests.tools.workspace import SECRET

_FOLDERS = (
    "src",
    "lib",
    "build",
    ".github",
    "node_modules",
    "__pycache__",
    "venv",
    ".git",
    "doc s",
    "t\u00e9st",
    ".aws",
)
_NAMES = (
    "a.py",
    "b.ts",
    "readme",
    "x.log",
    "keep.log",
    ".eslintrc",
    ".env",
    ".env.example",
    ".ENV",
    "id_rsa",
    "id_map.py",
    "credentials",
    "credentials_view.py",
    "Key.PEM",
    "two\nlines.txt",
    "tab\t.txt",
    "\u202ertl.txt",
    "-dash.py",
    "[a].py",
    "!bang.py",
    "caf\udce9.txt",
    ".ssh",
    ".gitignore2",
)
_IGNORES = (
    "*.log",
    "!keep.log",
    "build/",
    "/lib",
    "src/*.ts",
    "**/a.py",
    "!a.py",
    "doc*/",
    "# a comment",
    "",
    "\\!bang.py",
    "*.txt ",
    "lib/**",
    "src/**/",
    "!.env",
    "!node_modules/",
    "!credentials",
    "/*/b.ts",
    "[a-c].py",
    "/src/",
    "*",
    "!*/",
    "!*.py",
    "tab?.txt",
    "t\u00e9st",
    "src/**/readme",
)
_CONTENTS = (
    b"needle here\nnothing\n  needle2 there\n",
    b"",
    b"\n\n",
    b"no final needle",
    b"crlf needle\r\nneedle\r\n",
    b"\xef\xbb\xbfneedle after a mark\n",
    "needle in sixteen\nb\n".encode("utf-16"),
    b"\xfe\xff" + "needle big\n".encode("utf-16-be"),
    b"latin caf\xe9 needle\n",
    b"needle before\n\0binary needle\n",
    b"\0needle",
    "n\u00e9edle \u202e needle \U0001f600\n".encode(),
    b"Needle NEEDLE\n",
    b"x" * 3000 + b" needle\n",
    b"needle" * 400 + b"\n",
    b"a\x0bneedle\x0cb\rc\n",
)


def make_tree(base: Path, seed: int) -> None:
    """Fill `base`, the same way for the same seed."""
    choose = random.Random(seed)  # noqa: S311 - the same every time
    folders = [base]
    for _ in range(choose.randint(2, 12)):
        folder = choose.choice(folders) / choose.choice(_FOLDERS)
        folder.mkdir(exist_ok=True)
        folders.append(folder)
    folders = list(dict.fromkeys(folders))
    for _ in range(choose.randint(5, 40)):
        path = choose.choice(folders) / choose.choice(_NAMES)
        if not path.is_dir():
            path.write_bytes(choose.choice(_CONTENTS))
    for folder in folders:
        if choose.random() < 0.5:
            lines = choose.sample(_IGNORES, choose.randint(1, 5))
            (folder / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
    outside = base.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.txt").write_bytes(b"needle " + SECRET)
    for name, to in {"out": "../outside", "loop": "loop", "up": "..", "link.py": "src/a.py"}.items():
        if choose.random() < 0.5:
            (base / name).symlink_to(to)
    if choose.random() < 0.5:
        os.mkfifo(base / "pipe")


def some_glob(seed: int) -> str:
    """Return a pattern for names, or none."""
    return random.Random(seed).choice(("", "", "*.py", "*.{py,txt}", "src/**", "**/a.py", "read*", "?.ts", "[ab].*"))  # noqa: S311 - as above
