"""How much a model is asked to think, out of what the person chose and what the model can."""

from typing import Final

from rune.errors import CapabilityMissingError
from rune.models.transport import ModelInfo
from rune.records.models import Thinking, ThinkLevel
from rune.turn.flight import ModelRun

# These say of each model what it can. Many servers of OpenAI's kind do not: what they do not take, they refuse.
_TELLING: Final = frozenset({"ollama", "embedded", "scripted"})


def can_think(info: ModelInfo) -> bool:
    """Say whether a model can think, as far as its server tells; where it may, it is asked."""
    return "thinking" in info.capabilities or info.provider not in _TELLING


def check_thinking(thinking: Thinking, info: ModelInfo) -> None:
    """Raise CapabilityMissingError where a model cannot do what is chosen; `off` and `auto` it always can."""
    if thinking not in ("auto", "off") and not can_think(info):
        raise CapabilityMissingError(info.name, "thinking")


def think_level(thinking: Thinking, info: ModelInfo) -> ThinkLevel | None:
    """Return what a call asks for: nothing for `auto`, and nothing but `off` of a model that cannot think."""
    if thinking == "auto":
        return None
    return thinking if thinking == "off" or can_think(info) else None


def not_thinking(thinking: Thinking, run: ModelRun) -> str:
    """Return the name of a model that shall think and cannot, else ""."""
    return run.info.name if thinking not in ("auto", "off") and run.think is None else ""
