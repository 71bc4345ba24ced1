"""The machine: clock, ids, files, processes, places on disk. Nothing above `records` is imported."""
