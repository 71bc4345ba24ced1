r"""Text in the form in which a prompt holds it: every character one cell column, nothing that a terminal acts on.

What must not be shown as it is (`\x1b`, U+202E) and what is shown as something shorter (a pasted block) becomes a
*piece*: a run of private characters as long as what is shown for it, `[Pasted 42 lines]` say. Its first character is
one that stands for the original and for nothing else; the others only say what is drawn. So whatever an editor does
with its text (wrap, move, cut, undo), a piece keeps its width and what it stands for, and nothing that was typed or
pasted can look like one: private characters of the outside become pieces themselves.

A slash that was typed to begin a command is such a character too: the fact stays with the text.
"""

import re
from typing import Final

from rune.text.safe_text import SafeText, safe_text

# Planes 15 and 16 are private as a whole, and every terminal width table gives their characters one cell.
_FIRST_HEAD, _LAST_HEAD = 0xF0000, 0xFFFFD
_FIRST_TAIL, _LAST_TAIL = 0x100020, 0x10007E  # 0x100000 + what is drawn, printable ASCII
_FIRST_MARK = 0x10FFF0
_MARKS: Final = {char: chr(_FIRST_MARK + place) for place, char in enumerate("/!")}

_OURS: Final = re.compile(f"[{chr(_FIRST_HEAD)}-\U0010ffff]")
_PIECE: Final = re.compile(
    f"[{chr(_FIRST_HEAD)}-{chr(_LAST_HEAD)}][{chr(_FIRST_TAIL)}-{chr(_LAST_TAIL)}]*|[{''.join(_MARKS.values())}]"
)
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"
_UNSEEN: Final = "\N{REPLACEMENT CHARACTER}"


class Pieces:
    """Writes texts in the form of a prompt and back. What it wrote can be read until `forget`."""

    def __init__(self) -> None:
        self._originals: list[str] = []
        self._runs: dict[tuple[str, str], str] = {}
        self._drawn: dict[int, str] = {}
        self.forget()

    def forget(self) -> None:
        """Begin anew: nothing that was written before is in use any more."""
        self._originals.clear()
        self._runs.clear()
        self._drawn.clear()
        self._drawn.update({code: chr(code - 0x100000) for code in range(_FIRST_TAIL, _LAST_TAIL + 1)})
        self._drawn.update({ord(mark): char for char, mark in _MARKS.items()})

    @property
    def many(self) -> bool:
        """Whether so many pieces were made that it is time to begin anew; a text of 20,000 still finds room."""
        return len(self._originals) > (_LAST_HEAD - _FIRST_HEAD) // 2

    def whole(self, original: str, label: str) -> str:
        """Return the piece that is drawn as `label` (printable ASCII, not empty) and stands for `original`."""
        run = self._runs.get((original, label))
        if run is None:
            head = _FIRST_HEAD + len(self._originals)
            self._originals.append(original)
            self._drawn[head] = label[0]
            run = chr(head) + "".join(chr(0x100000 + ord(char)) for char in label[1:])
            self._runs[original, label] = run
        return run

    def written(self, text: str) -> str:
        """Return `text` (line ends are line feeds) as a prompt holds it, what is hostile in it as pieces.

        A single mark or joiner stays: as it is typed, what it belongs to stands before it already.
        """
        text = _SURROGATES.sub(_joined, text)
        safe = safe_text(text)
        if safe == text or (len(text) == 1 and (text in _JOINERS or safe_text(f"e{text}") == f"e{text}")):
            return text
        return "".join(
            char if kept else self.whole(char, safe_text(char, newlines=False)) for char, kept in _judged(text, safe)
        )

    def original(self, written: str) -> str:
        """Return what a prompt's text stands for."""
        if not _OURS.search(written):
            return written
        return _PIECE.sub(self._standing_for, written)

    def shown(self, written: str) -> SafeText:
        """Return what is drawn for one line of a prompt: as many characters, all of them safe.

        Marks and joiners that have lost what they belonged to are drawn as U+FFFD.
        """
        drawn = written.translate(self._drawn) if _OURS.search(written) else written
        safe = safe_text(drawn, newlines=False)
        if safe == drawn:
            return safe
        return SafeText("".join(char if kept else _UNSEEN for char, kept in _judged(drawn, safe)))

    def _standing_for(self, found: re.Match[str]) -> str:
        head = ord(found[0][0])
        return self._drawn[head] if head >= _FIRST_MARK else self._originals[head - _FIRST_HEAD]


def command_mark(char: str) -> str:
    """Return the character that is drawn as `char` (`/` or `!`) and says that it began a command; "" for others."""
    return _MARKS.get(char, "")


def begins_command(written: str) -> bool:
    """Say whether a prompt's text begins as a command that was typed."""
    return written[:1] in _MARKS.values()


def is_plain(written: str) -> bool:
    """Say whether there is no piece in a prompt's text; a command's slash is none."""
    return all(char in _MARKS.values() for char in _OURS.findall(written))


def around(line: str, column: int) -> tuple[int, int]:
    """Return where the piece begins and ends that `column` is inside of; twice `column` when it is inside of none."""
    start = end = column
    if column >= len(line) or not _is_tail(line[column]):
        return column, column
    while start > 0 and _is_tail(line[start]):
        start -= 1
    while end < len(line) and _is_tail(line[end]):
        end += 1
    return start, end


def _is_tail(char: str) -> bool:
    return _FIRST_TAIL <= ord(char) <= _LAST_TAIL


def _judged(text: str, safe: str) -> list[tuple[str, bool]]:
    """Return the characters of `text`, and whether `safe_text`, which made `safe` of it, kept each.

    What it does not keep it writes as something that begins with another character.
    """
    judged: list[tuple[str, bool]] = []
    place = 0
    for char in text:
        kept = safe.startswith(char, place)
        place += 1 if kept else len(safe_text(char, newlines=False))
        judged.append((char, kept))
    return judged


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
