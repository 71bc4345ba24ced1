"""write_file: a new file, or another content for one that the model has read."""

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import DigestMismatchError, InvalidArgumentsError
from rune.tools.editing.forms import is_plain_marker
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.file_change import carried_out, planned, target_of, text_of
from rune.tools.files import MOST_BYTES, Target
from rune.tools.line_ends import with_lf
from rune.tools.naming import shown_name
from rune.tools.paging import MOST_BYTES as SHOWN_BYTES
from rune.tools.paging import MOST_LINES
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.text_file import TextFile, decode
from rune.tools.workplace import Workplace

NAME: Final = "write_file"

_DESCRIPTION: Final = "Write a whole file. Use it for a new file; for a part of one that is there use edit_file."
_MARK: Final = "\ufeff"
_NO_BYTES: Final = "\N{REPLACEMENT CHARACTER}"
_FENCE: Final = "```"
_WITH_FENCES: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt"})
_NUMBERED: Final = re.compile(r"\d+\|")
_KEPT_END: Final = "The newline at its end was kept."


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="File to write.", examples=["src/cart.py"])]
    content: Annotated[
        str, Meta(description="All that it shall hold.", examples=["def add(a, b):\n    return a + b\n"])
    ]


class WriteFile:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "edit"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Look what is there, and compute what would be (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, NAME)
        return await asyncio.to_thread(_plan, given, place)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Keep what it holds for /undo, and write it (Tool.execute). Raises StorageUnavailableError too."""
        return await asyncio.to_thread(carried_out, plan.state, place, watch)


def _plan(given: _Arguments, place: Workplace) -> Plan:
    if len(given.content) > MOST_BYTES:
        raise InvalidArgumentsError(f"{NAME}: the content is larger than {MOST_BYTES:,} bytes. Nothing was written.")
    target = target_of(given.path, place)
    if wrapped := _wrapped(given.content, target):
        raise InvalidArgumentsError(f"{NAME}: {wrapped}. Nothing was written.", hint="Give the content without them.")
    if target.facts is None:
        return planned(target, place, old=None, texts=(None, given.content), new=_encoded(given.content))
    name = shown_name(place.named(target.path))
    if target.facts.size:
        _was_read(target, place, name)
    old, file = text_of(target, place)
    content = with_lf(given.content)
    _meant_whole(content, file, name)
    if file.encoding == "utf-8-damaged" and _NO_BYTES in content:
        raise InvalidArgumentsError(
            f"{name} holds bytes that are no UTF-8; you were shown {_NO_BYTES} for them, and they would be lost. "
            "Nothing was written.",
            hint="Use edit_file, which leaves them as they are.",
        )
    if not file.encoding.startswith("utf-8") or file.encoding == "utf-8-bom":
        content = content.removeprefix(_MARK)  # it has one of its own, or can have none
    notes: tuple[str, ...] = ()
    if file.final_newline and content and not content.endswith("\n"):
        content, notes = f"{content}\n", (_KEPT_END,)
    return planned(target, place, old=old, texts=(file.text, content), new=file.with_text(content), notes=notes)


def _wrapped(content: str, target: Target) -> str:
    """Say what stands round the content that belongs to no file: small models copy it along; "" for nothing."""
    lines = content.strip().split("\n")
    if lines[0].startswith(_FENCE) and lines[-1] == _FENCE and target.path.suffix not in _WITH_FENCES:
        return f"the content begins and ends with {_FENCE} lines"
    if len(lines) > 1 and all(_NUMBERED.match(line) for line in lines):
        return "the lines of the content have numbers"
    return ""


def _meant_whole(content: str, file: TextFile, name: str) -> None:
    """Raise InvalidArgumentsError where a part may have been meant for the whole file."""
    there = frozenset(file.text.split("\n"))
    marker = next((line for line in content.split("\n") if is_plain_marker(line) and line not in there), None)
    if marker is not None:
        raise InvalidArgumentsError(
            f"the content has a line that stands for what is left out: {marker.strip()[:80]!r}. Nothing was written.",
            hint="Use edit_file to change a part, or write all of the file.",
        )
    lines = file.text.count("\n")
    if lines > MOST_LINES or len(file.text) > SHOWN_BYTES:
        raise InvalidArgumentsError(
            f"{name} is too long to be replaced as a whole: {lines:,} lines. Nothing was written.",
            hint="Change the parts that you mean with edit_file.",
        )


def _encoded(content: str) -> bytes:
    """Return the bytes of a new file: UTF-8, its line ends as they are given. Raises InvalidArgumentsError."""
    empty = decode(b"")
    if isinstance(empty, TextFile):
        empty.with_text(content)  # says what no text file can hold
    return content.encode()


def _was_read(target: Target, place: Workplace, name: str) -> None:
    """Raise ToolError unless the model has seen what it wants to replace."""
    seen = place.seen.get(target.path)
    if seen is None:
        raise InvalidArgumentsError(
            f"{name} is there already, and you have not read it. Nothing was written.",
            hint=f"Read it first (read_file path={name}), or change a part of it with edit_file.",
        )
    if target.facts is not None and seen != target.facts.sha256:
        raise DigestMismatchError(
            f"{name} has changed since you read it. Nothing was written.", hint=f"Read it again: read_file path={name}"
        )
