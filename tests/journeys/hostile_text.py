"""Texts that try to reach a terminal, and what may reach it: the grammar of what the app writes."""

import random
import re
from collections.abc import Iterator
from typing import Final

from rune.text.safe_text import safe_text

ESC, BEL = "\x1b", "\x07"

# Single pieces; a text is some of them, with words around.
_CONTROLS: Final = tuple(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)))
_SEQUENCES: Final = (
    *(f"{ESC}]52;c;RVZJTA=={end}" for end in (BEL, f"{ESC}\\", "\x9c")),
    f"{ESC}]8;;https://evil.example{ESC}\\here{ESC}]8;;{ESC}\\",
    f"{ESC}]0;title{BEL}",
    f"{ESC}]777;notify;a;b{BEL}",
    f"{ESC}]1337;File=inline=1:QUJD{BEL}",
    f'{ESC}P$q"p{ESC}\\',
    f"{ESC}_Ga=T;QUJD{ESC}\\",
    f"{ESC}c",
    f"{ESC}[2J{ESC}[H",
    f"{ESC}[6n",
    f"{ESC}[?1049l",
    f"{ESC}[31;5m",
    f"{ESC}[777;1H",
    f"{ESC}[8m",
    f"{ESC}[200~ls\r{ESC}[201~",
    *("\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", "\x8e", "\x84"),
)
_UNSEEN: Final = (
    *("\u202a", "\u202b", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u202c", "\u200e", "\u200f"),
    *("\u061c", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\u2061", "\ufff9x\ufffay\ufffb"),
    "".join(chr(0xE0000 + ord(letter)) for letter in "run rm -rf"),
    "\U000e0001\U000e007f",
    *("\u2028", "\u2029", "\u3164", "\uffa0", "\u115f", "\u17b4", "\u2800", "\u034f"),
    *("\ud800", "\udfff", "\ud83d", "\udc9b", "\udc1b[2J", "\ue000", "\U000f0000", "\U0010ffff", "\ufdd0", "\uffff"),
    "\u202e" * 40,
)
_WRITING: Final = (
    "a" + "\u0300\u0316\u20dd" * 20,
    *("\u0301" * 60, "\u0e33" * 12, "\u0301", "\u0489", "\u20e3", "\ufe0f", "\ufe0e", "\ufe00", "\U000e0100"),
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001f1e9\U0001f1ea"),
    *("\U0001f44d\U0001f3ff", "\U0001f468\u200d\U0001f468\u200d" * 6, "\u200d\U0001f468", "a\u200db"),
    *("\u0915\u094d\u200d\u0937", "\u0645\u06cc\u200c\u062e", "漢字とかな", "한국어", "\uff8a\uff9d\uff76\uff78"),
    *("\uff26\uff35\uff2c\uff2c", "\uff9e\uff9f", "עברית", "العربية", "\ufdfd", "𒐫", "ไทยกำ", "\u1100\u1161"),
    *("w" * 300, "漢" * 120, "x/" * 90, "-" * 200, " " * 30, "\xa0\u2003\u3000"),
    *("\r", "\r\n", "\n", "\n\n", "\t", "a\rb", "\x0b", "\x0c", "\x85"),
)
_MARKUP: Final = (
    *("[red]", "[/]", "[/x]", "[b", "[@click=app.bell]x[/]", "[@click='app.quit']x[/]", "[on red]", "\\[red]"),
    *(
        "[link=https://evil.example]x[/link]",
        "[$primary]",
        "[blink]x[/blink]",
        "[[[",
        "]]]",
        "[bold reverse on #ff0000]",
    ),
    *("{0}", "%s", "$x", "**", "__", "```", "~~~", "`", "# ", "- ", "1. ", "> ", "| a | b |\n|---|---|\n| c |", "---"),
    *("***", "![x](y)", "<b>", "<!--", "[a](javascript:x)", "[a](https://e.example/\x1b]52;c;x\x07)", "[x]: y", "~~"),
    *("<https://e.example/\u202egpj.exe>", "\\", "$$", "&#x202e;", "&#27;", "&#x1b;[2J", "&#0;", "&#x9b;", "&lt;"),
    *("&ZeroWidthSpace;", "&rlm;", "&nbsp;", "&#xd800;", "&#xE0041;"),
)
_ATTACKS: Final = (*_CONTROLS, *_SEQUENCES, *_UNSEEN, *_WRITING, *_MARKUP)
_WORDS: Final = ("river", "the", "Elbe", "and", "42", "flows", "naïve", "São", "/path/to", "a=b", "end.")


ALONE: Final = len(_ATTACKS)


def hostile_texts(count: int, seed: int = 0) -> Iterator[str]:
    """Give so many texts, always the same for a seed; each attack there is comes in one of the first ones alone."""
    chance = random.Random(seed)  # noqa: S311  # nothing secret
    for number in range(count):
        if number < len(_ATTACKS):
            yield f"river {_ATTACKS[number]} end"
            continue
        pieces = [chance.choice(_ATTACKS if chance.random() < 0.6 else _WORDS) for _ in range(chance.randint(1, 5))]
        yield chance.choice(("", " ")).join(pieces)


def sendable(text: str) -> str:
    """Return a text as it can come over a wire, which is UTF-8: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


# What Textual writes while an app runs: moves on a screen of at most 499 cells, colours and styles (but none that hides
# or blinks), one frame at a time, the mouse's shape. The modes of the beginning and the end are no part of it.
_STYLE: Final = r"\x1b\[(?:(?:;|0|1|2|3|4|7|9|[34][0-79]|9[0-7]|10[0-7]|[34]8;5;\d+|[34]8;2;\d+;\d+;\d+)+)?m"
_MOVE: Final = r"(?:\r?\n)?\x1b\[[1-4]?\d{1,2};[1-4]?\d{1,2}H"  # a whole frame has line ends too, each before a move
_OTHER: Final = r"\x1b\[\?2026[hl]|\x1b\]22;[a-z-]+\x07"
_SEQUENCE: Final = re.compile(f"({_STYLE})|{_MOVE}|{_OTHER}")
# What is switched at the beginning and at the end, and what the terminal is asked.
_MODE: Final = re.compile(r"\x1b\[\?\d+(?:[hl]|\$p)|\x1b\[>\d+u|\x1b\[<u|\x1b\[H\x1b\[2J")


def unexpected(written: str) -> list[str]:
    """Return what of the things that a running app wrote is neither Textual's nor safe text: `[]` when all is well.

    Text goes on where only its colours change: what a mark stands on may have others.
    """
    texts: list[str] = [""]
    end = 0
    for sequence in _SEQUENCE.finditer(written):
        texts[-1] += written[end : sequence.start()]
        end = sequence.end()
        if sequence[1] is None:
            texts.append("")
    texts[-1] += written[end:]
    return [text for text in texts if safe_text(text, newlines=False, tabs=False) != text]


def without_modes(written: str) -> tuple[str, list[str]]:
    """Return what is left of everything that was written where modes are taken out, and those, in order."""
    return _MODE.sub("\x1b[1;1H", written), _MODE.findall(written)
