"""Another process lets two names change places without end, as fast as it can, while one of them is used."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rune.errors import DigestMismatchError
from rune.host.beneath import Beneath
from rune.host.linux_calls import exchange
from rune.host.resolving import ByWalk, Resolver

TRIES = 12_000
APPROVED = b"approved\n"
OTHER = b"somebody's own\n"
SWAPPING = """
import os, sys
from rune.host.linux_calls import exchange
at = os.open(sys.argv[1], os.O_RDONLY)
one, other = map(os.fsencode, sys.argv[2:])
print(flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000):
        try:
            exchange(at, one, other)
        except FileNotFoundError:
            pass
"""


@pytest.fixture(autouse=True)
def exchange_works(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "other").touch()
    at = os.open(tmp_path, os.O_RDONLY)
    try:
        exchange(at, b"one", b"other")
    except OSError:
        pytest.skip("this system cannot exchange two names")
    finally:
        os.close(at)


@pytest.fixture(params=[None, ByWalk()], ids=["best", "walk"])
def resolver(request: pytest.FixtureRequest) -> Resolver | None:
    found: Resolver | None = request.param
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for folder, data in ((root / "src", APPROVED), (tmp_path / "outside", b"canary")):
        folder.mkdir(parents=True)
        (folder / "a.py").write_bytes(data)
    (root / "evil").symlink_to("../outside")
    (root / "src" / "evil.py").symlink_to("../../outside/a.py")
    (root / "src" / "other.py").write_bytes(OTHER)
    return root


@contextmanager
def swapping(folder: Path, one: str, other: str) -> Generator[None]:
    command = [sys.executable, "-c", SWAPPING, os.fspath(folder), one, other]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


@pytest.mark.parametrize(("folder", "one", "other"), [(".", "src", "evil"), ("src", "a.py", "evil.py")])
def test_what_a_link_leads_to_is_never_read(
    root: Path, resolver: Resolver | None, folder: str, one: str, other: str
) -> None:
    seen: set[bytes] = set()
    refused = 0
    with swapping(root / folder, one, other), Beneath(root, resolver=resolver) as beneath:
        for _ in range(TRIES):
            try:
                descriptor = beneath.open("src/a.py").descriptor
            except OSError:
                refused += 1
                continue
            with os.fdopen(descriptor, "rb") as file:
                seen.add(file.read())
    assert seen == {APPROVED}
    assert refused


def test_a_file_that_took_the_place_is_never_removed(root: Path, resolver: Resolver | None) -> None:
    expected = hashlib.sha256(APPROVED).hexdigest()
    refused = 0
    with swapping(root / "src", "a.py", "other.py"), Beneath(root, resolver=resolver) as beneath:
        for _ in range(TRIES // 4):
            try:
                beneath.remove("src/a.py", expected_sha256=expected)
            except (OSError, DigestMismatchError):
                refused += 1
            else:
                # One of the two is gone: nothing is swapped any more.
                kept = [each for each in (root / "src").iterdir() if not each.is_symlink()]
                assert [each.read_bytes() for each in kept] == [OTHER]
                name = "other.py" if kept[0].name == "a.py" else "a.py"
                beneath.create(f"src/{name}", APPROVED)
    assert refused
