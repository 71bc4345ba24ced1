"""Claims that a person can check on their own machine."""
