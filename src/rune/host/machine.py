"""What tells this boot and this process apart from others. Nothing that names the machine or its owner."""

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN_BOOT = "00000000-0000-0000-0000-000000000000"
# Fields of /proc/<pid>/stat behind the command, which may itself hold blanks and brackets.
_STATE, _START = 0, 19


def boot_id() -> str:
    """Return the id of this boot; all zeros where the system has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return _UNKNOWN_BOOT


def process_started(pid: int) -> int | None:
    """Return when a living process started, in clock ticks since boot.

    None: there is no such process, it is dead and not yet collected, or the system does not tell.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE] in {b"Z", b"X"} else int(fields[_START])


def available_memory() -> int | None:
    """Return how many bytes could be used now without swapping; None where the system does not tell.

    A server on another machine or a GPU has other memory: this is only the best guess at hand.
    """
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return int(kilobytes) * 1024 if kilobytes else None
