"""Facts: the journal and what is projected from it."""
