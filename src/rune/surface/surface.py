"""What a screen gets: the operator, views and commands, and nothing behind them."""

import msgspec

from rune.config.settings import Settings
from rune.surface.commands.registry import Commands
from rune.surface.views import Views
from rune.turn.operator import RuneOperator


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a surface needs."""

    settings: Settings
    operator: RuneOperator
    views: Views
    commands: Commands
