"""lint: the project's own checker of code."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.project_run import existing, planned, ran, told
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "lint"
_DESCRIPTION: Final = (
    "Check code with the project's own linter (ruff, eslint, clippy, go vet), found by itself. Use it after edits."
)


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description='File or folder; "" for all.', examples=["src/cart.py"])] = ""


class Lint:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "run"  # linters run plugins, and scripts of the project

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Find the linter."""
        given = arguments_of(_Arguments, arguments, NAME)
        path = await asyncio.to_thread(existing, given.path, place, writing=False)
        return await planned("lint", place, path, also={})

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Run it."""
        return told(await ran(plan.state, place, watch), plan.state)
