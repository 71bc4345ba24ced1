"""Loading modules without looking for garbage meanwhile."""

from __future__ import annotations

import gc

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Self


class Loading:
    """While this lasts nothing is collected, and what is there at its end is never looked through again.

    Hundreds of modules make objects that stay: the collector would go through all of them a dozen times, which is a
    tenth of the time until the app stands.
    """

    def __enter__(self) -> Self:
        """Begin."""
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        """Collect as before, but only what comes from now on."""
        gc.freeze()
        gc.enable()
