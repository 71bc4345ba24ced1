from rune.context.contributors.tools import ToolsContributor
from tests.context.talk import READ_FILE, Writer, request_for


def test_rules_for_tools_come_with_tools_only() -> None:
    message = Writer().user("hi")
    assert ToolsContributor().contribute(request_for(message)) == ()
    (block,) = ToolsContributor().contribute(request_for(message, tools=[READ_FILE]))
    assert (block.name, block.priority, block.evictable, block.placement) == ("tools", 90, False, "prefix")
    assert "Never invent" in block.content
