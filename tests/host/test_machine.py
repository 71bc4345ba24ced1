import os
import re
import subprocess
import sys

from rune.host.machine import boot_id, process_started


def test_the_boot_id_is_a_uuid_and_stays() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", boot_id())
    assert boot_id() == boot_id()


def test_a_process_that_started_later_says_so() -> None:
    mine = process_started(os.getpid())
    assert mine is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        theirs = process_started(child.pid)
        assert theirs is not None
        assert theirs >= mine
        child.communicate(b"\n")


def test_a_dead_process_has_no_start_although_nobody_has_collected_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # ends when the child does
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_started(child.pid) is None
    child.wait()
    child.stdout.close()
    assert process_started(child.pid) is None


def test_a_command_with_brackets_and_blanks_is_no_trouble() -> None:
    script = 'printf "a) R 1 (b" > /proc/self/comm; read line'
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as child:
        assert process_started(child.pid) is not None
        child.communicate(b"\n")
