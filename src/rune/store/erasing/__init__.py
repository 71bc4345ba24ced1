"""Erasing for good: the plan, the order, and the one change that a written line can see."""
