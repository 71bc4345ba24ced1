"""Markdown as terminal lines: pure functions, no widget."""
