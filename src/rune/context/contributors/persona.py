"""Who Rune is, and the rules it keeps."""

from collections.abc import Sequence

from rune.context.blocks import AssemblyRequest, ContributionBlock
from rune.context.prompt_files import prompt


class PersonaContributor:
    """Gives the persona; mandatory. `text` is the person's own, empty for the one that comes with Rune."""

    name = "persona"

    def __init__(self, text: str = "") -> None:
        self._text = text.strip()

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        """Return one block. Raises OSError when the packaged file cannot be read."""
        del request
        block = ContributionBlock(
            name=self.name,
            priority=100,
            content=self._text or prompt("persona"),
            source="persona.md" if self._text else "built in",
            evictable=False,
            placement="prefix",
            provenance="owner",
        )
        return (block,)
