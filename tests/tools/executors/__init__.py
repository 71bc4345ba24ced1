"""Each tool on real files and processes."""
