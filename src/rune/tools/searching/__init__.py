"""Looking for a pattern in many files: by ripgrep where it is installed, else by Python, with the same results."""
