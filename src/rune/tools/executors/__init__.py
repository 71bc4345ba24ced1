"""The tools themselves, one a file; each implements `tools.executor.Tool`."""
