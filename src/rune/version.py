"""The one version number; packaging, `rune --version` and every footer derive from it."""

__version__ = "0.1.0"
