"""The one place that names concrete classes: builds everything, opens it, and lets it go in order."""

from rune.bootstrap.assembly import build
from rune.bootstrap.examination import examine
from rune.bootstrap.mending import mend
from rune.bootstrap.services import Services

__all__ = ["Services", "build", "examine", "mend"]
