"""What the model sees: one broker decides."""
