"""A workspace beside a folder that nothing may reach."""

import hashlib
import os
from pathlib import Path

from rune.host.beneath import Beneath
from rune.host.resolving import ByWalk
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places

SECRET = b"canary-7f3a"
MARK = "only-outside"


def by_walk(folder: Path) -> Beneath:
    return Beneath(folder, resolver=ByWalk())


WAYS = {"best": Beneath, "walk": by_walk}


class Canary:
    """The folder outside: what is in it, and whether it still is."""

    def __init__(self, folder: Path) -> None:
        (folder / "src").mkdir(parents=True)
        for name in ("secret.txt", "a.py", "src/a.py", ".env", MARK):
            (folder / name).write_bytes(SECRET)
        self.folder = folder
        self._before = self._state()

    @property
    def untouched(self) -> bool:
        return self._state() == self._before

    def _state(self) -> list[tuple[str, bytes, int, int]]:
        return [
            (os.fspath(path), path.read_bytes() if path.is_file() else b"", path.stat().st_ino, path.stat().st_mode)
            for path in sorted(self.folder.rglob("*"))
        ]


def make_tree(base: Path) -> tuple[Path, Canary]:
    """Make a workspace with links of every kind, and the canary beside it."""
    canary = Canary(base / "ws-evil")
    ws = base / "ws"
    (ws / "src" / "deep").mkdir(parents=True)
    (ws / ".git" / "hooks").mkdir(parents=True)
    (ws / "src" / "a.py").write_bytes(b"a = 1\n")
    (ws / "src" / "deep" / "b.py").write_bytes(b"b = 2\n")
    (ws / ".env").write_bytes(b"TOKEN=" + SECRET)
    for name, to in {
        "out": "../ws-evil",
        "out-abs": os.fspath(canary.folder),
        "out.txt": "../ws-evil/secret.txt",
        "far": "src/../../ws-evil",
        "chain1": "chain2",
        "chain2": "src/deep/up",
        "src/deep/up": "../../out",
        "loop": "loop2",
        "loop2": "loop",
        "self": "/proc/self/root",
        "cwd": "/proc/self/cwd",
        "fds": "/proc/self/fd",
        "code": "src",
        "a-link.py": "src/a.py",
        "innocent.txt": ".env",
        "gitlink": ".git",
    }.items():
        (ws / name).symlink_to(to)
    return ws, canary


def files_of(ws: Path, way: str, *, own: tuple[Path, ...] = ()) -> WorkspaceFiles:
    places = Places(reading=(), writing=(ws,), own=own)
    return WorkspaceFiles(ws, places, open_folder=WAYS[way])


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
