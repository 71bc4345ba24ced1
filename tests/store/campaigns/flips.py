"""Damage of one bit."""

import os
from pathlib import Path


def flip(path: Path, at: int, bit: int) -> None:
    """Turn one bit of a file over."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    (byte,) = os.pread(descriptor, 1, at)
    os.pwrite(descriptor, bytes([byte ^ 1 << bit]), at)
    os.close(descriptor)
