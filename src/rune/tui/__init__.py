"""The terminal app: the only package that knows Textual."""
