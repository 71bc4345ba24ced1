"""A home that cannot be written is still read, says why in one line, and is as before once it can be written."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.journeys.shell import Shell
from tests.small_disk import SmallDisk, needs_root, small_disk
from tests.store.journals import of_a_later_format


@pytest.fixture
def disk(shell: Shell) -> Generator[SmallDisk]:
    shell.script({"text": "the Danube"})
    copies = shell.folder.parent / "runtime"
    copies.mkdir(mode=0o700)
    shell.environ["XDG_RUNTIME_DIR"] = str(copies)
    with small_disk(shell.home) as mounted:
        yield mounted


def left_over(shell: Shell) -> list[Path]:
    """Return copies of views that nobody removed, and files that were not finished."""
    copies = Path(shell.environ["XDG_RUNTIME_DIR"]).iterdir()
    return [*copies, *shell.home.rglob(".*.tmp")]


def refused(shell: Shell) -> str:
    """Ask, which must be refused before a model is called; returns what was said."""
    ran = shell.run("-p", "lost?")
    assert (ran.code, ran.out) == (1, "")
    return ran.err


@needs_root
def test_everything_on_a_read_only_disk_can_be_read(shell: Shell, disk: SmallDisk) -> None:
    identity = shell.run("-p", "name a river", "--output-format", "json").json()["conversation_id"]
    disk.make_read_only()
    for command, expected in (
        (("sessions", "list"), identity),
        (("sessions", "show", identity), "the Danube"),
        (("sessions", "search", "river"), identity),
        (("events", "--type", "user.message"), "name a river"),
        (("-c", "-p", "/context"), "tokens"),
    ):
        ran = shell.run(*command)
        assert ran.code == 0, (command, ran)
        assert expected in ran.out, (command, ran)
        assert ran.err.startswith(f"rune: nothing can be written: {shell.home} is on a disk that is mounted read-only")
        assert ran.err.count("\n") == 1, (command, ran)
    assert "Remount" in refused(shell)
    doctor = shell.run("doctor")
    assert (doctor.code, "BROKEN  home: it can only be read" in doctor.out) == (1, True), doctor
    assert left_over(shell) == []
    disk.make_writable()
    after = shell.run("-c", "-p", "and another?")
    assert (after.code, after.err) == (0, "")
    assert [event["body"]["content"] for event in shell.events("user.message")] == ["name a river", "and another?"]


@needs_root
def test_a_full_disk_is_read_and_named_by_what_it_is(shell: Shell, disk: SmallDisk) -> None:
    identity = shell.run("-p", "name a river", "--output-format", "json").json()["conversation_id"]
    disk.fill()
    listed = shell.run("sessions", "list")
    assert (listed.code, identity in listed.out) == (0, True)
    why = f"{shell.home}: the disk is full"
    assert listed.err == f"rune: nothing can be written: {why}. Free some space there and start Rune again.\n"
    assert why in refused(shell)
    assert left_over(shell) == []
    disk.make_room()
    assert shell.run("-c", "-p", "and another?").out == "the Danube\n"


@needs_root
def test_views_that_are_missing_on_a_read_only_disk_are_made_elsewhere(shell: Shell, disk: SmallDisk) -> None:
    shell.run("-p", "name a river")
    for part in shell.home.glob("views-*"):
        part.unlink()
    disk.make_read_only()
    assert "name a river" in shell.run("sessions", "list").out
    assert left_over(shell) == []


@pytest.mark.parametrize("views", ["kept", "lost"])
def test_a_damaged_journal_is_listed_up_to_the_damage_with_one_note(shell: Shell, views: str) -> None:
    shell.script({"text": "the Danube"})
    shell.run("-p", "name a river")
    path = shell.home / "journal" / "w000-000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    number = 1 + next(at for at, line in enumerate(lines) if b"response.generated" in line)
    lines[number - 1] = lines[number - 1].replace(b"Danube", b"Rhine!")
    path.write_bytes(b"".join(lines))
    if views == "lost":
        for part in shell.home.glob("views-*"):
            part.unlink()
    listed = shell.run("sessions", "list")
    assert listed.code == 0
    assert "name a river" in listed.out
    assert listed.err.count("\n") == 1
    for part in (f"{path}, line {number}, byte", "damaged", "`rune doctor`"):
        assert part in listed.err
    assert f"{path}, line {number}" in refused(shell)
    assert path.read_bytes() == b"".join(lines)
    assert not (shell.home / "journal" / "w001-000001.jsonl").exists()


def test_another_programs_file_leaves_the_rest_readable_until_it_is_moved(shell: Shell) -> None:
    shell.script({"text": "the Danube"})
    shell.run("-p", "name a river")
    foreign = shell.home / "journal" / "w001-000001.jsonl"
    foreign.write_bytes(b'{"id":"1","type":"user.message","payload":{"text":"hello"}}\n')
    for part in shell.home.glob("views-*"):
        part.unlink()
    listed = shell.run("sessions", "list")
    assert (listed.code, "name a river" in listed.out) == (0, True)
    assert listed.err.count("\n") == 1
    assert "rune import events w001-000001.jsonl" in listed.err
    assert "not written in this journal's form" in refused(shell)
    assert "--mend" not in next(line for line in shell.run("doctor").out.splitlines() if "Move that file" in line)
    foreign.rename(shell.folder / "other.jsonl")
    assert shell.run("-c", "-p", "and another?").code == 0


def test_what_a_newer_rune_wrote_leaves_the_rest_readable(shell: Shell) -> None:
    shell.script({"text": "the Danube"})
    shell.run("-p", "name a river")
    path = shell.home / "journal" / "w000-000001.jsonl"
    newer = shell.home / "journal" / "w001-000001.jsonl"
    newer.write_bytes(of_a_later_format(path.read_bytes().replace(b'"w000"', b'"w001"')))
    for part in shell.home.glob("views-*"):
        part.unlink()
    listed = shell.run("sessions", "list")
    assert (listed.code, "name a river" in listed.out) == (0, True)
    assert listed.err.count("\n") == 1
    assert "w001-000001.jsonl has format 7" in listed.err
    assert "newer Rune" in refused(shell)
    newer.unlink()
    assert shell.run("-c", "-p", "and another?").code == 0
