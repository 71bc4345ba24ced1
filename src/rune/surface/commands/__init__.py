"""One slash command a file."""
