"""Where the tools of one conversation work, and what they share. Bootstrap makes it; tools keep nothing else."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from rune.records.permissions import PermissionMode
from rune.text.masking import Masker
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from rune.tools.undo import UndoStore


class Workplace(msgspec.Struct, kw_only=True):
    """One conversation's folder and the rules for it. `folder` is real and absolute; `files` acts by `places`.

    `environment` is what commands find (`host.environment`), `masker` takes secrets out of all that leaves a tool.
    `keep` stores bytes as evidence, given what they are in a word, and returns their id; `fetch` reads them back
    (NotFoundError, EvidenceTamperedError). `seen` are the files whose content the model was shown in this conversation,
    by real path, with the hash of what it saw; whoever runs calls keeps it. `mode` is the permission mode.
    """

    conversation_id: str
    folder: Path
    places: Places
    files: WorkspaceFiles
    environment: Mapping[str, str]
    masker: Masker
    undo: UndoStore
    keep: Callable[[bytes, str], Awaitable[str]]
    fetch: Callable[[str], Awaitable[bytes]]
    seen: dict[Path, str] = {}
    mode: PermissionMode = "ask"

    def named(self, path: Path) -> str:
        """Return a path as a model and a person are told it: relative to the folder where it lies below."""
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else str(path)
