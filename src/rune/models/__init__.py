"""How Rune talks to what answers."""
