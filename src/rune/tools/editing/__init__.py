"""How an edit finds its one place in a text although it was not copied exactly. `rune.tools.edits` is the way in."""
