"""What went wrong, what a run cost, what is logged."""
