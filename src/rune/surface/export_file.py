"""The file that something is written into for a person: a new one, never one that is there."""

import re
from pathlib import Path
from typing import Final, Literal

from rune.errors import StorageUnavailableError, UsageError
from rune.host.files import create_whole
from rune.host.paths import real_path, storable_path
from rune.records.messages import ConversationRecord
from rune.surface.export import WholeConversation, as_json, as_markdown

Format = Literal["markdown", "json"]

SUFFIX: Final[dict[Format, str]] = {"markdown": ".md", "json": ".json"}
_NAME_CHARACTERS: Final = 60
_NAME_BYTES: Final = 180  # a name may have 255 in most file systems
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time


def exported(whole: WholeConversation, kind: Format) -> str:
    """Return the conversation as that kind of document."""
    return as_json(whole) if kind == "json" else as_markdown(whole)


def kind_of(name: str) -> Format:
    """Return what a file of this name is to hold: JSON by its suffix, else Markdown."""
    return "json" if name.lower().endswith(SUFFIX["json"]) else "markdown"


def default_name(record: ConversationRecord, kind: Format = "markdown") -> str:
    """Return `<title>-<end of id>.md`, with nothing in it that a shell or a file system would take amiss."""
    words = "-".join(re.findall(r"\w+", record.title.lower()))[:_NAME_CHARACTERS]
    title = words.encode("utf-8", "ignore")[:_NAME_BYTES].decode("utf-8", "ignore").strip("-_")
    return f"{title or 'conversation'}-{record.id[-_ID_CHARACTERS:]}{SUFFIX[kind]}"


def write_export(path: Path, text: str) -> None:
    """Write a document into a new file; as `write_new`."""
    write_new(path, text.encode("utf-8", "backslashreplace"))


def path_in(folder: str, named: str) -> Path:
    """Return the file that a person names, seen from a folder (stored text). Blocking. Raises UsageError."""
    try:
        return real_path(folder) / Path(named).expanduser()
    except RuntimeError as error:  # ~nobody
        raise UsageError(f"{named!r} names a home that is not there", hint="Give the whole path.") from error


def write_new(path: Path, data: bytes) -> None:
    """Write bytes into a new file (0600), whole or not at all. Blocking.

    Raises UsageError for what is no name of a file or names one that is there, StorageUnavailableError when it
    cannot be written.
    """
    shown = storable_path(path)
    if not path.name:
        raise UsageError(f"{shown!r} is no name for a file", hint="Name a new file.")
    try:
        create_whole(path, data)
    except FileExistsError as error:
        raise UsageError(
            f"{shown} exists, and nothing is overwritten", hint="Name another file, or remove that one first."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StorageUnavailableError(f"{shown} cannot be written: {reason}", hint="Name a file elsewhere.") from error
