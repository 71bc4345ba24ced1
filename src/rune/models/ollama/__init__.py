"""Ollama through its native API (models.md)."""
