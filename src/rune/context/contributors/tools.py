"""How to use the tools on offer."""

from collections.abc import Sequence

from rune.context.blocks import AssemblyRequest, ContributionBlock
from rune.context.prompt_files import prompt
from rune.models.text_tools.constrained import instructions
from rune.tools.moves import ENDINGS


class ToolsContributor:
    """Gives the rules for tools where there are any, in the dialect `constrained` the tools too; mandatory."""

    name = "tools"

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        """Return one block, or none. Raises OSError when the packaged file cannot be read."""
        if not request.tools:
            return ()
        content = prompt("tools")
        if request.dialect == "constrained":
            content = f"{content}\n\n{instructions((*request.tools, *ENDINGS))}"
        block = ContributionBlock(
            name=self.name,
            priority=90,
            content=content,
            source="built in",
            evictable=False,
            placement="prefix",
            provenance="owner",
        )
        return (block,)
