"""Differences between two states of a repository, as text that is safe to show and holds no secret.

Which files differ is asked first; what lies where nothing may be read is then left out, and so is a file that was one
of these under another name.
"""

import os
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from rune.errors import InvalidArgumentsError
from rune.text.safe_text import SafeText, safe_text
from rune.tools.git.names import is_secret, only, shown, without
from rune.tools.git.repository import Repository
from rune.tools.git.running import failed
from rune.tools.workplace import Workplace

MOST_LINES: Final = 400
"""How many lines a model is given at once."""

_MOST_CHARACTERS: Final = 24_000
_LINE_CHARACTERS: Final = 1_000
_MOST_BYTES: Final = 8 << 20
_MOST_SECRETS: Final = 500
_NAMED: Final = 30
_SOURCE: Final = "tool output"
# As if the repository set nothing about how differences look.
_SAME_LOOK: Final = (
    *("--ignore-submodules=dirty", "--submodule=short", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/"),
    "--find-renames",
)
_FILE: Final = re.compile(r"^(?=diff --(?:git|cc|combined) )", re.MULTILINE)


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs: git's letter, its path, and the one before a rename ("" otherwise)."""

    letter: str
    path: str
    was: str = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is for the model; `output` is the evidence id of the whole where `text` is a part. `files` are those that
    differ, `hidden` those of them whose content is not shown.
    """

    text: str
    output: str | None
    files: tuple[Changed, ...]
    hidden: tuple[str, ...]


async def read_difference(
    repository: Repository, place: Workplace, sides: Sequence[str], *, path: str = ""
) -> Difference:
    """Return how two sides differ (`sides` are words of `git diff`: ids, `--cached`), below `path` only.

    Raises as `Git.get`, and InvalidArgumentsError where too much would have to be left out.
    """
    files = await changed_files(repository, sides, path=path)
    secret = [file for file in files if _holds_secret(file, repository, place)]
    if len(secret) > _MOST_SECRETS:
        raise InvalidArgumentsError("too many of the changed files may hold secrets. Name one path that does not")
    names = tuple(dict.fromkeys(name for file in secret for name in (file.path, file.was) if name))
    if len(secret) == len(files):
        return Difference(text=_about_hidden(names, repository, place), output=None, files=files, hidden=names)
    words = ("--unified=3", "--inter-hunk-context=0", *sides, "--", only(path), *(without(name) for name in names))
    answer = await repository.git.ask("diff", *_SAME_LOOK, *words, most_bytes=_MOST_BYTES)
    if answer.exit_code:
        raise failed("diff", answer.said)
    whole = patch_text(place.masker.mask(answer.output.decode(errors="replace")))
    part = _part(whole)
    output = None
    said = [_about_hidden(names, repository, place)] if names else []
    if part != whole or not answer.is_whole:
        output = await place.keep(whole.encode(), _SOURCE)
        told = ", ".join(shown(file.path, repository, place) for file in files[:_NAMED])
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        said.append(f"{len(files):,} changed: {told}{more}. Long: this is a part; ask for one path.")
    return Difference(text="\n".join([*said, part]), output=output, files=files, hidden=names)


async def changed_files(repository: Repository, sides: Sequence[str], *, path: str = "") -> tuple[Changed, ...]:
    """Return which files differ. Raises as `Git.get`."""
    data = await repository.git.get("diff", *_SAME_LOOK, "--raw", "-z", *sides, "--", only(path))
    fields = iter(os.fsdecode(data).split("\0"))
    found: list[Changed] = []
    for head in fields:
        if not head:
            continue
        letter = head.rsplit(" ", 1)[-1][:1]
        was = next(fields) if letter in "RC" else ""
        found.append(Changed(letter=letter, path=next(fields), was=was))
    return tuple(found)


def patch_text(patch: str) -> SafeText:
    """Return a patch that shows what it changes: line ends too, where they change.

    A file that git names without a difference (only its times are new) is left out.
    """
    sections = [section for section in _FILE.split(patch) if section.count("\n") > 1 or "\n" not in section]
    return SafeText("".join(safe_text(_with_line_ends(section)) for section in sections).strip("\n"))


def _with_line_ends(section: str) -> str:
    lines = section.split("\n")
    content = [line for line in lines if line[:1] in {"+", "-", " "} and not line.startswith(("+++ ", "--- "))]
    if all(line.endswith("\r") for line in content):
        return "\n".join(line.removesuffix("\r") for line in lines)
    return "\n".join(f"{line[:-1]}\\r" if line.endswith("\r") else line for line in lines)


def _holds_secret(file: Changed, repository: Repository, place: Workplace) -> bool:
    return any(is_secret(name, repository, place) for name in (file.path, file.was) if name)


def _about_hidden(names: Sequence[str], repository: Repository, place: Workplace) -> str:
    if not names:
        return ""
    told = ", ".join(shown(name, repository, place) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"Changed, but not shown because they may hold secrets: {told}{more}."


def _part(whole: str) -> str:
    """Return the beginning of a patch, as many lines as are given at once, and how many follow."""
    kept: list[str] = []
    left = _MOST_CHARACTERS
    lines = whole.split("\n")
    for line in lines[:MOST_LINES]:
        cut = (
            line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} [+{len(line) - _LINE_CHARACTERS:,}]"
        )
        left -= len(cut) + 1
        if left < 0:
            break
        kept.append(cut)
    if more := len(lines) - len(kept):
        kept.append(f"[... {more:,} more lines ...]")
    return "\n".join(kept)
