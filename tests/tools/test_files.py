import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, DigestMismatchError, FileUnavailableError, InvalidArgumentsError
from rune.host.beneath import Beneath
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from tests.tools.workspace import SECRET, WAYS, Canary, files_of, make_tree, sha


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, Canary]:
    return make_tree(tmp_path)


def test_a_file_is_read_with_its_facts(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    (ws / "src" / "a.py").chmod(0o755)
    with files_of(ws, way) as files:
        for path in ("src/a.py", "a-link.py", "code/a.py", os.fspath(ws / "src/a.py"), "./src//deep/../a.py"):
            found = files.read(path)
            assert found.data == b"a = 1\n"
            facts = found.facts
            assert (facts.path, facts.size, facts.mode, facts.links) == (ws / "src" / "a.py", 6, 0o755, 1)
            assert facts.sha256 == sha(found.data)


def test_a_secret_is_not_read_by_any_name(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        for path in (".env", "innocent.txt", "src/../.env", "code/../innocent.txt"):
            with pytest.raises(AccessDeniedError, match="may hold secrets"):
                files.read(path)


def test_runes_own_files_are_not_read_through_a_link(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    (ws / "state").mkdir()
    (ws / "state" / "journal").write_bytes(SECRET)
    (ws / "log").symlink_to("state/journal")
    (ws / "logs").symlink_to("state")
    with files_of(ws, way, own=(ws / "state",)) as files:
        for act in (lambda: files.read("log"), lambda: files.list("logs"), lambda: files.target("logs/new")):
            with pytest.raises(AccessDeniedError, match="belongs to Rune itself"):
                act()


def test_what_leads_outside_is_refused_with_the_folders_inside(tree: tuple[Path, Canary], way: str) -> None:
    ws, canary = tree
    with files_of(ws, way) as files:
        for path in (
            "out/secret.txt",
            "out.txt",
            "../ws-evil/secret.txt",
            f"{canary.folder}/secret.txt",
            "chain1/secret.txt",
        ):
            with pytest.raises(AccessDeniedError, match="is outside the folders you may read") as caught:
                files.read(path)
            assert str(ws) in caught.value.message
        with pytest.raises(
            AccessDeniedError, match=r"outside the folders you may write: .*Write inside one of those instead"
        ):
            files.target("out/new.py")


def test_a_workspace_behind_a_link_is_found_by_both_its_names(tree: tuple[Path, Canary], tmp_path: Path) -> None:
    ws, _ = tree
    (tmp_path / "project").symlink_to("ws")
    places = Places(reading=(), writing=(ws,), own=())
    with WorkspaceFiles(tmp_path / "project", places) as files:
        for path in ("src/a.py", str(ws / "src/a.py"), str(tmp_path / "project" / "src" / "a.py")):
            assert files.read(path).facts.path == ws / "src" / "a.py"


def test_a_folder_above_that_may_be_read_is_reached_from_the_workspace(tree: tuple[Path, Canary]) -> None:
    ws, _ = tree
    places = Places(reading=(ws,), writing=(ws / "src",), own=())
    with WorkspaceFiles(ws / "src", places) as files:
        assert files.read("../src/a.py").data == b"a = 1\n"
        (ws / "top.txt").write_bytes(b"top")
        assert files.read("../top.txt").data == b"top"
        with pytest.raises(AccessDeniedError, match="outside the folders you may write"):
            files.target("../top.txt")


def test_a_folder_is_listed(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        listing = files.list("code")
        assert listing.path == ws / "src"
        assert [(entry.name, entry.kind) for entry in listing.entries] == [("a.py", "file"), ("deep", "folder")]
        assert {entry.name: entry.kind for entry in files.list(".").entries}["out"] == "link"
        with pytest.raises(AccessDeniedError, match="outside"):
            files.list("out")


def test_writing_goes_by_target_and_replace(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    path = ws / "src" / "a.py"
    path.chmod(0o755)
    with files_of(ws, way) as files:
        target = files.target("code/a.py")
        assert target.facts is not None
        assert (target.path, target.ruling.verdict, target.facts.sha256) == (path, "allow", sha(b"a = 1\n"))
        facts = files.replace(str(target.path), b"a = 2\n", target.facts.sha256)
        assert (facts.sha256, facts.size, facts.mode, facts.links) == (sha(b"a = 2\n"), 6, 0o755, 1)
        assert path.read_bytes() == b"a = 2\n"
        new = files.target("code/new/b.py")
        assert (new.path, new.facts) == (ws / "src" / "new" / "b.py", None)
        files.replace(str(new.path), b"b", None)
        files.remove(str(target.path), facts.sha256)
    assert sorted(each.name for each in (ws / "src").iterdir()) == ["deep", "new"]
    assert (ws / "src" / "new" / "b.py").read_bytes() == b"b"


def test_what_is_always_asked_for_is_seen_through_links_and_before_it_exists(
    tree: tuple[Path, Canary], way: str
) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        for path in ("gitlink/hooks/pre-commit", ".git/config", "AGENTS.md", "new/.github/workflows/x.yml", ".envrc"):
            target = files.target(path)
            assert (target.ruling.verdict, target.facts) == ("ask", None)
        assert files.target("gitlink/x").path == ws / ".git" / "x"


def test_a_file_that_changed_since_is_left_as_it_is(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        for act in (
            lambda: files.replace("src/a.py", b"new", sha(b"older")),
            lambda: files.replace("src/a.py", b"new", None),
            lambda: files.replace("src/gone.py", b"new", sha(b"older")),
            lambda: files.remove("src/a.py", sha(b"older")),
            lambda: files.remove("src/gone.py", sha(b"older")),
        ):
            with pytest.raises(DigestMismatchError):
                act()
    assert (ws / "src" / "a.py").read_bytes() == b"a = 1\n"
    assert not (ws / "src" / "gone.py").exists()


def test_a_link_is_not_written_and_its_real_place_is_named(tree: tuple[Path, Canary], way: str) -> None:
    ws, canary = tree
    with files_of(ws, way) as files:
        with pytest.raises(AccessDeniedError, match=rf"is a link.*leads to {ws}/src/a\.py: write there instead"):
            files.target("a-link.py")
        with pytest.raises(AccessDeniedError, match=rf"is a link.*leads to {ws}/src/a\.py: write there instead"):
            files.replace("code/a.py", b"new", sha(b"a = 1\n"))
        (ws / "nowhere").symlink_to("nothing")
        (ws / "new-outside").symlink_to("../ws-evil/new")
        for path in ("nowhere", "out.txt", "loop", "new-outside"):
            with pytest.raises(AccessDeniedError):
                files.target(path)
            for expected in (None, sha(SECRET)):
                with pytest.raises((AccessDeniedError, DigestMismatchError)):
                    files.replace(path, b"new", expected)
    assert canary.untouched
    assert not (ws / "nothing").exists()


def test_a_file_with_another_name_outside_is_told_and_not_written(tree: tuple[Path, Canary], way: str) -> None:
    ws, canary = tree
    (ws / "hard.txt").hardlink_to(canary.folder / "a.py")
    with files_of(ws, way) as files:
        assert files.read("hard.txt").facts.links == 2
        with pytest.raises(AccessDeniedError, match="has 2 names"):
            files.target("hard.txt")
        with pytest.raises(AccessDeniedError, match="has 2 names"):
            files.replace("hard.txt", b"new", sha(SECRET))
    assert (canary.folder / "a.py").read_bytes() == SECRET


def test_pipes_are_refused_at_once(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    os.mkfifo(ws / "pipe")
    with files_of(ws, way) as files:
        for act in (
            lambda: files.read("pipe"),
            lambda: files.target("pipe"),
            lambda: files.replace("pipe", b"", sha(b"")),
            lambda: files.remove("pipe", sha(b"")),
        ):
            with pytest.raises(AccessDeniedError, match="pipe, a socket or a device"):
                act()


def test_each_other_reason_is_told(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        for path, words in {
            "nothing.py": "is not there",
            "src": "is a folder",
            "src/a.py/x": "where a file is",
            "loop": "in a circle",
            "x" * 300: "longer than",
        }.items():
            with pytest.raises(FileUnavailableError, match=words):
                files.read(path)
        with pytest.raises(FileUnavailableError, match="larger than 5 bytes"):
            files.read("src/a.py", most=5)
        for path in ("", "a\0b", "\ud800"):
            with pytest.raises(InvalidArgumentsError):
                files.read(path)


@pytest.mark.parametrize(
    "data",
    [b"", b"a\r\nb\r\n", b"\xef\xbb\xbfa\n", b"no newline", b"\x00\xff\xfe\r", "ä".encode("latin-1"), b"\r\r\n\n"],
)
@pytest.mark.parametrize("name", [b"plain", b"b\xff\xfe", b"two\nlines", b"n" * 255, "é".encode(), "e\u0301".encode()])
def test_bytes_and_names_stay_as_they_are(tree: tuple[Path, Canary], way: str, data: bytes, name: bytes) -> None:
    ws, _ = tree
    path = os.fsdecode(name)
    with files_of(ws, way) as files:
        files.replace(path, b"first", None)
        files.replace(path, data, sha(b"first"))
        assert files.read(path).data == data
        assert path in {entry.name for entry in files.list(".").entries}
    assert Path(os.fsdecode(os.fsencode(ws) + b"/" + name)).read_bytes() == data


@pytest.mark.slow
def test_fifty_megabytes_stay_as_they_are(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    data = os.urandom(1 << 20) * 50
    with files_of(ws, way) as files:
        files.replace("big", data, None)
        files.replace("big", data + b"\r\n", sha(data))
        assert files.read("big").data == data + b"\r\n"


def test_a_new_file_has_the_mode_of_the_umask(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    old = os.umask(0o077)
    try:
        with files_of(ws, way) as files:
            assert files.replace("new", b"", None).mode == 0o600
    finally:
        os.umask(old)
    assert stat.S_IMODE((ws / "new").stat().st_mode) == 0o600


def test_threads_that_begin_together_open_a_folder_once(tree: tuple[Path, Canary]) -> None:
    ws, _ = tree
    opened: list[Path] = []
    start = threading.Barrier(4)

    def open_folder(folder: Path) -> Beneath:
        opened.append(folder)
        return Beneath(folder)

    def read(files: WorkspaceFiles) -> bytes:
        start.wait(timeout=10)
        return files.read("src/a.py").data

    with ThreadPoolExecutor(4) as threads:
        for _ in range(50):
            opened.clear()
            with WorkspaceFiles(ws, Places(reading=(), writing=(ws,), own=()), open_folder=open_folder) as files:
                assert set(threads.map(read, [files] * 4)) == {b"a = 1\n"}
            assert opened == [ws]


def test_closing_waits_for_a_call_that_still_runs(tree: tuple[Path, Canary]) -> None:
    ws, _ = tree
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Beneath):
        def list(self, path: str):  # noqa: ANN202 - as Beneath.list
            inside.set()
            assert go_on.wait(timeout=10)
            return super().list(path)

    files = WorkspaceFiles(ws, Places(reading=(), writing=(ws,), own=()), open_folder=Slow)
    with ThreadPoolExecutor(2) as threads:
        listing = threads.submit(files.list, "src")
        assert inside.wait(timeout=10)
        closing = threads.submit(files.close)
        assert not closing.done()
        go_on.set()
        assert listing.result(timeout=10).entries[0].name == "a.py"
        closing.result(timeout=10)
    assert files.read("src/a.py").data == b"a = 1\n"
    files.close()


def test_a_folder_is_held_open_and_its_names_are_read_without_links(tree: tuple[Path, Canary], way: str) -> None:
    ws, _ = tree
    with files_of(ws, way) as files:
        with files.held("code/") as (descriptor, real):
            assert real == ws / "src"
            assert os.path.samestat(os.fstat(descriptor), real.stat())
        assert [(name.name, name.kind) for name in files.names(ws / "src")] == [("a.py", "file"), ("deep", "folder")]
        assert {name.kind for name in files.names(ws) if name.name in {"out", "loop", "code"}} == {"link"}
        with pytest.raises((AccessDeniedError, FileUnavailableError)):
            files.names(ws / "code")
        for path in ("out", "..", "gitlink/../../ws-evil"):
            with pytest.raises(AccessDeniedError), files.held(path):
                pass
