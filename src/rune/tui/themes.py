"""Rune's own themes: the one place where colours stand. `rune.tcss` says what each is for, in Textual's names.

A theme is judged by contrast: what is read has at least 4.5:1 against what it stands on, what one looks
for (hints, times) at least 3:1.
"""

from collections.abc import Mapping
from typing import Final

from textual.theme import Theme

# Textual's names of colours, by what they are used for.
_READ: Final = ("text", "scrollbar-hover", "input-cursor-background")
_SOUGHT: Final = (
    *("text-muted", "text-disabled", "foreground-muted", "foreground-disabled"),
    *("border-blurred", "scrollbar"),
)
_GROUND: Final = (
    *("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active", "scrollbar-corner-color"),
    *("block-cursor-foreground", "input-cursor-foreground"),
    *("input-selection-foreground", "screen-selection-foreground"),
)
_MARKED: Final = (
    *("text-primary", "link-color", "border", "scrollbar-active"),
    *("block-cursor-background", "input-selection-background", "screen-selection-background"),
)


def _theme(
    name: str,
    *,
    background: str,
    surface: str,
    panel: str,
    foreground: str,
    muted: str,
    primary: str,
    secondary: str,
    accent: str,
    success: str,
    warning: str,
    error: str,
    dark: bool,
) -> Theme:
    """Return a theme whose texts have just these colours: Textual would blend its own from them."""
    return Theme(
        name=name,
        background=background,
        surface=surface,
        panel=panel,
        foreground=foreground,
        primary=primary,
        secondary=secondary,
        accent=accent,
        success=success,
        warning=warning,
        error=error,
        dark=dark,
        variables={
            **dict.fromkeys(_READ, foreground),
            **dict.fromkeys(_SOUGHT, muted),
            **dict.fromkeys(_GROUND, background),
            **dict.fromkeys(_MARKED, primary),
            "text-secondary": secondary,
            "text-accent": accent,
            "text-success": success,
            "text-warning": warning,
            "text-error": error,
            "block-cursor-text-style": "none",
        },
    )


_DARK: Final = _theme(
    "rune-dark",
    background="#15171c",
    surface="#1d2027",
    panel="#252932",
    foreground="#d8dbe2",
    muted="#8e95a3",
    primary="#82aee6",
    secondary="#7fc2ad",
    accent="#c9a3e0",
    success="#93c47d",
    warning="#e0b863",
    error="#ee8585",
    dark=True,
)

_LIGHT: Final = _theme(
    "rune-light",
    background="#fbfaf7",
    surface="#f1efe9",
    panel="#e7e4dc",
    foreground="#24272e",
    muted="#646973",
    primary="#1f559b",
    secondary="#1c6654",
    accent="#74398f",
    success="#2b682b",
    warning="#7d4e00",
    error="#a32424",
    dark=False,
)

_CONTRAST: Final = _theme(
    "rune-contrast",
    background="#000000",
    surface="#0c0c0c",
    panel="#1a1a1a",
    foreground="#ffffff",
    muted="#d2d2d2",
    primary="#9fd0ff",
    secondary="#8ff0d0",
    accent="#f0b8ff",
    success="#a0f58c",
    warning="#ffe066",
    error="#ffb0a8",
    dark=True,
)

_OWN: Final = "ansi_default"  # whatever the terminal writes and paints with
_GREY: Final = "ansi_bright_black"

# The terminal's own two colours and nothing else: bold, underlined and reversed tell things apart.
_PLAIN: Final = Theme(
    name="rune-plain",
    ansi=True,
    primary=_OWN,
    secondary=_OWN,
    accent=_OWN,
    success=_OWN,
    warning=_OWN,
    error=_OWN,
    foreground=_OWN,
    background=_OWN,
    variables={
        **dict.fromkeys(
            (
                *("text", "text-muted", "text-disabled", "foreground-muted", "foreground-disabled"),
                *("primary-muted", "secondary-muted", "accent-muted", "success-muted", "warning-muted", "error-muted"),
                *("block-cursor-background", "border", "border-blurred", "link-color", "link-color-hover"),
                *("link-background-hover", "footer-key-foreground"),
                *("input-selection-background", "screen-selection-background", "screen-selection-foreground"),
                *("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active"),
            ),
            _OWN,
        ),
        **dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), _GREY),
        "block-cursor-text-style": "reverse",
        # Textual's own sheets name these two, and its ANSI themes leave them out.
        "ansi-background": _OWN,
        "ansi-foreground": _OWN,
    },
)

THEMES: Final[tuple[Theme, ...]] = (_DARK, _LIGHT, _CONTRAST, _PLAIN)
DEFAULT_THEME: Final = _DARK.name
PLAIN_THEME: Final = _PLAIN.name


def wants_no_colour(environ: Mapping[str, str]) -> bool:
    """Say whether the person asked every program for no colours (NO_COLOR holds anything but nothing)."""
    return bool(environ.get("NO_COLOR"))
