"""Screens, a .tcss beside each."""
