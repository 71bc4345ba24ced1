"""Who adds what to a prompt: one contributor a file, in the order of the table in context.md.

History and the person's message stand in that table too. They are messages, not texts, and nothing
can be sent without them; so the broker itself admits them (`history`, `admission`).
"""

from rune.context.blocks import Contributor
from rune.context.contributors.persona import PersonaContributor
from rune.context.contributors.project import ProjectContributor
from rune.context.contributors.tools import ToolsContributor


def standard_contributors(persona: str = "") -> tuple[Contributor, ...]:
    """Return the contributors in order of registration. `persona` replaces the text that comes with Rune."""
    return (PersonaContributor(persona), ToolsContributor(), ProjectContributor())
