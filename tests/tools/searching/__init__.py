"""Both ways to look for a line, against each other."""
