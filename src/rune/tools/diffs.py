"""What an edit changes, as a unified diff: for the person who approves it and for the model that asked for it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from rune.tools.same_lines import Run, same_lines

CONTEXT: Final = 3
"""Unchanged lines shown round each change, as git does."""

_MOST_COMPARED: Final = 1_000_000  # lines times lines between two anchors that difflib may look at
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_NO_END: Final = "\\ No newline at end of file"

_Opcode = tuple[bool, int, int, int, int]  # equal, old from and to, new from and to


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff. `added` and `removed` count lines; `text` ends with a line end unless nothing changed.

    Characters are shown as they stand in the files: whoever puts it on a screen makes it safe.
    """

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """Both counts as they are shown: "+3 -1"."""
        return f"+{self.added} -{self.removed}"

    def cut(self, lines: int) -> str:
        """Return the diff in at most `lines` lines (3 at least): head and tail, and between a line that says how many
        were left out.
        """
        every = self.text.split("\n")[:-1]
        if len(every) <= lines:
            return self.text
        kept = max(lines, 3) - 1
        head = (kept + 1) * 2 // 3
        tail = kept - head
        left = every[head : len(every) - tail]
        added, removed = (sum(line.startswith(sign) for line in left) for sign in "+-")
        middle = f"... {len(left):,} lines of the diff left out (+{added} -{removed}) ..."
        return "\n".join([*every[:head], middle, *every[len(every) - tail :], ""])


def diff(old: str | None, new: str | None, path: str) -> Diff:
    """Return how `old` becomes `new`; None is a file that is not there. Only LF ends a line, so a changed CR shows.

    `path` is written into the head; one with control characters is quoted as git does.
    """
    old_lines, new_lines = _LINE.findall(old or ""), _LINE.findall(new or "")
    added = removed = 0
    body: list[str] = []
    for hunk in _hunks(_opcodes(old_lines, new_lines)):
        first, last = hunk[0], hunk[-1]
        body.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n")
        for equal, i, i_end, j, j_end in hunk:
            if equal:
                body += [_marked(" ", line) for line in old_lines[i:i_end]]
                continue
            removed += i_end - i
            added += j_end - j
            body += [_marked("-", line) for line in old_lines[i:i_end]]
            body += [_marked("+", line) for line in new_lines[j:j_end]]
    if not body and (old is None) == (new is None):
        return Diff("", 0, 0)
    head = f"--- {_named('a', path, old)}\n+++ {_named('b', path, new)}\n"
    return Diff(head + "".join(body), added, removed)


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Compare between the lines that are the same for certain, so that the whole takes no square of its length."""
    found: list[_Opcode] = []
    at_old = at_new = 0
    for run in (*same_lines(old, new), Run(len(old), len(new), 0)):
        found += _between(old, new, at_old, run.old, at_new, run.new)
        at_old, at_new = run.old + run.size, run.new + run.size
        if run.size:
            found.append((True, run.old, at_old, run.new, at_new))
    return list(_joined(found))


def _between(old: Sequence[str], new: Sequence[str], i: int, i_end: int, j: int, j_end: int) -> list[_Opcode]:
    if i == i_end and j == j_end:
        return []
    if (i_end - i) * (j_end - j) > _MOST_COMPARED:
        return [(False, i, i_end, j, j_end)]
    matcher = SequenceMatcher(None, old[i:i_end], new[j:j_end], autojunk=False)
    return [(tag == "equal", i + a, i + b, j + c, j + d) for tag, a, b, c, d in matcher.get_opcodes()]


def _joined(opcodes: list[_Opcode]) -> Iterator[_Opcode]:
    """Make one of neighbours of the same kind."""
    last: _Opcode | None = None
    for opcode in opcodes:
        if last and last[0] == opcode[0]:
            last = (last[0], last[1], opcode[2], last[3], opcode[4])
            continue
        if last:
            yield last
        last = opcode
    if last:
        yield last


def _hunks(opcodes: list[_Opcode]) -> Iterator[list[_Opcode]]:
    """Take changes together that have at most twice the context between them, and the context round them."""
    hunk: list[_Opcode] = []
    for place, (equal, i, i_end, j, j_end) in enumerate(opcodes):
        if not equal:
            hunk.append((equal, i, i_end, j, j_end))
            continue
        size = i_end - i
        begins, ends = min(size, CONTEXT), max(size - CONTEXT, 0)
        if hunk and place < len(opcodes) - 1 and size <= 2 * CONTEXT:
            hunk.append((True, i, i_end, j, j_end))
            continue
        if hunk:
            yield [*hunk, (True, i, i + begins, j, j + begins)]
        hunk = [(True, i + ends, i_end, j + ends, j_end)] if place < len(opcodes) - 1 else []
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    """Return lines as a hunk's head names them: from 1; an empty range names the line before it."""
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1 if count else start},{count}"


def _marked(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{_NO_END}\n"


def _named(side: str, path: str, content: str | None) -> str:
    if content is None:
        return "/dev/null"
    if path.isprintable() and '"' not in path and "\\" not in path:
        return f"{side}/{path}"
    return '"' + f"{side}/{path}".encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
