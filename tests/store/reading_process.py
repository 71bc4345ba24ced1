"""Reads a journal and tells what it gave: `python -m tests.store.reading_process HOME`."""

import sys
from pathlib import Path

from rune.errors import StorageError
from tests.store.journals import open_now

if __name__ == "__main__":
    try:
        for _, envelope in open_now(Path(sys.argv[1]), read_only=True).read({}):
            print(envelope.event_id)
    except StorageError as error:
        print(type(error).__name__, error.message)
