"""One run from a message to its end."""
