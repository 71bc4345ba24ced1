"""Rune: a local-first assistant in the terminal that can show what it saw, did and finished."""

from rune.version import __version__

__all__ = ["__version__"]
