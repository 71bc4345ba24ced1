"""Files and folders that are swapped while tools act: only what was approved is written, nothing outside is read."""

import contextlib
import os
import random
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from rune.errors import ToolError
from rune.host.linux_calls import exchange
from tests.tools.workspace import SECRET, WAYS, files_of, make_tree, sha

APPROVED = b"a = 1\n"
OTHER = b"nobody approved this\n"
DEADLINE = 60
LONGEST_WAIT = 0.001


class Swapper(threading.Thread):
    """Puts links and other files in the place of the approved file, links in the place of its folder, and back.

    Half of the time it asks for a pause of the operations before it takes away what it put, and looks whether that is
    still there.
    """

    def __init__(self, ws: Path) -> None:
        super().__init__(daemon=True)
        self.ws = ws
        self.swaps = 0
        self.lost: list[str] = []
        self.error: BaseException | None = None
        self.ending = threading.Event()
        self.wants = threading.Event()
        self.granted = threading.Event()
        self.resumed = threading.Event()
        self._choose = random.Random(7)  # noqa: S311 - the same every time
        (ws / "elsewhere").mkdir()
        (ws / "elsewhere" / "a.py").write_bytes(APPROVED)
        (ws / "other.py").write_bytes(OTHER)
        (ws / "evil-out").symlink_to("../ws-evil")
        (ws / "evil-in").symlink_to("elsewhere")

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                self._choose.choice((self._file_by_link, self._file_by_file, self._folder))()
                self.swaps += 1
        except BaseException as error:  # noqa: BLE001 - it is shown by the test, in its own thread
            traceback.print_exc()
            self.error = error
        finally:
            self.ending.set()
            self.resumed.set()

    def give_way(self) -> None:
        """Let it look in peace, where it wants to."""
        if self.wants.is_set():
            self.granted.set()
            assert self.resumed.wait(DEADLINE)
            self.resumed.clear()

    def _file_by_link(self) -> None:
        new = self.ws / "src" / "new-link"
        new.symlink_to(self._choose.choice(("../../ws-evil/a.py", "../other.py", "../elsewhere/a.py")))
        self._put(new)

    def _file_by_file(self) -> None:
        new = self.ws / "src" / "new-file"
        new.write_bytes(OTHER)
        self._put(new)

    def _put(self, new: Path) -> None:
        mine = new.lstat()
        path = self.ws / "src" / "a.py"
        new.replace(path)
        self._wait_a_little()
        if self._choose.random() < 0.5:
            with self._peace():
                if not os.path.samestat(path.lstat(), mine):
                    self.lost.append(f"{new.name} became {path.read_bytes()!r}")
        back = self.ws / "src" / "new-approved"
        back.write_bytes(APPROVED)
        back.replace(path)
        self._wait_a_little()

    def _folder(self) -> None:
        name = self._choose.choice((b"evil-out", b"evil-in"))
        at = os.open(self.ws, os.O_RDONLY)
        try:
            exchange(at, b"src", name)
            self._wait_a_little()
            exchange(at, b"src", name)
        finally:
            os.close(at)
        self._wait_a_little()

    def _wait_a_little(self) -> None:
        self.ending.wait(self._choose.random() * LONGEST_WAIT)

    @contextlib.contextmanager
    def _peace(self) -> Generator[None]:
        self.wants.set()
        while not self.granted.wait(0.01):
            if self.ending.is_set():
                break
        self.wants.clear()
        yield
        self.granted.clear()
        self.resumed.set()


def exchange_works(folder: Path) -> bool:
    at = os.open(folder, os.O_RDONLY)
    try:
        for name in ("one", "other"):
            (folder / name).touch()
        exchange(at, b"one", b"other")
    except OSError:
        return False
    finally:
        os.close(at)
        for name in ("one", "other"):
            (folder / name).unlink()
    return True


def swapped_while_acting(base: Path, way: str, swaps: int) -> Counter[str]:
    """Act while names are swapped; return how often each operation was done and how often refused."""
    ws, canary = make_tree(base)
    swapper = Swapper(ws)
    path = os.fspath(ws / "src" / "a.py")
    counts: Counter[str] = Counter()

    def tried(name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except ToolError as error:
            counts[f"{name}: {type(error).__name__}"] += 1
        else:
            counts[name] += 1

    with files_of(ws, way) as files:

        def read() -> None:
            assert SECRET not in files.read(path).data

        def listed() -> None:
            assert "secret.txt" not in {entry.name for entry in files.list("src").entries}

        def made() -> None:
            files.replace(path, APPROVED, None)

        swapper.start()
        try:
            while swapper.swaps < swaps:
                tried("create", made)
                tried("replace", lambda: files.replace(path, b"new", sha(APPROVED)))
                tried("remove", lambda: files.remove(path, sha(b"new")))
                tried("create", made)
                tried("remove", lambda: files.remove(path, sha(APPROVED)))
                tried("create", made)
                tried("read", read)
                tried("list", listed)
                assert canary.untouched
                assert (ws / "other.py").read_bytes() == OTHER
                assert (ws / "elsewhere" / "a.py").read_bytes() == APPROVED
                assert [each.name for each in (ws / "elsewhere").iterdir()] == ["a.py"]
                assert not swapper.ending.is_set(), swapper.error
                swapper.give_way()
        finally:
            swapper.ending.set()
            swapper.join(DEADLINE)
    assert swapper.error is None
    assert swapper.lost == []
    for left in ws.rglob(".rune-*"):  # what lost its name to another in the very moment of being given back: not lost
        assert left.is_symlink() or left.read_bytes() == OTHER
    counts["swaps"] = swapper.swaps
    return counts


@pytest.mark.parametrize("way", list(WAYS))
def test_what_was_not_approved_is_not_written_by_any_of_500_swaps(tmp_path: Path, way: str) -> None:
    if not exchange_works(tmp_path):
        pytest.skip("this file system cannot exchange two names")
    counts = swapped_while_acting(tmp_path, way, 500)
    assert min(counts["replace"], counts["read"], counts["create"], counts["remove"]) > 5, counts


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", list(WAYS))
def test_what_was_not_approved_is_not_written_by_any_of_10_000_swaps(tmp_path: Path, way: str) -> None:
    if not exchange_works(tmp_path):
        pytest.skip("this file system cannot exchange two names")
    counts = swapped_while_acting(tmp_path, way, 10_000)
    assert min(counts["replace"], counts["read"], counts["create"], counts["remove"]) > 100, counts
