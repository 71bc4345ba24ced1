"""The digest of a prepared call: what an approval is bound to (tools.md, Prepare, approve, run once)."""

import hashlib
import json
from collections.abc import Mapping

from rune.records.tools import ToolCall


def digest_of(call: ToolCall, preconditions: Mapping[str, str]) -> str:
    """Return `sha256:` and 64 hex digits over tool, canonical arguments and preconditions.

    Raises ValueError for a number that JSON lacks.
    """
    whole = json.dumps(
        [call.name, call.arguments, dict(preconditions)],
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
    )
    return f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}"


def key_of(call: ToolCall) -> str:
    """Return what is the same for two calls of one tool with the same arguments. Raises as `digest_of`."""
    return digest_of(call, {})
