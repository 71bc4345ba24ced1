"""Decisions: which rules hold, what is asked, who answered."""
