"""Brings in what an earlier version kept: its journal, its list of tasks, its pins."""
