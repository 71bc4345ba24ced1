"""What is seen of a desk at a glance."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from rune.records.messages import Channel
from rune.tui.header_state import HeaderState, Where

if TYPE_CHECKING:  # what a desk needs is imported after the app's first picture
    from rune.tui.desk import Desk


def header_state(desk: "Desk | None", folder: str, channel: Channel, unread: Collection[Channel]) -> HeaderState:
    """Return the header; before there is a desk only what is known without."""
    home = str(Path.home())
    if desk is None:
        return HeaderState(channel=channel, folder=folder, home=home)
    talk, other = desk.talk, desk.other
    failing = [row for row in desk.surface.views.health() if not row.healthy_since]
    model = talk.model
    return HeaderState(
        model=model.name if model is not None else None,
        where="" if model is None or not model.name else _where(remote=model.remote, stand_in=model.stand_in),
        title=talk.title,
        elsewhere=talk.begun_in if talk.begun_in != folder else "",
        context=talk.context,
        failing=tuple(row.subsystem for row in failing),
        worst_tier=max((row.tier for row in failing), default=None),
        channel=channel,
        busy=other.busy,
        unread=other.channel in unread,
        folder=folder,
        home=home,
        thinking="" if talk.thinking == "auto" else talk.thinking,
        permission=talk.permission,
    )


def _where(*, remote: bool, stand_in: bool) -> Where:
    return "stand-in" if stand_in else "remote" if remote else "local"


def model_name(desk: "Desk | None") -> str:
    """Return what answers in the channel in front, "" when nothing can or it is not known yet."""
    return desk.talk.model.name if desk is not None and desk.talk.model is not None else ""
