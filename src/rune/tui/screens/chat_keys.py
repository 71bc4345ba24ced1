"""The keys of the chat screen. Each comes before what the prompt does with it, unless its action has nothing to do."""

from typing import Final

from textual.binding import Binding

CHAT_KEYS: Final = (
    Binding("up", "offered('take')", "Take back", priority=True, show=False),
    Binding("ctrl+x", "offered('drop')", "Drop", priority=True, show=False),
    Binding("ctrl+l", "dialog('models')", "Models", priority=True),
    Binding("ctrl+t", "fold('words')", "Thinking", priority=True),
    Binding("ctrl+o", "fold('tools')", "Tool output", priority=True),
    Binding("shift+tab", "cycle_permission", "Permissions", priority=True),
    Binding("tab", "to_question", "Answer", priority=True, show=False),
    Binding("ctrl+y", "copy", "Copy answer", priority=True),
    Binding("f5", "copy_code", "Copy code", priority=True),
    Binding("f1", "dialog('help')", "Help", priority=True),
    Binding("f2", "dialog('trust')", "Trust", priority=True),
    Binding("f6", "fork", "Fork", priority=True),
    Binding("f8", "stop_errand", "Stop", priority=True, show=False),
    Binding("ctrl+1,f3", "channel('task')", "Task", priority=True),
    Binding("ctrl+2,f4", "channel('chat')", "Chat", priority=True),
    Binding("pageup", "page(-1)", "Page up", priority=True),
    Binding("pagedown", "page(1)", "Page down", priority=True),
    Binding("ctrl+home", "ends(-1)", "Top", priority=True),
    Binding("ctrl+end", "ends(1)", "Bottom", priority=True),
)
