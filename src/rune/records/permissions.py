"""What a person lets tools do: the mode of a conversation, and rules that were made by answering "always"."""

from typing import Literal

from rune.records.record import Record

PermissionMode = Literal["ask", "edits", "read"]
"""`ask`: every change asks. `edits`: edits inside the workspace run, commands ask. `read`: nothing changes."""


class PermissionChanged(Record, frozen=True, kw_only=True):
    """Another permission mode holds in a conversation, from the next call on."""

    schema_version: int = 1
    conversation_id: str
    mode: PermissionMode
    previous: PermissionMode


class RuleAdded(Record, frozen=True, kw_only=True):
    """From now on this is allowed in a folder without asking. `folder` as `host.paths.storable_path` writes it; `rule`
    as `tools.policy` reads it; `approval_id` is the question whose answer made it.
    """

    schema_version: int = 1
    id: str
    folder: str
    rule: str
    approval_id: str


class RuleRevoked(Record, frozen=True, kw_only=True):
    """It asks again."""

    schema_version: int = 1
    id: str
