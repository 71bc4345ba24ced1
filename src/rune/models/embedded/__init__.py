"""A model in a child process of Rune itself: llama.cpp on a unix socket (models.md)."""
