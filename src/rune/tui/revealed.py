r"""Foreign text for somebody who decides by it: what cannot be shown as it is stands out from the words around it.

`safe_text` writes an escape character as `\x1b`, and leaves a text alone that was written so from the beginning. Where
it matters which of both is there, the one that was made visible has a style of its own.
"""

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Span
from rune.tui.markdown.wrapping import TAB, expanded

REVEALED = "warning"


def revealed(text: str, style: str = "") -> list[Span]:
    """Return one line of text in spans, its tabs as spaces; what a terminal must not get has the style REVEALED too."""
    safe = safe_text(text, newlines=False)
    if safe == text:
        return [Span(SafeText(expanded(safe, TAB)), style)] if safe else []
    if "\t" in text:
        text = expanded(text, TAB)
        safe = safe_text(text, newlines=False)
    spans: list[Span] = []
    place = kept_from = 0
    for char in text:
        if safe.startswith(char, place):
            place += 1
            continue
        if place > kept_from:
            spans.append(Span(SafeText(safe[kept_from:place]), style))
        shown = safe_text(char, newlines=False)
        spans.append(Span(shown, f"{style} {REVEALED}".strip()))
        place = kept_from = place + len(shown)
    if len(safe) > kept_from:
        spans.append(Span(SafeText(safe[kept_from:]), style))
    # Whatever was counted wrongly above: what is drawn is the safe text and nothing else.
    return spans if "".join(span.text for span in spans) == safe else [Span(safe, f"{style} {REVEALED}".strip())]


def is_revealed(text: str) -> bool:
    """Say whether there is something in a text, of any number of lines, that is shown otherwise than it is."""
    return safe_text(text) != text.replace("\r\n", "\n")
