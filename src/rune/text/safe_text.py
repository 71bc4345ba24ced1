r"""The one door to a terminal: whatever is written to one has gone through here (terminal.md, Rules).

What a terminal acts on, what is invisible and what turns the direction of a line is shown by name:
`\x1b`, `\r`, `<U+202E>`. The rule goes by general category: Cc, Cf, Cs, Co, Cn, Zl and Zp never
pass (threats T11, T12), nor do letters and marks without ink. What ordinary writing needs stays: line
feed and tab where the caller allows them, ZWJ and VS16 inside an emoji, ZWJ and ZWNJ between letters
of a script that joins, a few combining marks on a base.

It is idempotent, so it does not mark what was written as `\x1b` to begin with. Where shown text must
be told apart from real bytes (an approval), quote it before it comes here.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NewType

SafeText = NewType("SafeText", str)

# Six is what a pointed Hebrew letter with its accents needs; a tower of marks paints over other lines.
MARKS_PER_BASE = 6

_Kind = Literal["visible", "mark", "joiner", "selector", "hostile"]

# What needs no second look, in every version of Unicode: printable, neither mark nor part of a sequence. All of it
# lies in the first plane, where a character class is one table look-up.
_PLAIN = (
    " -~"
    "\u00a0-\u00a8\u00aa-\u00ac\u00af-\u02ff"
    "\u0370-\u0377\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u0482\u048a-\u052f"
    "\u05d0-\u05ea\u0620-\u064a\u0660-\u066f\u0671-\u06d3"
    "\u0904-\u0939\u0958-\u0961\u0964-\u0980"
    "\u0e01-\u0e30\u0e3f-\u0e46\u10d0-\u10ff\u1e00-\u1f15"
    "\u2010-\u2027\u2030-\u203b\u20a0-\u20bf\u2190-\u2193\u2200-\u22ff\u2500-\u259f"
    "\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u4e00-\u9fef\uac00-\ud7a3\uff01-\uff9f"
)

_ZWNJ, _ZWJ = "\u200c", "\u200d"
_TEXT_STYLE, _EMOJI_STYLE = "\ufe0e", "\ufe0f"
_KEYCAP = "\u20e3"

# No ink, though the category says letter, mark or symbol: fillers, joiners of single scripts, selectors of variants
# that no terminal draws, an empty note head.
_INKLESS = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2d7f\u3164\uffa0\U0001107f\U00016fe4\U0001d159"
    "\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d"
)
_SELECTORS_FROM_17 = range(0xE0100, 0xE01F0)
_SPECIAL: dict[str, _Kind] = {
    **dict.fromkeys(_INKLESS, "hostile"),
    **dict.fromkeys((_ZWJ, _ZWNJ), "joiner"),
    **dict.fromkeys((_TEXT_STYLE, _EMOJI_STYLE), "selector"),
}

# Blocks reserved for pictographs: what a newer Unicode adds there is drawn, so an older Python lets it pass.
_NEW_PICTOGRAPHS = re.compile("[\U0001f000-\U0001faff]")
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# Arabic and its kin, Mongolian, and the scripts of India and its neighbours: here joiners change what is read.
_JOINING = (
    "[\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
    "\U00011000-\U0001107f\U00011080-\U000114df]"
)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# The last characters of a delta that cannot be judged before the next one is known.
_UNDECIDED = re.compile("[\r\u200c\u200d\ufe0e\ufe0f]?[\ud800-\udbff]?\\Z")
_LAST_CONTROL = 0x9F
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe_text(text: str, *, newlines: bool = True, tabs: bool = True) -> SafeText:
    """Return `text` with everything shown that a terminal would act on or nobody would see.

    CR LF becomes a line feed. `newlines=False` and `tabs=False` show those two as well, for text that
    must stay in one line or one column. Never raises; lone surrogates are shown, pairs are joined.
    """
    if not _odd(newlines, tabs).search(text):
        return SafeText(text)
    stream = SafeStream(newlines=newlines, tabs=tabs)
    return SafeText(stream.feed(text) + stream.finish())


class SafeStream:
    """`safe_text` for text that arrives in pieces: any split gives what the whole would give.

    At most two characters are held back, where what follows decides about them.
    """

    def __init__(self, *, newlines: bool = True, tabs: bool = True) -> None:
        self._newlines = newlines
        self._odd = _odd(newlines, tabs)
        self._held = ""
        self._base = ""  # what a mark would stand on; empty after a line's end and after an escape
        self._marks = 0
        self._before = ""  # the character before, if it was kept

    def feed(self, delta: str) -> SafeText:
        """Return what is now certain of the text so far and was not returned before."""
        text = self._held + delta
        cut = len(text) - len(_held_back(text[-2:]))
        self._held = text[cut:]
        return self._escape(text[:cut], self._held)

    def finish(self) -> SafeText:
        """Return the rest; the stream is then as new."""
        text, self._held = self._held, ""
        rest = self._escape(text, "")
        self._base, self._marks, self._before = "", 0, ""
        return rest

    def _escape(self, text: str, following: str) -> SafeText:
        if not text:
            return SafeText("")
        # A pair left apart is a character that was split on its way, as JSON's \u escapes allow.
        text = _PAIR.sub(_joined, text)
        if self._newlines:
            text = text.replace("\r\n", "\n")
        whole = text + following
        out: list[str] = []
        done = 0
        for run in self._odd.finditer(text):
            start, end = run.span()
            if start > done:
                out.append(text[done:start])
                self._passed(text[start - 1])
            out.extend(self._judged(text[i], whole[i + 1 : i + 2]) for i in range(start, end))
            done = end
        if done < len(text):
            out.append(text[done:])
            self._passed(text[-1])
        return SafeText("".join(out))

    def _passed(self, last: str) -> None:
        """Note that plain text went out, `last` at its end."""
        self._before = last
        self._base = "" if last in "\n\t" else last
        self._marks = 0

    def _judged(self, char: str, after: str) -> str:
        kind = _kind(char)
        if kind == "visible":
            self._base = self._before = char
            self._marks = 0
            return char
        if kind == "mark" and self._base and self._marks < MARKS_PER_BASE:
            self._marks += 1
            self._before = char
            return char
        if (kind == "joiner" and self._joins(char, after)) or (kind == "selector" and self._selects(after)):
            self._before = char
            return char
        self._base = self._before = ""
        return _shown(char)

    def _joins(self, joiner: str, after: str) -> bool:
        before = self._before
        if not before or not after:
            return False
        if joiner == _ZWJ and _is_one(_PICTOGRAPH, after):
            return before == _EMOJI_STYLE or _is_one(_PICTOGRAPH, before)
        # After it a letter, never a mark: a mark may be one too many and be shown, and then nothing is joined.
        return after.isalpha() and _is_one(_JOINING, before) and _is_one(_JOINING, after)

    def _selects(self, after: str) -> bool:
        if not self._before:
            return False
        if self._before in "#*0123456789":
            return after == _KEYCAP
        return _is_one(_PICTOGRAPH, self._before)


@lru_cache(maxsize=2)
def _compiled(characters: str) -> re.Pattern[str]:
    return re.compile(characters)  # when it is needed: few texts hold any of these


def _is_one(characters: str, text: str) -> bool:
    return _compiled(characters).match(text) is not None


@lru_cache(maxsize=4)
def _odd(newlines: bool, tabs: bool) -> re.Pattern[str]:
    """Return the pattern of runs that need a second look."""
    return re.compile("[^" + _PLAIN + ("\n" if newlines else "") + ("\t" if tabs else "") + "]+")


def _kind(char: str) -> _Kind:
    if char in _SPECIAL:
        return _SPECIAL[char]
    category = unicodedata.category(char)
    if category[0] == "M":
        return "hostile" if ord(char) in _SELECTORS_FROM_17 else "mark"
    if category == "Cn" and _NEW_PICTOGRAPHS.match(char):
        return "visible"
    return "hostile" if category[0] == "C" or category in ("Zl", "Zp") else "visible"


def _shown(char: str) -> str:
    code = ord(char)
    if code > _LAST_CONTROL:
        return f"<U+{code:04X}>"
    return _NAMED.get(char) or f"\\x{code:02x}"


def _held_back(end: str) -> str:
    """Return what of a text's last two characters waits for the next one."""
    undecided = _UNDECIDED.search(end)
    return undecided.group() if undecided else ""


def _joined(pair: re.Match[str]) -> str:
    high, low = pair.group()
    return chr(0x10000 + ((ord(high) - 0xD800) << 10) + (ord(low) - 0xDC00))
