"""Looking at what is stored without changing it, and mending what is damaged."""
