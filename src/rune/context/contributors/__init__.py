"""One contributor a file; each yields blocks for the broker."""
