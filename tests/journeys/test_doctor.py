"""`rune doctor` on a healthy home, a damaged one, one that cannot be written, and none."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.shell import Ran, Shell


def found(ran: Ran) -> dict[str, Any]:
    return {finding["name"]: finding for finding in ran.json()["findings"]}


def content(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    entries = (path for path in folder.rglob("*"))
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns, path.stat().st_mode)
        for path in entries
    }


def segment(shell: Shell) -> Path:
    return shell.home / "journal" / "w000-000001.jsonl"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home in which three things were said and answered at length."""
    shell = Shell(tmp_path_factory.mktemp("template"))
    shell.script({"text": "yes " * 5000})
    for text in ("one", "two", "three"):
        assert shell.run("-p", text).code == 0
    return shell.home


@pytest.fixture
def shell(tmp_path: Path, template: Path) -> Shell:
    made = Shell(tmp_path)
    made.script({"text": "yes"})
    shutil.copytree(template, made.home)
    return made


def scribble(shell: Shell) -> bytes:
    """Damage a line in the middle; returns the bytes from there on."""
    lines = segment(shell).read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle] = lines[middle].replace(b'"partition_key"', b'"partition_kEy"', 1)
    segment(shell).write_bytes(b"".join(lines))
    return b"".join(lines[middle:])


def test_a_healthy_home_is_ok_in_every_part_and_stays_as_it_is(shell: Shell) -> None:
    before = content(shell.home)
    as_text, as_json = shell.run("doctor"), shell.run("doctor", "--json")
    assert (as_text.code, as_json.code, as_text.err) == (0, 0, "")
    assert content(shell.home) == before
    findings = found(as_json)
    states = {name: finding["state"] for name, finding in findings.items() if name not in {"stand-in", "locks"}}
    assert set(states.values()) == {"ok"}, states
    assert findings["evidence"]["counts"]["whole"] > 0
    assert "in step with the journal" in findings["views"]["detail"]
    assert "three" not in as_text.out
    assert "w000: " in as_text.out


def test_where_there_is_no_home_none_is_made(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    ran = shell.run("doctor", "--mend", "--json")
    assert found(ran)["journal"]["state"] == "ok"
    assert not shell.home.exists()


def test_damage_is_named_mended_and_everything_intact_is_there_again(shell: Shell) -> None:
    said = {event["event_id"] for event in shell.events()}
    aside = scribble(shell)
    before = content(shell.home)
    damaged = shell.run("doctor", "--json")
    assert damaged.code == 1
    assert content(shell.home) == before
    journal = found(damaged)["journal"]
    assert journal["state"] == "broken"
    assert any("w000-000001.jsonl, line" in line and "intact events behind it" in line for line in journal["lines"])
    assert "--mend" in journal["mend"]

    mended = shell.run("doctor", "--mend", "--json")
    assert mended.code == 0, mended
    assert [each["problem"] for each in mended.json()["mended"]] == [""] * len(mended.json()["mended"])
    assert "setting the damaged parts aside" in mended.err
    (kept,) = segment(shell).parent.glob("*.quarantined-*")
    assert kept.read_bytes().endswith(aside)
    after = {event["event_id"] for event in shell.events()}
    assert len(said - after) == 1
    assert shell.run("-p", "and on").code == 0
    assert shell.run("doctor").code == 0


def test_a_backup_keeps_what_it_has_when_a_segment_that_it_shares_is_mended(shell: Shell) -> None:
    scribble(shell)
    shared = shell.home.parent / "shared"
    os.link(segment(shell), shared)
    before = shared.read_bytes()
    assert shell.run("doctor", "--mend").code == 0
    assert shared.read_bytes() == before


def test_a_slot_that_is_being_written_is_left_alone(shell: Shell) -> None:
    shell.script({"text": "word " * 400, "delay_ms": 20})
    running = shell.start("-p", "go on")
    assert running.stdout is not None
    running.stdout.read(4)
    scribble(shell)
    ran = shell.run("doctor", "--mend")
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert ran.code == 1
    assert "could not be done" in ran.err
    assert "Close it, then run this again" in ran.err
    assert not list(segment(shell).parent.glob("*.quarantined-*"))


def test_views_that_are_garbage_are_no_loss_and_are_made_anew(shell: Shell) -> None:
    (views,) = shell.home.glob("views-*.db")
    views.write_bytes(b"garbage" * 1000)
    looked = shell.run("doctor", "--json")
    assert (looked.code, found(looked)["views"]["state"]) == (0, "warning")
    assert views.read_bytes() == b"garbage" * 1000
    assert found(shell.run("doctor", "--mend", "--json"))["views"]["state"] == "ok"
    assert "three" in shell.run("sessions", "list", "--all").out


def test_views_with_deleted_rows_are_noticed_and_made_anew(shell: Shell) -> None:
    (views,) = shell.home.glob("views-*.db")
    with contextlib.closing(sqlite3.connect(views, isolation_level=None)) as connection:
        connection.execute("DELETE FROM messages WHERE rowid = 1")
    aside = shell.folder.parent / "aside"
    aside.mkdir(0o700)
    shell.environ["XDG_RUNTIME_DIR"] = str(aside)
    before = content(shell.home)
    looked = found(shell.run("doctor", "--json"))["views"]
    assert (looked["state"], "is not what the journal says, in conversations" in looked["detail"]) == ("warning", True)
    assert content(shell.home) == before
    assert list(aside.iterdir()) == []
    mended = shell.run("doctor", "--mend", "--json")
    assert f"making {views.name} anew from the journal" in mended.err
    after = found(mended)["views"]
    assert (after["state"], after["counts"]["differing"]) == ("ok", 0)


def test_a_missing_blob_is_named_and_cannot_be_mended(shell: Shell) -> None:
    blobs = sorted(shell.home.glob("evidence/??/*"), key=lambda path: path.stat().st_size)
    blobs[-1].unlink()
    ran = shell.run("doctor", "--mend", "--json")
    evidence = found(ran)["evidence"]
    assert (ran.code, evidence["state"], evidence["counts"]["missing"]) == (1, "broken", 1)
    assert "from a backup" in evidence["mend"]


def test_permissions_and_leftovers_are_mended(shell: Shell) -> None:
    shell.home.chmod(0o755)
    segment(shell).chmod(0o644)
    leftover = shell.home / "evidence" / "unfinished" / "1-1-1"
    leftover.write_bytes(b"half")
    os.utime(leftover, (0, 0))
    assert "chmod 0600" in shell.run("doctor").out
    ran = shell.run("doctor", "--mend", "--json")
    states = {finding["state"] for name, finding in found(ran).items() if name in {"permissions", "evidence"}}
    assert states == {"ok"}
    assert not leftover.exists()
    assert segment(shell).stat().st_mode & 0o777 == 0o600


def test_it_works_without_what_the_rest_needs(shell: Shell) -> None:
    (shell.home / "config.yaml").write_text("[broken")
    (shell.home / "state" / "device.json").unlink()
    findings = found(shell.run("doctor", "--json"))
    assert (findings["journal"]["state"], findings["config"]["state"]) == ("ok", "broken")


def test_a_home_that_cannot_be_written_is_looked_at_all_the_same(shell: Shell) -> None:
    # In a mount namespace of its own, since root may write everything else.
    script = f'mount --bind "{shell.home}" "{shell.home}" && mount -o remount,bind,ro "{shell.home}" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", *shell.command("doctor", "--json")]
    done = subprocess.run(command, capture_output=True, cwd=shell.folder, env=shell.environ, timeout=60, check=False)
    if b"unshare" in done.stderr or b"mount" in done.stderr:
        pytest.skip("no mount of one's own here")
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert (findings["journal"]["state"], findings["views"]["state"], findings["evidence"]["state"]) == ("ok",) * 3


def test_a_torn_tail_is_cut_off_and_health_says_so(shell: Shell) -> None:
    with segment(shell).open("ab") as file:
        file.write(b'{"actor_id":"rune","half:')
    health = shell.run("-p", "/health").out
    assert "journal       recovered" in health
    assert "a torn tail of 25 bytes was cut off w000-000001.jsonl and kept as" in health
    assert found(shell.run("doctor", "--json"))["journal"]["counts"]["kept_files"] == 1
