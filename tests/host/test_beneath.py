"""What holds beneath a folder, whichever way leads there."""

import errno
import hashlib
import os
import resource
import socket
import stat
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from rune.errors import DigestMismatchError
from rune.host.beneath import Beneath
from rune.host.linux_calls import BENEATH, exchange, openat2
from rune.host.resolving import ByKernel, ByWalk, Resolver

RESOLVERS: list[Callable[[], Resolver]] = [ByKernel, ByWalk]
LONGEST = "n" * 251 + ".txt"


def kernel_works() -> bool:
    try:
        os.close(openat2(-100, b".", os.O_RDONLY | os.O_DIRECTORY, BENEATH))
    except OSError:
        return False
    return True


@pytest.fixture(params=RESOLVERS)
def resolver(request: pytest.FixtureRequest) -> Resolver:
    if request.param is ByKernel and not kernel_works():
        pytest.skip("this kernel has no openat2")
    made: Resolver = request.param()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_bytes(b"canary")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_bytes(b"a = 1\n")
    (root / "src" / "deep" / "b.py").write_bytes(b"b = 2\n")
    (root / "code").symlink_to("src")
    (root / "src" / "deep" / "up.py").symlink_to("../a.py")
    (root / "chain").symlink_to("code/deep/up.py")
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to("../outside")
    (root / "out.txt").symlink_to(outside / "secret.txt")
    (root / "itself").symlink_to(root)
    (root / "dangling").symlink_to("nothing")
    return root


@pytest.fixture
def beneath(root: Path, resolver: Resolver) -> Generator[Beneath]:
    with Beneath(root, resolver=resolver) as beneath:
        yield beneath


def content(beneath: Beneath, path: str) -> tuple[bytes, str]:
    descriptor, place = beneath.open(path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(), os.fsdecode(place)


def names_in(folder: Path) -> set[bytes]:
    return {os.fsencode(each.name) for each in folder.iterdir()}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def number_of(act: Callable[[], object]) -> int:
    with pytest.raises(OSError) as caught:
        act()
    assert caught.value.errno is not None
    return caught.value.errno


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//deep/../a.py", "src/a.py"),
        ("code/a.py", "src/a.py"),
        ("chain", "src/a.py"),
        ("src/deep/../../code/deep/up.py", "src/a.py"),
    ],
)
def test_a_file_is_read_and_its_real_place_told(beneath: Beneath, path: str, place: str) -> None:
    assert content(beneath, path) == (b"a = 1\n", place)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("..", errno.EXDEV),
        ("../outside/secret.txt", errno.EXDEV),
        ("src/../../outside/secret.txt", errno.EXDEV),
        ("/etc/passwd", errno.EXDEV),
        ("out/secret.txt", errno.EXDEV),
        ("out.txt", errno.EXDEV),
        ("itself/src/a.py", errno.EXDEV),
        ("loop", errno.ELOOP),
        ("loop/x", errno.ELOOP),
        ("dangling", errno.ENOENT),
        ("nothing/../../outside", errno.ENOENT),
        ("src", errno.EISDIR),
        ("src/", errno.EISDIR),
        (".", errno.EISDIR),
        ("src/a.py/", errno.ENOTDIR),
        ("src/a.py/.", errno.ENOTDIR),
        ("src/a.py/../a.py", errno.ENOTDIR),
        ("", errno.ENOENT),
        ("src/a.py\0", errno.EINVAL),
        ("\ud800", errno.EINVAL),
        ("x" * 256, errno.ENAMETOOLONG),
        ("./" * 2100 + "src/a.py", errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_read_says_why(beneath: Beneath, path: str, number: int) -> None:
    assert number_of(lambda: beneath.open(path)) == number


def test_reading_by_link_into_proc_reaches_nothing(beneath: Beneath, root: Path) -> None:
    (root / "all").symlink_to("/proc/self/root")
    assert number_of(lambda: beneath.open("all/etc/hostname")) == errno.EXDEV
    assert number_of(lambda: beneath.list("all")) == errno.EXDEV


def test_a_chain_of_forty_links_is_followed_and_one_of_more_is_a_loop(beneath: Beneath, root: Path) -> None:
    (root / "l0").symlink_to("src/a.py")
    for at in range(1, 41):
        (root / f"l{at}").symlink_to(f"l{at - 1}")
    assert content(beneath, "l39") == (b"a = 1\n", "src/a.py")
    assert number_of(lambda: beneath.open("l40")) == errno.ELOOP


def test_a_deep_way_needs_few_descriptors(beneath: Beneath, root: Path) -> None:
    way = "/".join(["d"] * 300)
    (root / way).mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 8, hard))
    try:
        beneath.create(f"{way}/x/y/z", b"deep")
        assert content(beneath, f"{way}/x/../x/y/z")[0] == b"deep"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_fifos_sockets_and_devices_are_refused_without_waiting(beneath: Beneath, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's path is short
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        for name in ("pipe", "sock"):
            assert number_of(lambda name=name: beneath.open(name)) == errno.EINVAL
            assert number_of(lambda name=name: beneath.replace(name, b"", expected_sha256="")) == errno.EINVAL
            assert number_of(lambda name=name: beneath.remove(name, expected_sha256="")) == errno.EINVAL
    kinds = {entry.name: entry.kind for entry in beneath.list(".")[1]}
    assert (kinds["pipe"], kinds["sock"], kinds["src"], kinds["out"]) == ("other", "other", "folder", "link")


def test_a_folder_is_listed_with_its_real_place(beneath: Beneath) -> None:
    place, entries = beneath.list("code/")
    assert place == "src"
    assert [(entry.name, entry.kind) for entry in entries] == [("a.py", "file"), ("deep", "folder")]
    assert entries[0].size == 6
    assert beneath.list(".")[0] == ""
    assert number_of(lambda: beneath.list("src/a.py")) == errno.ENOTDIR


def test_looking_follows_a_link_or_not(beneath: Beneath) -> None:
    assert stat.S_ISREG(beneath.stat("chain").info.st_mode)
    assert beneath.stat("chain").place == b"src/a.py"
    assert stat.S_ISLNK(beneath.stat("chain", follow=False).info.st_mode)
    assert beneath.stat("code/deep/up.py", follow=False).place == b"src/deep/up.py"
    assert number_of(lambda: beneath.stat("out.txt")) == errno.EXDEV
    assert stat.S_ISLNK(beneath.stat("out.txt", follow=False).info.st_mode)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("src/a.py", "src/a.py"),
        ("code/deep/../new.py", "src/new.py"),
        ("code/new/folder/x", "src/new/folder/x"),
        ("chain", "chain"),
        ("new", "new"),
        ("dangling/x", "dangling/x"),
    ],
)
def test_the_place_of_writing_has_no_links_but_in_its_last_name(beneath: Beneath, path: str, place: str) -> None:
    assert beneath.place(path) == place


@pytest.mark.parametrize("path", ["../x", "out/x", "out/new/x", "src/../../x", "itself/x"])
def test_there_is_no_place_outside(beneath: Beneath, path: str) -> None:
    assert number_of(lambda: beneath.place(path)) == errno.EXDEV


@pytest.mark.parametrize("path", ["code/a.py", "chain", "out.txt", "out/secret.txt", "loop", "dangling", "loop/x"])
def test_writing_follows_no_link(beneath: Beneath, root: Path, outside: Path, path: str) -> None:
    for act in (
        lambda: beneath.replace(path, b"new", expected_sha256=sha(b"a = 1\n")),
        lambda: beneath.remove(path, expected_sha256=sha(b"a = 1\n")),
        lambda: beneath.create(path, b"new"),
    ):
        assert number_of(act) in {errno.ELOOP, errno.EEXIST, errno.EXDEV}
    assert (root / "src" / "a.py").read_bytes() == b"a = 1\n"
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]


def test_a_file_is_replaced_whole_and_keeps_its_mode(beneath: Beneath, root: Path) -> None:
    path = root / "src" / "a.py"
    path.chmod(0o751)
    made = beneath.replace("src/a.py", b"a = 2\n", expected_sha256=sha(b"a = 1\n"))
    assert path.read_bytes() == b"a = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert made.st_ino == path.stat().st_ino
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.py", "deep"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_replaced_file_keeps_its_owner(beneath: Beneath, root: Path) -> None:
    path = root / "src" / "a.py"
    os.chown(path, 1234, 1235)
    path.chmod(0o4755)
    beneath.replace("src/a.py", b"a = 2\n", expected_sha256=sha(b"a = 1\n"))
    info = path.stat()
    assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (1234, 1235, 0o4755)


def test_a_file_that_changed_is_neither_replaced_nor_removed(beneath: Beneath, root: Path) -> None:
    before = (root / "src" / "a.py").stat()
    for act in (
        lambda: beneath.replace("src/a.py", b"new", expected_sha256=sha(b"other")),
        lambda: beneath.remove("src/a.py", expected_sha256=sha(b"other")),
    ):
        with pytest.raises(DigestMismatchError, match=r"src/a\.py is no longer what it was"):
            act()
    after = (root / "src" / "a.py").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert sorted(each.name for each in (root / "src").iterdir()) == ["a.py", "deep"]


def test_what_comes_in_the_last_moment_is_given_back(root: Path, resolver: Resolver) -> None:
    path = root / "src" / "a.py"

    def late(folder: int, one: bytes, other: bytes) -> None:
        if path.read_bytes() == b"a = 1\n":
            path.unlink()
            path.write_bytes(b"somebody's work")
        exchange(folder, one, other)

    with Beneath(root, resolver=resolver, exchange=late) as beneath, pytest.raises(DigestMismatchError):
        beneath.replace("src/a.py", b"new", expected_sha256=sha(b"a = 1\n"))
    assert path.read_bytes() == b"somebody's work"
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.py", "deep"]


def test_a_file_that_goes_in_the_last_moment_is_not_made_again(root: Path, resolver: Resolver) -> None:
    path = root / "src" / "a.py"

    def late(folder: int, one: bytes, other: bytes) -> None:
        path.unlink(missing_ok=True)
        exchange(folder, one, other)

    with Beneath(root, resolver=resolver, exchange=late) as beneath, pytest.raises(DigestMismatchError):
        beneath.replace("src/a.py", b"new", expected_sha256=sha(b"a = 1\n"))
    assert sorted(each.name for each in path.parent.iterdir()) == ["deep"]


def test_without_exchange_a_file_is_looked_at_again_and_renamed_over(root: Path, resolver: Resolver) -> None:
    path = root / "src" / "a.py"

    def missing(folder: int, one: bytes, other: bytes) -> None:
        raise OSError(errno.ENOSYS, "no such call")

    def missing_and_late(folder: int, one: bytes, other: bytes) -> None:
        path.unlink()
        path.symlink_to("deep/b.py")
        raise OSError(errno.EINVAL, "not on this file system")

    with Beneath(root, resolver=resolver, exchange=missing) as beneath:
        beneath.replace("src/a.py", b"new", expected_sha256=sha(b"a = 1\n"))
    assert path.read_bytes() == b"new"
    with Beneath(root, resolver=resolver, exchange=missing_and_late) as beneath, pytest.raises(DigestMismatchError):
        beneath.replace("src/a.py", b"newer", expected_sha256=sha(b"new"))
    assert path.is_symlink()
    assert path.read_bytes() == b"b = 2\n"
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.py", "deep"]


def test_a_new_file_is_made_with_its_folders_and_never_over_anything(beneath: Beneath, root: Path) -> None:
    old = os.umask(0o027)
    try:
        beneath.create("src/new/folder/x.py", b"x")
    finally:
        os.umask(old)
    made = root / "src" / "new" / "folder" / "x.py"
    assert made.read_bytes() == b"x"
    assert stat.S_IMODE(made.stat().st_mode) == 0o640
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o750
    for path in ("src/a.py", "src", "dangling", "src/new/folder/x.py"):
        assert number_of(lambda path=path: beneath.create(path, b"y")) == errno.EEXIST
    assert number_of(lambda: beneath.create("src/", b"y")) == errno.EISDIR
    assert number_of(lambda: beneath.create("src/../x", b"y")) == errno.EINVAL
    assert number_of(lambda: beneath.create("src/a.py/x", b"y")) == errno.ENOTDIR
    assert [each.name for each in made.parent.iterdir()] == ["x.py"]


def test_a_file_is_removed_and_a_folder_is_not(beneath: Beneath, root: Path) -> None:
    beneath.remove("src/a.py", expected_sha256=sha(b"a = 1\n"))
    assert [each.name for each in (root / "src").iterdir()] == ["deep"]
    assert number_of(lambda: beneath.remove("src/deep", expected_sha256="")) == errno.EISDIR


def test_another_name_of_a_file_outside_is_told_and_replacing_leaves_that_alone(
    beneath: Beneath, root: Path, outside: Path
) -> None:
    (root / "hard").hardlink_to(outside / "secret.txt")
    descriptor, _ = beneath.open("hard")
    assert os.fstat(descriptor).st_nlink == 2
    os.close(descriptor)
    beneath.replace("hard", b"new", expected_sha256=sha(b"canary"))
    assert (outside / "secret.txt").read_bytes() == b"canary"


@pytest.mark.parametrize("raw", [b"b\xff\xfe.txt", b"two\nlines", LONGEST.encode(), b" ", "ﬁ\u0301".encode(), b"-rf"])
def test_odd_names_are_kept(beneath: Beneath, root: Path, raw: bytes) -> None:
    name = os.fsdecode(raw)
    beneath.create(name, b"1")
    beneath.replace(name, b"2", expected_sha256=sha(b"1"))
    assert content(beneath, name) == (b"2", name)
    assert name in {entry.name for entry in beneath.list(".")[1]}
    assert raw in names_in(root)
    beneath.remove(name, expected_sha256=sha(b"2"))
    assert raw not in names_in(root)


def test_the_root_may_move_and_a_link_in_its_place_changes_nothing(
    beneath: Beneath, root: Path, outside: Path, tmp_path: Path
) -> None:
    root.rename(tmp_path / "moved")
    root.symlink_to(outside)
    beneath.create("new", b"here")
    assert content(beneath, "code/a.py") == (b"a = 1\n", "src/a.py")
    assert (tmp_path / "moved" / "new").read_bytes() == b"here"
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]


def test_a_name_that_looks_deleted_is_a_name(beneath: Beneath) -> None:
    beneath.create("x (deleted)", b"still here")
    assert content(beneath, "x (deleted)") == (b"still here", "x (deleted)")


def test_no_descriptor_is_left_behind(beneath: Beneath) -> None:
    def spare() -> int:
        lowest = os.open("/dev/null", os.O_RDONLY)
        os.close(lowest)
        return lowest

    before = spare()
    for path in ("src/a.py", "out.txt", "../x", "loop", "nothing", "src", "code/deep/../../../x", "src/a.py/x"):
        for act in (
            lambda path=path: os.close(beneath.open(path).descriptor),
            lambda path=path: beneath.list(path),
            lambda path=path: beneath.stat(path),
            lambda path=path: beneath.place(path),
            lambda path=path: beneath.replace(path, b"", expected_sha256="no"),
            lambda path=path: beneath.remove(path, expected_sha256="no"),
        ):
            try:
                act()
            except (OSError, DigestMismatchError):
                continue
    assert spare() == before
