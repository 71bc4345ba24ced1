"""Nouns: frozen, strict, plain. Nothing here touches the machine, the clock or another package."""
