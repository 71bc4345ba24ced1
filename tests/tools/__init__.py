"""Tests of rune.tools."""
