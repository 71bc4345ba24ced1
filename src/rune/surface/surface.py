"""What a screen gets: the operator, views and commands, and nothing behind them."""

from collections.abc import Callable

import msgspec

from rune.config.settings import Settings
from rune.errors import StorageError
from rune.surface.commands.registry import Commands
from rune.surface.drafts import DraftBook
from rune.surface.models import Models
from rune.surface.preferences import Preferences
from rune.surface.prompt_history import PromptHistory
from rune.surface.views import Views
from rune.turn.operator import RuneOperator
from rune.turn.own_shell import OwnShell
from rune.turn.trust import FolderTrust


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a surface needs. What a person types is kept by `drafts` until it is sent, and by `history`; what
    they type behind a `!` is run by `own_commands`.

    `refusal` says why nothing can be written from now on (read-only or full disk, damage, a newer format); None: all
    is well. It may come up at any time. Whatever would write raises an error with the same words.
    """

    settings: Settings
    operator: RuneOperator
    views: Views
    commands: Commands
    models: Models
    trust: FolderTrust
    drafts: DraftBook
    history: PromptHistory
    preferences: Preferences
    refusal: Callable[[], StorageError | None]
    own_commands: OwnShell
