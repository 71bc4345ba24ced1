"""Whether locks hold, and where a folder lies."""

import fcntl
import os
from pathlib import Path

import pytest

from rune.host.file_systems import is_network, kind_of, locks_hold


def test_locks_hold_here_and_nothing_is_written(tmp_path: Path) -> None:
    assert locks_hold(tmp_path) is True
    assert list(tmp_path.iterdir()) == []


def test_where_somebody_else_tries_too_nothing_is_claimed(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert locks_hold(tmp_path) is None
    os.close(descriptor)


def test_the_kind_is_that_of_the_mount_below_which_a_folder_lies(tmp_path: Path) -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("only Linux tells")
    assert kind_of(Path("/proc/self")) == "proc"
    assert kind_of(tmp_path) == kind_of(tmp_path.parent) != "proc"


@pytest.mark.parametrize(("kind", "network"), [("nfs4", True), ("fuse.sshfs", True), ("ext4", False), ("", False)])
def test_network_file_systems_are_known_by_name(kind: str, *, network: bool) -> None:
    assert is_network(kind) is network
