"""The standard streams as the system gives them: closed, full, not blocking. Imports next to nothing."""

import os

STDIN, STDOUT, STDERR = 0, 1, 2


def fill_closed() -> frozenset[int]:
    """Put /dev/null where a standard stream was closed, and return which were.

    The next file that is opened gets the lowest free number: with stdout closed that would be the journal,
    and what is printed would be written into it.
    """
    closed: set[int] = set()
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.add(descriptor)
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            os.set_inheritable(descriptor, True)
    return frozenset(closed)


def put(descriptor: int, data: bytes | memoryview) -> int:
    """Write some of it, at least a byte, waiting as long as that takes, also where the stream does not block.

    Returns how many bytes were taken. Raises OSError.
    """
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            wait_for(descriptor, writing=True)


def wait_for(descriptor: int, *, writing: bool = False, seconds: float | None = None) -> bool:
    """Wait until a descriptor can be read or written, or has failed; False when `seconds` passed first."""
    import select

    # poll and not select: that one refuses numbers from 1024 on.
    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT if writing else select.POLLIN)
    return bool(waiting.poll(None if seconds is None else seconds * 1000))


def print_line(text: str, closed: frozenset[int]) -> int:
    """Print one line of ours and return the exit code: 0, or 1 when stdout does not take it."""
    try:
        if STDOUT in closed:
            problem = "stdout is closed"
        else:
            _put_all(STDOUT, text)
            return 0
    except BrokenPipeError:
        return 1  # whoever read it has seen enough
    except OSError as error:
        problem = f"stdout cannot be written: {error.strerror or error}"
    try:
        _put_all(STDERR, f"rune: {problem}")
    except OSError:
        return 1  # nobody is left to be told
    return 1


def _put_all(descriptor: int, text: str) -> None:
    data = f"{text}\n".encode()
    while data:
        data = data[put(descriptor, data) :]


def settle() -> None:
    """Empty what Python itself holds for both, so that its own exit neither complains nor ends with 120."""
    import sys

    for stream, descriptor in ((sys.stdout, STDOUT), (sys.stderr, STDERR)):
        try:
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]  # None when it was closed at start
                stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
