"""The tools that there are, by name."""

from collections.abc import Sequence

from rune.errors import UnknownToolError
from rune.records.tools import ToolSchema
from rune.tools.executor import Tool


class Toolbox:
    """Tools in the order in which they are offered. `core` names those that a small window still has room for."""

    def __init__(self, tools: Sequence[Tool], *, core: Sequence[str] = ()) -> None:
        self._tools = {tool.schema.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("two tools have the same name")
        self._core = frozenset(core)

    def schemas(self, *, core_only: bool = False) -> tuple[ToolSchema, ...]:
        """Return what is offered: the same for the whole of a conversation, since it stands in the prefix."""
        return tuple(
            tool.schema for name, tool in self._tools.items() if not core_only or not self._core or name in self._core
        )

    def find(self, name: str) -> Tool:
        """Return a tool. Raises UnknownToolError, which names those that there are."""
        if (tool := self._tools.get(name)) is None:
            raise UnknownToolError(f"there is no tool {name[:80]!r}; there are: {', '.join(self._tools)}")
        return tool
