"""What the chat screen opens over itself, and what came of it. Imported when the first of them is wanted."""

from textual.app import App

from rune.config.trust import TrustStatus
from rune.host.clock import Clock
from rune.surface.prompt_history import Sent
from rune.tui.desk import Desk
from rune.tui.glance import model_name
from rune.tui.screens.conversation_picker import ConversationPicker
from rune.tui.screens.help import HelpScreen
from rune.tui.screens.history_search import HistorySearch
from rune.tui.screens.instructions import InstructionsScreen
from rune.tui.screens.model_picker import ModelPicker

AnyApp = App[None]


async def pick_model(app: AnyApp, desk: Desk) -> str | None:
    """Return the model that was chosen."""
    return await app.push_screen_wait(ModelPicker(desk.models, current=model_name(desk)))


async def pick_conversation(app: AnyApp, desk: Desk, clock: Clock) -> str | None:
    """Return the id of the conversation that was chosen."""
    current = desk.talk.conversation_id or ""
    picker = ConversationPicker(desk.conversations, now_ms=clock.now_ms(), current=current)
    return await app.push_screen_wait(picker)


async def search_history(app: AnyApp, desk: Desk) -> Sent | None:
    """Return what was sent before and is wanted again."""
    return await app.push_screen_wait(HistorySearch(await desk.history()))


async def show_help(app: AnyApp, desk: Desk) -> None:
    """Show the keys and the commands."""
    pages = [await desk.command(line, quiet=True) for line in ("/keys", "/help")]
    text = "\n\n".join(page.text for page in pages if page is not None)
    await app.push_screen_wait(HelpScreen("Keys and commands", text))


async def decide_trust(app: AnyApp, desk: Desk, status: TrustStatus, clock: Clock) -> None:
    """Show what would instruct, and do what the person decides about it."""
    match await app.push_screen_wait(InstructionsScreen(status, clock)):
        case "trust":
            await desk.grant(status)
        case "not_now":
            await desk.decline(status)
        case None:
            pass
