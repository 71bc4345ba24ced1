"""The prompts of side calls, and of the constrained protocol: Markdown files, reviewed as prose."""

from functools import cache
from importlib import resources


@cache
def prompt(name: str) -> str:
    """Return the text of `prompts/<name>.md` without blank lines around it. Raises OSError."""
    return (resources.files("rune.models") / "prompts" / f"{name}.md").read_text("utf-8").strip()
