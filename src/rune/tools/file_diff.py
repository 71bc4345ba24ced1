"""How two contents of one file differ, whatever kind of file it is: for `/diff` and `/undo`."""

from rune.text.storable import storable
from rune.tools.diffs import Diff, diff
from rune.tools.text_file import BinaryFile, TextFile, decode


def file_diff(old: bytes | None, new: bytes | None, name: str) -> Diff:
    """Return how a file changes, None where there is none; one line where no line of it can be shown. `name` is as it
    is shown. The text can be stored.
    """
    before, after = (None if data is None else decode(data) for data in (old, new))
    if isinstance(before, BinaryFile) or isinstance(after, BinaryFile):
        return Diff("" if old == new else f"{name}: {_words(before)} -> {_words(after)}\n", 0, 0)
    found = diff(_text(before), _text(after), name)
    if not found.text and old != new:
        return Diff(f"{name}: only its form changes ({_words(before)} -> {_words(after)})\n", 0, 0)
    return Diff(storable(found.text), found.added, found.removed)


def _text(file: TextFile | None) -> str | None:
    return None if file is None else file.text


def _words(file: TextFile | BinaryFile | None) -> str:
    return "no file" if file is None else file.in_words
