"""Text that JSON and UTF-8 can hold (spine.md, Form): the one place that says what becomes of the rest."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return the text with each surrogate code point (as in a file name that is not UTF-8) as U+FFFD.

    JSON has no form for a lone one, and two that happen to stand side by side would read back as another
    character.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def is_storable(text: str) -> bool:
    """Say whether the text can be stored and sent as it is."""
    return _SURROGATES.search(text) is None
