"""The calls that a text was found to hold so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from rune.models.text_tools.cursor import NotACallError

CALLS: Final = 64
MARKERS: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Written:
    """A call as it was written: `arguments` is the text of a JSON value or of a Python parenthesis, or the texts of an
    XML call's parameters; `listed` where it may be the definition of a tool that the model repeats.
    """

    name: str
    form: Literal["json", "python", "xml"]
    arguments: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    listed: bool = False


@dataclass
class Draft:
    """What was read so far. `offered` says which names count; `begun` is the name of a call not yet complete."""

    offered: Callable[[str], bool]
    calls: list[Written] = field(default_factory=list[Written])
    begun: str = ""
    fence: str | None = None
    marker: str = ""
    markers: int = 0

    def begin(self, name: str) -> str:
        """Note that a call of this name begins; raises NotACallError when it is not offered."""
        if not self.offered(name):
            raise NotACallError
        self.begun = name
        return name

    def add(self, call: Written) -> None:
        """Note a complete call."""
        self.calls.append(call)
        self.begun = ""
        if len(self.calls) > CALLS:
            raise NotACallError

    def mark(self, marker: str) -> None:
        """Note what a template puts round calls."""
        self.marker = marker
        self.markers += 1
        if self.markers > MARKERS:
            raise NotACallError
