"""run_tests: the project's own tests, by the runner that it has."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.project_run import planned, ran, target_of, told
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "run_tests"
_DESCRIPTION: Final = (
    "Run the project's tests; its runner (pytest, npm test, cargo, go, make) is found by itself. "
    "Use it before and after a change."
)


class _Arguments(Arguments, frozen=True, kw_only=True):
    target: Annotated[str, Meta(description='Test file or name; "" for all.', examples=["tests/test_cart.py"])] = ""


class RunTests:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "run"  # tests are code of the project, which may do anything

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Find the runner."""
        given = arguments_of(_Arguments, arguments, NAME)
        return await planned("test", place, target_of(given.target, place), also={})

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Run it."""
        return told(await ran(plan.state, place, watch), plan.state)
