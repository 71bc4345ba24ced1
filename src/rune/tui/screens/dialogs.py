"""What the chat screen opens over itself, and what came of it. Imported when the first of them is wanted."""

from functools import partial
from typing import NamedTuple

from textual.app import App

from rune.host.clock import Clock
from rune.surface.model_text import details_text
from rune.surface.prompt_history import Sent
from rune.tui.desk import Desk
from rune.tui.glance import model_name
from rune.tui.screens.conversation_picker import ConversationPicker
from rune.tui.screens.help import HelpScreen
from rune.tui.screens.history_search import HistorySearch
from rune.tui.screens.instructions import InstructionsScreen
from rune.tui.screens.message_search import MessageSearch
from rune.tui.screens.model_picker import ModelPicker

AnyApp = App[None]


async def pick_model(app: AnyApp, desk: Desk, clock: Clock) -> str:
    """Have a model chosen or fetched, and return what is to be said of that, "" for nothing."""
    picker = ModelPicker(
        desk.listing.models,
        current=model_name(desk),
        details=partial(_details, desk, clock),
        remove=desk.listing.remove_model,
    )
    chosen = await app.push_screen_wait(picker)
    if chosen is None or (result := await desk.command(f"/model {chosen}", quiet=True)) is None:
        return ""
    return f"{chosen} answers from now on" if result.runs is None else ""


async def _details(desk: Desk, clock: Clock, name: str) -> str:
    return details_text(await desk.surface.models.show(name), clock.now_ms())


class Picked(NamedTuple):
    """What was chosen; `message_id` "" unless it was a message."""

    conversation_id: str
    message_id: str = ""


async def pick_conversation(app: AnyApp, desk: Desk, line: str, clock: Clock) -> Picked | None:
    """Return the conversation that was chosen: of this folder (/resume), of all folders (/sessions), or of
    those in which words occur (/search). What stands behind the command's name is in the filter.
    """
    current, now = desk.talk.conversation_id or "", clock.now_ms()
    name, words = [*line.strip().split(maxsplit=1), ""][:2]
    match name:
        case "/search":
            picker = MessageSearch(desk.listing.search, now_ms=now, query=words)
        case "/sessions":
            load = desk.listing.conversations_anywhere
            picker = ConversationPicker(load, now_ms=now, current=current, query=words, anywhere=True)
        case _:
            picker = ConversationPicker(desk.listing.conversations, now_ms=now, current=current)
    chosen = await app.push_screen_wait(picker)
    return Picked(*chosen.split()) if chosen is not None else None


async def search_history(app: AnyApp, desk: Desk) -> Sent | None:
    """Return what was sent before and is wanted again."""
    return await app.push_screen_wait(HistorySearch(await desk.history()))


async def show_help(app: AnyApp, desk: Desk) -> None:
    """Show the keys and the commands."""
    pages = [await desk.command(line, quiet=True) for line in ("/keys", "/help")]
    text = "\n\n".join(page.text for page in pages if page is not None)
    await app.push_screen_wait(HelpScreen("Keys and commands", text))


async def decide_trust(app: AnyApp, desk: Desk, clock: Clock) -> None:
    """Show what would instruct, and do what the person decides about it; where there is nothing, say so."""
    if (status := await desk.trust.status()) is None:
        return
    if status.state == "nothing_to_trust":
        await desk.command("/trust")
        return
    match await app.push_screen_wait(InstructionsScreen(status, clock)):
        case "trust":
            await desk.trust.grant(status)
        case "not_now":
            await desk.trust.decline(status)
        case None:
            pass
