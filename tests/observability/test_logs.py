"""The log takes everything, shows no secret, forges no line, and never bothers anybody."""

import logging
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rune.observability.health import SubsystemHealthRegistry
from rune.observability.logs import setup_logging
from tests.fakes.clock import CountedClock

RECORD = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ \d+ \S+: ")
log = logging.getLogger("rune.turn")


class Logging:
    """A log that is set up, its health, and its file."""

    def __init__(self, folder: Path, masker: Callable[[str], str] = str) -> None:
        self.health = SubsystemHealthRegistry(CountedClock(), None)
        self.file = folder / "w000.log"
        self.close = setup_logging(folder, "w000", masker, health=self.health)

    def lines(self) -> list[str]:
        return self.file.read_bytes().decode().split("\n")[:-1]


def fail(text: str) -> None:
    raise ValueError(text)


def run_logging(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run these lines in a process of their own, where pytest's log handlers are not."""
    before = (
        "import logging, sys",
        "from pathlib import Path",
        "from rune.host.clock import SystemClock",
        "from rune.observability.health import SubsystemHealthRegistry",
        "from rune.observability.logs import setup_logging",
        "health = SubsystemHealthRegistry(SystemClock(), None)",
        "close = setup_logging(Path(sys.argv[1]), 'w000', str, health=health)",
    )
    command = [sys.executable, "-c", "\n".join((*before, *lines, "close()")), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logging]:
    made = Logging(tmp_path)
    yield made
    made.close()


def test_a_record_is_one_line_with_its_time_level_process_and_name(logged: Logging) -> None:
    log.info("hello %s", "world")
    (line,) = logged.lines()
    assert RECORD.match(line)
    assert line.endswith(f"Z INFO {os.getpid()} rune.turn: hello world")
    assert stat.S_IMODE(logged.file.stat().st_mode) == 0o600


def test_libraries_are_logged_from_warning_on_and_rune_from_info_on(logged: Logging) -> None:
    log.debug("not this")
    logging.getLogger("httpx").info("not this either")
    logging.getLogger("asyncio").error("but this")
    assert [line.split(": ", 1)[1] for line in logged.lines()] == ["but this"]


def test_a_message_cannot_look_like_a_second_record(logged: Logging) -> None:
    log.info("a\n2026-11-30T14:00:00.000Z ERROR 1 rune.turn: forged\r\u2028b\x85c")
    (line,) = logged.lines()
    assert line.endswith(r"a\n2026-11-30T14:00:00.000Z ERROR 1 rune.turn: forged\r\u2028b\x85c")


def test_control_sequences_are_escaped(logged: Logging) -> None:
    log.info("\x1b]52;c;eA==\x07 \x9b2J \u202e \U000e0041 caf\udce9 naïve 中")
    assert logged.lines()[0].endswith(r"\x1b]52;c;eA==\x07 \x9b2J \u202e \U000e0041 caf\udce9 naïve 中")


def test_a_traceback_is_kept_in_indented_lines(logged: Logging) -> None:
    try:
        fail("broken\n2026-11-30T14:00:00.000Z ERROR 1 rune: forged \x1b[2J")
    except ValueError:
        log.exception("it failed")
    lines = logged.lines()
    assert [bool(RECORD.match(line)) for line in lines] == [True] + [False] * (len(lines) - 1)
    assert all(line.startswith("    | ") for line in lines[1:])
    assert lines[1] == "    | Traceback (most recent call last):"
    assert "test_a_traceback_is_kept_in_indented_lines" in "".join(lines)
    assert lines[-1] == "    | 2026-11-30T14:00:00.000Z ERROR 1 rune: forged \\x1b[2J"


def test_secrets_are_masked_in_messages_and_tracebacks(tmp_path: Path) -> None:
    made = Logging(tmp_path, lambda text: text.replace("hunter2", "***"))
    log.info("key %s", "hunter2")
    log.error("failed", exc_info=ValueError("hunter2"))
    made.close()
    text = made.file.read_text()
    assert text.count("***") == 2
    assert "hunter2" not in text


def test_a_broken_masker_writes_nothing_and_is_visible_in_health(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no masker")

    made = Logging(tmp_path, broken)
    log.error("hunter2")
    made.close()
    assert not made.file.exists()
    assert [(row.subsystem, row.failures, row.tier) for row in made.health.snapshot()] == [("log", 1, 2)]
    assert capfd.readouterr() == ("", "")


def test_a_message_whose_arguments_do_not_fit_is_visible_in_health_only(tmp_path: Path) -> None:
    result = run_logging(
        tmp_path, "logging.getLogger('rune').error('%d', 'x')", "print(health.snapshot()[0].subsystem)"
    )
    assert (result.stdout, result.stderr) == ("log\n", "")


def test_a_log_that_cannot_be_written_is_visible_in_health_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Logging(tmp_path / "nowhere")
    log.error("x")
    log.error("y")
    made.close()
    (row,) = made.health.snapshot()
    assert (row.subsystem, row.failures, row.tier) == ("log", 2, 2)
    assert "No such file or directory" in row.last_error
    assert capfd.readouterr() == ("", "")


def test_a_log_that_can_be_written_again_is_healthy_again(tmp_path: Path) -> None:
    made = Logging(tmp_path / "later")
    log.error("lost")
    (tmp_path / "later").mkdir()
    log.error("kept")
    made.close()
    assert made.health.snapshot()[0].healthy_since == "2026-11-30T14:00:00.000Z"
    assert [line.split(": ", 1)[1] for line in made.lines()] == ["kept"]


def test_a_full_disk_is_visible_in_health_only(tmp_path: Path) -> None:
    # A limit on file size gives a short write and then EFBIG, as a full disk gives one and then ENOSPC.
    result = run_logging(
        tmp_path,
        "import resource, signal",
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))",
        "for n in range(30): logging.getLogger('rune').error('line %d', n)",
        "print(health.snapshot()[0].subsystem, health.snapshot()[0].failures > 0)",
    )
    assert (result.stdout, result.stderr) == ("log True\n", "")
    text = (tmp_path / "w000.log").read_text()
    assert len(text) <= 1000
    assert text.endswith("\n")
    assert all(RECORD.match(line) for line in text.splitlines())


def test_a_link_in_the_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "w000.log").symlink_to(tmp_path / "elsewhere")
    made = Logging(tmp_path)
    log.error("x")
    made.close()
    assert not (tmp_path / "elsewhere").exists()
    assert [row.subsystem for row in made.health.snapshot()] == ["log"]


def test_a_failure_that_is_recorded_lands_in_the_same_log(logged: Logging) -> None:
    logged.health.record_failure("memory", ValueError("x"), 1)
    assert logged.lines()[0].endswith("rune.observability.health: T1 memory")
    assert logged.lines()[-1] == "    | ValueError: x"


def test_nothing_reaches_the_terminal_while_it_is_set_up(tmp_path: Path) -> None:
    result = run_logging(
        tmp_path,
        "import asyncio, warnings",
        "warnings.warn('a warning')",
        "logging.getLogger('somebody').critical('a cry')",
        "async def fail(): raise ValueError('nobody waits')",
        "async def main(): await asyncio.wait([asyncio.create_task(fail())])",
        "asyncio.run(main())",
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    text = (tmp_path / "w000.log").read_text()
    assert all(words in text for words in ("a warning", "a cry", "nobody waits"))


def test_closing_puts_logging_back_as_it_was(tmp_path: Path) -> None:
    root, own = logging.getLogger(), logging.getLogger("rune")
    levels = root.level, own.level
    root.setLevel(logging.CRITICAL)
    own.setLevel(logging.DEBUG)
    before = (root.level, own.level, list(root.handlers), list(own.handlers))
    try:
        made = Logging(tmp_path)
        assert (root.level, own.level) == (logging.WARNING, logging.INFO)
        made.close()
        made.close()
        assert (root.level, own.level, list(root.handlers), list(own.handlers)) == before
    finally:
        root.setLevel(levels[0])
        own.setLevel(levels[1])


def test_a_log_has_as_many_pieces_of_that_length_as_were_asked_for(tmp_path: Path) -> None:
    health = SubsystemHealthRegistry(CountedClock(), None)
    close = setup_logging(tmp_path, "w000", str, health=health, limit=200, pieces=2)
    for number in range(20):
        log.info("line %d", number)
    close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w000.log", "w000.log.1"]
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 200
