"""Which network ports a process listens on, as the kernel tells it."""

from pathlib import Path

_LISTEN = "0A"
_TABLES = ("tcp", "tcp6")


def listening(pid: int) -> tuple[int, ...]:
    """Return the TCP ports on which a process listens, sorted; nothing where there is no /proc.

    Raises OSError for a process that is not there or is another user's.
    """
    process = Path(f"/proc/{pid}")
    if not Path("/proc/self/net").exists():
        return ()
    own = {inode for entry in (process / "fd").iterdir() if (inode := _socket(entry))}
    ports = {
        int(local.rpartition(":")[2], 16)
        for table in _TABLES
        for local, state, inode in _rows(process / "net" / table)
        if state == _LISTEN and inode in own
    }
    return tuple(sorted(ports))


def _socket(descriptor: Path) -> str:
    """Return the inode of a socket's descriptor; "" for anything else, and for one that was closed meanwhile."""
    try:
        target = str(descriptor.readlink())
    except FileNotFoundError:
        return ""
    return target.removeprefix("socket:[").removesuffix("]") if target.startswith("socket:[") else ""


def _rows(table: Path) -> list[tuple[str, str, str]]:
    if not table.exists():
        return []
    lines = table.read_text("ascii").splitlines()[1:]
    return [(fields[1], fields[3], fields[9]) for fields in (line.split() for line in lines)]
